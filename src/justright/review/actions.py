"""The few things a reviewer can do, checked strictly: what the page sends and what the log holds are these."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

REJECTED = -1
"""The group of images that belong to no category."""

MAX_NAME = 120
MAX_REVIEWER = 40
MAX_ROWS = 20_000
"""Images one action may list; a whole cluster of any size is named by itself."""
MAX_PARTS = 20

BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
"""Marks that turn the direction of text: a name with them can show as another one."""


def clean_text(text: str) -> str:
    """One composed form, single spaces, nothing that cannot be seen."""
    text = re.sub(" +", " ", unicodedata.normalize("NFC", text)).strip()
    if not text:
        raise ValueError("is empty")
    if any(mark in BIDI or unicodedata.category(mark) in ("Cc", "Cs", "Zl", "Zp") for mark in text):
        raise ValueError("has a character that cannot be seen")
    return text


Row = Annotated[int, Field(ge=0, lt=2**31)]
Cluster = Annotated[int, Field(ge=0, lt=2**31)]
Rows = Annotated[list[Row], Field(min_length=1, max_length=MAX_ROWS)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(clean_text)]
Reviewer = Annotated[str, Field(min_length=1, max_length=MAX_REVIEWER), AfterValidator(clean_text)]


class Strict(BaseModel):
    """No field too many, no text where a number belongs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Keep(Strict):
    """The cluster is one category, under the name it has."""

    do: Literal["keep"] = "keep"
    cluster: Cluster


class Discard(Strict):
    """The cluster is no category; its images stay in it, and exports leave it out."""

    do: Literal["discard"] = "discard"
    cluster: Cluster


class SetName(Strict):
    """The cluster is a new category of this name."""

    do: Literal["name"] = "name"
    cluster: Cluster
    name: Name


class SetKnown(Strict):
    """The cluster is this class of the labeled images."""

    do: Literal["known"] = "known"
    cluster: Cluster
    name: Name


class Merge(Strict):
    """All images of the cluster go into another."""

    do: Literal["merge"] = "merge"
    cluster: Cluster
    into: Cluster


class SplitCluster(Strict):
    """Cluster the images of the cluster again; the log keeps what came out, as `Part`."""

    do: Literal["split"] = "split"
    cluster: Cluster
    n_parts: int = Field(ge=2, le=MAX_PARTS)


class Part(Strict):
    """These images of the cluster become clusters of their own, a list each; the others stay."""

    do: Literal["part"] = "part"
    cluster: Cluster
    parts: Annotated[list[Annotated[list[Row], Field(min_length=1)]], Field(min_length=1, max_length=MAX_PARTS)]


class Move(Strict):
    """Images of the cluster, or rejected ones, go to another, or to a new one where `to` is null."""

    do: Literal["move"] = "move"
    cluster: int = Field(ge=REJECTED, lt=2**31)
    rows: Rows
    to: Cluster | None


class Reject(Strict):
    """These images of the cluster belong to no category."""

    do: Literal["reject"] = "reject"
    cluster: Cluster
    rows: Rows


class Check(Strict):
    """A randomly drawn image shows what its cluster stands for, or does not."""

    do: Literal["check"] = "check"
    round: int = Field(ge=1, lt=2**31)
    row: Row
    cluster: Cluster
    is_right: bool


class NewRound(Strict):
    """Draw a fresh random sample from now on: the last one was looked at before the corrections."""

    do: Literal["round"] = "round"
    round: int = Field(ge=2, lt=2**31)


class Undo(Strict):
    """Take back the line `target` of the log; one that took something back is done again. Null: my latest."""

    do: Literal["undo"] = "undo"
    target: Annotated[int, Field(ge=1, lt=2**53)] | None = None


class Redo(Strict):
    """Do again what I took back last."""

    do: Literal["redo"] = "redo"


Asked = Annotated[
    Keep | Discard | SetName | SetKnown | Merge | SplitCluster | Move | Reject | Check | NewRound | Undo | Redo,
    Field(discriminator="do"),
]
"""What the page may send."""

Logged = Annotated[
    Keep | Discard | SetName | SetKnown | Merge | Part | Move | Reject | Check | NewRound | Undo,
    Field(discriminator="do"),
]
"""What the log may hold: every choice is made."""


class Request(Strict):
    """One action of a reviewer, on top of the line `base` of the log, which the page had seen.

    `id` is drawn by the page: sent twice, because the answer was lost, it is done once.
    """

    id: str = Field(pattern=r"^[0-9a-f]{16,64}$")
    base: int = Field(ge=0, lt=2**53)
    reviewer: Reviewer
    action: Asked


class Line(Strict):
    """One line of the log."""

    seq: int = Field(ge=1)
    at: str = Field(max_length=40)
    by: Reviewer
    id: str
    action: Logged
