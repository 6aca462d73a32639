"""Bad images: recorded with path and reason, never replaced, never silently dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from justright.utils.errors import BadImageError, BadKind, DataError

MAX_BAD = 0.05
"""A source with a larger share of bad images than this is rejected."""

N_EXAMPLES = 3
MISSING_ADVICE = "correct the paths: those of a table are relative to its folder"


@dataclass(frozen=True)
class Quarantined:
    """One bad image: where it is, and why it cannot be used."""

    dataset: str
    source: str
    path: str
    kind: BadKind
    reason: str


class TooManyBadError(DataError):
    """Too many images of a source are bad to continue without them."""


def reason_of(error: Exception, path: str) -> tuple[BadKind, str]:
    """The kind of an error and a sentence about it, without the path."""
    if not isinstance(error, BadImageError):
        return BadKind.UNREADABLE, f"{type(error).__name__}: {error}"
    text = error.problem.removeprefix(f"{path}: ")
    return error.kind, f"{text}, expected {error.expected}" if error.expected else text


def refuse_above(max_bad: float, bad: Sequence[Quarantined], n_images: int, name: str) -> None:
    """Raise TooManyBadError when the share of bad images of the source `name` is above the limit, or all are bad."""
    if not bad or (len(bad) <= max_bad * n_images and len(bad) < n_images):
        return
    examples = "\n".join(f"  {printable(f'{image.path}: {image.reason}')}" for image in bad[:N_EXAMPLES])
    if len(bad) > N_EXAMPLES:
        examples += f"\n  and {len(bad) - N_EXAMPLES:,} more"
    are_missing = all(image.kind == BadKind.MISSING for image in bad)
    advice = MISSING_ADVICE if are_missing else "fix or remove these files; `justright audit` lists the reason of each"
    if len(bad) == n_images:
        problem = f"no image of {name} can be read, {n_images:,} of {n_images:,} are bad"
        expected = "at least one readable image"
    else:
        problem = f"{len(bad):,} of {n_images:,} images of {name} are bad ({len(bad) / n_images:.1%})"
        expected = f"at most {max_bad:.4g} of a source ({max_bad:.1%})"
        advice += ", or use the rest without them: a higher --max-bad of audit, discover, extract and predict"
    raise TooManyBadError(f"{problem}:\n{examples}", expected=expected, advice=advice)


def printable(text: str) -> str:
    """Escape line breaks and control codes in file names."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
