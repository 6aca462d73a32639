"""The actions of a reviewer, as the page sends them and as the log stores them.

A subclass of `Action` in any module registers itself; CONTRIBUTING.md has an example.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from jaxtyping import Float, Int
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic_core import PydanticCustomError

from justright.discovery.predictions import CategoryKind
from justright.review.state import REJECTED, Change, ConflictError, Label, Moved, Opinion, ReviewState, edit
from justright.utils.errors import DegenerateError
from justright.utils.registry import Registry
from justright.utils.types import Array
from justright.utils.wording import count_text, first_names

if TYPE_CHECKING:
    from justright.review.open_review import OpenReview

MAX_NAME = 120
MAX_REVIEWER = 40
MAX_ROWS = 20_000  # images that one action may list; actions on a whole cluster have no limit
# characters that change the direction of text: a name with them can look like another one
BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
Row = Annotated[int, Field(ge=0, lt=2**31)]
Rows = Annotated[list[Row], Field(min_length=1, max_length=MAX_ROWS)]
Cluster = Annotated[int, Field(ge=0, lt=2**31)]
ClusterOrRejected = Annotated[int, Field(ge=REJECTED, lt=2**31)]
MAX_PARTS = 20
RESTARTS = 4
N_LISTED = 3  # later actions that an error lists


def clean_text(text: str) -> str:
    """Normalize to NFC with single spaces; ValueError for empty text or invisible characters."""
    text = re.sub(" +", " ", unicodedata.normalize("NFC", text)).strip()
    if not text:
        raise ValueError("is empty")
    if any(mark in BIDI or unicodedata.category(mark) in ("Cc", "Cs", "Zl", "Zp") for mark in text):
        raise ValueError("has an invisible character")
    return text


GivenName = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(clean_text)]
Reviewer = Annotated[str, Field(min_length=1, max_length=MAX_REVIEWER), AfterValidator(clean_text)]


class Strict(BaseModel):
    """A frozen record without extra fields or type conversion."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Action(Strict):
    """An action of a reviewer: its fields, its conditions and its change.

    With a field `cluster` the action is rejected if someone changed that cluster since the reviewer saw it. With a
    field `rows`, images of the cluster, only a new name counts as a change; the same holds for the clusters in `into`
    and `to`. A subclass sets `do`, `history` and `from_page` as class arguments.
    """

    do: ClassVar[str]  # the name of the action in requests and in the log
    history: ClassVar[str]  # its text in the history, after the name of the reviewer; fields in braces
    from_page: ClassVar[bool]  # whether the page may send it; otherwise it occurs in the log only

    def __init_subclass__(cls, do: str, history: str = "", from_page: bool = True, **config: Any) -> None:
        super().__init_subclass__(**config)
        cls.do, cls.history, cls.from_page = do, history or do, from_page
        ACTIONS.add(do, cls, (cls.__doc__ or "").partition("\n")[0])

    def prepare(self, opened: OpenReview) -> Action:
        """Return the action to apply; slow work belongs here, because other requests need not wait for it."""
        return self

    def resolve(self, opened: OpenReview, by: str) -> Action:
        """Return the action with all choices made, as the log stores it; ConflictError if it is not possible now."""
        return self

    def plan(self, state: ReviewState, by: str) -> Change:
        """Return the change; ConflictError if it does not fit the state. Required of every logged action."""
        raise ConflictError(f"{self.do} cannot be logged")

    def clusters(self, state: ReviewState) -> set[int]:
        """Clusters it affects besides those whose images move; pages that show them are updated."""
        return {self.cluster} if hasattr(self, "cluster") else set()

    def describe(self, state: ReviewState) -> str:
        """Fill `history` with the fields; clusters by their current names, images by their number."""
        fields = dict(self)
        fields |= {each: state.name_of(fields[each]) for each in ("cluster", "into", "to") if each in fields}
        if "rows" in fields:
            fields["rows"] = count_text(len(fields["rows"]), "image")
        return self.history.format(**fields)


ACTIONS: Registry[type[Action]] = Registry("review action")  # subclasses of `Action` register themselves


def read_action(value: Any) -> Any:
    """Parse the fields of an action, chosen by `do`."""
    if not isinstance(value, dict):
        return value  # already an action, or rejected by the next validator
    fields = dict(value)
    name = fields.pop("do", None)
    if not isinstance(name, str) or name not in ACTIONS:
        raise PydanticCustomError("action", "do: Expected one of {known}", {"known": ", ".join(ACTIONS)})
    try:
        return ACTIONS[name].model_validate(fields)
    except ValidationError as error:
        raise PydanticCustomError("action", "{problem}", {"problem": first_problem(error.errors())}) from error


def first_problem(errors: Sequence[Any]) -> str:
    """Describe the first wrong field. Its value is not repeated: it may not be valid text."""
    where = [str(part) for part in errors[0]["loc"] if isinstance(part, int) or part.isidentifier()]
    return f"{'.'.join(where)}: {errors[0]['msg']}"


def _refuse_internal(action: Action) -> Action:
    if not action.from_page:
        raise ValueError("occurs in the log only")
    return action


Logged = Annotated[
    Action, BeforeValidator(read_action), PlainSerializer(lambda action: {"do": action.do, **action.model_dump()})
]
FromPage = Annotated[Logged, AfterValidator(_refuse_internal)]  # an action that the page may send


class Request(Strict):
    """One action of a reviewer who had seen the log up to line `base`.

    The page draws a random `id`, so a request that is sent twice is applied once.
    """

    id: str = Field(pattern=r"^[0-9a-f]{16,64}$")
    base: int = Field(ge=0, lt=2**53)
    reviewer: Reviewer
    action: FromPage


class LogLine(Strict):
    """One line of the log."""

    seq: int = Field(ge=1)
    at: str = Field(max_length=40)
    by: Reviewer
    id: str
    action: Logged


class Keep(Action, do="keep", history="kept {cluster}"):
    """Keep the cluster as one category under its current name."""

    cluster: Cluster

    def plan(self, state: ReviewState, by: str) -> Change:
        label = state.label_of(self.cluster)
        opinion = Opinion("keep", label.name if label.is_named else None)
        return Change(edits=(edit(state.opinions[self.cluster], by, opinion),))


class Discard(Action, do="discard", history="rejected {cluster}"):
    """Reject the cluster: its images stay in it, and exports omit it."""

    cluster: Cluster

    def plan(self, state: ReviewState, by: str) -> Change:
        state.label_of(self.cluster)
        return Change(edits=(edit(state.opinions[self.cluster], by, Opinion("reject", None)),))


class SetName(Action, do="name", history="named {name}"):
    """Name the cluster as a new category, for all reviewers, and keep it."""

    cluster: Cluster
    name: GivenName

    def plan(self, state: ReviewState, by: str) -> Change:
        return self._named(state, by, "discovered")

    def _named(self, state: ReviewState, by: str, kind: CategoryKind) -> Change:
        state.label_of(self.cluster)
        label = edit(state.labels, self.cluster, Label(self.name, kind, True))
        return Change(edits=(label, edit(state.opinions[self.cluster], by, Opinion("keep", self.name))))


class SetKnown(SetName, do="known", history="known as {name}"):
    """Mark the cluster as this class of the labeled images."""

    def plan(self, state: ReviewState, by: str) -> Change:
        if self.name not in state.known_classes:
            raise ConflictError(f"{self.name!r} is not a class of the labeled images", advice="use name instead")
        return self._named(state, by, "known")


class Merge(Action, do="merge", history="merged {cluster} into {into}"):
    """Move all images of the cluster into another, which keeps its name."""

    cluster: Cluster
    into: Cluster

    def plan(self, state: ReviewState, by: str) -> Change:
        state.label_of(self.cluster)
        state.label_of(self.into)
        if self.cluster == self.into:
            raise ConflictError("a cluster cannot be merged into itself")
        return Change((Moved(state.rows_of(self.cluster), self.cluster, self.into),))


class SplitCluster(Action, do="split"):
    """Split the cluster by k-means; the log stores the resulting `Part`, so reading it computes nothing."""

    cluster: Cluster
    n_parts: int = Field(ge=2, le=MAX_PARTS)

    def prepare(self, opened: OpenReview) -> Action:
        with opened.reading() as state:
            rows = state.rows_of(self.cluster)
        return Part(cluster=self.cluster, parts=split_rows(rows, opened.features, self.n_parts, opened.seed))


class Part(Action, do="part", from_page=False):
    """Make a new cluster of each list of images; the others stay."""

    cluster: Cluster
    parts: Annotated[list[Annotated[list[Row], Field(min_length=1)]], Field(min_length=1, max_length=MAX_PARTS)]

    def plan(self, state: ReviewState, by: str) -> Change:
        state.label_of(self.cluster)
        listed = [row for part in self.parts for row in part]
        if len(listed) == len(state.rows_of(self.cluster)):
            raise ConflictError("a split must leave images in the cluster")
        state.rows_in(self.cluster, listed)
        opinions = state.opinions[self.cluster]  # about the cluster before the split
        numbered = list(enumerate(self.parts, start=state.n_groups))
        return Change(
            tuple(Moved(np.array(part), self.cluster, new) for new, part in numbered),
            (*(edit(opinions, who, None) for who in opinions), *(state.new_group(new) for new, _ in numbered)),
        )

    def describe(self, state: ReviewState) -> str:
        return f"split {state.name_of(self.cluster)} into {len(self.parts) + 1}"


class Move(Action, do="move", history="moved {rows} from {cluster} to {to}"):
    """Move images of the cluster, or rejected ones, to another cluster, or to a new one if `to` is null."""

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
            raise ConflictError("these images are already there")
        return Change((Moved(rows, self.cluster, self.to),))


class Reject(Action, do="reject", history="rejected {rows} of {cluster}"):
    """Reject these images of the cluster: they belong to no category."""

    cluster: Cluster
    rows: Rows

    def plan(self, state: ReviewState, by: str) -> Change:
        return Change((Moved(state.rows_in(self.cluster, self.rows), self.cluster, REJECTED),))


def split_rows(
    rows: Int[Array, " rows"], features: Float[Array, "images dim"] | None, n_parts: int, seed: int
) -> list[list[int]]:
    """Run k-means on the features of these images; returns all parts but the largest, which stays."""
    if features is None:
        raise DegenerateError("this run has no features", expected="tuned.npy in the run", advice="move images instead")
    if len(rows) < n_parts:
        raise DegenerateError(f"{len(rows)} images cannot make {n_parts} clusters")
    from justright.clustering import SemiSupKMeans  # slow to import, and rarely needed

    x = np.asarray(features[rows], dtype=np.float32)
    labels = SemiSupKMeans(n_parts, n_init=RESTARTS, seed=seed).fit(x).labels_
    by_size = np.argsort(-np.bincount(labels, minlength=n_parts), kind="stable")
    return [rows[labels == part].tolist() for part in by_size[1:]]


class Undo(Action, do="undo", history="undid action {target}"):
    """Undo action `target`; undoing an undo is a redo. Null: my latest action. Nothing is deleted from the log."""

    target: Annotated[int, Field(ge=1, lt=2**53)] | None = None

    def resolve(self, opened: OpenReview, by: str) -> Action:
        return self if self.target is not None else Undo(target=_latest(opened.state, by, is_undo=False))

    def plan(self, state: ReviewState, by: str) -> Change:
        target = self.target
        if target is None or target > state.seq or state.undone.get(target):
            raise ConflictError(f"there is no action {target} to undo")
        change = state.entries[target - 1].change.reversed()
        if not change.can_apply(state.group):
            raise ConflictError(f"a later action changed what action {target} did", advice="undo that one first")
        if unlabeled := state.without_label(change):
            raise ConflictError(
                f"action {target} cannot be undone: {_dependents(state, target, unlabeled)}",
                advice="undo those first, or move the images elsewhere",
            )
        return Change(change.moved, (*change.edits, edit(state.undone, target, True)))

    def clusters(self, state: ReviewState) -> set[int]:
        return set(state.entries[self.target - 1].clusters) if self.target else set()


def _dependents(state: ReviewState, target: int, clusters: set[int]) -> str:
    """Which later actions use or removed these clusters, so that `target` cannot be undone."""
    is_gone = not clusters <= state.labels.keys()
    actions = []
    for entry in state.entries[target:]:
        relabeled = {each.key for each in entry.change.edits if each.table is state.labels}
        if clusters & (relabeled if is_gone else entry.clusters) and not state.undone.get(entry.line.seq):
            actions.append(f"{entry.line.seq} ({entry.line.by})")
    names = ", ".join(map(state.name_of, sorted(clusters)))
    return f"{names} {'was removed' if is_gone else 'is used'} by action {first_names(actions, N_LISTED)}"


class Redo(Action, do="redo"):
    """Redo what I undid last, unless I did something since."""

    def resolve(self, opened: OpenReview, by: str) -> Action:
        return Undo(target=_latest(opened.state, by, is_undo=True))


def _latest(state: ReviewState, reviewer: str, *, is_undo: bool) -> int:
    """The last action of a reviewer that is not undone; with `is_undo`, the last undo since their last action."""
    for entry in reversed(state.entries):
        line = entry.line
        if line.by != reviewer or state.undone.get(line.seq):
            continue
        if isinstance(line.action, Undo):
            undone = state.entries[(line.action.target or 0) - 1].line.action
            if is_undo and not isinstance(undone, Undo):
                return line.seq
        elif is_undo:
            break
        else:
            return line.seq
    raise ConflictError(f"{reviewer} has nothing to {'redo' if is_undo else 'undo'}")
