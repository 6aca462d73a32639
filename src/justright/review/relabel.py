"""Labels for many images at once, such as those that people corrected in another labeling tool.

One action enters a whole file, so one undo takes it back. The file shows the labels as they were after some action of
the review. A label that differs from what the image had then is a correction; any other is ignored.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from justright.data.columns import nfc
from justright.discovery.predictions import CategoryKind
from justright.review.actions import Action, ClusterOrRejected, GivenName, Row, Strict
from justright.review.state import REJECTED, Change, ConflictError, Edit, Label, Moved, Opinion, ReviewState, edit
from justright.review.wording import N_LISTED, listed
from justright.utils.errors import DataError
from justright.utils.wording import count_text

if TYPE_CHECKING:
    from justright.review.open_review import OpenReview

NO_CATEGORY = "no category"  # the label of images that belong to no category
GIVEN_NAME: TypeAdapter[str] = TypeAdapter(GivenName)


class Placed(Strict):
    """Images and the cluster they go to, null for a new one; a name also names this cluster."""

    cluster: ClusterOrRejected | None
    name: GivenName | None
    rows: list[Row]


class Relabel(Action, do="relabel", from_page=False):
    """Move images to clusters and name some of these, by the labels of a file."""

    source: GivenName  # the name of the file, for the history
    placed: Annotated[list[Placed], Field(min_length=1)]

    def plan(self, state: ReviewState, by: str) -> Change:
        if any(row >= len(state.group) for each in self.placed for row in each.rows):
            raise ConflictError("an image does not exist")
        moved: list[Moved] = []
        edits: list[Edit] = []
        new_clusters = count(state.n_groups)
        for each in self.placed:
            if each.cluster is None and (each.name is None or not each.rows):
                raise ConflictError("a new cluster needs a name and images")
            if each.cluster == REJECTED and each.name is not None:
                raise ConflictError("rejected images have no name")
            if each.cluster not in (None, REJECTED, *state.labels):
                raise ConflictError(f"cluster {each.cluster} no longer exists")
            to = next(new_clusters) if each.cluster is None else each.cluster
            rows = np.array(each.rows, dtype=np.int64)
            group = state.group[rows]
            moved += [Moved(rows[group == before], before, to) for before in np.unique(group).tolist()]
            if each.name is not None:
                kind: CategoryKind = "known" if each.name in state.known_classes else "discovered"
                edits.append(edit(state.labels, to, Label(each.name, kind, True)))
                edits.append(edit(state.opinions[to], by, Opinion("keep", each.name)))
        return Change(tuple(moved), tuple(edits))

    def clusters(self, state: ReviewState) -> set[int]:
        return {each.cluster for each in self.placed if each.cluster is not None}

    def describe(self, state: ReviewState) -> str:
        names = [each.name for each in self.placed if each.name is not None]
        changes = [f"{count_text(self.n_moved, 'image')} moved"] if self.n_moved else []
        if names:
            changes.append(f"named {', '.join(names[:N_LISTED])}{' and others' if len(names) > N_LISTED else ''}")
        return f"imported {self.source}: {'; '.join(changes)}"

    @property
    def n_moved(self) -> int:
        """How many images it moves."""
        return sum(len(each.rows) for each in self.placed)


def corrections(opened: OpenReview, rows_of: Mapping[str, list[int]], seen: int) -> tuple[list[Placed], int]:
    """The labels that differ from the state they are based on, and how many of them the review has already.

    ConflictError if people also changed the same image in the review since; DataError for an invalid name.

    Parameters:
        rows_of: the images of each label.
        seen: the last action whose result the labels are based on.
    """
    now = opened.state
    before = ReviewState(opened.predictions, now.known_classes)
    for entry in now.entries[:seen]:
        before.apply(entry.line)
    cluster_of = clusters_by_name(now, before, ReviewState(opened.predictions, now.known_classes))
    to_cluster: defaultdict[int, list[int]] = defaultdict(list)
    to_name: defaultdict[str, list[int]] = defaultdict(list)
    conflicts: list[tuple[int, str]] = []
    n_known = 0
    for label, rows in rows_of.items():
        name = nfc(label)
        if name not in cluster_of:
            name = _valid_name(name)
        to = cluster_of.get(name)
        for row in rows:
            first, present = int(before.group[row]), int(now.group[row])
            if _has_label(before, first, name, to):
                continue  # as it was exported
            if _has_label(now, present, name, to):
                n_known += 1
            elif first != present:
                conflicts.append((row, name))
            elif to is None:
                to_name[name].append(row)
            else:
                to_cluster[to].append(row)
    if conflicts:
        raise _conflict(opened, conflicts)
    placed = [Placed(cluster=to, name=None, rows=sorted(rows)) for to, rows in sorted(to_cluster.items())]
    placed += [_new_category(now, before, name, sorted(rows)) for name, rows in sorted(to_name.items())]
    return placed, n_known


def clusters_by_name(*states: ReviewState) -> dict[str, int]:
    """The cluster that a name means: by the names of the first state, then by those of the others.

    Of several clusters with one name it is the first that has images now, else the first.
    """
    now = states[0]
    has_images = set(np.unique(now.group).tolist())
    cluster_of: dict[str, int] = {}
    for state in states:
        for cluster in sorted(state.labels, key=lambda each: (each not in has_images, each)):
            if cluster in now.labels:
                cluster_of.setdefault(state.labels[cluster].name, cluster)
    cluster_of.setdefault(NO_CATEGORY, REJECTED)
    return cluster_of


def _has_label(state: ReviewState, cluster: int, name: str, to: int | None) -> bool:
    """Whether images of this cluster have the label already: the cluster is `to`, or has the name."""
    return cluster == to or (cluster != REJECTED and state.labels[cluster].name == name)


def _valid_name(name: str) -> str:
    """The name with single spaces; DataError if it cannot be the name of a category."""
    try:
        return GIVEN_NAME.validate_python(name)
    except ValidationError as error:
        problem = f"{name[:60]!r} cannot be the name of a category: {error.errors()[0]['msg']}"
        raise DataError(problem, advice="rename it in the file or in the tool") from error


def _new_category(now: ReviewState, before: ReviewState, name: str, rows: list[int]) -> Placed:
    """A category that does not exist yet: a discovered cluster all of whose images got this name, else a new one."""
    whole = [
        (-n, cluster)
        for cluster, n in Counter(now.group[rows].tolist()).items()
        if cluster != REJECTED and now.labels[cluster].kind == "discovered" and n == len(now.rows_of(cluster))
    ]
    if not whole:
        return Placed(cluster=None, name=name, rows=rows)
    cluster = min(whole)[1]
    old_name, new_name = before.labels[cluster].name, now.labels[cluster].name
    if new_name != old_name:
        raise ConflictError(
            f"{old_name} was named {new_name} in the review and {name} in the file",
            advice="use one name in both, or undo the name in the review",
        )
    return Placed(cluster=cluster, name=name, rows=[row for row in rows if now.group[row] != cluster])


def _conflict(opened: OpenReview, conflicts: list[tuple[int, str]]) -> ConflictError:
    paths, state = opened.predictions.index["path"], opened.state
    lines = [
        f"{paths[row].as_py()}: {name} in the file, {state.name_of(int(state.group[row]))} in the review"
        for row, name in conflicts
    ]
    problem = f"{count_text(len(lines), 'image')} changed both in the file and in the review since it was exported"
    return ConflictError(
        f"{problem}:\n{listed(lines)}",
        expected="changes of an image on one side only",
        advice="give these images one label on both sides, then import again",
    )
