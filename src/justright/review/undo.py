"""Actions that take back and do again. Nothing is deleted: what is taken back stays in the log, and so does that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from justright.review.actions import Action
from justright.review.changes import Change, ConflictError, edit
from justright.review.state import ReviewState

if TYPE_CHECKING:
    from justright.review.open_review import OpenReview


class Undo(Action, do="undo", told="took back action {target}"):
    """Take back the line `target` of the log; one that took something back is done again. Null: my latest."""

    target: Annotated[int, Field(ge=1, lt=2**53)] | None = None

    def resolve(self, opened: OpenReview, by: str) -> Action:
        return self if self.target is not None else Undo(target=_latest(opened.state, by, is_undo=False))

    def plan(self, state: ReviewState, by: str) -> Change:
        target = self.target
        if target is None or target > state.seq or state.undone.get(target):
            raise ConflictError(f"action {target} is not there to be undone")
        change = state.entries[target - 1].change.reversed()
        if not change.can_apply(state.group):
            said = f"what action {target} did was changed again since"
            raise ConflictError(said, advice="undo the later action first")
        return Change(change.moved, (*change.edits, edit(state.undone, target, True)))

    def clusters(self, state: ReviewState) -> set[int]:
        return set(state.entries[self.target - 1].clusters) if self.target else set()


class Redo(Action, do="redo"):
    """Do again what I took back last, unless I did something since: an undo of my last undo."""

    def resolve(self, opened: OpenReview, by: str) -> Action:
        return Undo(target=_latest(opened.state, by, is_undo=True))


def _latest(state: ReviewState, reviewer: str, *, is_undo: bool) -> int:
    """The last action of a reviewer that is not undone; with `is_undo`, the last undo since they did anything."""
    for entry in reversed(state.entries):
        line = entry.line
        if line.by != reviewer or state.undone.get(line.seq):
            continue
        if isinstance(line.action, Undo):
            taken_back = state.entries[(line.action.target or 0) - 1].line.action
            if is_undo and not isinstance(taken_back, Undo):
                return line.seq
        elif is_undo:
            break
        else:
            return line.seq
    raise ConflictError(f"nothing of {reviewer} is left to {'do again' if is_undo else 'undo'}")
