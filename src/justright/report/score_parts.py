"""How good the clusters are, where the truth is known: scores, kinds of errors, confusion, and the worst classes."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from justright.discovery.predictions import Predictions
from justright.evaluation import Counts, Errors, Scores, break_down, matched_confusion
from justright.evaluation.figures import draw_confusion, draw_errors
from justright.evaluation.files import JudgedPredictions, read_judged
from justright.report.drawing import in_page
from justright.report.names import named, plain
from justright.report.page_shell import folded, note, table
from justright.report.reading import Missing, attempt
from justright.runs.run_folder import RunFolder

GROUPS = {
    "all": "All",
    "old": "Old",
    "old_kept": "Old, labels kept",
    "old_dropped": "Old, labels left out",
    "new": "New",
}

MOST_CLASSES = 1500
MOST_PAIRS = 25
MOST_CELLS = 25_000_000
"""A larger confusion is told by its worst pairs only."""

SHEER = LinearSegmentedColormap.from_list("sheer", [(*(0.18, 0.43, 0.70), 0.0), (*(0.18, 0.43, 0.70), 1.0)])
"""From nothing to blue: on dark paper an empty cell is dark."""

NO_TRUTH = (
    "No labels of the target were given, so there are no scores. A person who looks at some images gives an estimate: "
    "justright review."
)


def percent(scores: Scores, name: str) -> str:
    """An accuracy with its interval."""
    value = getattr(scores, name)
    if math.isnan(value):
        return "no such images"
    if name not in scores.intervals:
        return f"{100 * value:.1f}"
    low, high = scores.intervals[name]
    return f"{100 * value:.1f} [{100 * low:.1f},\u00a0{100 * high:.1f}]"  # an interval is not torn apart


def score_table(scores: Scores) -> str:
    """All, Old and New, with intervals."""
    shown = [name for name in GROUPS if name in ("all", "old", "new") or math.isfinite(getattr(scores, name))]
    n_images = {"all": scores.n_images, "old": scores.n_old, "new": scores.n_new}
    rows = [(GROUPS[name], percent(scores, name), n_images.get(name)) for name in shown]
    how = (
        f"Protocol {scores.protocol}, {scores.n_classes:,} classes, {scores.n_clusters:,} clusters. "
        f"NMI {scores.nmi:.3f}, ARI {scores.ari:.3f}. Brackets hold {scores.level:.0%} of resamples of the "
        "images; how the result varies with the seed of training is not in them."
    )
    return table(("images of", "accuracy %", "images"), rows) + note(how)


def scores_part(run: RunFolder) -> str:
    """Scores alone; what is wrong with them has a part of its own."""
    scores = attempt(lambda: run.scores, NO_TRUTH)
    return note(scores.reason) if isinstance(scores, Missing) else score_table(scores)


def judged(run: RunFolder) -> JudgedPredictions | Missing:
    """Clusters beside the truth, if both are there."""
    truth = run.truth_file
    if truth is None:
        return Missing("Errors can be told only where labels of the target were given")
    return attempt(lambda: read_judged(run.path / "predictions.parquet", truth), "Errors cannot be told")


def errors_part(found: JudgedPredictions | Missing, predictions: Predictions) -> str:
    """By kind and cause, as figure and table; the confusion; the classes from the worst on."""
    if isinstance(found, Missing):
        return note(f"{found.reason}.")
    errors = break_down(found.y_true, found.y_pred, found.is_old)
    n = int(errors.n_images.sum())
    kinds = [(f"{kind.replace('_', ' ')}", count, 100 * count / n) for kind, count in errors.by_kind().items()]
    causes = [(f"because {cause}", count, 100 * count / n) for cause, count in errors.by_cause().items()]
    caption = (
        "Wrong images by what they were taken for, and why. Split: most of that cluster is of the class, but another "
        "cluster stands for it. Merged: most of the class lies in a cluster that stands for something else."
    )
    return "\n".join(
        [
            in_page(draw_errors(errors), "errors", caption, is_broad=True),
            table(("error", "images", "% of all"), kinds + causes),
            "<h3>Confusion</h3>",
            _confusion(found, errors),
            "<h3>Most frequent confusions</h3>",
            _pairs(found, errors, predictions),
            "<h3>Classes, from the worst</h3>",
            _classes(found, errors, predictions),
        ]
    )


def _confusion(found: JudgedPredictions, errors: Errors) -> str:
    counts = Counts.of(found.y_true, found.y_pred)
    if len(counts.classes) * len(counts.clusters) > MOST_CELLS:
        return note("There are too many classes and clusters to draw; see the most frequent confusions.")
    confusion = matched_confusion(counts, errors.classes[errors.is_old])
    names = {label: plain(name) for label, name in found.class_names.items()}
    figure = draw_confusion(confusion, names)
    figure.axes[0].images[0].set_cmap(SHEER)
    caption = (
        "The share of each class that lies in each cluster. What is right lies on the diagonal; Old classes first."
    )
    return in_page(figure, "confusion", caption, is_broad=True)


def _pairs(found: JudgedPredictions, errors: Errors, predictions: Predictions) -> str:
    counts = Counts.of(found.y_true, found.y_pred)
    class_of = {int(k): int(c) for c, k in zip(errors.classes, errors.cluster, strict=True) if k >= 0}
    is_wrong = np.array([class_of.get(k) != c for c, k in zip(counts.class_, counts.cluster, strict=True)], dtype=bool)
    cells = np.flatnonzero(is_wrong)
    cells = cells[np.argsort(-counts.n[cells], kind="stable")][:MOST_PAIRS]
    rows = []
    for cell in cells.tolist():
        label, cluster = int(counts.class_[cell]), int(counts.cluster[cell])
        stands_for = class_of.get(cluster)
        meant = "no class" if stands_for is None else _name(found, stands_for)
        rows.append((_name(found, label), meant, named(predictions.categories[cluster].name), int(counts.n[cell])))
    if not rows:
        return note("No image is wrong.")
    return table(("class", "taken for", "in cluster", "images"), rows)


def _classes(found: JudgedPredictions, errors: Errors, predictions: Predictions) -> str:
    share = errors.n_right / np.maximum(errors.n_images, 1)
    order = np.argsort(share, kind="stable").tolist()
    rows = [
        (
            _name(found, int(errors.classes[i])),
            "Old" if errors.is_old[i] else "New",
            int(errors.n_images[i]),
            100 * float(share[i]),
            *(int(column[i]) for column in (errors.n_as_old, errors.n_as_new, errors.n_split, errors.n_merged)),
            int(errors.n_stray[i]),
            named(predictions.categories[int(errors.cluster[i])].name) if errors.cluster[i] >= 0 else "none",
        )
        for i in order[:MOST_CLASSES]
    ]
    columns = ("class", "side", "images", "right %", "as old", "as new", "split", "merged", "stray", "cluster")
    shown = table(columns, rows, is_sortable=True, search="Search classes and clusters")
    n_left = len(order) - len(rows)
    left = note(f"{n_left:,} classes that are more often right are left out here.") if n_left else ""
    return folded(f"{len(order):,} classes", shown + left)


def _name(found: JudgedPredictions, label: int) -> str:
    return named(found.class_names.get(label, str(label)))
