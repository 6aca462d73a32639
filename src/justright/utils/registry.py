"""The members of a family (selectors, methods, counters, data sets, ...) by the name a person types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from justright.utils.errors import JustrightError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Things of one family by name. Command line, help texts, demo and tests read their lists from here.

    A member may be given as "module:attribute", and is then imported when it is first asked for: names and
    descriptions cost nothing to read, however heavy the members are.

    Example:
        METHODS: Registry[type[Discovery]] = Registry("method")
        METHODS.add("simgcd", "justright.discovery.simgcd:SimGCD", "prototypes that learn from their own predictions")
        METHODS["simgcd"]  # imports torch now
    """

    def __init__(self, family: str):
        self.family = family
        self._members: dict[str, Any] = {}
        self._about: dict[str, str] = {}

    def add(self, name: str, member: T | str, about: str) -> None:
        """Make a member known under a name that is still free; `about` is its line in help texts."""
        if name in self._members:
            raise JustrightError(f"a second {self.family} named {name!r}", expected="a name that is still free")
        self._members[name], self._about[name] = member, about

    def remove(self, name: str) -> None:
        """Forget a member, such as one that a test added."""
        del self._members[name], self._about[name]

    def about(self, name: str) -> str:
        """What help texts say about a member; it is not imported for that."""
        return self._about[name]

    def __getitem__(self, name: str) -> T:
        if name not in self._members:
            raise JustrightError(f"{self.family} {name!r}", expected=f"one of {', '.join(self._members)}")
        member = self._members[name]
        if isinstance(member, str):
            module, _, attribute = member.partition(":")
            member = self._members[name] = getattr(import_module(module), attribute)
        result: T = member
        return result

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)
