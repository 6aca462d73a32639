"""What an action of a reviewer is, as the page sends it and as the log holds it.

A new action is a subclass of `Action` in any module: nothing else has to know it. CONTRIBUTING.md has an example.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from jaxtyping import Float, Int
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic_core import PydanticCustomError

from justright.discovery.predictions import CategoryKind
from justright.review.state import REJECTED, Change, ConflictError, Edit, Label, Moved, Opinion, ReviewState, edit
from justright.utils.errors import DegenerateError
from justright.utils.registry import Registry
from justright.utils.types import Array

if TYPE_CHECKING:
    from justright.review.open_review import OpenReview

MAX_NAME = 120
MAX_REVIEWER = 40
MAX_ROWS = 20_000  # images one action may list; a whole cluster of any size is named by itself
# marks that turn the direction of text: a name with them can show as another one
BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def clean_text(text: str) -> str:
    """One composed form, single spaces, nothing that cannot be seen."""
    text = re.sub(" +", " ", unicodedata.normalize("NFC", text)).strip()
    if not text:
        raise ValueError("is empty")
    if any(mark in BIDI or unicodedata.category(mark) in ("Cc", "Cs", "Zl", "Zp") for mark in text):
        raise ValueError("has a character that cannot be seen")
    return text


Row = Annotated[int, Field(ge=0, lt=2**31)]
Rows = Annotated[list[Row], Field(min_length=1, max_length=MAX_ROWS)]
Cluster = Annotated[int, Field(ge=0, lt=2**31)]
ClusterOrRejected = Annotated[int, Field(ge=REJECTED, lt=2**31)]
GivenName = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(clean_text)]
Reviewer = Annotated[str, Field(min_length=1, max_length=MAX_REVIEWER), AfterValidator(clean_text)]


class Strict(BaseModel):
    """A record from outside: no field too many, no text where a number belongs, and nothing changes it later."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Action(Strict):
    """Something that a reviewer can do: its fields, when it may be done, what it changes.

    A field `cluster` says what the action is about: it is refused if someone changed that cluster since the reviewer
    looked. With a field `rows`, images of the cluster, only a new name counts as a change; the same holds for other
    clusters, in fields `into` and `to`. A subclass gives `do`, `told` and `from_page` behind its base class.
    """

    do: ClassVar[str]  # the name of the action in requests and in the log
    told: ClassVar[str]  # what the history says behind the name of the reviewer, with names of fields in braces
    from_page: ClassVar[bool]  # whether the page may send it; if not, it stands in the log only

    def __init_subclass__(cls, do: str, told: str = "", from_page: bool = True, **config: Any) -> None:
        super().__init_subclass__(**config)
        cls.do, cls.told, cls.from_page = do, told or do, from_page
        ACTIONS.add(do, cls, (cls.__doc__ or "").partition("\n")[0])

    def prepare(self, opened: OpenReview) -> Action:
        """The action to do instead, where that takes a moment to find out: others do not wait meanwhile."""
        return self

    def resolve(self, opened: OpenReview, by: str) -> Action:
        """The action with every choice made, as the log is to hold it; ConflictError where it cannot be done now."""
        return self

    def plan(self, state: ReviewState, by: str) -> Change:
        """What it changes; ConflictError where it does not fit the state. Every action in a log has this."""
        raise ConflictError(f"{self.do} cannot be part of a log")

    def clusters(self, state: ReviewState) -> set[int]:
        """Clusters it is about, beside those whose images move: pages that show them are brought up to date."""
        return {self.cluster} if hasattr(self, "cluster") else set()

    def describe(self, state: ReviewState) -> str:
        """`told` with the values of the fields; clusters under the names they have now, images as their number."""
        fields = dict(self)
        fields |= {each: state.name_of(fields[each]) for each in ("cluster", "into", "to") if each in fields}
        if n := len(fields.get("rows", ())):
            fields["rows"] = f"{n:,} image{'s' if n > 1 else ''}"
        return self.told.format(**fields)


ACTIONS: Registry[type[Action]] = Registry("review action")  # a subclass of `Action` enters itself


def read_action(value: Any) -> Any:
    """The action that these fields are, chosen by `do`."""
    if not isinstance(value, dict):
        return value  # an action already, or refused next
    fields = dict(value)
    name = fields.pop("do", None)
    if not isinstance(name, str) or name not in ACTIONS:
        raise PydanticCustomError("action", "do: Expected one of {known}", {"known": ", ".join(ACTIONS)})
    try:
        return ACTIONS[name].model_validate(fields)
    except ValidationError as error:
        raise PydanticCustomError("action", "{said}", {"said": first_problem(error.errors())}) from error


def first_problem(errors: Sequence[Any]) -> str:
    """Which field is wrong and why. What came is not repeated: it may be no text at all."""
    first = errors[0] if errors else {"loc": (), "msg": "cannot be understood"}
    where = ".".join(str(part) for part in first["loc"] if isinstance(part, int) or str(part).isidentifier())
    return f"{where}: {first['msg']}"


def _refuse_internal(action: Action) -> Action:
    if not action.from_page:
        raise ValueError("stands in the log only")
    return action


Logged = Annotated[
    Action, BeforeValidator(read_action), PlainSerializer(lambda action: {"do": action.do, **action.model_dump()})
]
Asked = Annotated[Logged, AfterValidator(_refuse_internal)]  # an action that the page may send


class Request(Strict):
    """One action of a reviewer, on top of the line `base` of the log, which the page had seen.

    `id` is drawn by the page: sent twice, because the answer was lost, it is done once.
    """

    id: str = Field(pattern=r"^[0-9a-f]{16,64}$")
    base: int = Field(ge=0, lt=2**53)
    reviewer: Reviewer
    action: Asked


class LogLine(Strict):
    """One line of the log."""

    seq: int = Field(ge=1)
    at: str = Field(max_length=40)
    by: Reviewer
    id: str
    action: Logged


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
