"""Results of a suite: one JSON line per run, and which lines are still valid for the suite."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from justright.benchmark.problems import images_fingerprint, is_in_data, problem_of
from justright.benchmark.suite import Suite, SuiteProblem, SuiteSetting
from justright.discovery.predictions import Category
from justright.evaluation import break_down
from justright.evaluation.confusions import Errors
from justright.evaluation.files import JudgedPredictions
from justright.geometry import unit_rows
from justright.runs.problem import Problem
from justright.runs.run_folder import RunFolder
from justright.runs.spec import RunSpec, config_of
from justright.selection import SELECTORS
from justright.utils.errors import DataError
from justright.utils.files import parsed_json
from justright.utils.hashing import hash_value, signed, verified
from justright.utils.settings import differences, flat
from justright.utils.types import UNLABELED, Labels
from justright.utils.wording import count_text

RESULTS = "results.jsonl"
EXAMPLE = 1000, 50  # images and categories

Line = dict[str, Any]  # one run: problem, part, setting, seed, print (its fingerprint), and scores or failed
Runs = list[tuple[SuiteSetting, int]]  # settings and seeds
RunsByProblem = list[tuple[SuiteProblem, Runs]]

_log = logging.getLogger(__name__)


def result_of(run: RunFolder, seconds: float, is_probed: bool = False) -> Line:
    """The line of a finished run."""
    scores, about, selection = run.scores, run.about, run.selection
    assert scores is not None, "a problem of a suite has a truth"
    assert run.truth_file is not None
    weighed = None if selection is None else selection.weighed
    weights = [] if weighed is None else weighed.classes["weight"].to_numpy()
    config = about["config"]
    judged = run.judged(run.truth_file)
    n_new = int((~judged.is_old).sum())
    breakdown = break_down(judged.y_true, judged.y_pred, judged.is_old)
    errors = breakdown.by_kind()
    line: Line = {
        "all": scores.all,
        "old": None if np.isnan(scores.old) else scores.old,
        "new": scores.new,
        "new_as_old": errors["new_as_old"] / n_new,
        "new_as_new": errors["new_as_new"] / n_new,
        "new_as_pool": _in_pool_categories(run.predictions.categories, judged, breakdown) / n_new,
        "n_target": about["n_target"],
        "n_categories": about["n_categories"],
        "n_used": int((run.predictions.sizes > 0).sum()),
        "pool_classes": len(weights),
        "kept_classes": int(np.count_nonzero(weights)),
        "notes": about["notes"],
        "check": about["check"],
        "n_steps": config["n_steps"] * config["n_epochs"] if config.get("n_steps") else None,
        "seconds": round(seconds, 1),
        "hits": {},  # by class: the number of images in its matched category, and of all its images
        "mean_weight": None,
        "measure": None,
    }
    for label, *hits in np.column_stack([breakdown.classes, breakdown.n_right, breakdown.n_images]).tolist():
        line["hits"][str(judged.class_names[label])] = hits
    if weighed is not None and len(weighed.images):
        line["mean_weight"] = round(float(weighed.sample_weight.mean()), 4)
        if name := weighed.weights.measure:  # minimum, quartiles and maximum of what the selector measured
            line["measure"] = {
                name: np.quantile(weighed.weights.columns[name], [0, 0.25, 0.5, 0.75, 1]).round(4).tolist()
            }
    if is_probed:
        line["probe"] = probe(run.tuned, judged.y_true)
    return line


def _in_pool_categories(categories: Sequence[Category], judged: JudgedPredictions, errors: Errors) -> int:
    """Count new images in unmatched categories of labeled classes that the target does not have."""
    old_names = {judged.class_names[label] for label in set(judged.y_true[judged.is_old].tolist())}
    is_pool = np.array([category.kind == "known" and category.name not in old_names for category in categories])
    is_pool[errors.cluster[errors.cluster != UNLABELED]] = False
    return int(is_pool[judged.y_pred[~judged.is_old]].sum())


def shown_value(line: Line, group: str) -> float | None:
    """The value of a run to show in a table; None if it has none.

    A class of the pool is labeled, so an image in its category counts as taken for old, as in the paper.
    """
    if line.get(group) is None:
        return None
    sign = {"new_as_old": 1, "new_as_new": -1}.get(group, 0)
    return float(line[group]) + sign * line.get("new_as_pool", 0.0)


def counts_of(problem: Problem) -> Line:
    """The numbers of Tab. A9 for a data set: labeled images and classes, and those of the target."""
    assert problem.truth is not None, "a problem of a suite has a truth"
    return {
        "labeled_images": len(problem.pool.images),
        "labeled_classes": len(problem.pool.images.classes),
        "target_images": len(problem.target),
        "target_classes": problem.n_target_classes,
    }


def probe(features: Any, labels: Labels) -> float:
    """Accuracy of a linear classifier on target features, mean over four folds: the transfer of Fig. 1.

    It learns from the true labels of old and new classes, so it is an oracle.
    """
    from sklearn.linear_model import RidgeClassifier  # imported here because it takes a second
    from sklearn.model_selection import KFold, cross_val_score

    folds = KFold(4, shuffle=True, random_state=0)
    return float(cross_val_score(RidgeClassifier(0.1), unit_rows(features), labels, cv=folds).mean())


def missing_runs(suite: Suite, out: Path, only: tuple[str, ...] = (), data: Path | None = None) -> RunsByProblem:
    """The runs without a valid line, by problem; arguments as in `run_suite`.

    A line is invalid if a default of its run has changed, or if `data` has other images now.
    """
    if unknown := sorted(set(only) - {problem.name for problem in suite.problems}):
        raise DataError(f"no problem {unknown[0]!r}", expected=", ".join(problem.name for problem in suite.problems))
    lines = _newest(suite, out)
    valid = {line["print"] for line, change in zip(lines, default_changes(suite, lines), strict=True) if not change}
    missing = []
    for problem in (each for each in suite.problems if not only or each.name in only):
        before = {
            line["print"]: line["images"] for line in lines if line["problem"] == problem.name and "images" in line
        }
        if before and data is not None and is_in_data(problem):
            now = images_fingerprint(problem_of(problem, data))
            valid -= {key for key, images in before.items() if images != now}
        if runs := [run for run in suite.runs_of(problem) if fingerprint(suite, problem, *run) not in valid]:
            missing.append((problem, runs))
    return missing


def suite_results(suite: Suite, out: Path) -> list[Line]:
    """The newest line of every run of the suite that has a result."""
    return [line for line in _newest(suite, out) if "failed" not in line]


def failed_runs(suite: Suite, out: Path) -> list[Line]:
    """The runs of the suite without a result: problem, setting, seed, and the reason in `failed`."""
    return [line for line in _newest(suite, out) if "failed" in line]


def remarks(suite: Suite, lines: list[Line]) -> list[str]:
    """Warnings about lines: made with defaults that have changed since, or from different images."""
    warnings, changes = [], [change for change in default_changes(suite, lines) if change]
    if changes:
        names = sorted({f"{name} was {was!r}, is {now!r}" for change in changes for name, (was, now) in change.items()})
        warnings.append(
            f"Made with other defaults: {count_text(len(changes), 'line')} ({'; '.join(names)}). Run the suite again."
        )
    for problem in dict.fromkeys(line["problem"] for line in lines):
        if len({line["images"] for line in lines if line["problem"] == problem and "images" in line}) > 1:
            warnings.append(f"Lines of {problem} come from different images: run the suite again with one --data.")
    return warnings


def append_result(path: Path, line: Line) -> None:
    """Add a line with a checksum; several processes may do so at once."""
    with FileLock(path.with_name(".results.lock")):
        is_torn = path.exists() and not path.read_bytes().endswith(b"\n")  # a killed process may leave half a line
        with path.open("a", encoding="utf-8") as file:
            file.write(("\n" if is_torn else "") + json.dumps(signed(line)) + "\n")


def read_results(path: Path) -> list[Line]:
    """The lines of a file of results. Warns about a torn or damaged line, and skips it."""
    if not path.exists():
        return []
    lines = []
    for number, text in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            line = parsed_json(text)
            if not isinstance(line, dict):
                raise ValueError("no object")
            lines.append(verified(line))
        except ValueError:
            if not text.startswith(b'{"problem": '):
                raise DataError(f"{path}, line {number}: {text[:40]!r}", expected="one JSON object a line") from None
            _log.warning("%s, line %d is torn or damaged: that run is repeated", path, number)
    return lines


def fingerprint(suite: Suite, problem: SuiteProblem, setting: SuiteSetting, seed: int) -> str:
    """A fingerprint of problem and settings of a run.

    Only values that differ from a default count, so that a new option invalidates no result. The device does not count,
    so that a suite may continue on another one. Changed defaults are detected by `default_changes`.
    """
    spec = replace(suite.spec(setting, seed, n_target=None, problem=problem), device="cpu")
    also = {"is_probed": True} if suite.is_probed else {"only_counts": True} if suite.only_counts else {}
    return hash_value([_changed_fields(problem), setting.name, _changed_fields(spec), also], size=8)


def all_settings(spec: RunSpec) -> dict[str, Any]:
    """All settings of method and selector, defaults included, as plain values.

    Settings that depend on the data, such as the length of training, are computed for an example of `EXAMPLE` size.
    So a changed rule is detected.
    """
    defaults = dict[str, Any]()
    if spec.selector in SELECTORS:  # not if the weights come from a file
        defaults = {item.name: item.default for item in fields(SELECTORS[spec.selector]) if item.default is not MISSING}
    for name in ("seed", "n_clusters"):  # these depend on the run
        defaults.pop(name, None)
    config = config_of(spec)
    values = {"config": asdict(config), "selector": defaults | dict(spec.selector_params)}
    for name, ends_in_norm in {"fitted": True, "fitted_without_norm": False}.items():
        fitted = asdict(config.fitted(*EXAMPLE, ends_in_norm))
        values[name] = {key: value for key, value in fitted.items() if value != values["config"][key]}
    return flat(json.loads(json.dumps(values, default=str)))


def default_changes(suite: Suite, lines: Sequence[Line]) -> list[dict[str, tuple[Any, Any]]]:
    """For each line the settings that have changed since it was written: old and new value.

    Added and removed options do not count. Lines of older versions do not have their settings.
    """
    problems = {problem.name: problem for problem in suite.problems}
    settings = {setting.name: setting for setting in suite.settings}
    current: dict[tuple[str, str], dict[str, Any]] = {}
    changes = []
    for line in lines:
        key = line["problem"], line["setting"]
        if key not in current:
            current[key] = all_settings(suite.spec(settings[key[1]], line["seed"], None, problems[key[0]]))
        before, now = line.get("made_with", {}), current[key]
        shared = before.keys() & now.keys()
        changes.append({name: pair for name, pair in differences(before, now).items() if name in shared})
    return changes


def _newest(suite: Suite, out: Path) -> list[Line]:
    lines = {line["print"]: line for line in read_results(out / RESULTS)}
    keys = [fingerprint(suite, problem, *run) for problem in suite.problems for run in suite.runs_of(problem)]
    return [lines[key] for key in keys if key in lines]


def _changed_fields(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their default."""
    values = {}
    for item in fields(instance):
        default = item.default if item.default_factory is MISSING else item.default_factory()
        if (value := getattr(instance, item.name)) != default:
            values[item.name] = dict(value) if isinstance(value, Mapping) else value
    return json.loads(json.dumps(values, default=os.fspath))
