"""Bad images of an extraction by row: why each is skipped, and how many are too many. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from justright.data.image_set import ImageSet
from justright.data.quarantine import Quarantined, reason_of, refuse_above
from justright.utils.errors import BadKind

Reasons: TypeAlias = Mapping[int, tuple[str, str]]  # kind and reason of bad images, by their position in the source


def reason_at(error: Exception, images: ImageSet, row: int) -> tuple[str, str]:
    """Kind and reason of the image in a row that cannot be read."""
    kind, reason = reason_of(error, images.table["path"][row].as_py())
    return kind.value, reason


def reason_now(images: ImageSet, row: int) -> tuple[str, str] | None:
    """Kind and reason if the image in a row cannot be decoded as it is now; None if it can."""
    try:
        images.image(row)
    except Exception as error:  # as in an extraction: the reason carries the error
        return reason_at(error, images, row)
    return None


def unreadable_rows(images: ImageSet, content_ids: list[str]) -> Reasons:
    """Kind and reason of the images without a content id."""
    reasons = {row: reason_now(images, row) for row, content_id in enumerate(content_ids) if not content_id}
    return {row: reason or (BadKind.UNREADABLE.value, "changes while it is read") for row, reason in reasons.items()}


def quarantined(images: ImageSet, bad: Reasons) -> dict[int, Quarantined]:
    """The bad images as the store lists them, by row."""
    rows = sorted(bad)
    places = images.table.select(["dataset", "source", "path"]).take(pa.array(rows, pa.int64())).to_pylist()
    return {
        row: Quarantined(**place, kind=BadKind(bad[row][0]), reason=bad[row][1])
        for row, place in zip(rows, places, strict=True)
    }


def refuse_bad_rows(max_bad: float, images: ImageSet, bad: Reasons) -> None:
    """Raise if more than the share `max_bad` of the images is bad, or if all are."""
    if len(bad) > max_bad * len(images) or len(bad) == len(images):
        refuse_above(max_bad, list(quarantined(images, bad).values()), len(images), ", ".join(images.datasets))
