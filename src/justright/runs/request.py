"""Turn a request into a RunSpec: presets, automatic choices of scale, device and backbone, published settings.

`justright.discover` and the command line both build their spec here, so that they mean the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import Any

from justright.discovery.methods import METHODS
from justright.estimation import BEST
from justright.features.choices import BACKBONES
from justright.runs.given_weights import GIVEN
from justright.runs.spec import AUTO, RunSpec
from justright.selection import DEFAULT_SELECTOR, SELECTORS, BetaSelector
from justright.utils.context import notify
from justright.utils.errors import DataError, JustrightError, MissingDataError, did_you_mean
from justright.utils.files import parsed_json

PRESETS = {
    "paper": "as the equations and tables of the paper have it",
    "official": "as the public code of the paper does it",
}
UNTRAINED = "kmeans"  # the method without training
HELD_OUT = 0.1  # share of the labeled images that calibrates confidences, except at the scale of the paper
PUBLISHED_ENTROPY = dict.fromkeys(("cars", "aircraft", "herbarium19", "imagenet100", "imagenet1k-ssb"), 1.0)
"""`entropy_scale` in SimGCD's scripts by data set, where it is not the default."""


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
    if preset == "official" and "weigh_contrastive" in _settings_of(method):
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
    if spec.scale != "paper" or entropy is None or "entropy_scale" not in _settings_of(spec.method):
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


def _settings_of(method: str) -> set[str]:
    return {field.name for field in fields(METHODS[method].config_class)}


def _fields(selector: str) -> dict[str, Field[Any]]:
    return {field.name: field for field in fields(SELECTORS[selector])}
