"""What a run will take, said before it starts: images, views, steps, time, and what would make it cheaper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from justright.data import ImageSet
from justright.runs.costs import CostPlan, Rates, Work, time_text
from justright.runs.spec import RunSpec, config_of

LONG = 120.0  # seconds; of a shorter run nothing is said
BRIEF, THOROUGH = 0.1, 2.0  # seconds of trying
SURELY = 5.0  # a run that takes this many times less than `LONG` at the brief look gets no thorough one
SHORTER = 3  # the advice is a training of a third of the time


def time_warning(n_labeled: int, target: ImageSet, spec: RunSpec, backbone: Any) -> str:
    """What to say of a run that takes long, from two seconds of trying on its own images; nothing of a quick one."""
    from justright.features.automatic import CHEAPEST, CPU_COST
    from justright.features.speed import try_out

    config, work = config_of(spec), Work(len(target), n_labeled, n_categories=spec.n_target or 0, n_seeds=spec.n_seeds)
    for tried, least in ((BRIEF, LONG / SURELY), (THOROUGH, LONG)):  # what is quick at a first look needs no second one
        image, step = try_out(backbone, target, tried)
        rates = Rates(extract=image, view=image, step=step)
        plan = CostPlan(work, rates, spec.method, config, backbone)
        seconds = sum(plan.seconds().values())
        if seconds < least:
            return ""
    cheaper = []
    n_images, (n_steps, _, n_fresh) = plan.work.n_images, plan.in_training
    if n_steps:
        minutes = max(1, round(plan.seconds()["train"] / 60 / SHORTER))
        for option, settings in (
            (f"--minutes {minutes}", {"minutes": minutes / spec.n_seeds}),
            ("--set views=2", {"views": 2}),
        ):
            other = sum(replace(plan, config=config.with_settings(settings)).seconds().values())
            if other < 0.9 * seconds:
                cheaper.append(f"{option} ({time_text(other)})")
    cost = CPU_COST.get(backbone.name, 1.0)
    if backbone.device.type == "cpu" and cost > 1:
        cheaper.append(f"--backbone {CHEAPEST} ({time_text(seconds / cost)})")
    cheaper.append("--method kmeans, which does not train" if n_steps else "fewer images")
    steps = f" and {n_steps:,} steps of training" if n_steps else ""
    return (
        f"This takes up to {time_text(seconds)}: {n_images:,} images, {n_images + plan.n_stored + n_fresh:,} views of "
        f"them{steps}; less where earlier runs left features and views. Cheaper: {', '.join(cheaper)}."
    )
