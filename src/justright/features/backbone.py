"""A backbone by name: a frozen prefix whose output can be stored, and a suffix that training tunes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from justright.data.transforms import ImageRecipe
from justright.features.checkpoints import CheckpointError
from justright.features.choices import Pooling
from justright.features.cuts import Cut, Stored, cut
from justright.features.fast_cpu import FastModule, NetworkPart, cached_module
from justright.features.guarded_timm import Network
from justright.features.networks import State, loaded_network, random_network
from justright.utils.errors import DataError
from justright.utils.hashing import hash_pieces

__all__ = ["Backbone", "Stored", "load_backbone", "random_backbone"]

Images = Float[Tensor, "batch 3 height width"]


class Backbone(nn.Module):
    """A timm network that stays in eval mode: dropout is off and batch norm keeps its statistics.

    Images are normalized by `recipe`. `forward(images)` is `suffix(prefix(images))`; only the parameters of the
    last block (ViT) or of the last stage as `LastStageCut` defines it (conv net) require gradients. The final norm
    stays frozen.
    """

    is_unchanging = False  # set by the owner of a network that is never tuned itself, so that it is hashed only once
    _hashes: Mapping[tuple[str, ...], str] = MappingProxyType({})  # of such a network, by the tensors left out

    def __init__(self, model: Network, name: str, recipe: ImageRecipe):
        super().__init__()
        self.name = name
        self.recipe = recipe
        self.model: Network = model.eval().requires_grad_(False)
        probe = torch.randn(2, 3, recipe.resolution, recipe.resolution, generator=torch.Generator().manual_seed(0))
        self.cut = cut(model, probe.to(self.device))
        if self.cut.is_staged:
            model.to(memory_format=torch.channels_last)  # conv nets run twice as fast so, on CPU and GPU
        for path in self.cut.tuned:
            model.get_submodule(path).requires_grad_(True)
        self.probe = probe
        self._fast: FastModule | None = None
        self._compiled_versions: list[tuple[int, int]] = []
        # what the stored tensors are: ("n", "x_0"), ("tokens",), ("map",) or ("feature",)
        self.stored_names = self.cut.names
        stored = self._torch_prefix(probe[:1].to(self.device))
        self.stored_shapes = tuple(tuple(part.shape[1:]) for part in stored)
        self.dim: int = self.suffix(stored).shape[-1]

    def __repr__(self) -> str:
        """In one line; `model` shows every layer."""
        size = self.recipe.resolution
        return f"{type(self).__name__}({self.name}: {self.dim} numbers from {size} x {size} pixels, {self.device})"

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.model.parameters()).device

    def train(self, mode: bool = True) -> Backbone:
        """The timm network stays in eval mode: only parameters are trained, never statistics."""
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
        """The compiled prefix; it is compiled again after a frozen tensor has changed."""
        if self.device.type != "cpu" or not (self.cut.is_staged or type(self.cut) is Cut):
            return None
        tensors = [*self.model.parameters(), *self.model.buffers()]
        versions = [(tensor.data_ptr(), tensor._version) for tensor in tensors if not tensor.requires_grad]
        if versions != self._compiled_versions:
            self._fast = cached_module(self.prefix_fingerprint, NetworkPart(self.model, self.cut.prefix), self.probe)
            self._compiled_versions = versions
        return self._fast

    def __getstate__(self) -> dict[str, Any]:
        """For copies and other processes. A copy may be tuned, which changes all but its frozen part."""
        frozen = {names: digest for names, digest in self._hashes.items() if names}
        return self.__dict__ | {"_fast": None, "_compiled_versions": [], "_hashes": frozen, "is_unchanging": False}

    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The tuned part, differentiable in its parameters. Reads stored tensors of any precision."""
        dtype = next(self.model.parameters()).dtype
        return self.cut.suffix(tuple(part.to(self.device, dtype) for part in stored))

    def forward(self, images: Images, pooling: Pooling = "class") -> Float[Tensor, " batch *axes"]:
        """One feature per image, or with "patches" one per patch.

        "class" is what the network itself reads out: the class token after the final norm, or its own pooling where
        it has none; "average" is the mean of the patch tokens after that norm; "patches" are all of them, row by row.
        """
        if pooling == "class":
            return self.suffix(self.prefix(images))
        tokens: Tensor = self.model.forward_features(images)
        if tokens.ndim == 2:
            raise DataError(f"{self.name} has no separate patches", expected="the pooling class")
        if tokens.ndim == 4:  # a conv net's map
            is_channels_first = getattr(self.model, "output_fmt", "NCHW") == "NCHW"
            tokens = tokens.flatten(2).transpose(1, 2) if is_channels_first else tokens.flatten(1, 2)
        else:  # without class and register tokens
            tokens = tokens[:, getattr(self.model, "num_prefix_tokens", 0) :]
        return tokens.mean(dim=1) if pooling == "average" else tokens

    def tuned_parameters(self) -> Iterator[nn.Parameter]:
        """The parameters that training changes."""
        return iter(self._tuned().values())

    def tuned_state(self) -> State:
        """A copy of the tuned parameters by their names in timm."""
        return {name: _contiguous_copy(parameter) for name, parameter in self._tuned().items()}

    def load_tuned_state(self, state: State) -> None:
        """Load a result of `tuned_state`."""
        own = self._tuned()
        if state.keys() != own.keys():
            raise CheckpointError(
                f"tuned parameters {sorted(state.keys() ^ own.keys())} do not match",
                expected=f"those of {self.name}: {', '.join(self.cut.tuned)}",
            )
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(state[name])

    def _tuned(self) -> dict[str, nn.Parameter]:
        parameters: dict[str, nn.Parameter] = {}
        for path in self.cut.tuned:
            parameters |= self.model.get_submodule(path).named_parameters(path)
        return {name: parameter for name, parameter in parameters.items() if parameter.requires_grad}

    def full_state_dict(self) -> State:
        """An ordinary timm state dict with the trained parameters: usable without this library."""
        return {name: _contiguous_copy(tensor) for name, tensor in self.model.state_dict().items()}

    @property
    def fingerprint(self) -> str:
        """Identifies the features: changes with any tensor, the recipe or the name."""
        return self._hash({})

    @property
    def prefix_fingerprint(self) -> str:
        """Identifies what `prefix` computes: stays the same while the suffix is tuned."""
        return self._hash(self._tuned())

    def _hash(self, left_out: Mapping[str, Tensor]) -> str:
        """Hash the tensors without those left out: at each call, or once for a network that does not change."""
        names = tuple(sorted(left_out))
        if names in self._hashes:
            return self._hashes[names]
        state = self.model.state_dict()
        digest = hash_pieces(self._pieces({each: state[each] for each in state if each not in left_out}))
        if self.is_unchanging:
            self._hashes = {**self._hashes, names: digest}
        return digest

    def _pieces(self, state: State) -> Iterator[bytes | memoryview]:
        yield json.dumps([self.name, asdict(self.recipe), self.stored_names], sort_keys=True).encode()
        for name, tensor in sorted(state.items()):
            yield f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode()
            yield tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def _contiguous_copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def load_backbone(
    name: str, checkpoint: Path | None = None, device: str = "cpu", img_size: int | None = None
) -> Backbone:
    """Load a backbone by its name here or in timm, with its parameters from a file, a package or the hub.

    `img_size` overrides the resolution; position embeddings are interpolated to it.
    """
    network, recipe = loaded_network(name, checkpoint, img_size)
    return Backbone(network.to(device), name, recipe)


def random_backbone(name: str, device: str = "cpu", img_size: int | None = None) -> Backbone:
    """A network by name with random parameters: enough to measure its speed."""
    network, recipe = random_network(name, img_size)
    return Backbone(network.to(device), name, recipe)
