"""What the page sends and what the log holds: an action, who does it, and when."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationError
from pydantic_core import PydanticCustomError

from justright.review import cluster_actions, random_checks, undo  # noqa: F401  each enters its actions in ACTIONS
from justright.review.actions import ACTIONS, Action, Reviewer, Strict


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
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise PydanticCustomError("action", "{where}: {said}", {"where": where, "said": first["msg"]}) from error


def _write_action(action: Action) -> dict[str, Any]:
    return {"do": action.do, **action.model_dump()}


def _sent(action: Action) -> Action:
    if not action.from_page:
        raise ValueError("stands in the log only")
    return action


Logged = Annotated[Action, BeforeValidator(read_action), PlainSerializer(_write_action)]
"""An action in the log."""

Asked = Annotated[Logged, AfterValidator(_sent)]
"""An action that the page may send."""


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
