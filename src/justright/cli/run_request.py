"""What `justright discover` is asked for: options, some of which other commands share, and the spec from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

from justright.cli.common import COUNT, NameOf, is_given
from justright.cli.selector_options import asked_selector, given_params
from justright.discovery.methods import METHODS
from justright.estimation import BEST
from justright.runs.given_weights import GIVEN
from justright.runs.spec import AUTO, SCALES, RunSpec
from justright.utils.errors import DataError, JustrightError, MissingDataError
from justright.utils.files import parsed_json

method_option = click.option(
    "--method", type=NameOf(METHODS), default=RunSpec.method, help="How the categories are learned; see below."
)
scale_option = click.option(
    "--scale",
    type=click.Choice([AUTO, *SCALES]),
    default=AUTO,
    help="Settings of the method. paper: exactly as published, with new views at every step; full: the same with views "
    "that are stored, which is quicker; small: fewer epochs and smaller heads; auto: small on a CPU, else full.",
)
epochs_option = click.option("--epochs", type=COUNT, help="Number of epochs; without it as many as --scale says.")
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change any other setting; may be repeated. `justright settings METHOD` lists them.",
)
HELD_OUT = 0.1
WORDS = {"None": None, "True": True, "False": False}  # as help texts and defaults have them; JSON writes them otherwise
PUBLISHED_ENTROPY = dict.fromkeys(("cars", "aircraft", "herbarium19", "imagenet100", "imagenet1k-ssb"), 1.0)
"""What SimGCD's scripts set `entropy_scale` to, by data set, where it is not the default."""


minutes_option = click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="Minutes that training may take, roughly; --seeds share them.",
)
held_out_option = click.option(
    "--held-out",
    type=click.FloatRange(0, 0.9),
    default=HELD_OUT,
    help="Share of the --labeled images that is kept out of training, to calibrate confidences on; with --scale "
    "paper the default is 0.",
)
seeds_option = click.option(
    "--seeds", "n_seeds", type=COUNT, default=1, help="Train with so many seeds, which give one answer together."
)


def training_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --method, --scale, --epochs, --set, --minutes, --held-out and --seeds."""
    length = minutes_option(held_out_option(seeds_option(command)))
    return method_option(scale_option(epochs_option(set_option(length))))


def run_spec(
    *,
    preset: str | None,
    scale: str,
    epochs: int | None,
    minutes: float | None,
    held_out: float,
    settings: tuple[str, ...],
    **options: Any,
) -> RunSpec:
    """What the options ask for; those that are no field of RunSpec are parameters of the selector."""
    asked = {field.name: options.pop(field.name) for field in fields(RunSpec) if field.name in options}
    if asked["weights"] is not None and (is_given("selector") or preset):
        raise JustrightError("--weights together with --selector or --preset", expected="only one of them")
    if preset is not None:  # both weigh own labels; the public code knows no pool, so its role stays as asked for
        asked |= {"select_labeled": True, "selector": asked_selector(asked["selector"], preset)}
    if preset == "paper":
        asked["pool_role"] = "rival"
    if asked["n_target"] is None:
        asked["n_target"] = options.get("n_clusters")
    params = given_params(asked["selector"], options, preset)
    official = preset == "official" and "weigh_contrastive" in _settings_of(asked["method"])
    training = training_spec(asked.pop("method"), asked["device"], scale, epochs, minutes, held_out, settings)
    asked["answer"] = asked["answer"] or ("method" if training.scale == "paper" or preset else "joint")
    return replace(
        training,
        selector_params=params,
        settings=({"weigh_contrastive": False} if official else {}) | dict(training.settings),
        **asked | ({} if asked["weights"] is None else {"selector": GIVEN}),
    )


def training_spec(
    method: str,
    device: str,
    scale: str,
    epochs: int | None,
    minutes: float | None,
    held_out: float,
    settings: tuple[str, ...],
) -> RunSpec:
    """What `training_options` ask for; a setting counts more than the option of its name."""
    taken = chosen_scale(scale, device)
    chosen = {"held_out_share": held_out if taken != "paper" or is_given("held_out") else 0.0}
    length = {name: value for name, value in (("n_epochs", epochs), ("minutes", minutes)) if value is not None}
    return RunSpec(method=method, device=device, scale=taken, settings=chosen | length | read_settings(settings))


def chosen_scale(scale: str, device: str) -> Any:
    """What auto stands for."""
    return ("small" if device == "cpu" else "full") if scale == AUTO else scale


def as_published(spec: RunSpec, datasets: Sequence[str]) -> RunSpec:
    """The same at the scale of the paper, with what its scripts set for the data set of the target."""
    own = PUBLISHED_ENTROPY.get(datasets[0]) if len(datasets) == 1 else None
    if spec.scale != "paper" or own is None or "entropy_scale" not in _settings_of(spec.method):
        return spec
    return replace(spec, settings={"entropy_scale": own} | dict(spec.settings))


def _settings_of(method: str) -> set[str]:
    return {field.name for field in fields(METHODS[method].config_class)}


def read_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE as a dictionary; a value is JSON or None, True, False where it can be read as such, else text."""
    found: dict[str, Any] = {}
    for each in settings:
        name, equals, value = each.partition("=")
        if not equals:
            raise JustrightError(f"--set {each}", expected="NAME=VALUE, such as --set views=8")
        try:
            found[name.replace("-", "_")] = parsed_json(value)
        except ValueError:
            found[name.replace("-", "_")] = WORDS.get(value, value)
    return found


class CategoryCount(click.ParamType):  # type: ignore[type-arg]
    """A number of categories, or a file that `justright estimate --out` wrote."""

    name = "number|file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or what the file says."""
        number = int(value) if str(value).isdecimal() else estimated(Path(value))
        if number < 2:
            self.fail(f"{number} categories: at least 2 are expected", param, ctx)
        return number


def estimated(file: Path) -> int:
    """The number of categories in a file of `justright estimate`: the combined estimate, or the only one."""
    if not file.is_file():
        raise MissingDataError(
            f"--k {file}: no such file", expected="a number, or a file that `justright estimate --out` wrote"
        )
    try:
        estimates = parsed_json(file.read_text(encoding="utf-8"))["estimates"]
        found = estimates[BEST if BEST in estimates else min(estimates)]["n_categories"]
        if type(found) is not int or (BEST not in estimates and len(estimates) > 1):
            raise ValueError(f"{len(estimates)} estimates")
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise DataError(
            f"{file} does not say how many categories there are: {error!r}",
            expected="a file that `justright estimate --out` wrote",
        ) from error
    return found
