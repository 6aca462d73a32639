"""What a run will take, told before it starts and again before it trains: the one forecast of all commands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from justright.data import ImageSet
from justright.runs.costs import CostPlan, Rates, time_text
from justright.runs.spec import RunSpec
from justright.runs.work import Work

LONG = 120.0  # seconds; shorter runs print no forecast
SHORTER = 3  # the advice is a training of a third of the time
AFTER_SELECTION = ("bank", "train", "check")


@dataclass
class Forecast:
    """Forecasts of one run; the machine is measured once, on some of its images or on drawn ones."""

    spec: RunSpec
    backbone: Any
    images: ImageSet | None = None
    rates: Rates | None = None  # where they are known
    folder: Path = Path("run")

    def costs(self, work: Work) -> CostPlan:
        """Steps, time, memory and disk."""
        from justright.runs.measured_rates import measure

        plan = self._plan(work, self.rates or Rates())
        if self.rates is None:
            self.rates = measure(self.backbone, plan.disk, self.images)
        return replace(plan, rates=self.rates)

    def message(self, work: Work, is_begun: bool = False) -> str:
        """What to say of a run that takes long, or has too little time; nothing of others.

        is_begun: features, K and weights exist already; the forecast covers the remaining stages.
        """
        from justright.runs.measured_rates import first_look

        if work.n_devices > 1:  # processes that train together do not wait for one that measures
            steps = self._plan(work, Rates()).steps_text()
            return f"{steps[:1].upper()}{steps[1:]}." if steps else ""
        if self.rates is None and self.images is not None:  # what is quick at a first look needs no second one
            quick = self._plan(work, first_look(self.backbone, self.images))
            if sum(quick.seconds().values()) < LONG and quick.trained_share == 1:
                return ""
        plan = self.costs(work)
        seconds = {name: each for name, each in plan.seconds().items() if not is_begun or name in AFTER_SELECTION}
        said = [] if sum(plan.seconds().values()) < LONG else [self._long(plan, sum(seconds.values()), is_begun)]
        return " ".join(said + plan.too_short())

    def _plan(self, work: Work, rates: Rates) -> CostPlan:
        return CostPlan(work, rates, self.spec, self.backbone, self.folder)

    def _long(self, plan: CostPlan, seconds: float, is_begun: bool) -> str:
        work, steps = plan.work, plan.steps_text()
        if is_begun:
            return f"{work.n_categories:,} categories: {steps or 'nothing to train'}, up to {time_text(seconds)}."
        said = [f"{work.n_images:,} images", f"{plan.n_views:,} views of them", *([steps] if steps else [])]
        if steps and not work.is_k_known:
            said[-1] += f"; {work.n_categories:,} categories are a guess until K is estimated"
        return (
            f"This takes up to {time_text(seconds)}: {', '.join(said)}; "
            "less where earlier runs left features and views. "
            f"Cheaper: {', '.join(self._cheaper(plan, seconds))}."
        )

    def _cheaper(self, plan: CostPlan, seconds: float) -> list[str]:
        from justright.features.automatic import CHEAPEST, CPU_COST

        cheaper = []
        if plan.disk.trainings:
            minutes = max(1, round(plan.seconds()["train"] / 60 / SHORTER))
            for option, settings in ((f"--minutes {minutes}", {"minutes": minutes}), ("--set views=2", {"views": 2})):
                other = replace(plan, spec=replace(self.spec, settings=dict(self.spec.settings) | settings))
                is_useful = "minutes" not in settings or not other.too_short()
                if (less := sum(other.seconds().values())) < 0.9 * seconds and is_useful:
                    cheaper.append(f"{option} ({time_text(less)})")
        cost = CPU_COST.get(self.backbone.name, 1.0)
        if self.backbone.device.type == "cpu" and cost > 1:
            cheaper.append(f"--backbone {CHEAPEST} ({time_text(seconds / cost)})")
        cheaper.append("--method kmeans, which does not train" if plan.disk.trainings else "fewer images")
        return cheaper
