"""Networks of timm by name, with the parameters of a checkpoint. No file that is read can run code."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import interpolate

from justright.data.transforms import ImageRecipe
from justright.features.checkpoints import CheckpointError, file_in, find_checkpoint, spec_of
from justright.features.choices import BackboneSpec
from justright.features.guarded_timm import Network, timm
from justright.utils.files import parsed_json

State = dict[str, Tensor]

WRAPPERS = ("state_dict", "model", "teacher", "student")  # keys of parameters in training scripts, preferred first
PREFIXES = ("module.", "backbone.", "dinov2_with_registers.", "dinov2.", "vit.")

TRANSFORMERS_NAMES = (
    ("embeddings.cls_token", "cls_token"),
    ("embeddings.mask_token", "mask_token"),
    ("embeddings.register_tokens", "register_tokens"),
    ("embeddings.position_embeddings", "pos_embed"),
    ("embeddings.patch_embeddings.projection.", "patch_embed.proj."),
    ("encoder.layer.", "blocks."),
    (".attention.output.dense.", ".attn.proj."),
    (".layer_scale1.lambda1", ".ls1.gamma"),
    (".layer_scale2.lambda1", ".ls2.gamma"),
    (".layernorm_before.", ".norm1."),
    (".layernorm_after.", ".norm2."),
    (".intermediate.dense.", ".mlp.fc1."),
    (".mlp.weights_in.", ".mlp.fc1."),
    (".mlp.weights_out.", ".mlp.fc2."),
    (".output.dense.", ".mlp.fc2."),
    ("layernorm.", "norm."),
)
"""Names in transformers' Dinov2Model and ViTModel, and in timm; the first match counts."""

QKV = re.compile(r"(.*)\.attention\.attention\.(query|key|value)\.(weight|bias)")


def read(path: Path) -> State:
    """The tensors of a .safetensors or .pth file, or of the one in a Hugging Face directory."""
    path = file_in(path)
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about unusual pickles before it rejects them
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path} is no plain file of tensors: opening it could run code, so it is not opened",
            expected="a .safetensors file, or a .pth file that torch.load(weights_only=True) reads",
            advice="if you trust the file, load it yourself and save its state dict with safetensors",
        ) from error
    except Exception as error:  # a damaged byte may cause any error
        raise CheckpointError(f"{path} cannot be read: {error}", expected="a complete checkpoint") from error
    for wrapper in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise CheckpointError(f"{path} holds something other than named tensors", expected="a state dict")
    return dict(content)


def architecture_in(path: Path) -> str | None:
    """The architecture in the config.json that timm wrote beside a checkpoint; None without such a file."""
    config = path / "config.json"
    try:
        architecture = parsed_json(config.read_bytes()).get("architecture") if config.exists() else None
        if architecture is None or isinstance(architecture, str):
            return architecture
        raise ValueError(f"its architecture is {architecture!r}")
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{config} cannot be read: {error}", expected="the file that timm wrote") from error


def with_timm_names(state: State) -> State:
    """Rename tensors from transformers' or Facebook's layout to timm's; timm's own pass unchanged."""
    for prefix in PREFIXES:
        if state and any(key.startswith(prefix) for key in state):
            state = {key.removeprefix(prefix): value for key, value in state.items()}
    if "embeddings.cls_token" in state:
        state = _from_transformers(state)
    state.pop("mask_token", None)  # of pre-training; unused and frozen
    if "register_tokens" in state:
        # timm adds no position to class and register tokens of these models: fold the class token's into it
        state["reg_token"] = state.pop("register_tokens")
        state["cls_token"] = state["cls_token"] + state["pos_embed"][:, :1]
        state["pos_embed"] = state["pos_embed"][:, 1:]
    return {key.replace(".mlp.w12.", ".mlp.fc1.").replace(".mlp.w3.", ".mlp.fc2."): state[key] for key in state}


def _from_transformers(state: State) -> State:
    renamed: State = {}
    parts: dict[str, State] = {}
    for key, value in state.items():
        if match := QKV.fullmatch(key):
            block, part, kind = match.groups()
            parts.setdefault(f"{block}.attn.qkv.{kind}", {})[part] = value
        elif not key.startswith(("pooler.", "classifier.")):
            renamed[key] = value
    for key, qkv in parts.items():
        if len(qkv) < 3:
            raise CheckpointError(f"{key} lacks one of query, key, value", expected="all three")
        renamed[key] = torch.cat([qkv["query"], qkv["key"], qkv["value"]])
    for theirs, ours in TRANSFORMERS_NAMES:
        renamed = {key.replace(theirs, ours): value for key, value in renamed.items()}
    return renamed


def by_order(state: State, model: nn.Module) -> State:
    """Rename tensors to the names of a model that has them in the same order."""
    names = model.state_dict().keys()
    if len(state) != len(names):
        raise CheckpointError(f"a checkpoint of {len(state)} tensors", expected=f"{len(names)}")
    return dict(zip(names, state.values(), strict=True))


def positions_for(
    positions: Float[Tensor, "1 old dim"], n_prefix: int, grid: tuple[int, int], *, antialiased: bool
) -> Float[Tensor, "1 new dim"]:
    """Position embeddings interpolated to another grid of patches; the first `n_prefix` stay as they are.

    antialiased: to the exact size (timm, DINOv2 with registers). Otherwise by the factor (size + 0.1) / old size,
    as in the code of DINO and DINOv2 without registers; 0.1 guards against rounding down.
    """
    n_old = positions.shape[1] - n_prefix
    if n_old == grid[0] * grid[1]:
        return positions
    if (side := round(n_old**0.5)) ** 2 != n_old:
        raise CheckpointError(f"position embeddings for {n_old} patches", expected="a square grid of patches")
    square = positions[:, n_prefix:].float().reshape(1, side, side, -1).permute(0, 3, 1, 2)
    if antialiased:
        resized = interpolate(square, size=grid, mode="bicubic", antialias=True)
    else:
        factors = tuple((new + 0.1) / side for new in grid)
        resized = interpolate(square, scale_factor=factors, mode="bicubic")
    patches = resized.permute(0, 2, 3, 1).flatten(1, 2).to(positions.dtype)
    return torch.cat([positions[:, :n_prefix], patches], dim=1)


def random_network(name: str, img_size: int | None) -> tuple[Network, ImageRecipe]:
    """A network by name, with random parameters, and how its images are prepared."""
    spec = spec_of(name)
    recipe = _recipe(spec, img_size)
    return _create(spec, recipe.resolution), recipe


def loaded_network(name: str, checkpoint: Path | None, img_size: int | None) -> tuple[Network, ImageRecipe]:
    """A network by name, with the parameters of its checkpoint, and how its images are prepared."""
    spec, file = spec_of(name), find_checkpoint(name, checkpoint)
    architecture = architecture_in(file)
    if architecture is not None and architecture.partition(".")[0] != spec.architecture.partition(".")[0]:
        raise CheckpointError(f"{file} holds a {architecture}", expected=f"a {spec.architecture} for the name {name}")
    network, recipe = random_network(name, img_size)
    state = read(file)
    if spec.layout == "order" and next(iter(state), "").startswith("_"):
        state = by_order(state, _create(spec, recipe.resolution, n_classes=1000))
    return _with_parameters(network, with_timm_names(state), spec, file), recipe


def _recipe(spec: BackboneSpec, img_size: int | None) -> ImageRecipe:
    config = timm.models.get_pretrained_cfg(spec.architecture)
    if spec.recipe is not None:
        recipe = ImageRecipe(**spec.recipe)
    elif config is None:  # timm has no checkpoint of it
        recipe = ImageRecipe()
    else:
        size = config.input_size[-1]
        interpolation = "bilinear" if config.interpolation == "bilinear" else "bicubic"
        recipe = ImageRecipe(size, int(size / config.crop_pct), config.mean, config.std, interpolation)
    return recipe if img_size is None else recipe.at(img_size)


def _create(spec: BackboneSpec, resolution: int, n_classes: int = 0) -> Network:
    options = dict(spec.options)
    config = timm.models.get_pretrained_cfg(spec.architecture)
    if "img_size" in options or (config is not None and config.fixed_input_size):
        options["img_size"] = resolution
    return timm.create_model(spec.architecture, pretrained=False, num_classes=n_classes, **options)


def _with_parameters(model: Network, state: State, spec: BackboneSpec, file: Path) -> Network:
    expected = model.state_dict()
    if "pos_embed" in state and "pos_embed" in expected and hasattr(model, "patch_embed"):
        n_prefix = 0 if getattr(model, "no_embed_class", False) else getattr(model, "num_prefix_tokens", 0)
        grid, antialiased = model.patch_embed.grid_size, spec.positions == "antialiased"
        state["pos_embed"] = positions_for(state["pos_embed"], n_prefix, grid, antialiased=antialiased)
    missing = expected.keys() - state.keys()
    wrong = [name for name in expected.keys() & state.keys() if expected[name].shape != state[name].shape]
    # heads of classification or pre-training are ignored; unused blocks mean another network
    unused = [name for name in state.keys() - expected.keys() if name.partition(".")[0].startswith("blocks")]
    if missing or wrong or unused:
        raise CheckpointError(
            f"{file} does not fit {spec.architecture}: {len(missing)} tensors are missing {sorted(missing)[:3]}, "
            f"{len(wrong)} have another shape {sorted(wrong)[:3]}, {len(unused)} are unused {sorted(unused)[:3]}",
            expected=f"the {len(expected)} tensors of that network",
            advice="check that the name and the checkpoint belong together",
        )
    model.load_state_dict({name: state[name] for name in expected})
    return model
