"""Selectors made by their names in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from justright.selection import SELECTORS, Selector, UniformSelector


def choosing_selectors() -> list[str]:
    """The selectors that look at the target; all others are there to compare with."""
    return [name for name, kind in SELECTORS.items() if not issubclass(kind, UniformSelector)]


def selector_of(name: str, params: Mapping[str, Any], seed: int, n_clusters: int | None = None) -> Selector:
    """A selector with the parameters that were given; seed and number of clusters where it has use for them."""
    known = {each.name for each in fields(SELECTORS[name])}
    common = {"seed": seed} if n_clusters is None else {"seed": seed, "n_clusters": n_clusters}
    return SELECTORS[name](**{key: value for key, value in common.items() if key in known} | dict(params))
