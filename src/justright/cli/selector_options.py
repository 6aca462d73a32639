"""The selectors and their parameters as options of a command, read from the registry when the command is called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, get_args, get_origin, get_type_hints

import click

from justright.cli.common import Command, meanings
from justright.runs.request import PRESETS, checked_params
from justright.selection import DEFAULT_SELECTOR, SELECTORS, Selector, selector_of
from justright.selection.clustered import ClusteredSelector
from justright.utils.errors import JustrightError
from justright.utils.settings import ANYTHING, Range


class SettingValue(click.ParamType):  # type: ignore[type-arg]
    """A number or text, or one of the words of a setting, within its range."""

    def __init__(self, kind: type, allowed: Range):
        self.kind, self.allowed = kind, allowed
        self.name = "|".join([*allowed.choices, {float: "number", int: "integer", str: "text"}[kind]])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, if it can be."""
        try:
            found = value if value in self.allowed.choices else self.kind(value)
            if self.allowed.allows(found):
                return found
        except ValueError:
            pass
        return self.fail(f"{value} is not {self.allowed.expected.removesuffix(', or None')}", param, ctx)


class SelectorOption(click.Option):
    """An option that a selector brings."""

    heading = "Selection from the pool"


class SelectorCommand(Command):
    """A command with --selector, --preset and an option for every parameter of every selector.

    They are read from the registry at every call, so that selectors added later count. The help lists them.
    What was given arrives under the names of the parameters; see `checked_params`.

    more     further words that --selector may be, and what they mean
    """

    def __init__(self, *args: Any, more: Mapping[str, str] | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.more = more or {}

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own options, and those that selectors bring now."""
        names, said = click.Choice([*SELECTORS, *self.more]), "How classes of the pool are chosen; see below."
        selector = SelectorOption(["--selector"], type=names, default=DEFAULT_SELECTOR, show_default=True, help=said)
        return [*super().get_params(ctx), selector, *selector_options()]

    def help_tables(self) -> dict[str, list[tuple[str, str]]]:
        """The selectors there are now, and the tables of the command."""
        return {"Selectors": [*meanings(SELECTORS), *self.more.items()], **super().help_tables()}


def selector_options() -> list[SelectorOption]:
    """An option for each parameter, with the selectors that have it, and --preset.

    `seed` is not among them: every command has its own.
    """
    owners: dict[str, dict[str, Field[Any]]] = defaultdict(dict)
    for name in SELECTORS:
        for key, each in _parameters(name).items():
            owners[key][name] = each
    owners.pop("seed", None)
    said = (
        "paper: as its equations and tables have it. official: Beta as its public code does it. In discover both weigh "
        "the classes of --labeled too, and official keeps weights out of the contrastive loss of simgcd and mugcd; "
        "other methods, which that code does not have, use weights as without it."
    )
    preset = SelectorOption(["--preset"], type=click.Choice(list(PRESETS)), help=said)
    return [*(_option(key, by_selector) for key, by_selector in owners.items()), preset]


def _option(key: str, owners: Mapping[str, Field[Any]]) -> SelectorOption:
    """The option of a parameter that some selectors share; type and range are those of the first."""
    first, setting = next(iter(owners.items()))
    texts: dict[str, list[str]] = defaultdict(list)
    for name, each in owners.items():
        texts[f"{each.metadata.get('about', key)}{_default(each.default)}."].append(name)
    said = " ".join(f"{', '.join(names)}: {text}" for text, names in texts.items())
    names = [_as_option(key, setting), key]
    kind = get_type_hints(SELECTORS[first])[key]
    kinds = [each for each in get_args(kind) or (kind,) if each is not type(None)]
    allowed: Range = setting.metadata.get("allowed", ANYTHING)
    if kind is bool:
        return SelectorOption(names, is_flag=True, flag_value=not setting.default, default=None, help=said)
    if get_origin(kinds[0]) is tuple:
        return SelectorOption(names, nargs=len(get_args(kinds[0])), type=float, help=said)
    if allowed.choices and not {float, int} & {*kinds}:
        return SelectorOption(names, type=click.Choice(allowed.choices), help=said)
    plain = next(each for each in (float, int, str) if each in kinds)
    return SelectorOption(names, type=SettingValue(plain, allowed), help=said)


def _default(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return ""
    return f" ({value:g})" if isinstance(value, float) else f" ({value})"


def _as_option(key: str, setting: Field[Any]) -> str:
    return f"--{'no-' if setting.default is True else ''}{key.replace('_', '-')}"


def make_selector(name: str, given: Mapping[str, Any], seed: int, preset: str | None = None) -> Selector:
    """The selector of this name with the options that were given."""
    params = checked_params(name, {key: value for key, value in given.items() if value is not None}, preset)
    if issubclass(SELECTORS[name], ClusteredSelector) and "n_clusters" not in params:
        raise JustrightError(
            f"--selector {name} needs to know how many categories the target has",
            expected="--n-clusters K",
            advice="the number if you know it, else `justright estimate`; beta works without",
        )
    return selector_of(name, params, seed)


def _parameters(name: str) -> dict[str, Field[Any]]:
    return {each.name: each for each in fields(SELECTORS[name])}
