"""The report of a run: one page with each part of it, or why that part is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from justright.discovery.configs import MOST_EPOCHS as HEADS_EPOCHS
from justright.geometry import ClassSums, cosine_similarity, evenly_spaced
from justright.report.clusters import ClusterView, cluster_cards, look_at_clusters, review_of, target_features
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
MOST_BYTES = 10_000_000  # a page that can be sent by mail
# characters of pictures: with tables of thousands of rows and all figures the page stays below 10 MB
CLASS_BUDGET, CLUSTER_BUDGET = 2_000_000, 4_500_000
NO_PREDICTIONS = "There are no predictions: the run has not reached them yet"
MOST_EPOCHS = 200  # of the table; figures show all
PART_TITLES = {"stage1": "First training", "heads": "Heads alone, before the network was tuned", "": "Training"}
MOST_OPEN = 24  # more classes than this are folded away at first: they would stand between the reader and the rest
MOST_CLASSES = 3000  # a longer list is cut in the middle: the page stays within a few megabytes
SIZES = ((5, 48), (4, 40), (4, 32), (3, 28), (2, 24), (1, 28))  # images a card and pixels a side, from the best on
MEASURES = {  # columns that a selection may have: what they are called here, and what they are multiplied by
    "similarity": ("similarity", 1),
    "distance": ("distance", 1),
    "weight_std": ("weight varies by", 1),
    "kept_share": ("kept in resamples %", 100),
}
LONGEST_ALT = 60


def write_report(run: RunFolder, out: Path | None = None) -> Path:
    """Write the page, into the run itself unless another place is named, and say where it is."""
    out = run.path / NAME if out is None else out
    for share in (1.0, 0.3, 0.0):  # only thousands of very long names come to the second
        html = RunPage(run, share).html()
        if len(html.encode()) < MOST_BYTES:
            break
    write_text(out, html)
    return out


@dataclass
class RunPage:
    """Reads what each part of the page shows."""

    run: RunFolder
    picture_share: float = 1.0  # of the budget for pictures; less makes a smaller page

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
                "left_out": ("Left out", lambda: left_out_part(self.run)),
                "count": ("Number of categories", self._count),
                "training": ("Training", self._training),
                "asked": ("What was asked", lambda: asked_part(about)),
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
        """The categories, and which features tell what is near what."""
        features, source = target_features(self.run)
        return look_at_clusters(self.run.predictions, features, optional(lambda: self.run.doubts) or ()), source

    def _result(self) -> Values | Missing:
        if not (self.run.path / "predictions.parquet").exists():
            return Missing(NO_PREDICTIONS)
        return result_part(self.run, self._views[0], self._page_images)

    def _map(self) -> Values:
        frozen = attempt(lambda: self.run.frozen, "There are no frozen features, so there is no map")
        if not isinstance(frozen, Missing) and min(map(len, frozen)) < 1:
            frozen = Missing("There is no map of nothing")
        if isinstance(frozen, Missing):
            return {"map": frozen, "figure": None, "tiles": []}
        found = feature_map(*frozen)
        figure, budget = draw_map(found), int(self.picture_share * MAP_BUDGET)
        return {"map": found, "figure": figure, "tiles": tiles(found, figure, [self._pool, self._target], budget)}

    def _selection(self) -> Values | Missing:
        saved = attempt(lambda: self.run.selection, "Nothing was selected: every labeled image weighs the same")
        if isinstance(saved, Missing):
            return saved
        pool = self._pool
        if not isinstance(pool, Missing) and len(pool) != len(saved.images):
            pool = Missing(f"{len(saved.images):,} images were weighed, and pool.parquet lists {len(pool):,}")
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
            return Missing("There are no training records: the run has not trained yet, or its method does not train")
        return {"trainings": [self._one_training(part, runs) for part, runs in self.run.curves.items()]}

    def _one_training(self, part: str, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Values:
        """One of the trainings of the run; several lines where several seeds vote."""
        names = reported([record for records in runs.values() for record in records])
        rows = [
            (run, record.get("epoch", place), *(record.get(name) for name in names))
            for run, records in runs.items()
            for place, record in enumerate(records)
        ]
        step, first = -(-len(rows) // MOST_EPOCHS), 0 if len(runs) > 1 else 1
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
            intervals = {name: said["interval"] for name, said in estimates.items() if said.get("interval")}
            rows = [
                (name, said["n_categories"], "{} to {}".format(*intervals[name]) if name in intervals else "")
                for name, said in estimates.items()
            ]
            figures = {name: draw_counts({name: said}) for name, said in estimates.items()}
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
        said, (views, source) = review_of(self.run), self._views
        review = None if isinstance(said["review"], Missing) else said["review"]
        is_calibrated = self.run.expected is not None
        cards = cluster_cards(self.run.predictions, views, self._page_images, review, is_calibrated)
        return said | cards | {"source": source}


def class_cards(run: RunFolder, saved: Selection, page_images: PageImages) -> Values:
    """One card a class, the heaviest first."""
    near = attempt(lambda: nearest_clusters(run, saved), "The nearest cluster of a class cannot be told")
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
    """For each class the cluster of the target whose centroid is nearest, and the cosine, in frozen features."""
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
    """A strip of images a class. Where images do not fit all, both ends of the weights go first."""
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
