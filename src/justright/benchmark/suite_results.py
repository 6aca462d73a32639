"""The lines of results.jsonl: which run each is of, and whether it is still what the suite asks for."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import Any

from justright.benchmark.suite import Suite, SuiteProblem, SuiteSetting
from justright.benchmark.suite_line import Line, lacks
from justright.benchmark.suite_problem import images_fingerprint, is_in_data, problem_of
from justright.runs.spec import RunSpec, config_of
from justright.selection import SELECTORS
from justright.utils.errors import DataError
from justright.utils.files import parsed_json
from justright.utils.fingerprint import differences
from justright.utils.hashing import SIGNATURE, hash_value, signed, verified
from justright.utils.settings import flat

RESULTS = "results.jsonl"
EXAMPLE = 1000, 50  # images and categories

Todo = list[tuple[SuiteProblem, list[tuple[SuiteSetting, int]]]]

_log = logging.getLogger(__name__)


def missing_runs(suite: Suite, out: Path, only: tuple[str, ...] = (), data: Path | None = None) -> Todo:
    """The problems that have runs without a line that still counts, and these runs; arguments as in `run_suite`.

    A line does not count if a default that it was made with has changed, if `data` holds other images by now, or if an
    older version did not write what this suite shows.
    """
    wanted = [problem for problem in suite.problems if not only or problem.name in only]
    if unknown := sorted(set(only) - {problem.name for problem in suite.problems}):
        raise DataError(f"no problem {unknown[0]!r}", expected=", ".join(each.name for each in suite.problems))
    lines = {line["print"]: line for line in read_results(out / RESULTS)}
    todo, settings_now = [], _settings_now(suite)
    for problem in wanted:
        runs = [(run, lines.get(fingerprint(suite, problem, *run))) for run in suite.runs_of(problem)]
        is_known = any("images" in line for _, line in runs if line is not None)
        is_checked = is_known and data is not None and is_in_data(problem)
        now = images_fingerprint(problem_of(problem, data)) if is_checked else None
        missing = [
            run
            for run, line in runs
            if line is None
            or changed_defaults(line, settings_now(problem, *run))
            or (now is not None and line.get("images", now) != now)
            or any(lacks(line, group) for group in suite.groups)
        ]
        if missing:
            todo.append((problem, missing))
    return todo


def suite_results(suite: Suite, out: Path) -> list[Line]:
    """The newest line of every run of the suite that has scores."""
    return [line for line in _newest(suite, out) if "failed" not in line]


def failed_runs(suite: Suite, out: Path) -> list[Line]:
    """The runs of the suite that had no answer: problem, setting, seed, and in `failed` why."""
    return [line for line in _newest(suite, out) if "failed" in line]


def remarks(suite: Suite, lines: list[Line]) -> list[str]:
    """What a reader should know of lines: made with defaults that have changed since, or from different images."""
    said, settings_now = [], _settings_now(suite)
    runs = {
        fingerprint(suite, problem, *run): (problem, *run)
        for problem in suite.problems
        for run in suite.runs_of(problem)
    }
    changes = [changed_defaults(line, settings_now(*runs[line["print"]])) for line in lines]
    if n_changed := sum(map(bool, changes)):
        names = sorted({f"{name} was {was!r}, is {now!r}" for each in changes for name, (was, now) in each.items()})
        said.append(f"{n_changed:,} lines were made with other defaults ({'; '.join(names)}): run the suite again.")
    for problem in dict.fromkeys(line["problem"] for line in lines):
        if len({line["images"] for line in lines if line["problem"] == problem and "images" in line}) > 1:
            said.append(f"Lines of {problem} come from different images: run the suite again with one --data.")
    return said


def append_result(path: Path, line: Line) -> None:
    """Add a line, with a checksum of itself."""
    is_torn = path.exists() and not path.read_bytes().endswith(b"\n")  # a kill may have left half a line
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" * is_torn + json.dumps(signed(line)) + "\n")


def read_results(path: Path) -> list[Line]:
    """The whole lines of a file of results; one that a kill has torn, or that is damaged, is left out and said.

    Lines of older versions have no checksum.
    """
    if not path.exists():
        return []
    lines = []
    for number, text in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            line = parsed_json(text)
            if not isinstance(line, dict) or not {"problem", "print"} <= line.keys():
                raise ValueError("no result")
            lines.append(verified(line) if SIGNATURE in line else line)
        except ValueError:
            if not text.startswith(b'{"problem": '):
                raise DataError(f"{path}, line {number}: {text[:40]!r}", expected="one JSON object a line") from None
            _log.warning("%s, line %d is torn or damaged: that run is made again", path, number)
    return lines


def fingerprint(suite: Suite, problem: SuiteProblem, setting: SuiteSetting, seed: int) -> str:
    """What tells a run from every other one, and from itself under other settings.

    Only what differs from a default counts, so that an option of a later version leaves results as they are; and not
    the device, so that a suite may go on elsewhere. Defaults that change are found by `changed_defaults`.
    """
    spec = replace(suite.spec(setting, seed, n_target=None, problem=problem), device="cpu")
    also = {"is_probed": True} if suite.is_probed else {"only_counts": True} if suite.only_counts else {}
    return hash_value([_differing(problem), setting.name, _differing(spec), also], size=8)


def every_setting(spec: RunSpec) -> dict[str, Any]:
    """Everything that method and selector are set to, defaults too, as plain values.

    What depends on the data, such as the length of training, is told for an example, so that another rule is noticed.
    """
    defaults = dict[str, Any]()
    if spec.selector in SELECTORS:  # not where a file gives the weights
        defaults = {each.name: each.default for each in fields(SELECTORS[spec.selector]) if each.default is not MISSING}
    for name in ("seed", "n_clusters"):  # these follow the run
        defaults.pop(name, None)
    config = config_of(spec)
    values = {"config": asdict(config), "selector": defaults | dict(spec.selector_params)}
    for what, ends_in_norm in {"fitted": True, "fitted_without_norm": False}.items():
        fitted = asdict(config.fitted(*EXAMPLE, ends_in_norm))
        values[what] = {name: value for name, value in fitted.items() if value != values["config"][name]}
    return flat(json.loads(json.dumps(values, default=str)))


def changed_defaults(line: Line, now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Settings whose value was another when the line was made, before and now; options that came or went do not count.

    Lines of older versions do not tell what they were made with.
    """
    was = line.get("made_with", {})
    return {name: pair for name, pair in differences(was, now).items() if name in was and name in now}


def _settings_now(suite: Suite) -> Callable[[SuiteProblem, SuiteSetting, int], dict[str, Any]]:
    """What the runs of a suite are set to; the seeds of a setting share it."""
    known: dict[tuple[str, str], dict[str, Any]] = {}

    def find(problem: SuiteProblem, setting: SuiteSetting, seed: int) -> dict[str, Any]:
        key = problem.name, setting.name
        if key not in known:
            known[key] = every_setting(suite.spec(setting, seed, n_target=None, problem=problem))
        return known[key]

    return find


def _newest(suite: Suite, out: Path) -> list[Line]:
    found = {line["print"]: line for line in read_results(out / RESULTS)}
    keys = [fingerprint(suite, problem, *run) for problem in suite.problems for run in suite.runs_of(problem)]
    return [found[key] for key in keys if key in found]


def _differing(described: Any) -> dict[str, Any]:
    """The fields of a dataclass that have another value than their default."""
    found = {}
    for each in fields(described):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if (value := getattr(described, each.name)) != default:
            found[each.name] = dict(value) if isinstance(value, Mapping) else value
    return json.loads(json.dumps(found, default=os.fspath))
