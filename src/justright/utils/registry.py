"""The members of a family (selectors, methods, counters, data sets, ...) by the name a person types."""

from __future__ import annotations

from collections import UserDict
from pkgutil import resolve_name
from typing import Any, TypeVar

from justright.utils.errors import JustrightError, did_you_mean

T = TypeVar("T")


class Registry(UserDict[str, T]):
    """The members of a family by name. Command line, help texts, demo and tests read their lists from here.

    A member may be given as "module:attribute", and is then imported when it is first used: names and descriptions
    cost nothing to read, however heavy the members are.

    Example:
        METHODS: Registry[type[Discovery]] = Registry("method")
        METHODS.add("simgcd", "justright.discovery.simgcd:SimGCD", "prototypes that learn from their own predictions")
        METHODS["simgcd"]  # imports torch now
    """

    def __init__(self, family: str):
        super().__init__()
        self.family = family
        self._descriptions: dict[str, str] = {}

    def add(self, name: str, member: Any, about: str) -> None:
        """Register a member under a name that is still free; `about` is its line in help texts."""
        if name in self:
            raise JustrightError(f"a second {self.family} named {name!r}", expected="a name that is still free")
        self.data[name] = member
        self._descriptions[name] = about

    def about(self, name: str) -> str:
        """The line about a member in help texts; the member is not imported for it."""
        return self._descriptions[name]

    def __repr__(self) -> str:
        """The names and what each is, a line each."""
        return "\n".join([f"Registry of each {self.family}:", *(f"  {name}: {self.about(name)}" for name in self)])

    def __getitem__(self, name: str) -> T:
        if name not in self:
            expected, advice = f"one of {', '.join(self)}", did_you_mean(str(name), self)
            raise JustrightError(f"{self.family} {name!r}", expected=expected, advice=advice)
        member = self.data[name]
        if isinstance(member, str):
            member = self.data[name] = resolve_name(member)
        return member
