"""Run a suite: one JSON line a run, what is done already is skipped, several problems at once."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

from justright.benchmark.side_by_side import side_by_side
from justright.benchmark.suite import Suite, SuiteProblem, SuiteSetting
from justright.benchmark.suite_line import Line, counts_of, result_of
from justright.benchmark.suite_problem import problem_of
from justright.engines import Engine
from justright.errors import DataError, DegenerateError
from justright.files import parsed_json
from justright.hashing import SIGNATURE, hash_value, signed, verified
from justright.progress import Track, silent
from justright.runs.owner import LOCK, owned

RESULTS = "results.jsonl"

Todo = list[tuple[SuiteProblem, list[tuple[SuiteSetting, int]]]]

_log = logging.getLogger(__name__)


def run_suite(
    suite: Suite,
    out: Path,
    *,
    data: Path | None = None,
    n_jobs: int = 1,
    only: tuple[str, ...] = (),
    engine: Engine | None = None,
    devices: tuple[str, ...] = (),
    track: Track = silent,
) -> list[Line]:
    """Run what is missing in `out/results.jsonl` and give all lines of this suite, in its order.

    A line whose settings are no longer those of the suite counts as missing; the newest line of a run counts. A run
    that has no answer, such as a selector that refuses this pool, leaves a line that says why, see `failed_runs`.

    Parameters:
        data: the folder that `{data}` stands for in the suite.
        n_jobs: problems at once; each has one process, so that its runs share features and views.
        only: names of problems; all if empty.
        devices: that problems are dealt out to in turn, instead of the one that the suite names.
        engine: where problems are run instead of in `n_jobs` processes. The lines of a problem come when it is done,
            and a problem whose worker is lost is run again.
    """
    with owned(out):
        todo = missing_runs(suite, out, only)
        places = out.absolute(), data and data.absolute()  # a worker may stand in another folder
        dealt = [suite.with_run(device=device) for device in devices] or [suite]
        tasks = [(dealt[i % len(dealt)], problem, runs, *places) for i, (problem, runs) in enumerate(todo)]
        for line in track(_lines(tasks, n_jobs, engine), sum(len(runs) for _, runs in todo), f"runs of {suite.name}"):
            _append(out / RESULTS, line)
        return suite_results(suite, out)


def missing_runs(suite: Suite, out: Path, only: tuple[str, ...] = ()) -> Todo:
    """The problems that have runs without a line, and these runs; `only` as in `run_suite`."""
    wanted = [problem for problem in suite.problems if not only or problem.name in only]
    if unknown := sorted(set(only) - {problem.name for problem in suite.problems}):
        raise DataError(f"no problem {unknown[0]!r}", expected=", ".join(each.name for each in suite.problems))
    done = {line["print"] for line in read_results(out / RESULTS)}
    return [
        (problem, runs)
        for problem in wanted
        if (runs := [run for run in suite.runs_of(problem) if _fingerprint(suite, problem, *run) not in done])
    ]


def suite_results(suite: Suite, out: Path) -> list[Line]:
    """The newest line of every run of the suite that has scores."""
    return [line for line in _newest(suite, out) if "failed" not in line]


def failed_runs(suite: Suite, out: Path) -> list[Line]:
    """The runs of the suite that had no answer: problem, setting, seed, and in `failed` why."""
    return [line for line in _newest(suite, out) if "failed" in line]


def _append(path: Path, line: Line) -> None:
    is_torn = path.exists() and not path.read_bytes().endswith(b"\n")  # a kill may have left half a line
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" * is_torn + json.dumps(signed(line)) + "\n")


def _newest(suite: Suite, out: Path) -> list[Line]:
    found = {line["print"]: line for line in read_results(out / RESULTS)}
    keys = [_fingerprint(suite, problem, *run) for problem in suite.problems for run in suite.runs_of(problem)]
    return [found[key] for key in keys if key in found]


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


def _lines(tasks: list[tuple[Any, ...]], n_jobs: int, engine: Engine | None) -> Iterator[Line]:
    if engine is not None:
        yield from chain.from_iterable(engine(_lines_of_problem, tasks))
        return
    if n_jobs > 1:
        yield from side_by_side(_run_problem_on_one_core, {task[1].name: task for task in tasks}, n_jobs)
        return
    for task in tasks:
        yield from _run_problem(*task)


def _run_problem_on_one_core(*task: Any) -> Iterator[Line]:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is loaded, which happens below
    yield from _run_problem(*task)


def _lines_of_problem(task: tuple[Any, ...]) -> list[Line]:
    return list(_run_problem_on_one_core(*task))


def _run_problem(
    suite: Suite, described: SuiteProblem, runs: list[tuple[SuiteSetting, int]], out: Path, data: Path | None
) -> Iterator[Line]:
    problem = problem_of(described, data)  # one that cannot be read is told before torch is loaded
    from justright.features.backbone import load_backbone
    from justright.runs.run import Run

    backbones = dict[tuple[Any, ...], Any]()
    for setting, seed in runs:
        started = time.perf_counter()
        about = {"problem": described.name, "part": described.part, "setting": setting.name, "seed": seed}
        about["print"] = _fingerprint(suite, described, setting, seed)
        if suite.only_counts:
            yield about | counts_of(problem)
            continue
        spec = suite.spec(setting, seed, problem.n_target_classes, described)
        network = (spec.backbone, spec.checkpoint, spec.device, spec.img_size)
        if network not in backbones:
            backbones[network] = load_backbone(*network)
        path = out / "runs" / _file_name(described.name) / f"{_file_name(setting.name)}-{seed}"
        run = Run(problem, spec, path, backbones[network], {"command": f"justright benchmark run {suite.name}"})
        with owned(path):
            _remove(each for each in path.iterdir() if each.name != LOCK)  # what a kill or another setting has left
            try:
                finished = run.all(is_owned=True)
                yield about | result_of(finished, time.perf_counter() - started, suite.is_probed)
            except DegenerateError as error:
                yield about | {"failed": str(error)}
            _remove(path / each for each in ("checkpoint", "stage1", "pool.features", "target.features"))
            _remove([path / "model.safetensors"])


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _fingerprint(suite: Suite, problem: SuiteProblem, setting: SuiteSetting, seed: int) -> str:
    """What tells a run from every other one, and from itself under other settings.

    Only what differs from a default counts, so that an option of a later version leaves results as they are; and not
    the device, so that a suite may go on elsewhere.
    """
    spec = replace(suite.spec(setting, seed, n_target=None, problem=problem), device="cpu")
    also = {"is_probed": True} if suite.is_probed else {"only_counts": True} if suite.only_counts else {}
    return hash_value([_differing(problem), setting.name, _differing(spec), also], size=8)


def _differing(described: Any) -> dict[str, Any]:
    """The fields of a dataclass that have another value than their default."""
    found = {}
    for each in fields(described):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if (value := getattr(described, each.name)) != default:
            found[each.name] = dict(value) if isinstance(value, Mapping) else value
    return json.loads(json.dumps(found, default=os.fspath))


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
