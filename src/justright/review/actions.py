"""What an action of a reviewer is, as the page sends it and as the log holds it.

A new action is a subclass of `Action` in any module: nothing else has to know it. CONTRIBUTING.md has an example.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic_core import PydanticCustomError

from justright.review.changes import Change, ConflictError
from justright.review.state import REJECTED, ReviewState
from justright.utils.registry import Registry

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
