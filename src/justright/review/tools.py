"""Export the labels of a run to other labeling tools, and import corrected labels into its review."""

from __future__ import annotations

import logging
import secrets
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import NonNegativeInt, ValidationError

from justright.data.quarantine import printable
from justright.review.actions import MAX_NAME
from justright.review.export import label_table, new_folder, put_image
from justright.review.formats import FORMATS, GivenLabel, LabelSheet, checked, format_of, read_json
from justright.review.image_names import ImageNames
from justright.review.open_review import OpenReview
from justright.review.relabel import NO_CATEGORY, Relabel, corrections
from justright.review.state import REJECTED
from justright.review.wording import listed
from justright.utils.context import track
from justright.utils.errors import DataError, JustrightError
from justright.utils.files import replacing, write_json
from justright.utils.wording import count_text

EXPORTED = "exported.json"  # by format: the number of actions of the review when the run was last exported to it
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    n_images: int
    n_labeled: int
    usage: str  # how the tool gets labels and images


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    format: str
    n_labels: int  # images with a label in the file
    n_moved: int  # images that have another category now
    named: tuple[str, ...]  # categories that got a name
    n_known: int  # corrections that the review had already
    action: int | None  # the number of the action in the log; None if there was nothing to correct


def export_to(opened: OpenReview, to: str, out: Path, *, is_copy: bool = False) -> Exported:
    """Write the labels of a run, as reviewed so far, in the format `to`, atomically.

    is_copy: copy the images into the export; by default tools find them where they are, or by links.
    """
    form = FORMATS[to]
    if is_copy and form.is_file:
        raise DataError(f"{to} is one file and holds no images", advice="export without copies, or to another format")
    names = ImageNames(opened.run.target)
    has_images = bool(form.images) and (form.has_images or is_copy or names.root is None)
    root = out.absolute() / form.images if has_images else names.root or out.absolute()
    with opened.reading() as state:
        sheet, n_actions = _label_sheet(opened, names, root, is_copy), state.seq
    if form.is_file:
        with replacing(out) as temporary:
            form.write(sheet, temporary)
    else:
        with new_folder(out) as building:
            if has_images:
                # names must stay unique where the format drops the ending
                files = names.stem_files if form.has_images else names.names
                for row, name in enumerate(track(files, len(files), "writing images")):
                    put_image(sheet.images, row, building / form.images / name, is_copy=is_copy)
            form.write(sheet, building)
    _save_export(opened, to, n_actions)
    place = root if has_images or names.root else "the zip or table that the run read"
    usage = form.usage.format(out=out, root=place, above=root.parent)
    return Exported(len(sheet), sum(label is not None for label in sheet.labels), usage)


def _label_sheet(opened: OpenReview, names: ImageNames, root: Path, is_copy: bool) -> LabelSheet:
    """The current labels. People may choose categories in use, known classes, and no category."""
    state, predictions, table = opened.state, opened.predictions, label_table(opened)
    clusters = np.unique(state.group).tolist()
    used = [state.labels[each].name for each in clusters if each != REJECTED and state.status(each) != "rejected"]
    labels = zip(table["class_name"].to_pylist(), table["status"].to_pylist(), strict=True)
    confidence = zip(predictions.confidence.tolist(), state.group == predictions.cluster, strict=True)
    return LabelSheet(
        title=opened.run.path.resolve().name,
        images=opened.run.target,
        names=names,
        root=root,
        labels=[None if status == "rejected" else name for name, status in labels],
        # the confidence of the run is about its own category, not about one that a person chose
        confidence=[round(value, 6) if is_same else None for value, is_same in confidence],
        classes=list(dict.fromkeys([*used, *opened.known_classes, NO_CATEGORY])),
        table=table,
        is_copy=is_copy,
    )


def import_from(opened: OpenReview, path: Path, reviewer: str, form: str | None = None) -> Imported:
    """Enter the labels of a file into the review, as one action that can be undone.

    Labels that are as they were at the last export to this format are ignored. DataError, with nothing changed, for
    images that the run does not have and images with two labels; ConflictError if the review changed the same images
    meanwhile.

    form: the name of the format; by default `format_of` detects it.
    """
    form = form or format_of(path)
    file = path / FORMATS[form].file if path.is_dir() else path
    names = ImageNames(opened.run.target)
    label_of = _label_by_row(FORMATS[form].read(file, names), names, path)
    rows_of: defaultdict[str, list[int]] = defaultdict(list)
    for row, label in sorted(label_of.items()):
        rows_of[label].append(row)
    source = printable(path.resolve().name)[:MAX_NAME]
    with opened.reading() as state:
        seen, base = min(_exports(opened).get(form, 0), state.seq), state.seq
        placed, n_known = corrections(opened, rows_of, seen)
    if not placed:
        return Imported(form, len(label_of), 0, (), n_known, None)
    action = Relabel(source=source, placed=placed)
    try:
        entry = opened.enter(action, reviewer, base, secrets.token_hex(16))
    except ValidationError as error:
        raise JustrightError(f"the reviewer {reviewer!r}: {error.errors()[0]['msg']}") from error
    named = tuple(each.name for each in placed if each.name is not None)
    return Imported(form, len(label_of), action.n_moved, named, n_known, entry.line.seq)


def _label_by_row(given: Iterable[GivenLabel], names: ImageNames, path: Path) -> dict[int, str]:
    """The label of each image, by row; DataError for unknown images and for images with two labels."""
    label_of: dict[int, str] = {}
    unknown: dict[str, None] = {}
    twice: dict[str, None] = {}
    for image, label in given:
        rows = names.rows_of(image)
        if not rows:
            unknown[image] = None
        for row in rows:
            if label_of.setdefault(row, label) != label:
                twice[f"{image}: {label_of[row]} and {label}"] = None
    if unknown:
        n_unknown = count_text(len(unknown), "image")
        problem = f"{path} labels {n_unknown} that this run does not have, or has several of that name"
        where = f"paths below {names.root}" if names.root else "names as the run was exported"
        raise DataError(f"{problem}:\n{listed(list(unknown))}", expected=where, advice="remove them from the file")
    if twice:
        problem = f"{path} gives {count_text(len(twice), 'image')} two labels:\n{listed(list(twice))}"
        raise DataError(problem, expected="one label per image", advice="remove the wrong ones")
    if not label_of:
        raise DataError(f"{path} holds no labels", expected="at least one image with a label that a person gave")
    return label_of


def _save_export(opened: OpenReview, form: str, n_actions: int) -> None:
    """Save how many actions the exported labels include, so that an import recognizes unchanged labels.

    Not needed before the first action: then the labels are the predictions.
    """
    file = opened.folder / EXPORTED
    if not n_actions and not file.exists():
        return
    try:
        write_json(file, _exports(opened) | {form: n_actions})
    except OSError as error:
        logger.warning("%s could not be written: %s. An import compares with an earlier export.", file, error)


def _exports(opened: OpenReview) -> dict[str, int]:
    """The number of actions at the last export to each format; empty if the file is missing or damaged."""
    file = opened.folder / EXPORTED
    if not file.is_file():
        return {}
    try:
        exports: dict[str, int] = checked(dict[str, NonNegativeInt], read_json(file), file, "a number for each format")
        return exports
    except DataError as error:
        logger.warning("%s\nImports compare with the predictions.", error)
        return {}
