"""Scores: the result of an evaluation, printed as one line and saved as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from justright.utils.errors import DataError
from justright.utils.files import parsed_json, validator_of, write_json
from justright.utils.hashing import signed, verified

Protocol: TypeAlias = Literal["v2", "v2b", "v1"]
PROTOCOLS: tuple[Protocol, ...] = ("v2", "v2b", "v1")
GROUPS = ("all", "old", "new")  # of images: each has an accuracy
LEVEL = 0.95  # of intervals by default
FORMAT = "justright scores 1"  # in each file, to reject other JSON
_TITLES = {"all": "All", "old": "Old", "old_kept": "kept", "old_dropped": "dropped", "new": "New"}


@dataclass(frozen=True)
class Scores:
    """How well clusters agree with classes; accuracies are shares between 0 and 1, NaN where there is no image."""

    all: float  # the accuracy on all images
    old: float  # on those of old classes
    new: float  # on those of new classes
    nmi: float  # agreement without any matching, as ari is
    ari: float
    protocol: Protocol
    n_images: int
    n_old: int
    n_new: int
    n_classes: int
    n_clusters: int
    old_kept: float = math.nan  # old by whether selection kept the labels of the class; NaN if not computed
    old_dropped: float = math.nan
    level: float = LEVEL
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # low and high by name of the accuracy
    names: Mapping[str, float] = field(default_factory=dict)  # of *names count*: all, old, new; {} if not computed

    def __str__(self) -> str:
        shown = [name for name in _TITLES if name in GROUPS or math.isfinite(getattr(self, name))]
        parts = [f"{_TITLES[name]} {self.percent(name)}" for name in shown]
        if self.names:
            shares = ["-" if math.isnan(share) else f"{100 * share:.1f}" for share in self.names.values()]
            parts.append(f"names count {' / '.join(shares)}")
        parts += [f"NMI {self.nmi:.3f}", f"ARI {self.ari:.3f}"]
        sizes = f"{self.n_images:,} images, {self.n_classes:,} classes, {self.n_clusters:,} clusters, {self.protocol}"
        return f"{' | '.join(parts)} ({sizes})"

    def percent(self, name: str) -> str:
        """An accuracy with its interval; a dash where there is no image."""
        value = getattr(self, name)
        if math.isnan(value):
            return "-"
        if name not in self.intervals:
            return f"{100 * value:.1f}"
        low, high = self.intervals[name]
        return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values; JSON has no NaN, so it becomes null."""
        values: dict[str, Any] = _replaced(asdict(self), lambda value: value != value, None)
        return values

    def save(self, path: Path) -> None:
        """Write as JSON, atomically."""
        write_json(path, signed({"format": FORMAT} | self.to_dict()))

    @staticmethod
    def load(path: Path) -> Scores:
        """Read the scores that `save` wrote."""
        try:
            values = verified(parsed_json(path.read_text(encoding="utf-8")))
            if values.pop("format") != FORMAT or not {item.name for item in fields(Scores)} <= set(values):
                raise ValueError("other fields than those of Scores")
            return validator_of(Scores)(_replaced(values, lambda value: value is None, math.nan))
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise DataError(
                f"{path} does not hold scores of this version: {error}",
                expected=f'JSON with "format": "{FORMAT}" and the fields of Scores',
                advice="justright evaluate --out writes such a file",
            ) from error


def _replaced(value: Any, is_replaced: Callable[[Any], bool], by: Any) -> Any:
    """A copy of nested JSON values in which some values are replaced; tuples become lists."""
    if isinstance(value, dict):
        return {name: _replaced(each, is_replaced, by) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(each, is_replaced, by) for each in value]
    return by if is_replaced(value) else value
