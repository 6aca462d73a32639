"""What an action changes, kept so that it can be taken back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Int

from justright.utils.errors import JustrightError
from justright.utils.types import Array


class ConflictError(JustrightError):
    """What the action was about has changed meanwhile."""


@dataclass(frozen=True, eq=False)
class Moved:
    """A part of a change: these images, all of group `before`, go to group `after`."""

    rows: Int[Array, " rows"]
    before: int
    after: int


@dataclass(frozen=True, eq=False)
class Edit:
    """A part of a change: the value of `key` in a table of the state was `before` and becomes `after`.

    None stands for no entry. With the value before, the edit can be taken back, and one sees whether it still may be.
    """

    table: dict[Any, Any]
    key: Any
    before: Any
    after: Any

    def apply(self, table: dict[Any, Any]) -> None:
        """Make this edit in a table: the one it is about, or a copy."""
        if self.after is None:
            table.pop(self.key, None)
        else:
            table[self.key] = self.after


@dataclass(frozen=True, eq=False)
class Change:
    """All that one action does to the state: images that go elsewhere, and entries of its tables."""

    moved: tuple[Moved, ...] = ()
    edits: tuple[Edit, ...] = ()

    def reversed(self) -> Change:
        """What takes it back."""
        return Change(
            tuple(Moved(each.rows, each.after, each.before) for each in self.moved),
            tuple(Edit(each.table, each.key, each.after, each.before) for each in self.edits),
        )

    def can_apply(self, group: Int[Array, " images"]) -> bool:
        """Whether everything is as it has to be before this change."""
        return all((group[each.rows] == each.before).all() for each in self.moved) and all(
            each.table.get(each.key) == each.before for each in self.edits
        )

    def apply(self, group: Int[Array, " images"]) -> None:
        """Make this change, in the groups of the images and in the tables."""
        for moved in self.moved:
            group[moved.rows] = moved.after
        for edit in self.edits:
            edit.apply(edit.table)

    def edited(self, table: dict[Any, Any]) -> dict[Any, Any]:
        """A copy of a table of the state, as this change would leave it."""
        copy = dict(table)
        for edit in self.edits:
            if edit.table is table:
                edit.apply(copy)
        return copy

    @property
    def groups(self) -> set[int]:
        """Groups whose images change."""
        return {group for each in self.moved for group in (each.before, each.after)}


def edit(table: dict[Any, Any], key: Any, after: Any) -> Edit:
    """Set an entry, remembering what it was."""
    return Edit(table, key, table.get(key), after)
