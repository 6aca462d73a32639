"""A backbone by name: a frozen prefix whose output can be stored, and a suffix that training tunes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.data.recipe import ImageRecipe
from justright.errors import DataError
from justright.features.checkpoints import CheckpointError, find_checkpoint, spec_of, where_to_put
from justright.features.choices import BackboneSpec, Pooling
from justright.features.cuts import Cut, Stored, cut
from justright.features.fast_cpu import FastModule, MadeOnce
from justright.features.fused_norms import fuse_norms
from justright.features.guarded_timm import Network, timm
from justright.features.joined_networks import JOIN, JoinedCut, JoinedNetworks
from justright.features.state_dicts import State, architecture_in, by_order, positions_for, read, with_timm_names
from justright.hashing import hash_pieces

__all__ = ["Backbone", "Stored", "load_backbone", "random_backbone"]

Images = Float[Tensor, "batch 3 height width"]


class Backbone(nn.Module):
    """A timm network in eval mode for good: dropout is off and batch norm keeps its statistics.

    Images are normalized by `recipe`. `forward(images)` is `suffix(prefix(images))`; only the parameters of the
    last block (ViT) or of what `LastStageCut` takes for the last stage (conv net) require gradients. The final norm
    stays frozen.
    """

    def __init__(self, model: Network, name: str, recipe: ImageRecipe):
        super().__init__()
        self.name = name
        self.recipe = recipe
        self.model: Network = model.eval().requires_grad_(False)
        probe = torch.randn(2, 3, recipe.resolution, recipe.resolution, generator=torch.Generator().manual_seed(0))
        self.cut = (JoinedCut if isinstance(model, JoinedNetworks) else cut)(model, probe.to(self.device))
        if self.cut.is_staged:
            model.to(memory_format=torch.channels_last)  # conv nets run twice as fast so, on CPU and GPU
            fuse_norms(model, self.cut.tuned, probe.to(self.device))
        for path in self.cut.tuned:
            model.get_submodule(path).requires_grad_(True)
        self.probe, self._fast = probe, MadeOnce()
        stored = self._torch_prefix(probe[:1].to(self.device))
        self.stored_shapes = tuple(tuple(part.shape[1:]) for part in stored)
        self.dim: int = self.suffix(stored).shape[-1]

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.model.parameters()).device

    @property
    def stored_names(self) -> tuple[str, ...]:
        """What the stored tensors are: ("n", "x_0"), ("tokens",), ("map",) or ("feature",)."""
        return self.cut.names

    def train(self, mode: bool = True) -> Backbone:
        """The network inside stays in eval mode: only parameters are trained, never statistics."""
        self.training = mode
        return self

    def prefix(self, images: Images) -> Stored:
        """The frozen part: what a bank stores. Never part of a gradient."""
        fast = self._fast_prefix()
        return self._torch_prefix(images) if fast is None else fast(images)

    def _torch_prefix(self, images: Images) -> Stored:
        with torch.inference_mode():
            stored = self.cut.prefix(images)
        return tuple(part.clone(memory_format=torch.contiguous_format) for part in stored)  # ordinary tensors again

    @property
    def runtime(self) -> str:
        """What computes `prefix`: "torch", or a faster one with its version, see `fast_cpu`."""
        fast = self._fast_prefix()
        return "torch" if fast is None else fast.name

    def _fast_prefix(self) -> FastModule | None:
        is_known = self.cut.is_staged or type(self.cut) is Cut
        if not is_known or self.device.type != "cpu":
            return None
        frozen = [part for part in (*self.model.parameters(), *self.model.buffers()) if not part.requires_grad]
        return self._fast.made_of(_Prefix(self), self.probe, lambda: self.prefix_fingerprint, frozen)

    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The tuned part, differentiable in its parameters. Reads stored tensors of any precision."""
        dtype = next(self.model.parameters()).dtype
        return self.cut.suffix(tuple(part.to(self.device, dtype) for part in stored))

    def forward(self, images: Images, pooling: Pooling = "class") -> Float[Tensor, " batch *axes"]:
        """One feature an image, or with "patches" one a patch.

        "class" is what the network itself reads out: the class token after the final norm, or its own pooling where
        it has none; "average" is the mean of the patch tokens; "patches" are all of them.
        """
        if pooling == "class":
            return self.suffix(self.prefix(images))
        tokens = self.tokens(images)
        return tokens.mean(dim=1) if pooling == "average" else tokens

    def tokens(self, images: Images) -> Float[Tensor, "batch patches dim"]:
        """Patch tokens after the final norm, without class and register tokens; a conv net's map, row by row."""
        model = self.model
        x: Tensor = model.forward_features(images)
        if x.ndim == 2:
            raise DataError(f"{self.name} has no patches that could be told apart", expected="the pooling class")
        if x.ndim == 4:
            is_channels_first = getattr(model, "output_fmt", "NCHW") == "NCHW"
            return x.flatten(2).transpose(1, 2) if is_channels_first else x.flatten(1, 2)
        return x[:, getattr(model, "num_prefix_tokens", 0) :]

    def tuned_parameters(self) -> Iterator[nn.Parameter]:
        """What training changes."""
        return (parameter for parameter in self.model.parameters() if parameter.requires_grad)

    def tuned_state(self) -> State:
        """A copy of the tuned parameters by their names in timm."""
        return {name: _plain(p) for name, p in self.model.named_parameters() if p.requires_grad}

    def load_tuned_state(self, state: State) -> None:
        """Take over what `tuned_state` gave."""
        own = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        if state.keys() != own.keys():
            raise CheckpointError(
                f"tuned parameters {sorted(state.keys() ^ own.keys())} do not pair up",
                expected=f"those of {self.name}: {', '.join(self.cut.tuned)}",
            )
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(state[name])

    def full_state_dict(self) -> State:
        """An ordinary timm state dict, trained parameters in their places: usable without this library."""
        return {name: _plain(tensor) for name, tensor in self.model.state_dict().items()}

    @property
    def fingerprint(self) -> str:
        """Names the features: changes with any tensor, the recipe or the name. Read anew at each call."""
        return self._hash(self.model.state_dict())

    @property
    def prefix_fingerprint(self) -> str:
        """Names what `prefix` computes: stays the same while the suffix is tuned."""
        tuned = self.tuned_state()
        return self._hash({name: tensor for name, tensor in self.model.state_dict().items() if name not in tuned})

    def _hash(self, state: State) -> str:
        def pieces() -> Iterator[bytes | memoryview]:
            of_parts = [recipe.as_dict() for recipe in getattr(self.model, "recipes", ())]
            yield json.dumps([self.name, self.recipe.as_dict(), self.stored_names, *of_parts], sort_keys=True).encode()
            for name, tensor in sorted(state.items()):
                yield f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode()
                yield tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data

        return hash_pieces(pieces())


class _Prefix(nn.Module):
    """The frozen part of a backbone as a module of its own."""

    def __init__(self, backbone: Backbone):
        super().__init__()
        self.cut, self.model = backbone.cut, backbone.model

    def forward(self, images: Images) -> Stored:
        return self.cut.prefix(images)


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def load_backbone(
    name: str, checkpoint: Path | None = None, device: str = "cpu", img_size: int | None = None
) -> Backbone:
    """A backbone by its name here or in timm, with its parameters from a file, a package or the hub.

    Two names with a plus between them are two networks side by side, each with its own checkpoint. `img_size` overrides
    the resolution, that of the largest of several; position embeddings are interpolated to it.
    """
    if JOIN in name and checkpoint is not None:
        raise CheckpointError(
            f"one checkpoint, {checkpoint}, for {name}",
            expected="one for each of them, where they are looked for by name",
            advice=" and ".join(where_to_put(part) for part in name.split(JOIN)),
        )

    def filled(part: str, what: BackboneSpec, resolution: int) -> Network:
        file = find_checkpoint(part, checkpoint)
        written = architecture_in(file)
        if written is not None and written.partition(".")[0] != what.architecture.partition(".")[0]:
            raise CheckpointError(f"{file} holds a {written}", expected=f"a {what.architecture} for the name {part}")
        model = _create(what, resolution)
        state = read(file)
        if what.layout == "order" and next(iter(state), "").startswith("_"):
            state = by_order(state, _create(what, resolution, n_classes=1000))
        _fill(model, with_timm_names(state), what, file)
        return model

    return _made(name, device, img_size, filled)


def random_backbone(name: str, device: str = "cpu", img_size: int | None = None) -> Backbone:
    """The network of a name with random parameters: what it costs is known without its checkpoint."""
    return _made(name, device, img_size, lambda part, what, resolution: _create(what, resolution))


def _made(
    name: str, device: str, img_size: int | None, network: Callable[[str, BackboneSpec, int], Network]
) -> Backbone:
    """A backbone of one network or several, each made by `network`."""
    parts = [(part, spec_of(part)) for part in name.split(JOIN)]
    recipes = [_recipe(what) for _, what in parts]
    if img_size is not None:
        largest = max(recipe.resolution for recipe in recipes)
        recipes = [recipe.at(round(recipe.resolution * img_size / largest)) for recipe in recipes]
    networks = [network(*part, recipe.resolution) for part, recipe in zip(parts, recipes, strict=True)]
    if len(networks) == 1:
        return Backbone(networks[0].to(device), name, recipes[0])
    model = JoinedNetworks(networks, recipes)
    return Backbone(model.to(device), name, model.recipe)


def _recipe(what: BackboneSpec) -> ImageRecipe:
    if what.recipe is not None:
        return ImageRecipe(**what.recipe)
    config = timm.models.get_pretrained_cfg(what.architecture)
    if config is None:  # timm has no checkpoint of it, hence no word on images either
        return ImageRecipe()
    resolution = config.input_size[-1]
    interpolation = "bilinear" if config.interpolation == "bilinear" else "bicubic"
    return ImageRecipe(resolution, int(resolution / config.crop_pct), config.mean, config.std, interpolation)


def _create(what: BackboneSpec, resolution: int, n_classes: int = 0) -> Network:
    options = dict(what.options)
    config = timm.models.get_pretrained_cfg(what.architecture)
    if "img_size" in options or (config is not None and config.fixed_input_size):
        options["img_size"] = resolution
    return timm.create_model(what.architecture, pretrained=False, num_classes=n_classes, **options)


def _fill(model: Network, state: State, what: BackboneSpec, file: Path) -> None:
    wanted = model.state_dict()
    if "pos_embed" in state and "pos_embed" in wanted and hasattr(model, "patch_embed"):
        n_prefix = 0 if getattr(model, "no_embed_class", False) else getattr(model, "num_prefix_tokens", 0)
        grid, antialiased = model.patch_embed.grid_size, what.positions == "antialiased"
        state["pos_embed"] = positions_for(state["pos_embed"], n_prefix, grid, antialiased=antialiased)
    missing = wanted.keys() - state.keys()
    wrong = [name for name in wanted.keys() & state.keys() if wanted[name].shape != state[name].shape]
    # heads of a classification or of pre-training are left behind; anything else that is left is another network
    left = [name for name in state.keys() - wanted.keys() if name.partition(".")[0].startswith("blocks")]
    if missing or wrong or left:
        raise CheckpointError(
            f"{file} does not fit {what.architecture}: {len(missing)} tensors are missing {sorted(missing)[:3]}, "
            f"{len(wrong)} have another shape {sorted(wrong)[:3]}, {len(left)} have no place {sorted(left)[:3]}",
            expected=f"the {len(wanted)} tensors of that network",
            advice="check that the name and the checkpoint belong together",
        )
    model.load_state_dict({name: state[name] for name in wanted})
