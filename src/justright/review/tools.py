"""The labels of a run for other labeling tools, and what was corrected there into the review of the run."""

from __future__ import annotations

import logging
import secrets
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from justright.data.quarantine import printable
from justright.review.actions import MAX_NAME, Request, clean_text
from justright.review.export import label_table, new_folder, put_image
from justright.review.formats import FORMATS, format_of
from justright.review.formats.base import Format, GivenLabel, LabelSheet, checked, read_json
from justright.review.image_names import ImageNames
from justright.review.open_review import OpenReview
from justright.review.relabel import NO_CATEGORY, Relabel, SetLabels, corrections, images_text
from justright.review.state import REJECTED, ReviewState
from justright.utils.context import track
from justright.utils.errors import DataError, JustrightError
from justright.utils.files import replacing, write_json

EXPORTED = "exported.json"  # by format: the number of actions of the review when the run was last exported to it
N_LISTED = 5  # problems that an error lists
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Exported:
    """What was written for a tool."""

    n_images: int
    n_labeled: int
    usage: str  # how the tool gets labels and images


@dataclass(frozen=True)
class Imported:
    """What came back from a tool."""

    format: str
    n_labels: int  # images with a label in the file
    n_moved: int  # images that have another category now
    named: tuple[str, ...]  # categories that got a name
    n_known: int  # corrections that the review had already
    action: int | None  # the number of the action in the log; None if there was nothing to correct


def export_to(opened: OpenReview, to: str, out: Path, *, is_copy: bool = False) -> Exported:
    """Write the labels of a run, as reviewed so far, in the format `to`, atomically.

    Parameters:
        is_copy: copy the images into the export; by default tools find them where they are, or by links.
    """
    form = FORMATS[to]
    if is_copy and form.is_file:
        raise DataError(f"{to} is one file and holds no images", advice="export without copies, or to another format")
    names = ImageNames(opened.run.target)
    has_images = bool(form.images) and (form.has_images or is_copy or names.root is None)
    root = names.root or out.absolute()
    if has_images:
        root = out.absolute() / form.images
    sheet, seen = _sheet(opened, names, root, is_copy)
    if form.is_file:
        with replacing(out) as temporary:
            form.write(sheet, temporary)
    else:
        with new_folder(out) as building:
            if has_images:
                _put_images(sheet, form, building)
            form.write(sheet, building)
    _remember(opened, to, seen)
    place = root if has_images or names.root else "the zip or table that the run read"
    usage = form.usage.format(out=out, root=place, above=root.parent)
    return Exported(len(sheet), sum(label is not None for label in sheet.labels), usage)


def _sheet(opened: OpenReview, names: ImageNames, root: Path, is_copy: bool) -> tuple[LabelSheet, int]:
    """The labels as they are now, and the number of actions so far."""
    predictions = opened.predictions
    with opened.reading() as state:
        table, group, seen = label_table(opened), state.group.copy(), state.seq
        classes = _choices(state, opened.known_classes)
    kept = zip(table["class_name"].to_pylist(), table["status"].to_pylist(), strict=True)
    sheet = LabelSheet(
        title=opened.run.path.resolve().name,
        images=opened.run.target,
        names=names,
        root=root,
        labels=[None if status == "rejected" else name for name, status in kept],
        # a person who moved an image is not asked how sure they are
        confidence=[
            round(float(each), 6) if is_same else None
            for each, is_same in zip(predictions.confidence, group == predictions.cluster, strict=True)
        ],
        classes=classes,
        table=table,
        is_copy=is_copy,
    )
    return sheet, seen


def _choices(state: ReviewState, known_classes: list[str]) -> list[str]:
    """Labels that people may choose: categories with images that were not rejected, known classes, and none of them."""
    used = [each for each in np.unique(state.group).tolist() if each != REJECTED and state.status(each) != "rejected"]
    return list(dict.fromkeys([*(state.labels[each].name for each in used), *known_classes, NO_CATEGORY]))


def _put_images(sheet: LabelSheet, form: Format, folder: Path) -> None:
    """Link, copy or write every image below its folder."""
    names = sheet.names.names
    if form.has_images:  # by keys that are unique without their endings
        names = [stem + Path(name).suffix for stem, name in zip(sheet.names.stems, names, strict=True)]
    for row, name in enumerate(track(names, len(names), "writing images")):
        put_image(sheet.images, row, folder / form.images / name, is_copy=sheet.is_copy)


def import_from(opened: OpenReview, path: Path, reviewer: str, form: str | None = None) -> Imported:
    """Enter the labels of a file into the review, as one action that can be undone.

    A label that the image had when the run was last exported to this format says nothing. DataError, with nothing
    changed, for images that the run does not have and images with two labels; ConflictError if the review changed the
    same images meanwhile.

    Parameters:
        form: the name of the format; by default `format_of` finds it.
    """
    form = form or format_of(path)
    file = path / FORMATS[form].file if path.is_dir() else path
    names = ImageNames(opened.run.target)
    label_of = _by_image(FORMATS[form].read(file, names), names, path)
    rows_of: defaultdict[str, list[int]] = defaultdict(list)
    for row, label in sorted(label_of.items()):
        rows_of[label].append(row)
    try:
        action = SetLabels(
            source=_readable(path.name), seen=_seen(opened, form), names=list(rows_of), rows=list(rows_of.values())
        )
    except ValidationError as error:
        raise DataError(f"{path} has a label that cannot be a name: {error.errors()[0]['msg']}") from error
    with opened.reading() as state:
        found, base = corrections(opened, action), state.seq
    if not found.placed:
        return Imported(form, len(label_of), 0, (), found.n_known, None)
    try:
        request = Request(id=secrets.token_hex(16), base=base, reviewer=reviewer, action=action)
    except ValidationError as error:
        raise JustrightError(f"the reviewer {reviewer!r}: {error.errors()[0]['msg']}") from error
    done = opened.act(request).line
    assert isinstance(done.action, Relabel)
    named = tuple(each.name for each in done.action.placed if each.name is not None)
    return Imported(form, len(label_of), done.action.n_moved, named, found.n_known, done.seq)


def _by_image(given: Iterable[GivenLabel], names: ImageNames, path: Path) -> dict[int, str]:
    """The label of each image; DataError that lists the first problems."""
    label_of: dict[int, str] = {}
    unknown: dict[str, None] = {}
    twice: dict[str, None] = {}
    for each in given:
        rows = names.rows_of(each.image)
        if not rows:
            unknown[each.image] = None
        for row in rows:
            if label_of.setdefault(row, each.label) != each.label:
                twice[f"{each.image}: {label_of[row]} and {each.label}"] = None
    where = f"paths below {names.root}" if names.root else "names as the run was exported"
    if unknown:
        problem = f"{path} labels {images_text(len(unknown))} that this run does not have, or has several of that name"
        raise DataError(f"{problem}:\n{_listed(unknown)}", expected=where, advice="remove them from the file")
    if twice:
        problem = f"{path} gives {images_text(len(twice))} two labels"
        raise DataError(f"{problem}:\n{_listed(twice)}", expected="one label an image", advice="remove the wrong ones")
    if not label_of:
        raise DataError(f"{path} holds no labels", expected="at least one image with a label that a person gave")
    return label_of


def _listed(lines: Iterable[str]) -> str:
    every = list(lines)
    more = [f"  and {len(every) - N_LISTED:,} more"] * (len(every) > N_LISTED)
    return "\n".join([*(f"  {printable(line)}" for line in every[:N_LISTED]), *more])


def _readable(name: str) -> str:
    """The name of a file for the history."""
    try:
        return clean_text(printable(name)[:MAX_NAME])
    except ValueError:
        return "a file"


def _remember(opened: OpenReview, form: str, seen: int) -> None:
    """Save what the tool was shown, so that an import can tell corrections from labels that nobody touched.

    A run without a review needs no note: it shows the predictions.
    """
    file = opened.folder / EXPORTED
    if not seen and not file.exists():
        return
    try:
        write_json(file, _notes(opened) | {form: seen})
    except OSError as error:
        logger.warning("%s could not be written: %s. An import compares with an earlier export.", file, error)


def _seen(opened: OpenReview, form: str) -> int:
    """The number of actions when the run was last exported to this format; 0 if it never was."""
    return min(_notes(opened).get(form, 0), opened.state.seq)


def _notes(opened: OpenReview) -> dict[str, int]:
    file = opened.folder / EXPORTED
    if not file.is_file():
        return {}
    try:
        notes: dict[str, int] = checked(dict[str, int], read_json(file), file, "a number for each format")
    except DataError as error:
        logger.warning("%s\nImports compare with the predictions.", error)
        return {}
    return {name: n for name, n in notes.items() if n >= 0}
