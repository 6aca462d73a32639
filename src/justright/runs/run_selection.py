"""The selection stage of a run: a weight for every labeled image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from justright.features.table import FeatureTable
from justright.runs.counting import counted_tables, fitted_counter
from justright.runs.given_weights import GIVEN, GivenWeights
from justright.runs.problem import Problem
from justright.runs.run_features import fingerprints
from justright.runs.run_folder import RunFolder
from justright.runs.selection import FeaturePool, Selection, merge_tables, save_selection, stability_of
from justright.runs.spec import AUTO, RunSpec
from justright.selection import SELECTORS, OwnSelector, Selector, row_shards, selector_of
from justright.selection.diagnosis import diagnose
from justright.utils.context import current
from justright.utils.errors import DegenerateError, NothingSelectedError
from justright.utils.fingerprint import is_made_with
from justright.utils.parallel import in_process
from justright.utils.types import Array

FALLBACK = "none"  # the selector if a diagnosis is not possible


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
            result = Selection.of_weights(GIVEN, given.of_rows(n_own, merged.labels), merged)
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
