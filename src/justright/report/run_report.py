"""The report of a run: one page with all parts; a part that cannot be shown gives the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from justright.discovery.configs import MAX_EPOCHS as HEADS_EPOCHS
from justright.geometry import ClassSums, cosine_similarity, evenly_spaced
from justright.report.clusters import ClusterView, cluster_cards, describe_clusters, review_of, target_features
from justright.report.elements import (
    Missing,
    Name,
    Picture,
    Table,
    Values,
    attempt,
    cut_in_the_middle,
    optional,
    read_parts,
    render,
    short,
)
from justright.report.feature_map import BUDGET as MAP_BUDGET
from justright.report.feature_map import draw_map, feature_map, tiles
from justright.report.page_images import PageImages, SheetOrder, SmallImages
from justright.report.run_figures import draw_counts, draw_training, reported
from justright.report.run_parts import asked as asked_part
from justright.report.run_parts import (
    errors_part,
    judged,
    left_out_part,
    overview,
    reproduction,
    resolved,
    result_part,
    scores_part,
    timings,
)
from justright.runs.run_folder import RunFolder
from justright.runs.selection import Selection
from justright.utils.errors import DataError
from justright.utils.files import write_text

NAME = "report.html"
MOST_BYTES = 10_000_000  # small enough for an email
# characters of pictures: with tables of thousands of rows and all figures the page stays below 10 MB
CLASS_BUDGET, CLUSTER_BUDGET = 2_000_000, 4_500_000
NO_PREDICTIONS = "No predictions yet: the run is not finished"
MAX_EPOCHS = 200  # of the table; figures show all
PART_TITLES = {"stage1": "First training", "heads": "Heads alone, before the network was tuned", "": "Training"}
MOST_OPEN = 24  # more classes than this are collapsed at first
MOST_CLASSES = 3000  # a longer list is shortened in the middle to keep the page small
SIZES = (
    (5, 48),
    (4, 40),
    (4, 32),
    (3, 28),
    (2, 24),
    (1, 28),
)  # images per card, pixels per side
MEASURES = {  # optional columns of a selection: title and factor
    "similarity": ("similarity", 1),
    "distance": ("distance", 1),
    "weight_std": ("weight std", 1),
    "kept_share": ("kept in resamples %", 100),
}
LONGEST_ALT = 60


def write_report(run: RunFolder, out: Path | None = None) -> Path:
    """Write the page, by default into the run; returns its path."""
    out = run.path / NAME if out is None else out
    for share in (1.0, 0.3, 0.0):  # the second is needed only with thousands of very long names
        html = RunPage(run, share).html()
        if len(html.encode()) < MOST_BYTES:
            break
    write_text(out, html)
    return out


@dataclass
class RunPage:
    """Reads the values of each part of the page."""

    run: RunFolder
    picture_share: float = 1.0  # of the budget for pictures

    def html(self) -> str:
        """The whole page."""
        about = self.run.about
        result, *parts = read_parts(
            {
                "result": ("Result", self._result),
                "clusters": ("Clusters", self._clusters),
                "scores": ("Scores", lambda: scores_part(self.run)),
                "errors": ("Errors", lambda: errors_part(judged(self.run), self.run.predictions)),
                "selection": ("Selection", self._selection),
                "data": ("Labeled images and target", lambda: overview(self.run) | self._map()),
                "left_out": ("Skipped files", lambda: left_out_part(self.run)),
                "count": ("Number of categories", self._count),
                "training": ("Training", self._training),
                "asked": ("Settings", lambda: asked_part(about)),
                "seconds": ("Timings", lambda: timings(about)),
                "again": ("How to reproduce", lambda: reproduction(about)),
            }
        )
        name = self.run.path.resolve().name
        return render("run.html", name=name, about=resolved(about), result=result.values, parts=parts)

    @cached_property
    def _target(self) -> SmallImages | Missing:
        return attempt(lambda: SmallImages(self.run.target), "the list of target images cannot be read")

    @cached_property
    def _pool(self) -> SmallImages | Missing:
        return attempt(lambda: SmallImages(self.run.pool), "The list of labeled images cannot be read")

    @cached_property
    def _page_images(self) -> PageImages:
        return PageImages(self._target, int(self.picture_share * CLUSTER_BUDGET))

    @cached_property
    def _views(self) -> tuple[list[ClusterView], str]:
        """The categories, and the source of the features."""
        features, source = target_features(self.run)
        return describe_clusters(self.run.predictions, features, optional(lambda: self.run.doubts) or ()), source

    def _result(self) -> Values | Missing:
        if not (self.run.path / "predictions.parquet").exists():
            return Missing(NO_PREDICTIONS)
        return result_part(self.run, self._views[0], self._page_images)

    def _map(self) -> Values:
        frozen = attempt(lambda: self.run.frozen, "No map: the run has no frozen features")
        if not isinstance(frozen, Missing) and min(map(len, frozen)) < 1:
            frozen = Missing("No map: there are no images")
        if isinstance(frozen, Missing):
            return {"map": frozen, "figure": None, "tiles": []}
        found = feature_map(*frozen)
        figure, budget = draw_map(found), int(self.picture_share * MAP_BUDGET)
        return {"map": found, "figure": figure, "tiles": tiles(found, figure, [self._pool, self._target], budget)}

    def _selection(self) -> Values | Missing:
        saved = attempt(lambda: self.run.selection, "No selection: all labeled images have the same weight")
        if isinstance(saved, Missing):
            return saved
        pool = self._pool
        if not isinstance(pool, Missing) and len(pool) != len(saved.images):
            pool = Missing(f"{len(saved.images):,} images have weights, but pool.parquet lists {len(pool):,}")
        page_images = PageImages(pool, int(self.picture_share * CLASS_BUDGET))
        result = saved.weighed
        return {
            "n_own": int(saved.about.get("kept_classes", 0)),
            "result": result,
            "sources": Table(result.source_columns(), result.source_cells()),
            "classes": class_cards(self.run, saved, page_images),
            "n_classes": len(saved.classes),
            "is_folded": len(saved.classes) > MOST_OPEN,
        }

    def _training(self) -> Values | Missing:
        if not self.run.curves:
            return Missing("No training records: the run has not trained yet, or its method does not train")
        return {"trainings": [self._one_training(part, runs) for part, runs in self.run.curves.items()]}

    def _one_training(self, part: str, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Values:
        """One training of the run, with a curve for each seed."""
        names = reported([record for records in runs.values() for record in records])
        rows = [
            (run, record.get("epoch", place), *(record.get(name) for name in names))
            for run, records in runs.items()
            for place, record in enumerate(records)
        ]
        step, first = -(-len(rows) // MAX_EPOCHS), 0 if len(runs) > 1 else 1
        config = self.run.about.get("config") or {}
        planned = {"": config, "heads": {"n_epochs": HEADS_EPOCHS}, "stage1": config.get("stage1") or {}}[part]
        n_planned = planned.get("n_epochs")
        return {
            "part": part,
            "title": PART_TITLES[part],
            "runs": [
                (name if len(runs) > 1 else "", len(records), records[0].get("loss"), records[-1].get("loss"))
                for name, records in runs.items()
            ],
            "n_planned": n_planned if isinstance(n_planned, int) else max(map(len, runs.values())),
            "names": [name.replace("_", " ") for name in names if name != "seconds"],
            "figure": draw_training(runs),
            "epochs": Table(
                ("seed", "epoch", *(name.replace("_", " ") for name in names))[first:],
                [row[first:] for row in rows[::step]],
            ),
            "step": step,
        }

    def _count(self) -> Values:
        about = self.run.about
        k = about.get("n_target", about.get("n_categories"))
        count = attempt(lambda: self.run.count, "K was not estimated")
        estimates = {} if isinstance(count, Missing) else count.get("estimates", {})
        try:
            intervals = {name: estimate["interval"] for name, estimate in estimates.items() if estimate.get("interval")}
            rows = [
                (name, estimate["n_categories"], "{} to {}".format(*intervals[name]) if name in intervals else "")
                for name, estimate in estimates.items()
            ]
            figures = {name: draw_counts({name: estimate}) for name, estimate in estimates.items()}
        except (KeyError, TypeError, ValueError, IndexError) as error:  # a file of another version
            raise DataError(f"an estimate of K cannot be read: {error!r}") from error
        return {
            "about": about,
            "k": k,
            "count": count,
            "estimates": Table(("estimated by", "K", "90 % interval"), rows),
            "figures": figures,
            "outside": [name for name, (low, high) in intervals.items() if isinstance(k, int) and not low <= k <= high],
        }

    def _clusters(self) -> Values | Missing:
        if not (self.run.path / "predictions.parquet").exists():
            return Missing(NO_PREDICTIONS)
        reviewed, (views, source) = review_of(self.run), self._views
        review = None if isinstance(reviewed["review"], Missing) else reviewed["review"]
        is_calibrated = self.run.expected is not None
        cards = cluster_cards(self.run.predictions, views, self._page_images, review, is_calibrated)
        return reviewed | cards | {"source": source}


def class_cards(run: RunFolder, saved: Selection, page_images: PageImages) -> Values:
    """One card per class, the largest weight first."""
    near = attempt(lambda: nearest_clusters(run, saved), "The nearest cluster of each class is unknown")
    nearest = {} if isinstance(near, Missing) else near
    rows = sorted(saved.classes.to_pylist(), key=lambda row: -row["weight"])
    shown, n_left_out = cut_in_the_middle(rows, MOST_CLASSES)
    has = {name: said for name, said in MEASURES.items() if name in saved.classes.column_names}
    cells = [
        (
            picture,
            Name(row["class_name"]),
            row["weight"],
            row["n_images"],
            short(row["reason"]),
            *(None if row[name] is None else factor * row[name] for name, (_, factor) in has.items()),
            *nearest.get(row["label"], (None, None)),
        )
        for row, picture in zip(shown, _pictures(shown, saved, page_images), strict=True)
    ]
    columns = ("picture", "class", "weight", "images", "reason", *(said for said, _ in has.values()))
    return {
        "cards": Table((*columns, "nearest cluster", "cosine to it"), cells),
        "near": near,
        "n_left_out": n_left_out,
        "page_images": page_images,
    }


def nearest_clusters(run: RunFolder, saved: Selection) -> dict[int, tuple[Name, float]]:
    """For each class the cluster with the nearest centroid in frozen features, and the cosine."""
    if run.frozen is None:
        raise DataError("there are no frozen features")
    pool, target = run.frozen
    if len(pool) != len(saved.images):
        raise DataError(f"{len(pool):,} features and {len(saved.images):,} weights of the pool")
    classes = ClassSums().update(pool.features, saved.images["label"].to_numpy().astype(np.int64))
    clusters = ClassSums().update(target.features, run.predictions.cluster)
    cosine = cosine_similarity(classes.centroids(), clusters.centroids())
    names = [Name(run.predictions.categories[cluster].name) for cluster in clusters.classes.tolist()]
    nearest = [(names[place], float(row[place])) for row, place in zip(cosine, cosine.argmax(axis=1), strict=True)]
    return dict(zip(classes.classes.tolist(), nearest, strict=True))


def _pictures(shown: Sequence[dict[str, Any]], saved: Selection, page_images: PageImages) -> list[Picture | None]:
    """A strip of images per class; both ends of the weights first, in case the budget does not suffice."""
    labels = saved.images["label"].to_numpy()
    by_label = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_label], [row["label"] for row in shown]).tolist()
    turn = sorted(range(len(shown)), key=lambda place: min(place, len(shown) - 1 - place))
    rows = [by_label[start : start + row["n_images"]] for start, row in zip(starts, shown, strict=True)]
    alts = [f"images of {short(row['class_name'], LONGEST_ALT)}" for row in shown]
    plans = [
        [SheetOrder(rows[i][evenly_spaced(len(rows[i]), n)], pixels, n, alts[i]) for i in turn] for n, pixels in SIZES
    ]
    made = page_images.sheets(page_images.richest(plans), "thumbnails of classes")
    pictures = dict(zip(turn, made, strict=True))
    return [pictures[place] for place in range(len(shown))]
