"""Run a suite: one JSON line a run, what is done already is skipped, several problems or seeds at once."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from justright.benchmark.side_by_side import side_by_side
from justright.benchmark.suite import Suite, SuiteProblem, SuiteSetting
from justright.benchmark.suite_line import Line, counts_of, result_of
from justright.benchmark.suite_problem import images_fingerprint, problem_of
from justright.benchmark.suite_results import (
    RESULTS,
    Todo,
    append_result,
    every_setting,
    fingerprint,
    missing_runs,
    suite_results,
)
from justright.discovery.methods import FIRST_PARTS
from justright.runs.owner import LOCK, owned
from justright.runs.run_folder import RunFolder
from justright.utils.context import track
from justright.utils.errors import DegenerateError, JustrightError
from justright.utils.parallel import Engine

if TYPE_CHECKING:
    from justright.runs.run import Run

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
) -> list[Line]:
    """Run what is missing in `out/results.jsonl` and give all lines of this suite, in its order.

    A line whose settings or images are no longer those of the suite counts as missing; the newest line of a run counts.
    A run that was stopped goes on where it was. One that has no answer, such as a selector that refuses this pool,
    leaves a line that says why, see `failed_runs`.

    Parameters:
        data: the folder that `{data}` stands for in the suite.
        n_jobs: problems at once; each has one process, so that its runs share features and views. Where there are more
            jobs than problems, every seed of a problem has one.
        only: names of problems; all if empty.
        devices: that these are dealt out to in turn, instead of the one that the suite names.
        engine: where they are run instead of in `n_jobs` processes. The lines of a problem come when it is done, and a
            problem whose worker is lost is run again.
    """
    with owned(out):
        todo = missing_runs(suite, out, only, data)
        for problem, _ in todo:  # one that cannot be opened is refused before another one is run
            problem_of(problem, data)
        places = out.absolute(), data and data.absolute()  # a worker may stand in another folder
        dealt = [suite.with_run(device=device) for device in devices] or [suite]
        parts = enumerate(process_parts(todo, n_jobs))
        tasks = [(dealt[i % len(dealt)], problem, runs, *places) for i, (problem, runs) in parts]
        for line in track(_lines(tasks, n_jobs, engine), sum(len(runs) for _, runs in todo), f"runs of {suite.name}"):
            append_result(out / RESULTS, line)
        return suite_results(suite, out)


def process_parts(todo: Todo, n_jobs: int) -> Todo:
    """What one process does each: a problem, or one seed of it where there are more jobs than problems.

    The first seed of every problem comes first, so that those who begin together rarely need the same views.
    """
    if n_jobs <= len(todo):
        return todo
    seeds = sorted({seed for _, runs in todo for _, seed in runs})
    parts = [(problem, [run for run in runs if run[1] == seed]) for seed in seeds for problem, runs in todo]
    return [(problem, runs) for problem, runs in parts if runs]


def _lines(tasks: list[tuple[Any, ...]], n_jobs: int, engine: Engine | None) -> Iterator[Line]:
    if engine is not None:
        return chain.from_iterable(engine(_lines_of_problem, tasks))
    if n_jobs > 1:
        return side_by_side(_run_problem_on_one_core, dict(zip(_names(tasks), tasks, strict=True)), n_jobs)
    return chain.from_iterable(_run_problem(*task) for task in tasks)


def _names(tasks: list[tuple[Any, ...]]) -> Iterator[str]:
    """Names of the problems, with the seed where the seeds of a problem run at once."""
    n_tasks = Counter(problem.name for _, problem, *_ in tasks)
    for _, problem, runs, *_ in tasks:
        yield problem.name if n_tasks[problem.name] == 1 else f"{problem.name}, seed {runs[0][1]}"


def _run_problem_on_one_core(*task: Any) -> Iterator[Line]:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is loaded, which happens below
    yield from _run_problem(*task)


def _lines_of_problem(task: tuple[Any, ...]) -> list[Line]:
    return list(_run_problem_on_one_core(*task))


def _run_problem(
    suite: Suite, described: SuiteProblem, runs: list[tuple[SuiteSetting, int]], out: Path, data: Path | None
) -> Iterator[Line]:
    problem = problem_of(described, data)  # one that cannot be read is told before torch is loaded
    images = images_fingerprint(problem)
    problem, _ = problem.without_copies()  # no label of a target image may reach training
    from justright.features.backbone import load_backbone
    from justright.runs.run import Run

    backbones = dict[tuple[Any, ...], Any]()
    for setting, seed in runs:
        started = time.perf_counter()
        about = {"problem": described.name, "part": described.part, "setting": setting.name, "seed": seed}
        about |= {"print": fingerprint(suite, described, setting, seed), "images": images}
        if suite.only_counts:
            yield about | counts_of(problem)
            continue
        spec = suite.spec(setting, seed, problem.n_target_classes, described)
        about["made_with"] = every_setting(spec)
        network = (spec.backbone, spec.checkpoint, spec.device, spec.img_size)
        if network not in backbones:
            backbones[network] = load_backbone(*network)
        path = out / "runs" / _file_name(described.name) / f"{_file_name(setting.name)}-{seed}"
        asked = {"command": f"justright benchmark run {suite.name}", "print": about["print"]}
        with owned(path):
            try:
                finished = _carried_out(partial(Run, problem, spec, path, backbones[network], asked))
                yield about | result_of(finished, time.perf_counter() - started, suite.is_probed)
            except DegenerateError as error:
                yield about | {"failed": str(error)}
            large = ("checkpoint", *FIRST_PARTS, "pool.features", "target.features", "model.safetensors")
            _remove(path / each for each in large)


def _carried_out(made: Callable[[], Run]) -> RunFolder:
    """The finished run. One that a kill has stopped goes on, if it can; anything else that lies there is removed."""
    run = made()
    path = run.folder.path
    if _is_begun(path, run.asked["print"]):
        try:
            return run.all(is_owned=True)
        except DegenerateError:
            raise
        except JustrightError as error:  # other images or another device by now, or a file that the kill has spoiled
            _log.warning("%s is begun anew: %s", path, str(error).partition("\n")[0])
    _remove(each for each in path.iterdir() if not each.name.startswith(LOCK))
    return made().all(is_owned=True)


def _is_begun(path: Path, wanted: str) -> bool:
    """Whether the folder holds this run, stopped on its way."""
    try:
        about = RunFolder.open(path).about
    except JustrightError:
        return False
    return about.get("asked", {}).get("print") == wanted and not about["is_finished"]


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
