"""Runs to compare: their settings, groups that differ only in the seed, score changes, and agreement pair by pair."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Int
from scipy.special import ndtri, stdtrit

from justright.data import ImageSet
from justright.data.columns import CONTENT
from justright.discovery.predictions import Predictions
from justright.evaluation import Counts, Scores, match_counts
from justright.evaluation.intervals import spread
from justright.evaluation.scores import LEVEL
from justright.report.elements import Name, Table, Values, attempt, optional
from justright.report.page_images import PageImages, SheetOrder, SmallImages
from justright.report.run_parts import flat_texts, resolved
from justright.runs.run_folder import RunFolder
from justright.utils.types import Array, Mask

SETTINGS = (
    "method", "selector", "pool_role", "weighting", "seed", "scale", "n_target", "k_source", "backbone", "request",
    "config",
)  # fmt: skip
OF_SELECTION = ("weighting", "pool_role")  # besides the selector and its parameters
NOT_SETTINGS = ("command", "out", "print")
# derived from the selection and K; so is `n_target`, K itself, if it was estimated
DERIVED = ("n_categories", "n_known")
MOST_RUNS = 12  # runs that are compared pair by pair
MOST_SHOWN = 4  # runs whose categories are shown side by side: the first ones
MOST_GROUPS, MOST_OPEN = 100, 15  # rows of images on which the runs differ, and rows not collapsed
N_PICTURES, PIXELS, COLUMNS = 12, 56, 6  # of such a row
BUDGET = 4_000_000  # characters of pictures
NO_MATCH = -1  # no matching category


@dataclass(frozen=True)
class ComparedRun:
    """A run with a short name, flat settings, and scores if there are any."""

    name: str
    run: RunFolder

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The resolved settings and the parameters of the selection."""
        about = resolved(self.run.about)
        values = flat_texts({name: about[name] for name in (*SETTINGS, *DERIVED) if name in about})
        saved = optional(lambda: self.run.selection)
        params = about.get("selector_params") if saved is None else saved.about.get("params")
        values |= flat_texts({"selection": params or {}})
        return {name: value for name, value in values.items() if name.rpartition(".")[2] not in NOT_SETTINGS}

    @cached_property
    def scores(self) -> Scores | None:
        """All, Old and New."""
        return optional(lambda: self.run.scores)

    @property
    def target_print(self) -> str:
        """Fingerprint of the target images, independent of their location."""
        fingerprints = self.run.about.get("fingerprints")  # a run without them is unfinished
        return str(fingerprints["target"]["content"]) if fingerprints else "None"

    def key(self, ignoring_selection: bool = False) -> str:
        """Equal for runs that differ only in the seed; with `ignoring_selection`, for runs that can be compared."""
        derived = DERIVED if self.settings.get("k_source") == "given" else (*DERIVED, "n_target")
        compared = {}
        for name, value in self.settings.items():
            is_seed = name.rpartition(".")[2] == "seed"
            is_of_selection = name in OF_SELECTION or "select" in name
            if not (name in derived or is_seed or (ignoring_selection and is_of_selection)):
                compared[name] = value
        return json.dumps(compared, sort_keys=True, default=str)


@dataclass(frozen=True)
class SeedGroup:
    """Runs that differ by seed only."""

    runs: tuple[ComparedRun, ...]

    @property
    def name(self) -> str:
        """The name of the first run, and the number of others."""
        return self.runs[0].name if len(self.runs) == 1 else f"{self.runs[0].name} and {len(self.runs) - 1} more"

    @property
    def selector(self) -> str:
        """The selector of the group."""
        return str(self.runs[0].settings.get("selector", ""))

    def values(self, images: str) -> list[float]:
        """The accuracies of the runs on "all", "old" or "new" images."""
        accuracies = [getattr(run.scores, images) for run in self.runs if run.scores is not None]
        return [value for value in accuracies if math.isfinite(value)]

    def image_variance(self, images: str) -> float:
        """The sampling variance of an accuracy over images, which seeds do not reduce."""
        variances = []
        for run in self.runs:
            if run.scores is not None and images in run.scores.intervals:
                low, high = run.scores.intervals[images]
                variances.append(((high - low) / 2 / float(ndtri((1 + run.scores.level) / 2))) ** 2)
        return float(np.mean(variances)) if variances else 0.0


@dataclass(frozen=True)
class ScoreChange:
    """Change of the accuracy on a group of images against the baseline, in points, with an interval."""

    group: str
    points: float
    low: float
    high: float
    n_seeds: int
    n_baseline_seeds: int

    def verdict(self) -> str:
        """Better, worse or noise; with one seed on a side, the noise of training is not known."""
        if self.low <= 0 <= self.high:
            return "within the noise"
        word = "better" if self.points > 0 else "worse"
        has_seeds = min(self.n_seeds, self.n_baseline_seeds) > 1
        return word if has_seeds else f"{word} on these images; with one seed it may still be chance"

    def __str__(self) -> str:
        return f"{self.points:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


def mean_and_spread(values: Sequence[float]) -> str:
    """Mean and standard deviation in percent; no deviation of one value, a dash for NaN, empty without values."""
    if not values:
        return ""
    deviation = f" ± {100 * spread(values):.1f}" if len(values) > 1 else ""
    return "-" if np.isnan(values).any() else f"{100 * np.mean(values):.1f}{deviation}"


def change(group: SeedGroup, baseline: SeedGroup, images: str) -> ScoreChange | None:
    """The difference of two means with an interval, in points; None if a side has no accuracy.

    Its variance is the sum over both sides of s^2 / n over seeds, if there are several, and the variance over images.
    Both sides share the images, so the second term is conservative. The quantile is Student's, with degrees of freedom
    by Satterthwaite: s is uncertain with few seeds.
    """
    own, base = group.values(images), baseline.values(images)
    if not own or not base:
        return None
    by_images = group.image_variance(images) + baseline.image_variance(images)
    by_seeds = squares = 0.0
    for values in (own, base):
        if len(values) > 1:
            of_mean = spread(values) ** 2 / len(values)
            by_seeds += of_mean
            squares += of_mean**2 / (len(values) - 1)
    variance, tail = by_seeds + by_images, (1 + LEVEL) / 2
    quantile = float(stdtrit(variance**2 / squares, tail)) if squares > 0 else float(ndtri(tail))
    half = quantile * math.sqrt(variance)
    points = float(np.mean(own)) - float(np.mean(base))
    return ScoreChange(images, 100 * points, 100 * (points - half), 100 * (points + half), len(own), len(base))


@dataclass(frozen=True, eq=False)
class RunPair:
    """Two runs on their shared images, with matched categories.

    Known classes match by name. All other categories are matched one to one so that most images agree.
    """

    names: tuple[str, str]
    rows: tuple[Int[Array, " shared"], Int[Array, " shared"]]  # of the shared images in each run
    predictions: tuple[Predictions, Predictions]

    @cached_property
    def clusters(self) -> tuple[Int[Array, " shared"], Int[Array, " shared"]]:
        """The category number of each shared image in each run."""
        one, other = (each.cluster[rows] for each, rows in zip(self.predictions, self.rows, strict=True))
        return one, other

    @cached_property
    def match_of(self) -> Int[Array, " categories"]:
        """For each category of the second run its match in the first."""
        first, second = self.predictions
        known = {each.name: number for number, each in enumerate(first.categories) if each.kind == "known"}
        names = [each.name if each.kind == "known" else None for each in second.categories]
        matches = np.array([known.get(name or "", NO_MATCH) for name in names], dtype=np.int64)
        one, other = self.clusters
        is_free = ~np.isin(one, matches[matches != NO_MATCH]) & (matches[other] == NO_MATCH)
        if is_free.any():
            matching = match_counts(Counts.of(one[is_free], other[is_free]))
            matches[matching.clusters] = matching.classes
        return matches

    @cached_property
    def is_same(self) -> Mask:
        """Whether each shared image is in matching categories."""
        one, other = self.clusters
        return self.match_of[other] == one

    @property
    def share(self) -> float:
        """The share of images in matching categories."""
        return float(self.is_same.mean())

    @cached_property
    def rand_index(self) -> float:
        """The adjusted Rand index: 1 for equal clusters, about 0 for chance."""
        from sklearn.metrics import adjusted_rand_score  # slow to import

        return float(adjusted_rand_score(*self.clusters))

    def to_json(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        return {"runs": list(self.names), "n_images": len(self.is_same), "share_in_matching_categories": self.share,
                "adjusted_rand_index": self.rand_index}  # fmt: skip

    def __str__(self) -> str:
        return (
            f"{100 * self.share:.1f} % of {len(self.is_same):,} images are in matching categories, "
            f"adjusted Rand index {self.rand_index:.2f}"
        )


@dataclass(frozen=True)
class Agreement:
    """Agreement of the runs with predictions, at most `MOST_RUNS`."""

    runs: tuple[ComparedRun, ...]

    @cached_property
    def _readable(self) -> list[tuple[ComparedRun, Predictions, dict[tuple[str, int], int]]]:
        readable = []
        for run in self.runs:
            predictions = optional(lambda run=run: run.run.predictions)  # type: ignore[misc]
            if predictions is not None and len(predictions):
                readable.append((run, predictions, _rows_by_content(run.run.target)))
        return readable

    @property
    def has_same_images(self) -> bool | None:
        """Whether all runs have the same readable images; None if a run has no predictions."""
        images = [rows.keys() for _, _, rows in self._readable]
        return all(each == images[0] for each in images) if len(images) == len(self.runs) else None

    @cached_property
    def pairs(self) -> list[RunPair]:
        """All pairs of runs that share images."""
        pairs = []
        for (one, first, places), (other, second, others) in combinations(self._readable[:MOST_RUNS], 2):
            shared = [key for key in places if key in others]
            if shared:
                rows = np.array([places[key] for key in shared]), np.array([others[key] for key in shared])
                pairs.append(RunPair((one.name, other.name), rows, (first, second)))
        return pairs

    def values(self) -> Values | None:
        """The values of the page; None if no two runs share an image."""
        if not self.pairs:
            return None
        columns = ("run", "other run", "images of both", "in matching categories %", "adjusted Rand index")
        rows = [
            (*map(Name, pair.names), len(pair.is_same), 100 * pair.share, round(pair.rand_index, 3))
            for pair in self.pairs
        ]
        return {
            "pairs": Table(columns, rows),
            "n_left_out": max(0, len(self._readable) - MOST_RUNS),
        } | self._differences()

    def _differences(self) -> Values:
        """Images that the first runs do not all put into matching categories, grouped by these categories."""
        name = self.pairs[0].names[0]  # of the first run that shares images with others
        run, first = next((run, predictions) for run, predictions, _ in self._readable if run.name == name)
        pairs = [pair for pair in self.pairs if pair.names[0] == name][: MOST_SHOWN - 1]
        # of every image of the first run: its category in each run, and whether one does not match
        category = np.full((len(pairs) + 1, len(first)), NO_MATCH)
        category[0] = first.cluster
        is_different = np.zeros(len(first), dtype=bool)
        for place, pair in enumerate(pairs, start=1):
            own_rows, other_rows = pair.rows
            category[place, own_rows] = pair.predictions[1].cluster[other_rows]
            is_different[own_rows[~pair.is_same]] = True
        rows = np.flatnonzero(is_different)
        groups, group_of, n = np.unique(category[:, rows], axis=1, return_inverse=True, return_counts=True)
        of_runs = [first.categories, *(pair.predictions[1].categories for pair in pairs)]
        orders: list[SheetOrder] = []
        cells: list[tuple[object, ...]] = []
        largest = np.argsort(-n, kind="stable")[:MOST_GROUPS]
        for group in largest.tolist():
            members = rows[group_of.reshape(-1) == group]
            names = [
                "not in this run" if number == NO_MATCH else categories[number].name
                for categories, number in zip(of_runs, groups[:, group].tolist(), strict=True)
            ]
            most_confident = members[np.argsort(-first.confidence[members], kind="stable")][:N_PICTURES]
            orders.append(SheetOrder(most_confident, PIXELS, COLUMNS, f"{len(members)} images: {', '.join(names)}"))
            cells.append((len(members), *map(Name, names)))
        images = PageImages(attempt(lambda: SmallImages(run.run.target), "the images cannot be listed"), BUDGET)
        table_rows = [(sheet, *row) for sheet, row in zip(images.sheets(orders), cells, strict=True)]
        shown = ["examples", "images", f"in {name}", *(f"in {pair.names[1]}" for pair in pairs)]
        return {
            "differences": Table(shown, table_rows[:MOST_OPEN]),
            "more_differences": Table(shown, table_rows[MOST_OPEN:]),
            "n_different": len(rows),
            "n_more": len(rows) - int(n[largest].sum()),
            "n_runs_shown": len(pairs) + 1,
            "page_images": images,
        }


def _rows_by_content(images: ImageSet) -> dict[tuple[str, int], int]:
    """Map each image, by its content, to its row; duplicates are numbered in order."""
    n_seen: Counter[str] = Counter()
    row_of = {}
    for row, content in enumerate(images.table[CONTENT].to_pylist()):
        row_of[content, n_seen[content]] = row
        n_seen[content] += 1
    return row_of
