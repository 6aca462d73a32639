"""How good the clusters are, where the truth is known: scores, kinds of errors, confusion, and the worst classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from justright.discovery.predictions import Predictions
from justright.evaluation import Counts, Errors, Scores, break_down, matched_confusion
from justright.evaluation.files import JudgedPredictions
from justright.evaluation.scores import GROUPS
from justright.report.elements import Missing, Name, Table, Values, attempt, plain
from justright.report.error_figures import draw_confusion, draw_errors
from justright.runs.run_folder import RunFolder

OLD_PARTS = {"old_kept": "Old, labels kept", "old_dropped": "Old, labels left out"}
TITLES = {"all": "All", "old": "Old", **OLD_PARTS, "new": "New"}
MOST_CLASSES, MOST_PAIRS = 1500, 25
MOST_CELLS = 25_000_000  # a larger confusion is told by its worst pairs only
# from nothing to blue: on dark paper an empty cell is dark
SHEER = LinearSegmentedColormap.from_list("sheer", [(0.18, 0.43, 0.70, 0.0), (0.18, 0.43, 0.70, 1.0)])


def percent(scores: Scores, name: str) -> str:
    """An accuracy with its interval."""
    if math.isnan(getattr(scores, name)):
        return "no such images"
    return scores.percent(name).replace(", ", ",\u00a0")  # an interval is not torn apart


def scores_part(run: RunFolder) -> Values:
    """All, Old and New with intervals, where there are any: a row for each group of images."""
    scores = run.scores
    if scores is None:
        return {"scores": None, "accuracies": None, "baselines": None}
    shown = [name for name in TITLES if name not in OLD_PARTS or math.isfinite(getattr(scores, name))]
    n_images = {"all": scores.n_images, "old": scores.n_old, "new": scores.n_new}
    rows: list[tuple[Any, ...]] = [(TITLES[name], percent(scores, name), n_images.get(name)) for name in shown]
    columns: tuple[str, ...] = ("images of", "accuracy %", "images")
    if scores.names:
        columns = (*columns, "names count %")
        rows = [(*row, _share(scores.names.get(name))) for name, row in zip(shown, rows, strict=True)]
    return {"scores": scores, "accuracies": Table(columns, rows), "baselines": _baselines(run, scores)}


def _baselines(run: RunFolder, scores: Scores) -> Table | None:
    """The run beside simple methods on frozen features, where they were scored."""
    found = (run.about.get("check") or {}).get("baselines")
    if not found:
        return None
    own = {name: getattr(scores, name) for name in GROUPS} | {"names": scores.names}
    rows = []
    for method, each in ({f"this run ({run.about['method']})": own} | found).items():
        rows.append((method, *(_share(each[name]) for name in GROUPS), _share(each["names"].get("all"))))
    return Table(("method", "All %", "Old %", "New %", "names count %"), rows)


def _share(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(100 * value, 1)


def judged(run: RunFolder) -> JudgedPredictions | Missing:
    """Clusters beside the truth, if both are there."""
    truth = run.truth_file
    if truth is None:
        return Missing("Errors can be told only where labels of the target were given")
    return attempt(lambda: run.judged(truth), "Errors cannot be told")


def errors_part(found: JudgedPredictions | Missing, predictions: Predictions) -> Values | Missing:
    """The errors by kind and cause, as figure and table; the confusion; the classes from the worst on."""
    if isinstance(found, Missing):
        return found
    errors = break_down(found.y_true, found.y_pred, found.is_old)
    n = int(errors.n_images.sum())
    kinds = [(kind.replace("_", " "), count, 100 * count / n) for kind, count in errors.by_kind().items()]
    causes = [(f"because {cause}", count, 100 * count / n) for cause, count in errors.by_cause().items()]
    counts, confusion = Counts.of(found.y_true, found.y_pred), None
    if len(counts.classes) * len(counts.clusters) <= MOST_CELLS:
        names = {label: plain(name) for label, name in found.class_names.items()}
        confusion = draw_confusion(matched_confusion(counts, errors.classes[errors.is_old]), names)
        confusion.axes[0].images[0].set_cmap(SHEER)
    return {
        "figure": draw_errors(errors),
        "kinds": Table(("error", "images", "% of all"), kinds + causes),
        "confusion": confusion,
        "pairs": _pairs(found, counts, errors, predictions),
        "classes": _classes(found, errors, predictions),
        "n_classes": len(errors.classes),
    }


def _pairs(found: JudgedPredictions, counts: Counts, errors: Errors, predictions: Predictions) -> Table:
    """Which class lies most often in a cluster that stands for another."""
    class_of = {int(k): int(c) for c, k in zip(errors.classes, errors.cluster, strict=True) if k >= 0}
    is_wrong = np.array([class_of.get(k) != c for c, k in zip(counts.class_, counts.cluster, strict=True)], dtype=bool)
    cells = np.flatnonzero(is_wrong)
    rows = []
    for cell in cells[np.argsort(-counts.n[cells], kind="stable")][:MOST_PAIRS].tolist():
        label, cluster = int(counts.class_[cell]), int(counts.cluster[cell])
        meant = _name(found, class_of[cluster]) if cluster in class_of else "no class"
        rows.append((_name(found, label), meant, Name(predictions.categories[cluster].name), int(counts.n[cell])))
    return Table(("class", "taken for", "in cluster", "images"), rows)


def _classes(found: JudgedPredictions, errors: Errors, predictions: Predictions) -> Table:
    share = errors.n_right / np.maximum(errors.n_images, 1)
    parts = (errors.n_as_old, errors.n_as_new, errors.n_split, errors.n_merged, errors.n_stray)
    rows = [
        (
            _name(found, int(errors.classes[i])),
            "Old" if errors.is_old[i] else "New",
            int(errors.n_images[i]),
            100 * float(share[i]),
            *(int(part[i]) for part in parts),
            Name(predictions.categories[int(errors.cluster[i])].name) if errors.cluster[i] >= 0 else "none",
        )
        for i in np.argsort(share, kind="stable").tolist()[:MOST_CLASSES]
    ]
    columns = ("class", "side", "images", "right %", "as old", "as new", "split", "merged", "stray", "cluster")
    return Table(columns, rows)


def _name(found: JudgedPredictions, label: int) -> Name:
    return Name(found.class_names.get(label, str(label)))
