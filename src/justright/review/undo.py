"""Actions that take back and do again. Nothing is deleted: what is taken back stays in the log, and so does that."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from justright.review.actions import Action
from justright.review.changes import Change, ConflictError, Edit, edit
from justright.review.state import ReviewState

if TYPE_CHECKING:
    from justright.review.open_review import OpenReview

N_TOLD = 3  # later actions that a refusal names

logger = logging.getLogger(__name__)


class Undo(Action, do="undo", told="took back action {target}"):
    """Take back the line `target` of the log; one that took something back is done again. Null: my latest."""

    target: Annotated[int, Field(ge=1, lt=2**53)] | None = None

    def resolve(self, opened: OpenReview, by: str) -> Action:
        state = opened.state
        undo = self if self.target is not None else Undo(target=_latest(state, by, is_undo=False))
        if needed := state.without_label(undo._taken_back(state)):
            raise ConflictError(
                f"action {undo.target} cannot be undone: {undo._reason(state, needed)}",
                advice="undo those first, or move the images elsewhere",
            )
        return undo

    def plan(self, state: ReviewState, by: str) -> Change:
        """Logs of earlier versions have undos that `resolve` refuses now: a cluster that is still used stays then."""
        change = self._taken_back(state)
        if needed := state.without_label(change):
            names = ", ".join(map(state.name_of, sorted(needed)))
            logger.warning(
                "action %d took back action %s; %s is still used, so it stays", state.seq + 1, self.target, names
            )
            kept = tuple(each for each in change.edits if each.table is not state.labels or each.key not in needed)
            change = Change(change.moved, (*kept, *map(state.new_group, sorted(needed - state.labels.keys()))))
        return Change(change.moved, (*change.edits, edit(state.undone, self.target, True)))

    def _taken_back(self, state: ReviewState) -> Change:
        """What takes the target back; ConflictError where that is not possible."""
        target = self.target
        if target is None or target > state.seq or state.undone.get(target):
            raise ConflictError(f"action {target} is not there to be undone")
        change = state.entries[target - 1].change.reversed()
        # a label that was recovered is not made a second time
        edits = tuple(each for each in change.edits if not _is_there(state, each))
        change = Change(change.moved, edits)
        if not change.can_apply(state.group):
            said = f"what action {target} did was changed again since"
            raise ConflictError(said, advice="undo the later action first")
        return change

    def _reason(self, state: ReviewState, needed: set[int]) -> str:
        """Why a cluster would be without a label, and which later actions are behind that."""
        is_gone = not needed <= state.labels.keys()
        later = [each for each in state.entries[self.target or 0 :] if not state.undone.get(each.line.seq)]
        if is_gone:
            behind = [each for each in later if needed & {e.key for e in each.change.edits if e.table is state.labels}]
        else:
            behind = [each for each in later if needed & each.clusters]
        told = ", ".join(f"{each.line.seq} ({each.line.by})" for each in behind[:N_TOLD])
        more = f" and {len(behind) - N_TOLD:,} more" if len(behind) > N_TOLD else ""
        names = ", ".join(map(state.name_of, sorted(needed)))
        return f"{names} {'was taken back' if is_gone else 'is used'} since by action {told}{more}"

    def clusters(self, state: ReviewState) -> set[int]:
        return set(state.entries[self.target - 1].clusters) if self.target else set()


class Redo(Action, do="redo"):
    """Do again what I took back last, unless I did something since: an undo of my last undo."""

    def resolve(self, opened: OpenReview, by: str) -> Action:
        return Undo(target=_latest(opened.state, by, is_undo=True))


def _is_there(state: ReviewState, made: Edit) -> bool:
    """Whether an edit makes a label that is there already, the same."""
    return made.table is state.labels and made.before is None and state.labels.get(made.key) == made.after


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
