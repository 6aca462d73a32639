"""Networks of timm by name: how each wants its images, and its parameters from a checkpoint."""

from __future__ import annotations

from pathlib import Path

from justright.data.transforms import ImageRecipe
from justright.features.checkpoints import CheckpointError, find_checkpoint, spec_of
from justright.features.choices import BackboneSpec
from justright.features.guarded_timm import Network, timm
from justright.features.state_dicts import State, architecture_in, by_order, positions_for, read, with_timm_names


def loaded_network(name: str, checkpoint: Path | None, img_size: int | None) -> tuple[Network, ImageRecipe]:
    """A network by name, with the parameters of its checkpoint, and how it wants its images."""
    spec = spec_of(name)
    recipe = _recipe(spec, img_size)
    return _loaded(checkpoint, name, spec, recipe.resolution), recipe


def random_network(name: str, img_size: int | None) -> tuple[Network, ImageRecipe]:
    """A network by name, with random parameters."""
    spec = spec_of(name)
    recipe = _recipe(spec, img_size)
    return _create(spec, recipe.resolution), recipe


def _recipe(what: BackboneSpec, img_size: int | None) -> ImageRecipe:
    recipe = _own_recipe(what)
    return recipe if img_size is None else recipe.at(img_size)


def _own_recipe(what: BackboneSpec) -> ImageRecipe:
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
