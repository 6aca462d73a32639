"""Networks of timm by name: how each wants its images, and its parameters from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from justright.data.recipe import ImageRecipe
from justright.features.checkpoints import CheckpointError, find_checkpoint, spec_of, where_to_put
from justright.features.choices import BackboneSpec
from justright.features.guarded_timm import Network, timm
from justright.features.joined_networks import JOIN, JoinedNetworks
from justright.features.state_dicts import State, architecture_in, by_order, positions_for, read, with_timm_names


def loaded_network(name: str, checkpoint: Path | None, img_size: int | None) -> tuple[Network, ImageRecipe]:
    """The network of a name, or several side by side, with the parameters of its checkpoint."""
    if JOIN in name and checkpoint is not None:
        raise CheckpointError(
            f"one checkpoint, {checkpoint}, for {name}",
            expected="one for each of them, where they are looked for by name",
            advice=" and ".join(where_to_put(part) for part in name.split(JOIN)),
        )
    return _joined(name, img_size, partial(_loaded, checkpoint))


def random_network(name: str, img_size: int | None) -> tuple[Network, ImageRecipe]:
    """The network of a name, or several side by side, with random parameters."""
    return _joined(name, img_size, lambda part, what, resolution: _create(what, resolution))


def _joined(
    name: str, img_size: int | None, network: Callable[[str, BackboneSpec, int], Network]
) -> tuple[Network, ImageRecipe]:
    """One network or several, each made by `network`."""
    parts = [(part, spec_of(part)) for part in name.split(JOIN)]
    recipes = [_recipe(what) for _, what in parts]
    if img_size is not None:
        largest = max(recipe.resolution for recipe in recipes)
        recipes = [recipe.at(round(recipe.resolution * img_size / largest)) for recipe in recipes]
    networks = [network(*part, recipe.resolution) for part, recipe in zip(parts, recipes, strict=True)]
    if len(networks) == 1:
        return networks[0], recipes[0]
    model = JoinedNetworks(networks, recipes)
    return model, model.recipe


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


def _loaded(checkpoint: Path | None, name: str, what: BackboneSpec, resolution: int) -> Network:
    file = find_checkpoint(name, checkpoint)
    written = architecture_in(file)
    if written is not None and written.partition(".")[0] != what.architecture.partition(".")[0]:
        raise CheckpointError(f"{file} holds a {written}", expected=f"a {what.architecture} for the name {name}")
    state = read(file)
    if what.layout == "order" and next(iter(state), "").startswith("_"):
        state = by_order(state, _create(what, resolution, n_classes=1000))
    return _filled(_create(what, resolution), with_timm_names(state), what, file)


def _filled(model: Network, state: State, what: BackboneSpec, file: Path) -> Network:
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
    return model
