"""RunSpec: all settings of a run as plain values; how a request becomes one, and the config that follows from it.

`justright.discover` and the command line both build their spec here, so that they mean the same thing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from justright.discovery.methods import METHODS, is_trained
from justright.estimation import BEST
from justright.features.choices import BACKBONES
from justright.runs.problem import PoolRole
from justright.selection import DEFAULT_SELECTOR, SELECTORS, BetaSelector
from justright.utils.context import notify
from justright.utils.errors import DataError, JustrightError, MissingDataError, did_you_mean
from justright.utils.files import parsed_json
from justright.utils.hashing import hash_file
from justright.utils.remote import Place
from justright.utils.settings import flat

GIVEN = "given"  # the selector of a run whose weights come from a file
AUTO = "auto"  # the selector, device, network or scale is chosen automatically
Scale = Literal["paper", "full", "small"]
# paper: as the scripts of a publication run it; full: the same with stored views; small: lighter settings for a CPU
SCALES: tuple[str, ...] = get_args(Scale)

Answer = Literal["joint", "method"]
ANSWERS: tuple[str, ...] = get_args(Answer)
"""Where categories come from: the method together with clusters of its features, or the method alone, as published."""

# settings with an option of `justright discover`
OWN_OPTIONS = {"n_epochs": "--epochs", "minutes": "--minutes", "held_out_share": "--held-out"}


PRESETS = {
    "paper": "as the equations and tables of the paper have it",
    "official": "as the public code of the paper does it",
}
UNTRAINED = "kmeans"  # the method without training
HELD_OUT = 0.1  # share of the labeled images that calibrates confidences, except at the scale of the paper
PUBLISHED_ENTROPY = dict.fromkeys(("cars", "aircraft", "herbarium19", "imagenet100", "imagenet1k-ssb"), 1.0)
"""`entropy_scale` in SimGCD's scripts by data set, where it is not the default."""


@dataclass(frozen=True)
class RunSpec:
    """One selector, one method, one seed."""

    pool_role: PoolRole = "guide"  # whether classes of the pool only guide learning or are categories too
    selector: str = DEFAULT_SELECTOR  # which classes of the pool to learn from; "auto" lets the diagnosis choose
    selector_params: Mapping[str, Any] = field(default_factory=dict)  # what differs from the defaults of the selector
    weights: Path | None = None  # a file of weights, in place of a selector
    select_labeled: bool = False  # weigh the target's own classes as well, which otherwise keep the weight 1
    n_resamples: int = 10  # resamples on which the selection is repeated to measure its stability; 0 for none
    weighting: str = "auto"  # how weights act in training, one of `WEIGHTINGS`
    method: str = "simgcd"  # one of `METHODS`
    scale: Scale = "full"  # defaults of the method, those of its scripts (`Config.exact`), or lighter (`Config.small`)
    settings: Mapping[str, Any] = field(default_factory=dict)  # what differs from these defaults
    backbone: str = "dinov2_vitb14"  # the network that gives the features
    checkpoint: Path | None = None  # of the network; None to look for it by name
    img_size: int | None = None
    device: str = "cpu"
    features: tuple[Place, ...] = ()  # stores with features of the images
    n_target: int | None = None  # K, the number of categories in the target; None estimates it
    counter: str = BEST  # what estimates K, one of `COUNTERS`
    seed: int = 0  # same seed, same result
    n_seeds: int = 1  # number of seeds, from this one on; their trainings give one answer together
    answer: Answer = "method"  # where categories come from; the command line has the default joint

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; files by their content, so that they may be moved."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=os.fspath))
        if self.weights is not None:
            plain["weights"] = {"content": _content(self.weights)}
        if self.checkpoint is not None:
            from justright.features.checkpoints import file_in

            plain["checkpoint"] = {"content": _content(file_in(self.checkpoint))}
        # the header of a store has the hash of all its other files
        return plain | {"features": sorted(_content(store / "store.json") for store in self.features) or None}


def _content(file: Place) -> str:
    if not file.is_file():
        raise MissingDataError(f"no such file: {file}")
    return hash_file(file)


def config_of(spec: RunSpec) -> Any:
    """The config of the method at the scale of the spec, changed by its settings; seeds share `minutes`.

    Raises for settings that are unknown or have no effect.
    """
    config = METHODS[spec.method].config_class()
    if spec.scale == "small":
        config = config.small()
    if spec.scale == "paper":
        config = config.exact()
    known = {each.name for each in fields(config)}
    for name in sorted(set(spec.settings) - known):
        trained = (METHODS[method].config_class for method in METHODS if is_trained(method))
        if not is_trained(spec.method) and any(name == each.name for kind in trained for each in fields(kind)):
            option = OWN_OPTIONS.get(name, f"--set {name}")
            raise JustrightError(f"{spec.method} does not train, so {option} does not apply", advice="leave it out")
        raise JustrightError(
            f"{spec.method} has no setting {name!r}",
            expected=f"one of {', '.join(sorted(known))}",
            advice=did_you_mean(name, known) or f"`justright settings {spec.method}` explains them",
        )
    made = config.with_settings(spec.settings)
    for name in flat(spec.settings):
        if name in made.without_effect:
            raise JustrightError(
                f"{name} does nothing in {spec.method}: {made.without_effect[name]}",
                expected="settings that have an effect",
                advice="leave it out",
            )
    if (minutes := getattr(made, "minutes", None)) is None:
        return made
    return config.with_settings(dict(spec.settings) | {"minutes": minutes / spec.n_seeds})


def make_spec(
    *,
    device: str,
    method: str = AUTO,
    scale: str = AUTO,
    epochs: int | None = None,
    minutes: float | None = None,
    held_out: float | None = None,
    settings: Mapping[str, Any] | None = None,
    selector: str | None = None,
    selector_params: Mapping[str, Any] | None = None,
    preset: str | None = None,
    weights: Path | None = None,
    answer: str | None = None,
    **others: Any,
) -> RunSpec:
    """The spec of a run; None stands for the default, which may depend on scale and preset.

    Parameters:
        method: `auto` stands for the trained default until `resolve_method` knows the network.
        settings: settings of the method; they take precedence over epochs, minutes and held_out.
        others: fields of RunSpec, taken as they are.
    """
    method = RunSpec.method if method == AUTO else method
    if preset is not None and preset not in PRESETS:
        raise JustrightError(f"the preset {preset!r}", expected=f"one of {', '.join(PRESETS)}")
    if weights is not None and (selector or preset):
        raise JustrightError("--weights together with --selector or --preset", expected="only one of them")
    scale = resolve_scale(scale, device)
    if held_out is None:
        held_out = 0.0 if scale == "paper" else HELD_OUT
    given = {"held_out_share": held_out, "n_epochs": epochs, "minutes": minutes}
    values = {name: value for name, value in given.items() if value is not None} | dict(settings or {})
    if preset is not None:  # the paper and its code also select among the target's own labeled classes
        others["select_labeled"], selector = True, selector or "beta"
    if preset == "paper":
        others["pool_role"] = "rival"
    if preset == "official" and hasattr(METHODS[method].config_class, "weigh_contrastive"):
        values = {"weigh_contrastive": False} | values
    selector, params = selector or DEFAULT_SELECTOR, selector_params or {}
    if others.get("n_target") is None and isinstance(params.get("n_clusters"), int):
        others["n_target"] = params["n_clusters"]
    return RunSpec(
        device=device,
        method=method,
        scale=scale,  # type: ignore[arg-type]
        settings=values,
        selector_params=checked_params(selector, params, preset),
        selector=selector if weights is None else GIVEN,
        weights=weights,
        answer=answer or ("method" if scale == "paper" or preset else "joint"),  # type: ignore[arg-type]
        **others,
    )


def checked_params(selector: str, params: Mapping[str, Any], preset: str | None = None) -> dict[str, Any]:
    """The parameters of a selector; raises for those that it does not have.

    `n_clusters` is accepted for every selector, because it is a property of the target.
    """
    known = _fields(selector) if selector != AUTO else {}
    for name in params.keys() - {"n_clusters", *known}:
        owners = [each for each in SELECTORS if name in _fields(each)]
        if not owners:
            expected = f"one of {', '.join(known)}"
            raise JustrightError(
                f"{selector} has no parameter {name!r}", expected=expected, advice=did_you_mean(name, known)
            )
        is_on = _fields(owners[0])[name].default is True  # the option turns it off
        option = f"--{'no-' if is_on else ''}{name.replace('_', '-')}"
        raise JustrightError(
            f"--selector {selector} together with {option}",
            expected=f"{option} belongs to {' and '.join(owners)}",
            advice=f"leave out {option}",
        )
    if preset == "official":
        if selector != "beta" or params.keys() - {"n_clusters"}:
            raise JustrightError(f"--preset {preset}", expected="--selector beta and no other option of it")
        params = BetaSelector.official().get_params()
    return {name: value for name, value in params.items() if name in known and name != "seed"}


def resolve_scale(scale: str, device: str) -> Any:
    """`auto` is small on a CPU, else full."""
    return ("small" if device == "cpu" else "full") if scale == AUTO else scale


def resolve_device(device: str, previous: str = "") -> str:
    """`auto` is the device of the run that is resumed, or the best one that torch can use."""
    if device != AUTO:
        return device
    from justright.features.automatic import Choice, choose_device

    choice = Choice(previous, "as before") if previous else choose_device()
    notify(f"Device: {choice.name} ({choice.why}).")
    return choice.name


def resolve_backbone(backbone: str, device: str, checkpoint: Path | None, previous: str = "") -> tuple[str, str]:
    """The name of a backbone and why it was chosen; `auto` is that of the resumed run, or the best available one."""
    if backbone != AUTO:
        return backbone, "requested"
    if checkpoint is not None and not previous:
        raise JustrightError(
            f"--checkpoint {checkpoint} without --backbone",
            expected="the name of the network that it belongs to",
            advice="such as --backbone dinov2_vitb14",
        )
    from justright.features.automatic import Choice, choose_backbone

    choice = Choice(previous, "as before") if previous else choose_backbone(device)
    notify(f"Network: {choice.name} ({choice.why}).")
    return choice.name, f"auto: {choice.why}"


def with_published_settings(spec: RunSpec, datasets: Sequence[str]) -> RunSpec:
    """At the scale of the paper, add what its scripts set for the data set of the target."""
    entropy = PUBLISHED_ENTROPY.get(datasets[0]) if len(datasets) == 1 else None
    if spec.scale != "paper" or entropy is None or not hasattr(METHODS[spec.method].config_class, "entropy_scale"):
        return spec
    return replace(spec, settings={"entropy_scale": entropy} | dict(spec.settings))


def resolve_method(spec: RunSpec, has_pool: bool, has_vectors: bool = False, previous: str = "") -> RunSpec:
    """The spec with the method that `auto` stands for: that of the resumed run, or the best one for the network.

    Nothing is trained on given features, nor with a network that gains nothing by it, unless the request needs a
    training: a pool, which only guides training, a selection, several seeds, settings of a training, the method's own
    answer, or a larger scale. Measured in docs/research/discovery.md.
    """
    if previous:
        return replace(spec, method=previous)
    needs_training = (
        has_pool
        or spec.weights is not None
        or spec.select_labeled
        or spec.n_seeds > 1
        or bool(spec.settings.keys() - {"held_out_share"})
        or (spec.answer, spec.scale) != ("joint", "small")
    )
    gains = not has_vectors and (spec.backbone not in BACKBONES or BACKBONES[spec.backbone].gains_by_training)
    if gains or needs_training:
        return replace(spec, method=RunSpec.method)
    why = "of given features" if has_vectors else f"with {spec.backbone}, which has learned from labeled photos"
    notify(f"No training: {why}, it brought nothing on average. --method {RunSpec.method} trains.")
    return replace(spec, method=UNTRAINED)


def number_of_categories(k: int | float | str | Path | None) -> int | None:
    """K as a number, or from a file that `justright estimate --out` wrote; None if it is to be estimated."""
    if k is None:
        return None
    if isinstance(k, float):
        raise JustrightError(f"k = {k}", expected=f"a whole number, such as {max(2, round(k))}")
    number = int(str(k)) if str(k).isdecimal() else _estimate_in(Path(str(k)))
    if number < 2:
        raise JustrightError(
            f"--k {number} is too small", expected="at least 2 categories", advice="omit --k to estimate the number"
        )
    return number


def _estimate_in(file: Path) -> int:
    """The combined estimate in a file of `justright estimate`, or the only one."""
    expected = "a number, or a file that `justright estimate --out` wrote"
    if not file.is_file():
        raise MissingDataError(f"--k {file}: no such file", expected=expected)
    try:
        estimates = parsed_json(file.read_text(encoding="utf-8"))["estimates"]
        if BEST not in estimates and len(estimates) != 1:
            raise ValueError(f"{len(estimates)} estimates")
        number = estimates[BEST if BEST in estimates else min(estimates)]["n_categories"]
        if type(number) is not int:
            raise ValueError(number)
        return number
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise DataError(f"{file} does not hold a number of categories: {error!r}", expected=expected) from error


def _fields(selector: str) -> dict[str, Field[Any]]:
    return {field.name: field for field in fields(SELECTORS[selector])}
