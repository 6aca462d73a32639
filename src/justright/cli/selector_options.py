"""Options of a command for the parameters of all selectors, read from the registry at each call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, get_args, get_origin, get_type_hints

import click

from justright.cli.common import Command, value_type
from justright.runs.spec import PRESETS, checked_params
from justright.selection import DEFAULT_SELECTOR, SELECTORS, Selector, selector_of
from justright.selection.clustered import ClusteredSelector
from justright.utils.errors import JustrightError
from justright.utils.settings import ANYTHING


class SelectorOption(click.Option):
    """An option for the selection."""

    heading = "Selection from the pool"


def _collect(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Add the value of a parameter of selectors to `selector_params`."""
    if value is not None:
        ctx.params.setdefault("selector_params", {})[param.name] = value


class SelectorCommand(Command):
    """A command with --selector, --preset and an option for every parameter of every selector.

    They are read from the registry at every call, so that selectors may be added later. The command gets `selector`
    and `preset`, None if not given, and the parameters of selectors as `selector_params`, if there are any.

    Parameters:
        more: further values of --selector, and their help.
    """

    def __init__(self, *args: Any, more: Mapping[str, str] | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.more = more or {}

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own options, and those of the selectors."""
        names, text = click.Choice([*SELECTORS, *self.more]), "How classes of the pool are chosen; see below."
        selector = SelectorOption(["--selector"], type=names, show_default=DEFAULT_SELECTOR, help=text)
        return [*super().get_params(ctx), selector, *selector_options()]

    def help_tables(self) -> dict[str, list[tuple[str, str]]]:
        """The selectors, and the tables of the command."""
        selectors = {name: SELECTORS.about(name) for name in SELECTORS} | dict(self.more)
        return {"Selectors": list(selectors.items()), **super().help_tables()}


def selector_options() -> list[SelectorOption]:
    """An option for each parameter, with the selectors that have it, and --preset.

    Every command has its own `seed`.
    """
    owners: dict[str, dict[str, Field[Any]]] = defaultdict(dict)
    for name in SELECTORS:
        for field in fields(SELECTORS[name]):
            owners[field.name][name] = field
    owners.pop("seed", None)
    text = (
        "paper: as in its equations and tables. official: Beta as in its public code. In discover both weigh the "
        "classes of --labeled too, and with official the contrastive loss of simgcd and mugcd is not weighted; other "
        "methods, which the public code does not have, use weights as usual."
    )
    preset = SelectorOption(["--preset"], type=click.Choice(list(PRESETS)), help=text)
    return [*(_option(key, by_selector) for key, by_selector in owners.items()), preset]


def _option(key: str, owners: Mapping[str, Field[Any]]) -> SelectorOption:
    """The option of a parameter that some selectors share; type and range are those of the first."""
    first, setting = next(iter(owners.items()))
    texts: dict[str, list[str]] = defaultdict(list)
    for name, field in owners.items():
        texts[f"{field.metadata.get('about', key)}{_default(field.default)}."].append(name)
    help_text = " ".join(f"{', '.join(selectors)}: {text}" for text, selectors in texts.items())
    prefix = "--no-" if setting.default is True else "--"
    names = [prefix + key.replace("_", "-"), key]
    kind = get_type_hints(SELECTORS[first])[key]
    kinds = [alternative for alternative in get_args(kind) or (kind,) if alternative is not type(None)]
    kwargs: dict[str, Any] = {"help": help_text, "expose_value": False, "callback": _collect}
    if kind is bool:
        return SelectorOption(names, is_flag=True, flag_value=not setting.default, default=None, **kwargs)
    if get_origin(kinds[0]) is tuple:
        return SelectorOption(names, nargs=len(get_args(kinds[0])), type=float, **kwargs)
    return SelectorOption(names, type=value_type(kind, setting.metadata.get("allowed", ANYTHING)), **kwargs)


def _default(value: Any) -> str:
    """The default in parentheses for a help text; empty for None and for a flag."""
    if value is None or isinstance(value, bool):
        return ""
    return f" ({value:g})" if isinstance(value, float) else f" ({value})"


def make_selector(name: str, params: Mapping[str, Any], seed: int, preset: str | None = None) -> Selector:
    """The selector of this name with the given parameters."""
    params = checked_params(name, params, preset)
    if issubclass(SELECTORS[name], ClusteredSelector) and "n_clusters" not in params:
        raise JustrightError(
            f"--selector {name} needs the number of categories in the target",
            expected="--n-clusters K",
            advice="the number if you know it, else `justright estimate`; beta works without",
        )
    return selector_of(name, params, seed)
