"""The report of a run: one page with each part of it, or why that part is missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from justright.files import write_text
from justright.progress import Track, silent
from justright.report import provenance
from justright.report.class_cards import class_cards
from justright.report.clusters import cluster_cards
from justright.report.elements import Missing, Table, Values, attempt, optional, read_parts, render
from justright.report.page_images import PageImages
from justright.report.pool_and_target import MapKind, draw_map, feature_map, overview
from justright.report.review_part import review_of
from justright.report.run_figures import SavedCount, draw_counts, draw_training, reported
from justright.report.score_parts import errors_part, judged, percent, scores_part
from justright.report.selection_figures import draw_selection
from justright.runs.run_folder import RunFolder

NAME = "report.html"
MOST_BYTES = 10_000_000  # a page that can be sent by mail
# characters of pictures: with tables of thousands of rows and all figures the page stays below 10 MB
CLASS_BUDGET, CLUSTER_BUDGET = 2_000_000, 4_500_000
MOST_EPOCHS = 200  # of the table; figures show all
MOST_OPEN = 24  # more classes than this are folded away at first: they would stand between the reader and the rest


def write_report(run: RunFolder, out: Path | None = None, kind: MapKind = "pca", track: Track = silent) -> Path:
    """Write the page, into the run itself unless another place is named, and say where it is."""
    out = run.path / NAME if out is None else out
    for share in (1.0, 0.3, 0.0):  # only thousands of very long names come to the second
        html = RunPage(run, kind, track, share).html()
        if len(html.encode()) < MOST_BYTES:
            break
    write_text(out, html)
    return out


@dataclass
class RunPage:
    """Reads what each part of the page shows."""

    run: RunFolder
    kind: MapKind = "pca"  # of the map
    track: Track = silent
    picture_share: float = 1.0  # of the budget for pictures; less makes a smaller page

    def html(self) -> str:
        """The whole page."""
        about = self.run.about
        parts = read_parts(
            {
                "asked": ("What was asked", lambda: provenance.asked(about)),
                "data": ("Pool and target", lambda: overview(self.run) | self._map()),
                "selection": ("Selection", self._selection),
                "training": ("Training", self._training),
                "count": ("Number of categories", self._count),
                "scores": ("Scores", lambda: scores_part(self.run)),
                "errors": ("Errors", lambda: errors_part(judged(self.run), self.run.predictions)),
                "clusters": ("Clusters", self._clusters),
                "seconds": ("Timings", lambda: provenance.timings(about)),
                "again": ("How to reproduce", lambda: provenance.reproduction(about)),
            }
        )
        scores = optional(lambda: self.run.scores)
        accuracies = {name: percent(scores, name) for name in ("all", "old", "new")} if scores else {}
        name = self.run.path.resolve().name
        return render("run.html", name=name, about=provenance.resolved(about), accuracies=accuracies, parts=parts)

    def _map(self) -> Values:
        frozen = attempt(lambda: self.run.frozen, "There are no frozen features, so there is no map")
        if not isinstance(frozen, Missing) and min(map(len, frozen)) < 1:
            frozen = Missing("There is no map of nothing")
        found = frozen if isinstance(frozen, Missing) else feature_map(*frozen, kind=self.kind)
        return {"map": found, "figure": None if isinstance(found, Missing) else draw_map(found)}

    def _selection(self) -> Values | Missing:
        saved = attempt(lambda: self.run.selection, "Nothing was selected: every labeled image weighs the same")
        if isinstance(saved, Missing):
            return saved
        pool = attempt(lambda: self.run.pool, "The list of labeled images cannot be read")
        if not isinstance(pool, Missing) and len(pool) != len(saved.images):
            pool = Missing(f"{len(saved.images):,} images were weighed, and pool.parquet lists {len(pool):,}")
        page_images = PageImages(pool, int(self.picture_share * CLASS_BUDGET))
        result = saved.weighed
        return {
            "notes": self.run.about.get("notes", []),
            "n_own": int(saved.about.get("kept_classes", 0)),
            "result": result,
            "sources": Table(result.source_columns(), result.source_cells()),
            "figures": draw_selection(result),
            "classes": class_cards(self.run, saved, page_images, self.track),
            "n_classes": len(saved.classes),
            "is_folded": len(saved.classes) > MOST_OPEN,
        }

    def _training(self) -> Values | Missing:
        records = self.run.metrics
        if not records:
            return Missing("There are no training records: the run has not trained yet, or its method does not train")
        names = reported(records)
        step = -(-len(records) // MOST_EPOCHS)
        rows = [(r.get("epoch", n), *(r.get(name) for name in names)) for n, r in enumerate(records)][::step]
        n_planned = (self.run.about.get("config") or {}).get("n_epochs")
        return {
            "n_epochs": len(records),
            "n_planned": n_planned if isinstance(n_planned, int) else len(records),
            "losses": (records[0].get("loss"), records[-1].get("loss")),
            "names": [name.replace("_", " ") for name in names if name != "seconds"],
            "figure": draw_training({"this run": records}),
            "epochs": Table(("epoch", *(name.replace("_", " ") for name in names)), rows),
            "step": step,
        }

    def _count(self) -> Values:
        about = self.run.about
        k = about.get("n_target", about.get("n_categories"))
        count = attempt(lambda: self.run.count, "K was not estimated")
        estimates = {} if isinstance(count, Missing) else count.get("estimates", {})
        found = {str(name): SavedCount.of(said) for name, said in estimates.items()}
        intervals = {name: one.interval for name, one in found.items() if one.interval}
        rows = [
            (name, one.n_categories_, "{} to {}".format(*intervals[name]) if name in intervals else "")
            for name, one in found.items()
        ]
        return {
            "about": about,
            "k": k,
            "count": count,
            "estimates": Table(("estimated by", "K", "90 % interval"), rows),
            "figures": {name: draw_counts({name: one}, intervals) for name, one in found.items()},
            "outside": [name for name, (low, high) in intervals.items() if isinstance(k, int) and not low <= k <= high],
        }

    def _clusters(self) -> Values | Missing:
        if not (self.run.path / "predictions.parquet").exists():
            return Missing("There are no predictions: the run has not reached them yet")
        images = attempt(lambda: self.run.target, "the list of target images cannot be read")
        page_images = PageImages(images, int(self.picture_share * CLUSTER_BUDGET))
        said = review_of(self.run)
        review = None if isinstance(said["review"], Missing) else said["review"]
        return said | cluster_cards(self.run, page_images, self.track, review)
