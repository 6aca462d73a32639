"""Where a review stands: the predictions and the actions, folded one by one. Same log, same state."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import Any, Literal

import numpy as np
from jaxtyping import Int

from justright.discovery.predictions import Kind, Predictions
from justright.review import actions
from justright.review.actions import REJECTED, Line
from justright.review.changes import Change, ConflictError, Edit, Moved, edit
from justright.types import Array

Verdict = Literal["keep", "reject"]
Status = Literal["open", "kept", "rejected", "disputed"]


@dataclass(frozen=True)
class Label:
    """What a cluster is called, as what, and whether the name means something: a person's, or a known class."""

    name: str
    kind: Kind
    is_named: bool


@dataclass(frozen=True)
class Opinion:
    """What one reviewer said about a cluster last, and under which name."""

    verdict: Verdict
    name: str | None


@dataclass(frozen=True, eq=False)
class Entry:
    """A line of the log with what it changed."""

    line: Line
    change: Change


class ReviewState:
    """The current groups, names, opinions and checks.

    Attributes: group, one entry an image, a cluster or REJECTED; labels by cluster; opinions by cluster and reviewer;
    checks by round, image and reviewer; entries, the actions so far; undone, the numbers of those taken back.
    Clusters of the predictions keep their number, those made in the review count on from there.
    """

    def __init__(self, predictions: Predictions, known_classes: frozenset[str]):
        self.group: Int[Array, " images"] = predictions.cluster.astype(np.int32)
        self.known_classes = known_classes
        self.labels: dict[int, Label] = {
            number: Label(each.name, each.kind, each.kind == "known")
            for number, each in enumerate(predictions.categories)
        }
        self.opinions: defaultdict[int, dict[str, Opinion]] = defaultdict(dict)
        self.checks: defaultdict[int, dict[tuple[int, str], bool]] = defaultdict(dict)
        self.rounds: dict[str, int] = {"now": 1}
        self.entries: list[Entry] = []
        self.undone: dict[int, bool] = {}
        self.ids: dict[str, int] = {}
        self.n_groups = len(self.labels)
        self._images_changed: defaultdict[int, int] = defaultdict(int)
        self._name_changed: defaultdict[int, int] = defaultdict(int)

    @property
    def seq(self) -> int:
        """How many actions there are."""
        return len(self.entries)

    @property
    def round(self) -> int:
        """The current round of random checks."""
        return self.rounds["now"]

    def rows_of(self, cluster: int) -> Int[Array, " rows"]:
        """The images of a cluster, ascending."""
        return np.flatnonzero(self.group == cluster)

    def changed_at(self, cluster: int) -> int:
        """The last action that changed which images a cluster has, or its name."""
        return max(self._images_changed[cluster], self._name_changed[cluster])

    def status(self, cluster: int) -> Status:
        """What the reviewers together say."""
        verdicts = {opinion.verdict for opinion in self.opinions.get(cluster, {}).values()}
        if len(verdicts) > 1:
            return "disputed"
        return {"keep": "kept", "reject": "rejected"}[verdicts.pop()] if verdicts else "open"  # type: ignore[return-value]

    def check_fresh(self, action: Any, base: int) -> None:
        """Refuse an action whose clusters changed after `base`, the last action its reviewer had seen."""
        seen_wrong = set()
        if (cluster := getattr(action, "cluster", None)) is not None and cluster != REJECTED:
            # images listed one by one are looked up one by one: others may come and go
            changed = self._name_changed[cluster] if hasattr(action, "rows") else self.changed_at(cluster)
            seen_wrong |= {cluster} if changed > base else set()
        for other in (getattr(action, "into", None), getattr(action, "to", None)):
            if other is not None and self._name_changed[other] > base:
                seen_wrong.add(other)
        if seen_wrong:
            names = ", ".join(self.labels[each].name for each in sorted(seen_wrong) if each in self.labels)
            raise ConflictError(f"{names} was changed meanwhile", advice="look again, then decide")

    def fold(self, line: Line) -> Entry:
        """Apply one line; ConflictError, and nothing changed, where it does not fit."""
        change = self.plan(line)
        change.happen(self.group)
        for each in change.groups:
            self._images_changed[each] = line.seq
        for moved in change.moved:
            if moved.before != REJECTED and not (self.group == moved.before).any():
                self._name_changed[moved.before] = line.seq  # an emptied cluster is gone
        for edited in change.edits:
            if edited.table is self.labels:
                self._name_changed[edited.key] = line.seq
                self.n_groups = max(self.n_groups, edited.key + 1)
        entry = Entry(line, change)
        self.entries.append(entry)
        self.ids[line.id] = line.seq
        return entry

    def plan(self, line: Line) -> Change:
        """What a line would change."""
        return self._plan(line.action, line.by)

    @singledispatchmethod
    def _plan(self, action: Any, by: str) -> Change:
        raise TypeError(f"no plan for {action}")

    @_plan.register
    def _(self, action: actions.Keep, by: str) -> Change:
        label = self._label(action.cluster)
        return self._saying(action.cluster, by, Opinion("keep", label.name if label.is_named else None))

    @_plan.register
    def _(self, action: actions.Discard, by: str) -> Change:
        self._label(action.cluster)
        return self._saying(action.cluster, by, Opinion("reject", None))

    @_plan.register
    def _(self, action: actions.SetName, by: str) -> Change:
        return self._naming(action.cluster, by, Label(action.name, "discovered", True))

    @_plan.register
    def _(self, action: actions.SetKnown, by: str) -> Change:
        if action.name not in self.known_classes:
            raise ConflictError(f"{action.name!r} is no class of the labeled images", advice="name it instead")
        return self._naming(action.cluster, by, Label(action.name, "known", True))

    @_plan.register
    def _(self, action: actions.Merge, by: str) -> Change:
        self._label(action.cluster), self._label(action.into)
        if action.cluster == action.into:
            raise ConflictError("a cluster cannot be merged into itself")
        return Change((Moved(self.rows_of(action.cluster), action.cluster, action.into),))

    @_plan.register
    def _(self, action: actions.Part, by: str) -> Change:
        self._label(action.cluster)
        moved, edits = [], [edit(self.opinions[action.cluster], who, None) for who in self.opinions[action.cluster]]
        every = [row for part in action.parts for row in part]
        if len(every) == len(self.rows_of(action.cluster)):
            raise ConflictError("a split has to leave images in the cluster")
        self._rows_in(action.cluster, every)
        for new, part in enumerate(action.parts, start=self.n_groups):
            moved.append(Moved(np.array(part), action.cluster, new))
            edits.append(self._new_group(new))
        return Change(tuple(moved), tuple(edits))

    @_plan.register
    def _(self, action: actions.Move, by: str) -> Change:
        rows = self._rows_in(action.cluster, action.rows)
        if action.to is None:
            return Change((Moved(rows, action.cluster, self.n_groups),), (self._new_group(self.n_groups),))
        self._label(action.to)
        if action.to == action.cluster:
            raise ConflictError("these images are there already")
        return Change((Moved(rows, action.cluster, action.to),))

    @_plan.register
    def _(self, action: actions.Reject, by: str) -> Change:
        return Change((Moved(self._rows_in(action.cluster, action.rows), action.cluster, REJECTED),))

    @_plan.register
    def _(self, action: actions.Check, by: str) -> Change:
        if action.round != self.round:
            raise ConflictError(f"round {action.round} of the checks is over")
        self._rows_in(action.cluster, [action.row])
        return Change(edits=(edit(self.checks[action.round], (action.row, by), action.is_right),))

    @_plan.register
    def _(self, action: actions.NewRound, by: str) -> Change:
        if action.round != self.round + 1:
            raise ConflictError(f"round {self.round} has begun meanwhile")
        return Change(edits=(edit(self.rounds, "now", action.round),))

    @_plan.register
    def _(self, action: actions.Undo, by: str) -> Change:
        target = action.target
        if target is None or target > self.seq or self.undone.get(target):
            raise ConflictError(f"action {target} is not there to be undone")
        change = self.entries[target - 1].change.reversed()
        if not change.may_happen(self.group):
            raise ConflictError(
                f"what action {target} did was changed again since", advice="undo the later action first"
            )
        return Change(change.moved, (*change.edits, edit(self.undone, target, True)))

    def _label(self, cluster: int) -> Label:
        """The label of a cluster that has images."""
        if cluster not in self.labels or not (self.group == cluster).any():
            raise ConflictError(f"cluster {cluster} is no longer there", advice="look at the list again")
        return self.labels[cluster]

    def _rows_in(self, cluster: int, rows: list[int]) -> Int[Array, " rows"]:
        found = np.array(rows, dtype=np.int64)
        if found.max() >= len(self.group) or (self.group[found] != cluster).any() or len(np.unique(found)) < len(found):
            raise ConflictError("some of these images are no longer in this cluster", advice="look again, then decide")
        return found

    def _saying(self, cluster: int, by: str, opinion: Opinion) -> Change:
        return Change(edits=(edit(self.opinions[cluster], by, opinion),))

    def _naming(self, cluster: int, by: str, label: Label) -> Change:
        self._label(cluster)
        said = edit(self.opinions[cluster], by, Opinion("keep", label.name))
        return Change(edits=(edit(self.labels, cluster, label), said))

    def _new_group(self, number: int) -> Edit:
        # An undone group keeps its label: its number is never given again.
        return Edit(self.labels, number, None, Label(f"cluster-{number}", "discovered", False))
