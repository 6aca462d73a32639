"""The report of a run: one page with all parts, or with the reason why a part cannot be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from justright.discovery.configs import MAX_EPOCHS as HEADS_EPOCHS
from justright.report import run_parts
from justright.report.class_cards import BUDGET as CLASS_BUDGET
from justright.report.class_cards import run_class_cards
from justright.report.clusters import ClusterView, cluster_cards, describe_clusters, review_of, target_features
from justright.report.elements import (
    Missing,
    Table,
    Values,
    attempt,
    optional,
    read_parts,
    render,
)
from justright.report.feature_map import BUDGET as MAP_BUDGET
from justright.report.feature_map import draw_map, feature_map, map_tiles
from justright.report.page_images import PageImages, SmallImages
from justright.report.run_figures import draw_counts, draw_training, reported
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DataError
from justright.utils.files import write_text

NAME = "report.html"
MOST_BYTES = 10_000_000  # small enough for an email
# characters of pictures: with tables of thousands of rows and all figures the page stays below 10 MB
CLUSTER_BUDGET = 4_500_000
NO_PREDICTIONS = "No predictions yet: the run is not finished"
MAX_EPOCHS = 200  # of the table; figures show all
PART_TITLES = {"stage1": "First training", "heads": "Heads alone, before the network was tuned", "": "Training"}
MOST_OPEN = 24  # more classes than this are collapsed at first


def write_report(run: RunFolder, out: Path | None = None) -> Path:
    """Write the page, by default into the run; returns its path."""
    out = run.path / NAME if out is None else out
    for share in (1.0, 0.3, 0.0):  # fewer pictures are needed only with thousands of very long names
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
                "scores": ("Scores", lambda: run_parts.scores_part(self.run)),
                "errors": ("Errors", lambda: run_parts.errors_part(run_parts.judged(self.run), self.run.predictions)),
                "selection": ("Selection", self._selection),
                "data": ("Labeled images and target", lambda: run_parts.overview(self.run) | self._map()),
                "left_out": ("Skipped files", lambda: run_parts.left_out_part(self.run)),
                "count": ("Number of categories", self._count),
                "training": ("Training", self._training),
                "settings": ("Settings", lambda: run_parts.settings_part(about)),
                "seconds": ("Timings", lambda: run_parts.timings(about)),
                "reproduce": ("How to reproduce", lambda: run_parts.reproduction(about)),
            }
        )
        name = self.run.path.resolve().name
        return render("run.html", name=name, about=run_parts.resolved(about), result=result.values, parts=parts)

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
        return run_parts.result_part(self.run, self._views[0], self._page_images)

    def _map(self) -> Values:
        frozen = attempt(lambda: self.run.frozen, "No map: the run has no frozen features")
        if not isinstance(frozen, Missing) and min(map(len, frozen)) < 1:
            frozen = Missing("No map: there are no images")
        if isinstance(frozen, Missing):
            return {"map": frozen, "figure": None, "tiles": []}
        shown = feature_map(*frozen)
        figure, budget = draw_map(shown), int(self.picture_share * MAP_BUDGET)
        tiles = map_tiles(shown, figure, [self._pool, self._target], budget)
        return {"map": shown, "figure": figure, "tiles": tiles}

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
            "classes": run_class_cards(self.run, saved, page_images),
            "n_classes": len(saved.classes),
            "is_folded": len(saved.classes) > MOST_OPEN,
        }

    def _training(self) -> Values | Missing:
        if not self.run.curves:
            return Missing("No training records: the run has not trained yet, or its method does not train")
        config = self.run.about.get("config") or {}
        planned = {"": config, "heads": {"n_epochs": HEADS_EPOCHS}, "stage1": config.get("stage1") or {}}
        return {
            "trainings": [
                one_training(part, seeds, planned[part].get("n_epochs")) for part, seeds in self.run.curves.items()
            ]
        }

    def _count(self) -> Values:
        about = self.run.about
        k = about.get("n_target", about.get("n_categories"))
        count = attempt(lambda: self.run.count, "K was not estimated")
        estimates = {} if isinstance(count, Missing) else count.get("estimates", {})
        try:
            intervals = {name: each["interval"] for name, each in estimates.items() if each.get("interval")}
            rows = [
                (name, each["n_categories"], "{} to {}".format(*intervals[name]) if name in intervals else "")
                for name, each in estimates.items()
            ]
            figures = {name: draw_counts({name: each}) for name, each in estimates.items()}
        except (KeyError, TypeError, ValueError, IndexError) as error:  # another program wrote count.json
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


def one_training(part: str, seeds: Mapping[str, Sequence[Mapping[str, Any]]], n_planned: int | None) -> Values:
    """One training of a run, with a curve for each seed."""
    names = reported([record for records in seeds.values() for record in records])
    has_seeds = len(seeds) > 1
    rows: list[dict[str, object]] = [
        ({"seed": seed} if has_seeds else {})
        | {"epoch": record.get("epoch", place)}
        | {name.replace("_", " "): record.get(name) for name in names}
        for seed, records in seeds.items()
        for place, record in enumerate(records)
    ]
    step = -(-len(rows) // MAX_EPOCHS)
    return {
        "part": part,
        "title": PART_TITLES[part],
        "runs": [
            (seed if has_seeds else "", len(records), records[0].get("loss"), records[-1].get("loss"))
            for seed, records in seeds.items()
        ],
        "n_planned": n_planned if isinstance(n_planned, int) else max(map(len, seeds.values())),
        "names": [name.replace("_", " ") for name in names if name != "seconds"],
        "figure": draw_training(seeds),
        "epochs": Table.of(rows[::step]),
        "step": step,
    }
