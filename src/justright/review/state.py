"""The state of a review: the predictions with all actions applied in order. Same log, same state."""

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

REJECTED = -1  # the group of images that belong to no category
Judgment = Literal["keep", "reject"]
Status = Literal["open", "kept", "rejected", "disputed"]


class ConflictError(JustrightError):
    """The action does not fit the current state of the review."""


@dataclass(frozen=True, eq=False)
class Moved:
    """Part of a change: these images, all of group `before`, move to group `after`."""

    rows: Int[Array, " rows"]
    before: int
    after: int


@dataclass(frozen=True, eq=False)
class Edit:
    """Part of a change: the value of `key` in a table of the state changes from `before` to `after`.

    None means no entry. The value before allows an undo, and shows whether it is still possible.
    """

    table: dict[Any, Any]
    key: Any
    before: Any
    after: Any


@dataclass(frozen=True, eq=False)
class Change:
    """All effects of one action on the state: moved images and edited entries of its tables."""

    moved: tuple[Moved, ...] = ()
    edits: tuple[Edit, ...] = ()

    def reversed(self) -> Change:
        """Return the change that undoes this one."""
        return Change(
            tuple(Moved(each.rows, each.after, each.before) for each in self.moved),
            tuple(Edit(each.table, each.key, each.after, each.before) for each in self.edits),
        )

    def can_apply(self, group: Int[Array, " images"]) -> bool:
        """Whether the state is as this change expects it."""
        return all((group[each.rows] == each.before).all() for each in self.moved) and all(
            each.table.get(each.key) == each.before for each in self.edits
        )

    def apply(self, group: Int[Array, " images"]) -> None:
        """Apply this change to the groups of the images and to the tables."""
        for moved in self.moved:
            group[moved.rows] = moved.after
        for each in self.edits:
            if each.after is None:
                each.table.pop(each.key, None)
            else:
                each.table[each.key] = each.after

    @property
    def groups(self) -> set[int]:
        """Groups whose images change."""
        return {group for each in self.moved for group in (each.before, each.after)}


def edit(table: dict[Any, Any], key: Any, after: Any) -> Edit:
    """Set an entry and keep its previous value."""
    return Edit(table, key, table.get(key), after)


@dataclass(frozen=True)
class Label:
    """Name and kind of a cluster; `is_named` if a person chose the name or it is a known class."""

    name: str
    kind: CategoryKind
    is_named: bool


@dataclass(frozen=True)
class Opinion:
    """The latest verdict of one reviewer on a cluster, and the name it had."""

    verdict: Judgment
    name: str | None


@dataclass(frozen=True, eq=False)
class Entry:
    """A line of the log with its change and the clusters it concerns."""

    line: LogLine
    change: Change
    clusters: frozenset[int]

    @property
    def made(self) -> list[int]:
        """The clusters it created."""
        return [each.key for each in self.change.edits if isinstance(each.after, Label) and each.before is None]


class ReviewState:
    """The current groups, names, opinions and checks.

    Clusters of the predictions keep their number; those created in the review get the next ones.
    """

    def __init__(self, predictions: Predictions, known_classes: frozenset[str]):
        self.group: Int[Array, " images"] = predictions.cluster.astype(np.int32)  # cluster of each image, or REJECTED
        self.known_classes = known_classes
        self.is_given = predictions.is_given  # images labeled before the run
        labels = [Label(each.name, each.kind, each.kind == "known") for each in predictions.categories]
        self.labels: dict[int, Label] = dict(enumerate(labels))  # by cluster, including those without images
        self.opinions: defaultdict[int, dict[str, Opinion]] = defaultdict(dict)  # by cluster, then by reviewer
        # by round of random checks, then by (image, reviewer): whether the reviewer judged it right
        self.checks: defaultdict[int, dict[tuple[int, str], bool]] = defaultdict(dict)
        self.rounds: dict[str, int] = {"now": 1}
        # by name, for actions defined in other packages
        self.tables: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self.entries: list[Entry] = []  # the actions so far
        self.undone: dict[int, bool] = {}  # by number: whether an action was undone
        self.by_request: dict[str, Entry] = {}  # entries by request id
        self.n_groups = len(self.labels)
        self._images_changed: defaultdict[int, int] = defaultdict(int)
        self._name_changed: defaultdict[int, int] = defaultdict(int)

    @property
    def seq(self) -> int:
        """The number of actions."""
        return len(self.entries)

    @property
    def round(self) -> int:
        """The current round of random checks."""
        return self.rounds["now"]

    def rows_of(self, cluster: int) -> Int[Array, " rows"]:
        """The images of a cluster, ascending."""
        return np.flatnonzero(self.group == cluster)

    def rows_in(self, cluster: int, rows: list[int]) -> Int[Array, " rows"]:
        """Return these images as an array; ConflictError unless each is in the cluster and listed once."""
        array = np.array(rows, dtype=np.int64)
        if array.max() >= len(self.group) or (self.group[array] != cluster).any() or len(np.unique(array)) < len(rows):
            problem = "some of these images are no longer in this cluster"
            raise ConflictError(problem, advice="look at the cluster again")
        return array

    def has(self, cluster: int) -> bool:
        """Whether the cluster exists and has images."""
        return cluster in self.labels and bool((self.group == cluster).any())

    def label_of(self, cluster: int) -> Label:
        """The label of a cluster; ConflictError if it has no images."""
        if not self.has(cluster):
            raise ConflictError(f"cluster {cluster} no longer exists", advice="look at the list again")
        return self.labels[cluster]

    def name_of(self, cluster: int | None) -> str:
        """The name of a cluster for a sentence, even if it no longer exists; None is a new one."""
        if cluster is None:
            return "a new cluster"
        if cluster == REJECTED:
            return "the rejected images"
        return self.labels[cluster].name if cluster in self.labels else f"cluster-{cluster}"

    def new_group(self, number: int) -> Edit:
        """Return the edit that labels a new cluster; its number must be unused, `n_groups` or more.

        Avoids the names of known classes, because clusters of equal names are exported as one class.
        """
        name = f"cluster-{number}"
        while name in self.known_classes:
            name += "-new"
        return Edit(self.labels, number, None, Label(name, "discovered", False))

    def without_label(self, change: Change) -> set[int]:
        """Clusters that this change would leave with images or verdicts but without a label."""
        change.apply(self.group)
        judged = {cluster for cluster, opinions in self.opinions.items() if opinions}
        unlabeled = (set(np.unique(self.group).tolist()) | judged) - self.labels.keys() - {REJECTED}
        change.reversed().apply(self.group)
        return unlabeled

    def changed_at(self, cluster: int) -> int:
        """Number of the last action that changed the images or the name of a cluster."""
        return max(self._images_changed[cluster], self._name_changed[cluster])

    def status(self, cluster: int) -> Status:
        """The combined verdict of all reviewers."""
        verdicts = {opinion.verdict for opinion in self.opinions.get(cluster, {}).values()}
        if not verdicts:
            return "open"
        if len(verdicts) > 1:
            return "disputed"
        return "kept" if "keep" in verdicts else "rejected"

    def check_fresh(self, action: Action, base: int) -> None:
        """Raise ConflictError if a cluster of the action changed after `base`, the last action the reviewer saw."""
        fields, stale = dict(action), set()
        if "placed" in fields and self.seq > base:  # labels of a file, which were compared with the whole review
            raise ConflictError("the review changed meanwhile", advice="import the file again")
        for name in ("cluster", "into", "to"):
            cluster = fields.get(name)
            # listed images are checked one by one, so other images of the cluster may change
            is_whole = name == "cluster" and "rows" not in fields
            changed_at = self.changed_at if is_whole else self._name_changed.__getitem__
            if cluster is not None and changed_at(cluster) > base:
                stale.add(cluster)
        if stale:
            names = ", ".join(map(self.name_of, sorted(stale)))
            raise ConflictError(f"{names} changed since you saw it", advice="look at it again, then decide")

    def apply(self, line: LogLine) -> None:
        """Apply one line of the log; ConflictError, with nothing changed, if it does not fit."""
        change = line.action.plan(self, line.by)
        clusters = change.groups | line.action.clusters(self)
        change.apply(self.group)
        for each in change.groups:
            self._images_changed[each] = line.seq
        for moved in change.moved:
            if moved.before != REJECTED and not (self.group == moved.before).any():
                self._name_changed[moved.before] = line.seq  # an empty cluster no longer exists
        for edited in change.edits:
            if edited.table is self.labels:
                self._name_changed[edited.key] = line.seq
                self.n_groups = max(self.n_groups, edited.key + 1)
        self.entries.append(Entry(line, change, frozenset(clusters)))
        self.by_request[line.id] = self.entries[-1]
