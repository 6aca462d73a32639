"""Actions on clusters: what one is (keep, discard, name, known), what it has (merge, split, move, reject)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from justright.discovery.predictions import CategoryKind
from justright.review.actions import Action, Cluster, ClusterOrRejected, GivenName, Row, Rows
from justright.review.changes import Change, ConflictError, Moved, edit
from justright.review.state import REJECTED, Label, Opinion, ReviewState
from justright.utils.errors import DegenerateError
from justright.utils.types import Array

if TYPE_CHECKING:
    from justright.review.open_review import OpenReview

MAX_PARTS = 20
RESTARTS = 4


class Keep(Action, do="keep", told="kept {cluster}"):
    """The cluster is one category, under the name it has: an opinion about that too, if the name means something."""

    cluster: Cluster

    def plan(self, state: ReviewState, by: str) -> Change:
        label = state.label_of(self.cluster)
        opinion = Opinion("keep", label.name if label.is_named else None)
        return Change(edits=(edit(state.opinions[self.cluster], by, opinion),))


class Discard(Action, do="discard", told="rejected {cluster}"):
    """The cluster is no category; its images stay in it, and exports leave it out."""

    cluster: Cluster

    def plan(self, state: ReviewState, by: str) -> Change:
        state.label_of(self.cluster)
        return Change(edits=(edit(state.opinions[self.cluster], by, Opinion("reject", None)),))


class SetName(Action, do="name", told="named {name}"):
    """The cluster is a new category of this name, for everyone; who gives it keeps the cluster."""

    cluster: Cluster
    name: GivenName

    def plan(self, state: ReviewState, by: str) -> Change:
        return self._called(state, by, "discovered")

    def _called(self, state: ReviewState, by: str, kind: CategoryKind) -> Change:
        state.label_of(self.cluster)
        named = edit(state.labels, self.cluster, Label(self.name, kind, True))
        return Change(edits=(named, edit(state.opinions[self.cluster], by, Opinion("keep", self.name))))


class SetKnown(SetName, do="known", told="known as {name}"):
    """The cluster is this class of the labeled images."""

    def plan(self, state: ReviewState, by: str) -> Change:
        if self.name not in state.known_classes:
            raise ConflictError(f"{self.name!r} is no class of the labeled images", advice="name it instead")
        return self._called(state, by, "known")


class Merge(Action, do="merge", told="merged {cluster} into {into}"):
    """All images of the cluster go into another, which keeps its name."""

    cluster: Cluster
    into: Cluster

    def plan(self, state: ReviewState, by: str) -> Change:
        state.label_of(self.cluster), state.label_of(self.into)
        if self.cluster == self.into:
            raise ConflictError("a cluster cannot be merged into itself")
        return Change((Moved(state.rows_of(self.cluster), self.cluster, self.into),))


class SplitCluster(Action, do="split"):
    """Cluster the images of the cluster again; the log keeps what came out, so that reading it computes nothing."""

    cluster: Cluster
    n_parts: int = Field(ge=2, le=MAX_PARTS)

    def prepare(self, opened: OpenReview) -> Action:
        with opened.reading() as state:
            rows = state.rows_of(self.cluster)
        return Part(cluster=self.cluster, parts=cluster_again(rows, opened.features, self.n_parts, opened.seed))


class Part(Action, do="part", from_page=False):
    """These images of the cluster become clusters of their own, a list each; the others stay."""

    cluster: Cluster
    parts: Annotated[list[Annotated[list[Row], Field(min_length=1)]], Field(min_length=1, max_length=MAX_PARTS)]

    def plan(self, state: ReviewState, by: str) -> Change:
        state.label_of(self.cluster)
        every = [row for part in self.parts for row in part]
        if len(every) == len(state.rows_of(self.cluster)):
            raise ConflictError("a split has to leave images in the cluster")
        state.rows_in(self.cluster, every)
        opinions = state.opinions[self.cluster]  # they are no longer about what it is now
        numbered = list(enumerate(self.parts, start=state.n_groups))
        return Change(
            tuple(Moved(np.array(part), self.cluster, new) for new, part in numbered),
            (*(edit(opinions, who, None) for who in opinions), *(state.new_group(new) for new, _ in numbered)),
        )

    def describe(self, state: ReviewState) -> str:
        return f"split {state.name_of(self.cluster)} into {len(self.parts) + 1}"


class Move(Action, do="move", told="moved {rows} from {cluster} to {to}"):
    """Images of the cluster, or rejected ones, go to another, or to a new one where `to` is null."""

    cluster: ClusterOrRejected
    rows: Rows
    to: Cluster | None

    def plan(self, state: ReviewState, by: str) -> Change:
        rows = state.rows_in(self.cluster, self.rows)
        if self.to is None:
            new = state.n_groups
            return Change((Moved(rows, self.cluster, new),), (state.new_group(new),))
        state.label_of(self.to)
        if self.to == self.cluster:
            raise ConflictError("these images are there already")
        return Change((Moved(rows, self.cluster, self.to),))


class Reject(Action, do="reject", told="rejected {rows} of {cluster}"):
    """These images of the cluster belong to no category."""

    cluster: Cluster
    rows: Rows

    def plan(self, state: ReviewState, by: str) -> Change:
        return Change((Moved(state.rows_in(self.cluster, self.rows), self.cluster, REJECTED),))


def cluster_again(
    rows: Int[Array, " rows"], features: Float[Array, "images dim"] | None, n_parts: int, seed: int
) -> list[list[int]]:
    """k-means on the features of these images: all parts but the largest, which is to stay where it is."""
    if features is None:
        advice = "move the images by hand"
        raise DegenerateError("this run has no features", expected="tuned.npy in the run", advice=advice)
    if len(rows) < n_parts:
        raise DegenerateError(f"{len(rows)} images cannot make {n_parts} clusters")
    from justright.clustering import SemiSupKMeans  # slow to import, and most reviews split nothing

    x = np.asarray(features[rows], dtype=np.float32)
    labels = SemiSupKMeans(n_parts, n_init=RESTARTS, seed=seed).fit(x).labels_
    by_size = np.argsort(-np.bincount(labels, minlength=n_parts), kind="stable")
    return [rows[labels == part].tolist() for part in by_size[1:]]
