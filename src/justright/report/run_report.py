"""The report of a run: one page with each part of it, or why that part is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from justright.discovery.configs import MOST_EPOCHS as HEADS_EPOCHS
from justright.report import provenance
from justright.report.class_cards import class_cards
from justright.report.cluster_views import ClusterView, look_at_clusters, target_features
from justright.report.clusters import cluster_cards
from justright.report.elements import Missing, Table, Values, attempt, optional, read_parts, render
from justright.report.feature_map import BUDGET as MAP_BUDGET
from justright.report.feature_map import draw_map, feature_map, tiles
from justright.report.page_images import PageImages, SmallImages
from justright.report.pool_and_target import left_out_part, overview
from justright.report.result_part import result_part
from justright.report.review_part import review_of
from justright.report.run_figures import draw_counts, draw_training, reported
from justright.report.score_parts import errors_part, judged, scores_part
from justright.runs.run_folder import RunFolder
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
                "asked": ("What was asked", lambda: provenance.asked(about)),
                "seconds": ("Timings", lambda: provenance.timings(about)),
                "again": ("How to reproduce", lambda: provenance.reproduction(about)),
            }
        )
        name = self.run.path.resolve().name
        return render("run.html", name=name, about=provenance.resolved(about), result=result.values, parts=parts)

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
