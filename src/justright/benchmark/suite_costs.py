"""Costs of a suite before it starts: runs, time and disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from justright.benchmark.suite import Suite
from justright.benchmark.suite_problem import problem_of
from justright.benchmark.suite_results import Todo
from justright.benchmark.suite_runner import process_parts
from justright.runs.costs import CostPlan, Rates, time_text
from justright.runs.work import Work
from justright.utils.files import size_text

START_SECONDS = 1.5  # seconds of a run that do not grow with its images


@dataclass(frozen=True)
class SuiteCosts:
    """Costs of the missing runs; less if features or views are cached."""

    n_runs: int
    seconds: float  # with the requested number of jobs
    n_bytes: int  # features and stored views; other files are small

    def __str__(self) -> str:
        time, disk = time_text(self.seconds), size_text(self.n_bytes)
        return f"{self.n_runs:,} runs, about {time}, up to {disk} of features and views; less if some are cached."


def suite_costs(suite: Suite, todo: Todo, data: Path | None = None, n_jobs: int = 1) -> SuiteCosts:
    """Estimate the costs: each method is measured on its first problem, the rest is arithmetic."""
    from justright.features.backbone import load_backbone
    from justright.runs.measured_rates import measure

    seconds, n_bytes, n_runs = 0.0, 0, 0
    rates: dict[str, Rates] = {}
    for number, (described, runs) in enumerate(todo):
        problem = problem_of(described, data)
        specs = [suite.spec(setting, seed, problem.n_target_classes, described) for setting, seed in runs]
        if number == 0:
            first = specs[0]
            backbone = load_backbone(first.backbone, first.checkpoint, first.device, first.img_size)
        banks = dict[tuple[str, int], tuple[float, int]]()
        for spec in specs:
            work = Work.of(problem, spec)
            plan = CostPlan(work, spec, backbone)
            if spec.method not in rates:
                rates[spec.method] = measure(plan, problem.target)
            plan = replace(plan, rates=rates[spec.method])
            seconds += START_SECONDS + sum(plan.seconds()[stage] for stage in ("estimate", "train", "check"))
            view_seed = spec.seed if getattr(plan.config, "views_by_seed", False) else 0
            files = [each for each in plan.files() if each.stage == "bank"]
            for n_views, each in zip(plan.stored_views().values(), files, strict=True):
                banks[each.what, view_seed] = n_views * work.n_images * plan.rates.view, each.n_bytes
        n_runs += len(runs)
        seconds += work.n_images * plan.rates.extract + sum(each[0] for each in banks.values())
        n_bytes += work.n_images * backbone.dim * 4 + sum(each[1] for each in banks.values())
    return SuiteCosts(n_runs, seconds / max(1, min(n_jobs, len(process_parts(todo, n_jobs)))), n_bytes)
