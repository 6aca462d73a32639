"""Run a suite: one JSON line per run, finished runs are skipped, several problems or seeds at once."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, cycle
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from justright.benchmark.problems import images_fingerprint, problem_of
from justright.benchmark.results import (
    RESULTS,
    Line,
    Runs,
    RunsByProblem,
    all_settings,
    append_result,
    counts_of,
    fingerprint,
    missing_runs,
    result_of,
    suite_results,
)
from justright.benchmark.suite import Suite, SuiteProblem
from justright.discovery.methods import FIRST_PARTS
from justright.runs.run_folder import LOCK, RunFolder, owned
from justright.utils.context import track
from justright.utils.errors import DegenerateError, JustrightError
from justright.utils.files import size_text
from justright.utils.parallel import ENGINES, Engine, in_process

if TYPE_CHECKING:
    from justright.runs.run import Run

START_SECONDS = 1.5  # seconds of a run that do not grow with its images
LARGE_FILES = ("checkpoint", *FIRST_PARTS, "pool.features", "target.features", "model.safetensors")  # files of a run

_log = logging.getLogger(__name__)


class Task(NamedTuple):
    """Some runs of one problem, in one process."""

    suite: Suite
    problem: SuiteProblem
    runs: Runs
    out: Path
    data: Path | None


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
    """Run what is missing in `out/results.jsonl` and return all lines of this suite, in its order.

    A line is repeated if settings or images of the suite have changed; the newest line of a run counts. A stopped run
    is resumed. A run without a result, such as a selector that rejects this pool, writes a line with the reason, see
    `failed_runs`.

    Parameters:
        data: the folder for `{data}` in the suite.
        n_jobs: number of problems at once. Each has one process, so that its runs share features and views. With more
            jobs than problems, every seed of a problem has its own process.
        only: names of problems; all if empty.
        engine: where to run them, instead of in `n_jobs` processes. A problem is run again if its worker is lost.
        devices: the problems take these in turn, instead of the device of the suite.
    """
    with owned(out):
        missing = missing_runs(suite, out, only, data)
        for problem, _ in missing:  # a problem that cannot be opened raises before another one is run
            problem_of(problem, data)
        results, images = out.absolute(), data and data.absolute()  # a worker may have another working directory
        by_device = cycle([suite.with_run(device=device) for device in devices] or [suite])
        tasks = [
            Task(next(by_device), problem, runs, results, images) for problem, runs in process_parts(missing, n_jobs)
        ]
        opened = nullcontext(engine or in_process) if engine or n_jobs == 1 else ENGINES["processes"](n_jobs)
        n_runs = sum(len(runs) for _, runs in missing)
        with opened as run_all:
            lines = run_all(_run_problem if run_all is in_process else _run_on_one_core, tasks)
            for _ in track(chain.from_iterable(lines), n_runs, f"runs of {suite.name}"):
                pass
        return suite_results(suite, out)


def process_parts(missing: RunsByProblem, n_jobs: int) -> RunsByProblem:
    """The work of each process: a problem, or one seed of it if there are more jobs than problems.

    The first seed of every problem comes first, so that processes that start together rarely need the same views.
    """
    if n_jobs <= len(missing):
        return missing
    seeds = sorted({seed for _, runs in missing for _, seed in runs})
    parts = [(problem, [run for run in runs if run[1] == seed]) for seed in seeds for problem, runs in missing]
    return [(problem, runs) for problem, runs in parts if runs]


def run_path(out: Path, problem: str, setting: str, seed: int) -> Path:
    """The folder of a run."""
    names = ["".join(letter if letter.isalnum() else "-" for letter in name) for name in (problem, setting)]
    return out / "runs" / names[0] / f"{names[1]}-{seed}"


def _run_on_one_core(task: Task) -> list[Line]:
    """Run a problem in a separate process, with one thread."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported, by a run
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a run at once: it can be resumed
    return list(_run_problem(task))


def _run_problem(task: Task) -> Iterator[Line]:
    """Run some settings and seeds on a problem; each line is saved when its run is finished."""
    suite, description, runs, out, data = task
    problem = problem_of(description, data)
    images = images_fingerprint(problem)
    problem, _ = problem.without_copies()  # a labeled copy would give away the label of a target image
    from justright.features.backbone import load_backbone
    from justright.runs.run import Run

    loaded = cache(load_backbone)
    for setting, seed in runs:
        started = time.perf_counter()
        line = {"problem": description.name, "part": description.part, "setting": setting.name, "seed": seed}
        line |= {"print": fingerprint(suite, description, setting, seed), "images": images}
        if suite.only_counts:
            line |= counts_of(problem)
        else:
            spec = suite.spec(setting, seed, problem.n_target_classes, description)
            line["made_with"] = all_settings(spec)
            backbone = loaded(spec.backbone, spec.checkpoint, spec.device, spec.img_size)
            path = run_path(out, description.name, setting.name, seed)
            about = {"command": f"justright benchmark run {suite.name}", "print": line["print"]}
            about |= {"target": description.target, "pool": list(description.pool.values())}
            with owned(path):
                try:
                    run = _finished(partial(Run, problem, spec, path, backbone, about))
                    line |= result_of(run, time.perf_counter() - started, suite.is_probed)
                except DegenerateError as error:
                    line["failed"] = str(error)
                if not suite.keeps_files:
                    _remove(path / name for name in LARGE_FILES)
        append_result(out / RESULTS, line)
        yield line


def _finished(make: Callable[[], Run]) -> RunFolder:
    """The finished run: resumed if it was stopped, otherwise started in an empty folder."""
    run = make()
    path = run.folder.path
    if _is_stopped(path, run.request["print"]):
        try:
            return run.all(is_owned=True)
        except DegenerateError:
            raise
        except JustrightError as error:  # other images, another device or a damaged file
            _log.warning("%s is started again: %s", path, str(error).partition("\n")[0])
    _remove(entry for entry in path.iterdir() if not entry.name.startswith(LOCK))
    return make().all(is_owned=True)


def _is_stopped(path: Path, fingerprint: str) -> bool:
    """Whether the folder has this run, unfinished."""
    try:
        about = RunFolder.open(path).about
    except JustrightError:
        return False
    return about.get("request", {}).get("print") == fingerprint and not about["is_finished"]


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@dataclass(frozen=True)
class SuiteCosts:
    """Costs of the missing runs; less if features or views are cached."""

    n_runs: int
    seconds: float  # with the requested number of jobs
    n_bytes: int  # features and stored views; other files are small

    def __str__(self) -> str:
        from justright.runs.costs import time_text

        time, disk = time_text(self.seconds), size_text(self.n_bytes)
        return f"{self.n_runs:,} runs, about {time}, up to {disk} of features and views; less if some are cached."


def suite_costs(suite: Suite, missing: RunsByProblem, data: Path | None = None, n_jobs: int = 1) -> SuiteCosts:
    """Estimate the costs. Each method is measured on its first problem; all else is computed from that."""
    from justright.features.backbone import load_backbone
    from justright.runs.costs import CostPlan, Rates, Work
    from justright.runs.measured_rates import measure

    seconds, n_bytes, n_runs = 0.0, 0, 0
    rates: dict[str, Rates] = {}
    for number, (description, runs) in enumerate(missing):
        problem = problem_of(description, data)
        specs = [suite.spec(setting, seed, problem.n_target_classes, description) for setting, seed in runs]
        if number == 0:
            first = specs[0]
            backbone = load_backbone(first.backbone, first.checkpoint, first.device, first.img_size)
        banks = dict[tuple[str, int], tuple[float, int]]()  # seconds and bytes of each, which runs share
        for spec in specs:
            work = Work.of(problem, spec)
            plan = CostPlan(work, spec, backbone)
            if spec.method not in rates:
                rates[spec.method] = measure(plan, problem.target)
            plan = replace(plan, rates=rates[spec.method])
            seconds += START_SECONDS + sum(plan.seconds()[stage] for stage in ("estimate", "train"))
            view_seed = spec.seed if getattr(plan.config, "views_by_seed", False) else 0
            files = [file for file in plan.files() if file.stage == "views"]
            for n_views, file in zip(plan.stored_views().values(), files, strict=True):
                banks[file.what, view_seed] = n_views * work.n_images * plan.rates.view, file.n_bytes
        n_runs += len(runs)
        seconds += work.n_images * plan.rates.extract + sum(of_bank for of_bank, _ in banks.values())
        n_bytes += work.n_images * backbone.dim * 4 + sum(of_bank for _, of_bank in banks.values())
    n_parallel = max(1, min(n_jobs, len(process_parts(missing, n_jobs))))
    return SuiteCosts(n_runs, seconds / n_parallel, n_bytes)
