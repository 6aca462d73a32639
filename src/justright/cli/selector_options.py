"""The parameters of the selectors as options of a command, under the names the library has for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import click

from justright.errors import JustrightError
from justright.selection import SELECTORS, BetaSelector, Selector
from justright.selection.clustered import ClusteredSelector

REDUCTIONS = ("min", "median", "max")
PRESETS = ("paper", "official")
AUTO = "auto"


class Reduction(click.ParamType):  # type: ignore[type-arg]
    """min, median, max, or a quantile."""

    name = "min|median|max|QUANTILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        """Words stay, everything else must be a number."""
        if value in REDUCTIONS:
            return str(value)
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither min, median, max nor a number", param, ctx)


OPTIONS: dict[str, Callable[[Any], Any]] = {
    "alpha": click.option("--alpha", type=float, help="beta: shape (5)."),
    "beta": click.option("--beta", type=float, help="beta: shape (5)."),
    "reduction": click.option("--reduction", type=Reduction(), help="beta: of the cosines to the target (min)."),
    "domain": click.option(
        "--domain",
        type=click.Choice(["clip", "affine", "minmax", "rank", "target", "raw"]),
        help="beta: how a cosine comes to [0, 1] (clip).",
    ),
    "normalize": click.option(
        "--normalize", type=click.Choice(["none", "max", "mean"]), help="beta: of the weights (none)."
    ),
    "level": click.option("--level", type=click.Choice(["class", "image"]), help="beta: what is weighed (class)."),
    "threshold": click.option("--threshold", type=float, help="beta: weights above become 1, others 0."),
    "weight_range": click.option("--weight-range", type=float, nargs=2, help="beta: smallest and largest weight."),
    "n_bins": click.option("--n-bins", type=int, help="bins: how many (2)."),
    "keep_bin": click.option("--keep-bin", type=int, help="bins: which one, from 1, the nearest (the last)."),
    "n_splits": click.option("--n-splits", type=int, help="bins: random halvings of the target (10)."),
    "discard": click.option("--no-discard", is_flag=True, help="bins: discard nothing as too far."),
    "select": click.option("--no-select", is_flag=True, help="bins: keep all that is not too far."),
    "combine": click.option(
        "--combine", type=click.Choice(["average", "majority"]), help="bins: what splits say together (average)."
    ),
    "equal": click.option(
        "--equal", type=click.Choice(["classes", "images"]), help="bins: what bins have equally many of (classes)."
    ),
    "share": click.option("--share", type=click.FloatRange(0, 1), help="random: of the classes, to keep (0.5)."),
    "n_classes": click.option("--n-classes", type=int, help="cui: how many to keep (half)."),
    "gamma": click.option("--gamma", type=float, help="cui: scale of the similarity (0.01)."),
    "greedy": click.option(
        "--greedy", type=click.Choice(["single", "marginal"]), help="cui: how classes are added (single)."
    ),
    "metric": click.option(
        "--metric", type=click.Choice(["euclidean", "cosine", "l2"]), help="bins, cui: the distance (euclidean)."
    ),
    "mass": click.option(
        "--mass", type=click.Choice(["images", "uniform"]), help="bins, cui: what a class weighs in transport (images)."
    ),
    "n_clusters": click.option(
        "--n-clusters",
        type=click.IntRange(2),
        help="bins, cui: categories in the target (`justright estimate`). For all, clusters of the transfer flow.",
    ),
}
"""By the name of the parameter. `seed` is not among them: every command has its own."""


def selector_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all of them, and --preset."""
    preset = click.option(
        "--preset",
        type=click.Choice(PRESETS),
        help="paper: as its equations and tables have it. official: Beta as its public code does it.",
    )
    for option in [preset, *reversed(OPTIONS.values())]:
        command = option(command)
    return command


def make_selector(name: str, given: Mapping[str, Any], seed: int, preset: str | None = None) -> Selector:
    """The selector of this name with the options that were given."""
    params, known = given_params(name, given, preset), inspect.signature(SELECTORS[name]).parameters
    if issubclass(SELECTORS[name], ClusteredSelector) and "n_clusters" not in params:
        raise JustrightError(
            f"--selector {name} needs to know how many categories the target has",
            expected="--n-clusters K",
            advice="the number if you know it, else `justright estimate`; beta works without",
        )
    return SELECTORS[name](**params, **({"seed": seed} if "seed" in known else {}))


def given_params(name: str, given: Mapping[str, Any], preset: str | None = None) -> dict[str, Any]:
    """The parameters of a selector that were given as options; one that it does not have is refused."""
    params = {key: value for key, value in given.items() if value is not None and value is not False}
    params |= {key: False for key in ("discard", "select") if params.pop(f"no_{key}", False)}
    if name == AUTO:
        if strange := sorted(params.keys() - {"n_clusters"}):
            raise JustrightError(
                f"--selector auto together with {_option(strange[0])}",
                expected="no parameters of selectors: the choice is among their defaults",
            )
        return {}
    known = inspect.signature(SELECTORS[name]).parameters
    strange = [key for key in params if key not in known and key != "n_clusters"]
    if strange:
        owners = [other for other, kind in SELECTORS.items() if strange[0] in inspect.signature(kind).parameters]
        raise JustrightError(
            f"--selector {name} together with {_option(strange[0])}",
            expected=f"{_option(strange[0])} belongs to {' and '.join(owners)}",
            advice="leave it out, or change --selector",
        )
    if preset == "official":
        if name != "beta" or params.keys() - {"n_clusters"}:
            raise JustrightError(f"--preset {preset}", expected="--selector beta and no other option of it")
        return {key: value for key, value in BetaSelector.official().get_params().items() if key != "seed"}
    return {key: value for key, value in params.items() if key in known}


def _option(key: str) -> str:
    return f"--{'no-' if key in ('discard', 'select') else ''}{key.replace('_', '-')}"
