"""The selection stage of a run: a weight for every labeled image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Int

from justright.data import Pool
from justright.data.columns import nfc, text_column
from justright.data.manifest import read_table
from justright.data.pool import OWN, Origin
from justright.features.table import FeatureTable
from justright.runs.counting import counted_tables, fitted_counter
from justright.runs.problem import Problem
from justright.runs.run_features import fingerprints
from justright.runs.run_folder import RunFolder
from justright.runs.selection import FeaturePool, Selection, merge_tables, save_selection, stability_of
from justright.runs.spec import AUTO, GIVEN, RunSpec
from justright.selection import SELECTORS, ClassWeights, OwnSelector, Selector, row_shards, selector_of
from justright.selection.class_weights import ImageWeights
from justright.selection.diagnosis import diagnose
from justright.utils.context import current
from justright.utils.errors import DataError, DegenerateError, NothingSelectedError
from justright.utils.parallel import in_process
from justright.utils.settings import is_made_with
from justright.utils.types import Array

EXPECTED = "a table with the columns class_name and weight, one row per class, or with id one row per image"
N_SHOWN = 3
FALLBACK = "none"  # the selector if a diagnosis is not possible


@dataclass(frozen=True)
class GivenWeights:
    """Weights from a file, the output of `justright select --out` or a table by hand; one entry per labeled image.

    The columns are class_name and weight, one row per class; with a column id, one row per image. The columns dataset
    and reason are optional. Classes have the names of the run: `cat` for a class of --labeled, `pets/cat` for one of
    --pool, or just `cat` if no other class has that name.
    """

    weight: Float[Array, " images"]
    reason: list[str]
    is_named: Bool[Array, " images"]  # whether the file has its weight; classes of --labeled may be missing and weigh 1

    @classmethod
    def read(cls, file: Path, pool: Pool) -> GivenWeights:
        """Read the weights of the images of a pool, and raise if the file does not fit it."""
        rows, images = _read_rows(file, pool.origins), pool.images.with_ids(is_strict=False)
        has_ids = any(image_id is not None for image_id, _ in rows)
        ids: Sequence[str | None] = images.table["id"].to_pylist() if has_ids else [None] * len(images)
        matches = [rows.get(key) for key in zip(ids, images.labels.tolist(), strict=True)]
        is_named = np.array([match is not None for match in matches], dtype=bool)
        is_own = np.array([origin.dataset == OWN for origin in pool.origins], dtype=bool)[images.labels]
        is_optional = is_own & ~np.isin(images.labels, images.labels[is_named])
        missing = np.flatnonzero(~is_named & ~is_optional)
        if len(missing):
            first = f"{images.paths[missing[0]]} of {pool.origins[images.labels[missing[0]]].name}"
            raise DataError(
                f"{file} has no weight for {len(missing):,} of the {len(images):,} labeled images, such as {first}",
                expected="a weight for every image of --pool, and for all or no images of a class of --labeled",
                advice="extract the images again and select again, or give one row per class, without ids",
            )
        weight, reason = zip(*(match or (1.0, "kept: not in the file of weights") for match in matches), strict=True)
        if not any(weight):
            raise DataError(f"all weights in {file} are 0", expected="a weight above 0")
        return cls(np.array(weight), list(reason), is_named)

    def of_rows(self, start: int, labels: Int[Array, " rows"]) -> ClassWeights:
        """The weights of the images from row `start` on and of their classes, whose labels these are."""
        weight, reason = self.weight[start:], self.reason[start:]
        classes, first, n_images = np.unique(labels, return_index=True, return_counts=True)
        mean = np.bincount(labels, weight) / n_images
        images = ImageWeights(labels, weight, reason)
        return ClassWeights(classes, mean, [reason[row] for row in first], images=images)


def check_weights(file: Path, pool: Pool) -> None:
    """Check columns and classes of a file before any image is read."""
    named = {label for _, label in _read_rows(file, pool.origins)}
    others = {label for label in set(pool.images.labels.tolist()) if pool.origins[label].dataset != OWN}
    if missing := sorted(others - named):
        names = ", ".join(pool.origins[label].name for label in missing[:N_SHOWN])
        raise DataError(f"{file} has no weight for {len(missing):,} classes of --pool: {names}", expected=EXPECTED)


def _read_rows(file: Path, origins: Sequence[Origin]) -> Mapping[tuple[str | None, int], tuple[float, str]]:
    """Weight and reason by label and, in a table of images, image id."""
    try:
        table = read_table(file)
    except DataError as error:
        raise DataError(error.problem, expected=EXPECTED) from error
    if missing := {"class_name", "weight"} - set(table.column_names):
        raise DataError(f"{file} has no column {min(missing)}", expected=EXPECTED, advice="justright select --out")
    names, datasets, ids, reasons = (
        text_column(table, name, str(file)).to_pylist() if name in table.column_names else [None] * table.num_rows
        for name in ("class_name", "dataset", "id", "reason")
    )
    try:
        weights = text_column(table, "weight", str(file)).cast(pa.float64()).to_pylist()
    except pa.ArrowInvalid as error:
        raise DataError(f"{file}: {error}", expected="numbers in the column weight") from error
    labels = _labels(file, names, datasets, origins)
    rows: dict[tuple[str | None, int], tuple[float, str]] = {}
    for number, (image_id, label, weight, reason) in enumerate(zip(ids, labels, weights, reasons, strict=True)):
        if weight is None or not 0 <= weight < np.inf:
            raise DataError(f"{file}: weight {weight} in row {number + 2}", expected="0 or more in every row")
        if rows.setdefault((image_id, label), (weight, reason or f"given: {file.name}"))[0] != weight:
            raise DataError(f"{file} has two weights for {origins[label].name} {image_id or ''}", expected=EXPECTED)
    return rows


def _labels(
    file: Path, names: Sequence[str | None], datasets: Sequence[str | None], origins: Sequence[Origin]
) -> list[int]:
    """The label of each row, by the full name of its class, or by the short one if it is unique."""
    n_short = Counter(origin.class_name for origin in origins)
    own = {origin.class_name: label for label, origin in enumerate(origins) if origin.dataset == OWN}
    by_name = {origin.class_name: label for label, origin in enumerate(origins) if n_short[origin.class_name] == 1}
    by_name |= {origin.name: label for label, origin in enumerate(origins)}
    # a class of --labeled may have the name of the data set that it was extracted from as prefix
    classes = [(nfc(name or ""), f"{nfc(dataset or '')}/") for name, dataset in zip(names, datasets, strict=True)]
    labels = [by_name.get(name, own.get(name.removeprefix(prefix))) for name, prefix in classes]
    unknown = sorted({name for (name, _), label in zip(classes, labels, strict=True) if label is None})
    if unknown or not labels:
        raise DataError(
            f"{file} has {len(unknown):,} classes that this run does not have: {', '.join(unknown[:N_SHOWN])}",
            expected=f"its classes, such as {', '.join(origin.name for origin in origins[-N_SHOWN:])}",
            advice="use the --labeled and --pool of these weights, or select again",
        )
    return [label for label in labels if label is not None]


@dataclass(eq=False)
class RunSelection:
    """Computes the weights of the labeled images of a run."""

    problem: Problem
    spec: RunSpec
    folder: Path
    processes: Any
    notes: list[str] = field(default_factory=list)  # for the notes of the run
    params: Mapping[str, Any] = field(default_factory=dict)  # of the selector that was used

    def weight(self, pool: FeatureTable, target: FeatureTable, n_target: int) -> Float[Array, " labeled"]:
        """The weight of every labeled image.

        The target's own classes come first and weigh 1, unless `select_labeled` or a file weighs them too. `pool` has
        the features of all labeled images in the order of the `Problem`.
        """
        given = None if self.spec.weights is None else GivenWeights.read(self.spec.weights, self.problem.pool)
        own = self.problem.own_rows
        n_own = 0 if self.spec.select_labeled or (given is not None and given.is_named[own].any()) else len(own)
        if n_own == len(pool):
            return np.ones(n_own)  # there is nothing to select from
        merged = merge_tables([pool.from_row(n_own)])
        if given is not None:
            result = Selection.of(GIVEN, given.of_rows(n_own, merged.labels), merged)
        else:
            name = self.spec.selector
            if name == AUTO:
                diagnosis = self.processes.in_turn(lambda: self._diagnosis(pool, merged, target, n_target))
                self.notes.append(f"auto: {diagnosis['verdict'].rstrip('.')}")
                name = str(diagnosis["winner"])
            name, selector = self._fitted(name, pool, merged, target, n_target)
            n_resamples = self.spec.n_resamples if self.processes.is_first else 0
            stable = stability_of(selector, merged, target, n_resamples, self.spec.seed)
            result = Selection.of(name, selector, merged, stable)
        self.params = result.about["params"]
        if self.processes.is_first:
            kept = merge_tables([pool.take(range(n_own))]) if n_own else None
            save_selection(self.folder / "weights.parquet", result, target, kept)
        return np.concatenate([np.ones(n_own), result.sample_weight])

    def _fitted(
        self, name: str, pool: FeatureTable, merged: FeaturePool, target: FeatureTable, n_target: int
    ) -> tuple[str, Selector]:
        """The fitted selector and its name; `OwnSelector` if it drops the whole pool and there are own labels."""
        params = dict(self.spec.selector_params)
        if isinstance(counter := params.get("n_clusters"), str):  # the name of a counter, for the selection only
            tables = counted_tables(self.problem, pool, target)
            fitted = fitted_counter(counter, *tables, self.problem.own_classes, self.spec.seed)
            params["n_clusters"] = fitted.n_categories_
        selector = selector_of(name, params, self.spec.seed, n_target)
        try:
            selector.fit_stream(merged, row_shards(target.features), engine=current().engine or in_process, quiet=True)
        except NothingSelectedError as error:
            if len(merged) == len(pool):  # there are no own labels
                raise
            self.notes.append(f"{name} drops the whole pool ({error.problem}): only the target's own labels are used")
            return "own", OwnSelector().fit_stream(merged, row_shards(target.features))
        self.notes += selector.weights_.warnings
        return name, selector

    def _diagnosis(
        self, pool: FeatureTable, merged: FeaturePool, target: FeatureTable, n_target: int
    ) -> dict[str, Any]:
        """The selector that a diagnosis recommends, and why; cached in diagnosis.json."""
        folder = RunFolder(self.folder)
        made_with = fingerprints(pool, target) | {"seed": self.spec.seed, "n_target": n_target}
        cached = folder.diagnosis
        if cached is not None and is_made_with(cached, made_with) and cached.get("winner") in SELECTORS:
            return cached
        n_own = len(self.problem.own_rows)
        own = np.asarray(pool.features[:n_own]), pool.labels[:n_own]
        others = np.asarray(merged.features), merged.labels
        try:
            diagnosis = diagnose(own, others, target.features, n_target, seed=self.spec.seed).to_json()
        except DegenerateError as error:
            verdict = f"Take {FALLBACK}, because the diagnosis is not possible: {error.problem}"
            diagnosis = {"winner": FALLBACK, "verdict": verdict}
        diagnosis |= {"made_with": made_with}
        folder.save_json("diagnosis.json", diagnosis)
        return diagnosis
