"""A run as one page: each part of it, or why it is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from justright.progress import Track, silent
from justright.report import provenance
from justright.report.class_cards import class_cards
from justright.report.cluster_sheets import cluster_sheets
from justright.report.count_figures import SavedCount, draw_counts
from justright.report.drawing import in_page
from justright.report.feature_map import MapKind, draw_map, feature_map
from justright.report.names import text
from justright.report.overview import overview
from justright.report.page_images import PageImages
from justright.report.page_shell import contents, folded, note, page, section, shown, table
from justright.report.reading import Missing, attempt
from justright.report.review_part import review_of
from justright.report.score_parts import errors_part, judged, percent, scores_part
from justright.report.selection_figures import draw_selection
from justright.report.selection_page import CAPTIONS
from justright.report.training_figures import draw_training, reported
from justright.runs.run_folder import RunFolder

CLASS_BUDGET, CLUSTER_BUDGET = 2_000_000, 4_500_000
"""Characters of pictures: with tables of thousands of rows and all figures the page stays below 10 MB."""

MOST_EPOCHS = 200
"""Of the table; figures show all."""

MOST_OPEN = 24
"""More classes than this are folded away at first."""


@dataclass
class RunPage:
    """Writes the parts one after the other.

    `kind` is that of the map, and `picture_share` thins the pictures.
    """

    run: RunFolder
    kind: MapKind = "pca"
    track: Track = silent
    picture_share: float = 1.0

    def html(self) -> str:
        """The whole page."""
        parts: dict[str, tuple[str, Callable[[], str]]] = {
            "asked": ("What was asked", lambda: provenance.asked(self.run.about)),
            "data": ("Pool and target", lambda: overview(self.run) + self._map()),
            "selection": ("Selection", self._selection),
            "training": ("Training", self._training),
            "count": ("Number of categories", self._count),
            "scores": ("Scores", lambda: scores_part(self.run)),
            "errors": ("Errors", self._errors),
            "clusters": ("Clusters", self._clusters),
            "seconds": ("Timings", lambda: provenance.timings(self.run.about)),
            "again": ("How to reproduce", lambda: provenance.reproduction(self.run.about)),
        }
        written = [section(title, shown(write), name) for name, (title, write) in parts.items()]
        titles = {name: title for name, (title, _) in parts.items()}
        title = f"Report of {self.run.path.resolve().name}"
        return page(title, "\n".join([f"<h1>{text(title)}</h1>", self._lead(), contents(titles), *written]))

    def _lead(self) -> str:
        about = provenance.resolved(self.run.about)
        words = [f"{about.get('method', 'a method')} with {about.get('selector', 'no')} selection"]
        if "n_categories" in about:
            words.append(f"{about['n_categories']:,} categories, K {about.get('k_source', 'of unknown source')}")
        if "seed" in about:
            words.append(f"seed {about['seed']}")
        scores = attempt(lambda: self.run.scores, "")
        if not isinstance(scores, Missing):
            words.append(", ".join(f"{name.capitalize()} {percent(scores, name)} %" for name in ("all", "old", "new")))
        lead = f"<p class=lead>{text('; '.join(words))}.</p>"
        if about.get("is_finished", True):
            return lead
        return f"{lead}\n<p>This run is not finished: what it has not reached yet is missing here.</p>"

    def _map(self) -> str:
        frozen = attempt(lambda: self.run.frozen, "There are no frozen features, so there is no map")
        if isinstance(frozen, Missing):
            return note(f"{frozen.reason}.")
        if min(map(len, frozen)) < 1:
            return note("There is no map of nothing.")
        found = feature_map(*frozen, kind=self.kind)
        return in_page(draw_map(found), "map", found.caption())

    def _selection(self) -> str:
        saved = attempt(lambda: self.run.selection, "Nothing was selected: every labeled image weighs the same")
        if isinstance(saved, Missing):
            return note(f"{saved.reason}.")
        parts = [note(f"{said}.") for said in self.run.about.get("notes", [])]
        if n_kept := int(saved.about.get("kept_classes", 0)):
            parts.append(f"<p>The target's own {n_kept:,} labeled classes keep the weight 1.</p>")
        result = saved.weighed
        parts += [f"<p>{text(result.summary())}.</p>", table(result.source_columns(), result.source_cells())]
        parts += [in_page(figure, name, CAPTIONS[name]) for name, figure in draw_selection(result).items()]
        pool = attempt(lambda: self.run.pool, "The list of labeled images cannot be read")
        if not isinstance(pool, Missing) and len(pool) != len(saved.images):
            pool = Missing(f"{len(saved.images):,} images were weighed, and pool.parquet lists {len(pool):,}")
        thumbs = PageImages(pool, int(self.picture_share * CLASS_BUDGET))
        classes = class_cards(self.run, saved, thumbs, self.track)
        title = f"Labeled classes: {len(saved.classes):,}"
        # many cards would stand between the reader and the rest
        parts.append(folded(title, classes) if len(saved.classes) > MOST_OPEN else f"<h3>{title}</h3>{classes}")
        return "\n".join(parts)

    def _training(self) -> str:
        records = self.run.metrics
        if not records:
            return note("There are no training records: the run has not trained yet, or its method does not train.")
        names = [name for name in reported(records) if name != "seconds"]
        first, last = records[0].get("loss"), records[-1].get("loss")
        went = f" The loss went from {first:.4g} to {last:.4g}." if first is not None and last is not None else ""
        n_planned = (self.run.about.get("config") or {}).get("n_epochs")
        of = f" of {n_planned:,}" if isinstance(n_planned, int) and n_planned != len(records) else ""
        step = -(-len(records) // MOST_EPOCHS)
        columns = ("epoch", *(name.replace("_", " ") for name in reported(records)))
        rows = [(r.get("epoch", n), *(r.get(name) for name in reported(records))) for n, r in enumerate(records)][
            ::step
        ]
        title = "Epochs" if step == 1 else f"Every {step}th epoch"
        caption = f"What training reported, epoch by epoch: {', '.join(names).replace('_', ' ')}."
        return "\n".join(
            [
                f"<p>{len(records):,}{of} epochs.{text(went)}</p>",
                in_page(draw_training({"this run": records}), "training", caption, is_broad=True),
                folded(title, table(columns, rows)),
            ]
        )

    def _count(self) -> str:
        about = self.run.about
        k = about.get("n_target", about.get("n_categories"))
        told = (
            "K is not known yet."
            if k is None
            else f"K = {k:,} for the target, {about.get('k_source', 'of unknown source')}."
        )
        if "n_target" in about and "n_categories" in about:
            told += _with_the_pool(about)
        used = f"<p>{text(told)}</p>"
        count = attempt(lambda: self.run.count, "K was not estimated")
        if isinstance(count, Missing):
            return used + note(f"{count.reason}.")
        found = {str(name): SavedCount.of(said) for name, said in count.get("estimates", {}).items()}
        rows = [
            (name, c.n_categories_, f"{c.interval[0]} to {c.interval[1]}" if c.interval else "")
            for name, c in found.items()
        ]
        drawn = [
            in_page(
                draw_counts({name: one}, {name: one.interval} if one.interval else {}),
                f"k-{number}",
                f"What {name} looked at on its way. The line is the K it chose, the band its interval.",
            )
            for number, (name, one) in enumerate(found.items())
        ]
        outside = [
            name
            for name, c in found.items()
            if c.interval and isinstance(k, int) and not c.interval[0] <= k <= c.interval[1]
        ]
        if outside:
            used += note(f"The K that was used lies outside the interval of {' and of '.join(outside)}.")
        return used + table(("estimated by", "K", "90 % interval"), rows) + f"<div class=ends>{''.join(drawn)}</div>"

    def _errors(self) -> str:
        return errors_part(judged(self.run), self.run.predictions)

    def _clusters(self) -> str:
        if not (self.run.path / "predictions.parquet").exists():
            return note("There are no predictions: the run has not reached them yet.")
        images = attempt(lambda: self.run.target, "the list of target images cannot be read")
        thumbs = PageImages(images, int(self.picture_share * CLUSTER_BUDGET))
        predictions = self.run.predictions
        review, said = review_of(self.run)
        return said + cluster_sheets(self.run, predictions, thumbs, self.track, review)


def _with_the_pool(about: dict[str, Any]) -> str:
    """What the pool adds to the categories."""
    if about.get("pool_role") == "guide":
        return " Classes of the pool only guide: no image is called one of them."
    return f" With the known classes of the pool, {about['n_categories']:,} categories in all."
