"""Where a review stands: the predictions and the actions, applied one by one. Same log, same state."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Int

from justright.discovery.predictions import CategoryKind, Predictions
from justright.utils.errors import JustrightError
from justright.utils.types import Array

if TYPE_CHECKING:
    from justright.review.actions import Action, LogLine


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


REJECTED = -1  # the group of images that belong to no category

Judgment = Literal["keep", "reject"]
Status = Literal["open", "kept", "rejected", "disputed"]


@dataclass(frozen=True)
class Label:
    """What a cluster is called, as what, and whether the name means something: a person's, or a known class."""

    name: str
    kind: CategoryKind
    is_named: bool


@dataclass(frozen=True)
class Opinion:
    """What one reviewer said about a cluster last, and under which name."""

    verdict: Judgment
    name: str | None


@dataclass(frozen=True, eq=False)
class Entry:
    """A line of the log with what it changed, and the clusters that it was about."""

    line: LogLine
    change: Change
    clusters: frozenset[int]

    @property
    def made(self) -> list[int]:
        """The clusters that it made."""
        return [each.key for each in self.change.edits if isinstance(each.after, Label) and each.before is None]


class ReviewState:
    """The current groups, names, opinions and checks.

    Clusters of the predictions keep their number, those made in the review count on from there.
    """

    def __init__(self, predictions: Predictions, known_classes: frozenset[str]):
        self.group: Int[Array, " images"] = predictions.cluster.astype(np.int32)  # its cluster or REJECTED
        self.known_classes = known_classes
        self.is_given = predictions.is_given  # images that a person had labeled before the run
        found = [Label(each.name, each.kind, each.kind == "known") for each in predictions.categories]
        self.labels: dict[int, Label] = dict(enumerate(found))  # by cluster, also of those that lost all their images
        self.opinions: defaultdict[int, dict[str, Opinion]] = defaultdict(dict)  # by cluster, then by reviewer
        # by round of random checks, then by image and reviewer: whether it was called right
        self.checks: defaultdict[int, dict[tuple[int, str], bool]] = defaultdict(dict)
        self.rounds: dict[str, int] = {"now": 1}
        self.tables: defaultdict[str, dict[Any, Any]] = defaultdict(dict)  # what actions from outside keep, by name
        self.entries: list[Entry] = []  # the actions so far
        self.undone: dict[int, bool] = {}  # those of them that were taken back
        self.by_request: dict[str, Entry] = {}  # the entry that a request became, by the id of the request
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

    def rows_in(self, cluster: int, rows: list[int]) -> Int[Array, " rows"]:
        """These images as an array; ConflictError unless each is in the cluster, and given once."""
        found = np.array(rows, dtype=np.int64)
        if found.max() >= len(self.group) or (self.group[found] != cluster).any() or len(np.unique(found)) < len(found):
            raise ConflictError("some of these images are no longer in this cluster", advice="look again, then decide")
        return found

    def has(self, cluster: int) -> bool:
        """Whether there is such a cluster, with images."""
        return cluster in self.labels and bool((self.group == cluster).any())

    def label_of(self, cluster: int) -> Label:
        """The label of a cluster; ConflictError where it has no images."""
        if not self.has(cluster):
            raise ConflictError(f"cluster {cluster} is no longer there", advice="look at the list again")
        return self.labels[cluster]

    def name_of(self, cluster: int | None) -> str:
        """What to call a cluster in a sentence, whether or not it is still there; None is one that is to be made."""
        if cluster is None or cluster == REJECTED:
            return "a new cluster" if cluster is None else "the rejected images"
        return self.labels[cluster].name if cluster in self.labels else f"cluster-{cluster}"

    def new_group(self, number: int) -> Edit:
        """The label of a cluster that an action makes; numbers from `n_groups` on were never given.

        A class that kept such a name in an earlier round is another one: clusters of one name would become one class.
        """
        name = f"cluster-{number}"
        while name in self.known_classes:
            name += "-new"
        return Edit(self.labels, number, None, Label(name, "discovered", False))

    def without_label(self, change: Change) -> set[int]:
        """Clusters that would have images or verdicts after this change, but no label."""
        group = self.group.copy()
        Change(change.moved).apply(group)
        judged = {cluster for cluster, said in self.opinions.items() if change.edited(said)}
        return (set(np.unique(group).tolist()) | judged) - change.edited(self.labels).keys() - {REJECTED}

    def changed_at(self, cluster: int) -> int:
        """The last action that changed which images a cluster has, or its name."""
        return max(self._images_changed[cluster], self._name_changed[cluster])

    def status(self, cluster: int) -> Status:
        """What the reviewers together say."""
        verdicts = {opinion.verdict for opinion in self.opinions.get(cluster, {}).values()}
        if not verdicts:
            return "open"
        return "disputed" if len(verdicts) > 1 else "kept" if verdicts == {"keep"} else "rejected"

    def check_fresh(self, action: Action, base: int) -> None:
        """Refuse an action whose clusters changed after `base`, the last action its reviewer had seen."""
        fields, named_at = dict(action), self._name_changed.__getitem__
        # images listed one by one are looked up one by one: others may come and go
        changed_at = {"cluster": named_at if "rows" in fields else self.changed_at, "into": named_at, "to": named_at}
        given = {name: fields[name] for name in changed_at if fields.get(name) is not None}
        if stale := {cluster for name, cluster in given.items() if changed_at[name](cluster) > base}:
            names = ", ".join(map(self.name_of, sorted(stale)))
            raise ConflictError(f"{names} was changed meanwhile", advice="look again, then decide")

    def apply(self, line: LogLine) -> None:
        """Do what one line says; ConflictError, and nothing changed, where it does not fit."""
        change = line.action.plan(self, line.by)
        clusters = change.groups | line.action.clusters(self)
        change.apply(self.group)
        for each in change.groups:
            self._images_changed[each] = line.seq
        for moved in change.moved:
            if moved.before != REJECTED and not (self.group == moved.before).any():
                self._name_changed[moved.before] = line.seq  # an emptied cluster is gone
        for edited in change.edits:
            if edited.table is self.labels:
                self._name_changed[edited.key] = line.seq
                self.n_groups = max(self.n_groups, edited.key + 1)
        self.entries.append(Entry(line, change, frozenset(clusters)))
        self.by_request[line.id] = self.entries[-1]
