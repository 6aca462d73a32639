"""One run, from images to clusters: extract, count, select, train, predict, evaluate.

Every stage writes its files into the folder of the run and reuses them when it is called again, so that an interrupted
run is resumed where it stopped. Labels of the target are read in the last stage only.
"""

from __future__ import annotations

import json
import logging
import platform
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from justright.clustering.baselines import MOST_ROWS
from justright.data.parquet import write_parquet
from justright.data.quarantine import MAX_BAD
from justright.data.splits import Truth
from justright.data.vectors import has_vectors
from justright.discovery.doubts import Doubt, doubts_of
from justright.discovery.evidence import NAMES, ExpectedRight, expected_right
from justright.discovery.joint import join
from justright.discovery.methods import FIRST_PARTS, METHODS, is_trained
from justright.discovery.predictions import UNCALIBRATED, Predictions
from justright.evaluation.files import copy_truth, expect_truth, read_judged
from justright.features.table import FeatureTable
from justright.runs.cluster_table import CLUSTERS, doubts_json, write_clusters
from justright.runs.costs import CostPlan, Work
from justright.runs.counting import Count, count_categories
from justright.runs.frozen_check import FROZEN, FrozenCheck, baseline_scores, frozen_check, simple_results
from justright.runs.problem import Problem
from justright.runs.request_checks import check_problem, check_request, own_names
from justright.runs.run_features import StoresAndCache, fingerprints, frozen_features
from justright.runs.run_folder import DOUBTS, TRUTH, RunFolder, owned
from justright.runs.run_selection import RunSelection
from justright.runs.source_checks import LEFT_OUT, LeftOut, summary, unreadable_files, write_left_out
from justright.runs.spec import RunSpec, config_of
from justright.utils.context import notify
from justright.utils.errors import DegenerateError, JustrightError
from justright.utils.files import explain_disk_full, remove_leftovers, replacing

_log = logging.getLogger(__name__)

PACKAGES = ("justright", "torch", "timm", "numpy", "scikit-learn", "pyarrow")  # their versions are in run.json


@dataclass(eq=False)
class Run:
    """One run while it is carried out."""

    problem: Problem  # labeled images and target
    spec: RunSpec  # all settings
    out: Path  # folder of the run
    backbone: Any  # loaded, so that several runs can share it
    request: Mapping[str, Any] = field(default_factory=dict)  # sources, files and the command, for run.json
    truth: Path | None = None  # file with the labels of the target, read for evaluation only
    left_out: Sequence[LeftOut] = ()  # files that are skipped, as far as is known before images are read
    max_bad: float = MAX_BAD  # raise if a larger share of images is unreadable; otherwise these are skipped
    warnings: Sequence[str] = ()  # about the labels; they become notes of the run
    is_interactive: bool = False  # warn if a given K differs from an estimate, and announce how long a run takes

    def __post_init__(self) -> None:
        from justright.discovery.processes import Processes

        self.backbone.is_unchanging = True  # `fit` tunes a copy
        self.folder, self.config, self.processes = RunFolder(self.out), config_of(self.spec), Processes()
        self.is_resumed = (self.out / "run.json").exists()
        self.costs = CostPlan(Work.of(self.problem, self.spec, self.processes.n), self.spec, self.backbone, self.out)
        self.seconds: dict[str, float] = {}
        self.notes = list(self.warnings)
        self.n_threads: int | None = None

    def all(self, is_owned: bool = False) -> RunFolder:
        """Carry out all stages in order.

        Parameters:
            is_owned: the caller holds the lock of the folder already. Of several processes that train together the
                first one holds it for all.
        """
        from justright.discovery.processes import torch_threads

        with owned(self.out) if self.processes.is_first and not is_owned else nullcontext():
            n_before = self.folder.about["threads"] if self.is_resumed else None
            with torch_threads(n_before, self.out) as self.n_threads:
                return self._stages()

    def _stages(self) -> RunFolder:
        cache = self._prepare()
        self._announce_time()
        with self._timed("extract"):
            pool, target = self.processes.in_turn(lambda: self._extract(cache))
        with self._timed("count"):
            is_checked = self.is_interactive and self.processes.is_first
            count = self.processes.in_turn(
                lambda: count_categories(self.problem, self.spec, self.folder, pool, target, is_checked)
            )
            self.notes += count.notes
        with self._timed("select"):
            selection = RunSelection(self.problem, self.spec, self.out, self.processes)
            weight = selection.weight(pool, target, count.n_categories)
            self.notes += selection.notes
        with self._timed("train"):
            methods, reference = self._learn(weight, count.n_categories, (pool.features, target.features))
        method = methods[reference]
        if self.processes.is_first:
            with self._timed("predict"):
                if self.spec.answer == "joint":
                    join(methods, pool.features, target.features, reference, count.below_estimate())
                predictions, expected = self._predict(method)
            with self._timed("check"):  # of the answer that was written
                check, simple = self._check(method, pool, target)
            with self._timed("evaluate"):
                check = self._evaluate(predictions, check, simple)
            self._finish(method, count, selection, check, expected, fingerprints(pool, target))
        self.processes.wait()
        return RunFolder(self.out)

    def _prepare(self) -> StoresAndCache:
        """Validate the request, and start or resume the run in its folder; returns the cache of features."""
        check_request(self.spec)
        check_problem(self.problem, self.spec, self.out, self.truth, self.max_bad)
        spec = self.spec.to_json()
        sets = [self.problem.pool.images, self.problem.target] if self.spec.features else []
        cache = StoresAndCache(self.spec.features, self.backbone, sets)
        if self.processes.is_first:
            remove_leftovers(self.out)
            self.costs.check_disk()
            if self.is_resumed:  # only now: a rejected request leaves the run finished
                self.folder.begin_again(has_truth=self.truth is not None or self.problem.truth is not None)
            else:
                about = {"spec": spec, "request": self.request, "threads": self.n_threads}
                self.folder.save_about(about | {"is_finished": False})
        self.processes.wait()
        return cache

    def _announce_time(self) -> None:
        """Say how long the run takes, if that is long. Several processes do not measure it."""
        from justright.runs.measured_rates import with_rates

        if not self.is_interactive or self.is_resumed or self.processes.n > 1 or has_vectors(self.problem.target):
            return
        try:
            message = with_rates(self.costs, self.problem.target).message()
        except JustrightError as error:  # if something is wrong, the run itself raises it
            message = f"The duration is unknown: {error}"
        if message:
            notify(message)

    def _extract(self, cache: StoresAndCache) -> tuple[FeatureTable, FeatureTable]:
        """Compute the features of pool and target, and keep the readable images."""
        problem, how = self.problem, (cache, self.max_bad, is_trained(self.spec.method))
        pool = frozen_features(problem.pool.images, self.backbone, self.out / "pool.features", *how)
        target = frozen_features(problem.target, self.backbone, self.out / "target.features", *how)
        self.problem = problem.with_ids_of(pool, target)
        unreadable = unreadable_files(problem.pool.images, pool, is_target=False)
        unreadable += unreadable_files(problem.target, target, is_target=True)
        self.left_out = [*self.left_out, *unreadable]
        self.notes += [f"{summary(self.left_out)}. {LEFT_OUT} lists them"] if self.left_out else []
        if self.truth is not None:  # ids and readable images are known now
            expect_truth(self.truth, self.problem.target.table, own_names(self.problem))
        if self.processes.is_first:
            self.problem.pool.images.with_content().save(self.out / "pool.parquet")
            self.problem.target.with_content().save(self.out / "target.parquet")
            write_left_out(self.out, self.left_out)
            if unreadable:
                _log.warning("%s.", summary(unreadable))  # now, because training may take long
        return pool, target

    def _learn(self, weight: np.ndarray, n_target: int, features: Sequence[np.ndarray]) -> tuple[Sequence[Any], int]:
        """Train the method with each seed; returns all of them and the position of the one that predicts."""
        from justright.discovery.training_data import total_categories

        spec, labels = self.spec, self.problem.pool.images.labels
        n_categories = n_target
        if spec.pool_role == "rival" and self.config.sees_labels:
            n_categories = total_categories(set(labels[weight > 0].tolist()), self.problem.own_classes, n_target)
        split, methods = self.problem.split(spec.pool_role), []
        for seed in range(spec.seed, spec.seed + spec.n_seeds):
            folder = self.out if spec.n_seeds == 1 else self.out / f"seed-{seed}"
            method = METHODS[spec.method](n_categories, self.backbone, self.config, seed=seed, folder=folder)
            method.fit(split, weight, weighting=spec.weighting, features=features)  # type: ignore[arg-type]
            methods.append(method)
        reference = self._vote(methods) if spec.n_seeds > 1 else 0
        method = methods[reference]
        self.notes += method.notes_
        if n_unused := len(self.problem.given_rows()) - int(np.sum(method.is_given_)):
            self.notes.append(
                f"the labels of {n_unused:,} images of the target are not used: their classes were left out of learning"
            )
        if method.n_categories_ != n_categories:
            self.notes.append(f"{spec.method} found {method.n_categories_} categories by itself, not {n_categories}")
        return methods, reference

    def _vote(self, methods: Sequence[Any]) -> int:
        """Give the method that agrees best with the others the categories of the vote; returns its position."""
        from justright.discovery.predictions import consensus

        vote = consensus([method.predictions(self.problem.target) for method in methods])
        method = methods[vote.reference]
        method.labels_, method.confidence_ = vote.predictions.cluster, vote.predictions.confidence
        method.trained_share_ = min(other.trained_share_ for other in methods)
        seeds = ", ".join(str(other.seed) for other in methods)
        agreement = vote.agreement[~method.is_given_]
        self.notes.append(
            f"a vote of seeds {seeds}: all of them agree on {np.mean(agreement == 1):.0%} of the images; "
            f"new images are judged by seed {method.seed}, which agrees best with the others"
        )
        return vote.reference

    def _check(
        self, method: Any, pool: FeatureTable, target: FeatureTable
    ) -> tuple[FrozenCheck | None, Mapping[str, np.ndarray] | None]:
        """Compare the trained result with simple methods on frozen features; returns the clusters of these too."""
        if not method.trainings(method.config_):
            return None, None
        own = own_names(self.problem)
        try:
            simple = simple_results(method, pool, target, own) if self.spec.answer == "joint" else None
            check = frozen_check(method, pool, target, simple)
        except DegenerateError as error:
            self.notes.append(f"not checked against {FROZEN}: {error.problem}")
            return None, None
        # only after the check: whether the truth is known must not change it
        if simple is None and self._truth() is not None:
            simple = simple_results(method, pool, target, own)
        self.notes.append(check.note(self.spec.method))
        return check, simple

    def _predict(self, method: Any) -> tuple[Predictions, ExpectedRight | None]:
        """Write predictions, clusters, tuned features and the model; returns how many are expected to be right too."""
        with replacing(self.out / "tuned.npy") as temporary, temporary.open("wb") as file:
            np.save(file, method.features_.astype(np.float32), allow_pickle=False)
        predictions = method.predictions(self.problem.target)
        for ending in ("parquet", "csv"):
            predictions.save(self.out / f"predictions.{ending}")
        doubts: list[Doubt] = []
        expected = None
        if method.joint_ is not None:
            columns = dict(zip(NAMES, method.evidence_.T, strict=True)) | {"method cluster": method.own_labels_}
            write_parquet(pa.table({"id": predictions.index["id"], **columns}), self.out / "evidence.parquet")
            judged = predictions.confidence[~predictions.is_given]
            expected = expected_right(judged, method.joint_.shapes.is_checked)
            doubts = doubts_of(method.other_clusterings_, method.is_given_)
            self.folder.save_json(DOUBTS, doubts_json(predictions, doubts))
        elif method.calibrated_on_ == UNCALIBRATED:
            self.notes.append("without labeled images confidences are not calibrated: use them to compare images only")
        write_clusters(self.out / CLUSTERS, predictions, doubts, has_purity=expected is not None)
        method.save(self.out)
        return predictions, expected

    def _truth(self) -> Path | Truth | None:
        """The labels of the target, if they are known; not read yet."""
        return self.truth or self.problem.truth or self.folder.truth_file

    def _evaluate(
        self, predictions: Predictions, check: FrozenCheck | None, simple: Mapping[str, np.ndarray] | None
    ) -> FrozenCheck | None:
        """Score the predictions, and the simple methods in the check. Only here the labels of the target are read."""
        truth, kept_truth = self._truth(), self.out / TRUTH
        if truth is None:
            return check
        own = own_names(self.problem)
        known = [each.name for each in predictions.categories if each.kind == "known"]
        table = truth if isinstance(truth, Path) else truth.table()
        judged = read_judged(predictions.table(), table, own, may_list_more=True, known_classes=known)
        if self.truth is not None:
            copy_truth(self.truth, kept_truth, own)
        elif not isinstance(truth, Path):
            truth.save(kept_truth)
        judged.scores().save(self.out / "scores.json")
        if check is not None and simple is not None:
            check = replace(check, baselines=baseline_scores(simple, known, judged))
        elif check is not None:
            self.notes.append(f"not compared with simple methods: at most {MOST_ROWS:,} images are")
        if n_given := int(judged.is_given.sum()):
            self.notes.append(f"scores are those of the {len(judged.y_true):,} other images: {n_given:,} were labeled")
        return check

    def _finish(
        self,
        method: Any,
        count: Count,
        selection: RunSelection,
        check: FrozenCheck | None,
        expected: ExpectedRight | None,
        prints: Mapping[str, Any],
    ) -> None:
        """Write run.json, and keep one small checkpoint of each training, which a finished run is resumed from."""
        from justright.discovery.checkpoints import Checkpoints

        spec, begun = self.spec, self.folder.about
        self.folder.save_about(
            {
                "spec": begun["spec"],
                "request": self.request,
                "is_finished": True,
                "threads": begun["threads"],
                "command": self.request.get("command", ""),
                **{name: getattr(spec, name) for name in ("method", "selector", "pool_role", "seed", "scale")},
                "notes": self.notes,
                "left_out": Counter(each.reason for each in self.left_out),
                "check": None if check is None else check.to_json(spec.method),
                "selector_params": selection.params,
                "n_target": count.n_categories,
                "k_source": count.source,
                "n_categories": method.n_categories_,
                "n_known": len(method.known_labels_),
                "calibrated_on": method.calibrated_on_,
                "answer": spec.answer,
                "expected_right": None if expected is None else asdict(expected),
                "backbone": {"name": self.backbone.name, "fingerprint": self.backbone.fingerprint},
                "config": json.loads(json.dumps(asdict(method.config_))),
                "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
                "fingerprints": prints,
                "seconds": self.seconds,
            }
        )
        for seed in (self.out, *self.out.glob("seed-*")):
            for part in (".", *FIRST_PARTS):
                Checkpoints(seed / part / "checkpoint").finish()

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        with explain_disk_full(self.out):
            yield
        self.seconds[stage] = time.perf_counter() - started
