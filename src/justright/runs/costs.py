"""What a run costs, stage by stage: time from rates of this machine, memory and disk by arithmetic."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from justright.discovery.configs import PlannedTraining
from justright.discovery.methods import METHODS
from justright.runs.counting import MOST_CHECKED
from justright.runs.disk import FEATURE_BYTES, PLATEAU_IMAGES, DiskPlan
from justright.runs.frozen_check import LEAST_TRAINED
from justright.runs.spec import RunSpec, config_of
from justright.runs.work import Work
from justright.utils.errors import JustrightError
from justright.utils.files import parsed_json, size_text

IMAGE_BYTES = 550  # of one image in memory, its row and its content id as text: 300,000 rows of a CSV were measured
TREE_IMAGES = 6000  # images that the tree of the estimate looks at, at most: see `SpreadCounter.max_images`
AXES = 128  # principal axes that the estimate keeps of every image
HEADS_IMAGES, HEADS_VIEWS = 20_000, 4  # that heads learn from alone, at most; views of each where none are stored
CHECKED_IMAGES, CHECKED_INIT = 20_000, 3  # that the check clusters, at most, and how often: see `frozen_check`

CHEAPER = {  # what makes each stage quicker
    "extract": "--device cuda, or a smaller --backbone",
    "bank": "--set views=2, or --device cuda",
    "estimate": "--k, if you know the number of categories",
    "train": "--minutes, or fewer --epochs",
    "check": "fewer images",
}


@dataclass(frozen=True)
class Rates:
    """Seconds that a machine takes for one piece of work, all its cores or its one device busy."""

    extract: float = 0.0  # an image
    view: float = 0.0  # drawing a view and bringing it through the frozen part of the network
    plain: float = 0.0  # the plain view of an image; 0 where extraction leaves it
    step: float = 0.0  # an image in a step of the last training, from a bank
    stage1: float = 0.0  # an image in a step of the first training of muGCD
    heads: float = 0.0  # an image in a step in which the heads learn alone
    tuned: float = 0.0  # an image through the tuned part of the network, without a gradient
    tree: float = 0.0  # a pair of the images that the estimate looks at
    mixture: float = 0.0  # an image and a category
    cluster: float = 0.0  # an image and a category, in one restart of k-means
    memory: float = 0.0  # bytes of the process, the network loaded and nothing else
    about: str = ""  # where, when and with which network this was measured

    @classmethod
    def read(cls, file: Path) -> Rates:
        """From a file with what `justright plan --json` printed; anything else is refused."""
        try:
            printed = parsed_json(file.read_text(encoding="utf-8"))
            found: dict[str, Any] = {"about": ""} | dict(printed.get("rates", printed))
            rates = {field.name: found[field.name] for field in fields(cls)}
            if all(0 <= value < math.inf for name, value in rates.items() if name != "about"):
                return cls(**rates)
        except (ValueError, TypeError, LookupError, AttributeError):  # not JSON, not UTF-8, or JSON of something else
            pass
        raise JustrightError(f"{file} holds no rates", expected="what `justright plan --json` printed")


@dataclass(frozen=True)
class Stage:
    """One stage of a run: seconds, bytes of memory, bytes on disk."""

    name: str
    seconds: float
    memory: float
    disk: int = 0


@dataclass(frozen=True)
class CostPlan:
    """Steps, time, memory and disk of a run: what `plan` and `discover` say of it."""

    work: Work
    rates: Rates
    spec: RunSpec
    backbone: Any  # says how large features and stored views are
    folder: Path = Path("run")

    @cached_property
    def disk(self) -> DiskPlan:
        """What the run writes, and its trainings."""
        return DiskPlan(self.work, self.spec.method, config_of(self.spec), self.backbone, self.folder)

    @cached_property
    def n_views(self) -> int:
        """Views that are stored or drawn, the plain one of each image included."""
        stored = sum(self.disk.views().values()) * self.work.n_images
        return stored + sum(map(self._n_fresh, self.disk.trainings)) * self.work.n_seeds

    @property
    def is_counted(self) -> bool:
        """Whether K is estimated, or checked where it was given."""
        return not self.work.is_k_known or self.work.n_images <= MOST_CHECKED

    def steps(self) -> dict[str, int]:
        """The steps of each training of one seed, by its part; the last one is called ""."""
        return {each.part: each.n_steps(self.work.n_seen) for each in self.disk.trainings}

    def steps_text(self) -> str:
        """The steps of all trainings in words; empty where nothing is trained."""
        names = {"stage1": "of the first training", "heads": "of the heads alone", "": "of training"}
        said = " and ".join(f"{n:,} steps {names[part]}" for part, n in self.steps().items())
        return f"{said}, for each of {self.work.n_seeds} seeds" if said and self.work.n_seeds > 1 else said

    def _n_fresh(self, training: PlannedTraining) -> int:
        """Views that are drawn for the steps of a training and not stored."""
        config, streams, _ = training
        if config.views != "fresh":
            return 0
        if not training.is_tuned:
            return HEADS_VIEWS * min(self.work.n_seen, HEADS_IMAGES)
        return 2 * len(streams) * training.n_steps(self.work.n_seen) * config.batch_size

    def training_seconds(self, training: PlannedTraining) -> float:
        """What one training of one seed takes, whatever time it is given."""
        work, rates, config = self.work, self.rates, training.config
        guides = config.guide_share if work.n_guides else 0.0
        n_drawn = training.n_steps(work.n_seen) * config.batch_size * (1 + guides)
        seconds = n_drawn * getattr(rates, training.part or "step") + self._n_fresh(training) * rates.view
        if not training.is_tuned:  # the features of all views
            n_views = HEADS_VIEWS if config.views == "fresh" else config.views
            return seconds / work.n_devices + n_views * min(work.n_seen, HEADS_IMAGES) * rates.tuned
        method: Any = METHODS[self.spec.method]
        an_epoch = method.features_an_epoch * (work.n_seen * rates.tuned + self._clusters(1, work.n_seen))
        if config.steady_share and method.has_categories:  # whether they still change
            an_epoch = config.steady_share * min(work.n_target, PLATEAU_IMAGES) * rates.tuned
        return (seconds + (config.n_epochs or 1) * an_epoch) / work.n_devices

    def _clusters(self, n_init: int, n_images: int) -> float:
        """Seconds of k-means with so many restarts."""
        return n_init * n_images * self.work.n_categories * self.rates.cluster

    @cached_property
    def trained_share(self) -> float:
        """The share of its steps that a training has time for, of that which has least."""
        trainings = [each for each in self.disk.trainings if each.config.minutes and self.training_seconds(each)]
        return min([60 * each.config.minutes / self.training_seconds(each) for each in trainings] + [1.0])

    def too_short(self) -> list[str]:
        """A warning where training has time for too few of its steps to be of use."""
        if self.trained_share >= LEAST_TRAINED:
            return []
        minutes, n_seeds = self.disk.config.minutes * self.work.n_seeds, self.work.n_seeds
        seeds = f", shared by {n_seeds} seeds," if n_seeds > 1 else ""
        return [
            f"--minutes {minutes:g}{seeds} leaves time for about {self.trained_share:.0%} of the steps. With less than "
            f"{LEAST_TRAINED:.0%} training is often worse than none: give it --minutes "
            f"{minutes * LEAST_TRAINED / self.trained_share:.2g} or more{', fewer --seeds' if seeds else ''}, or take "
            "--method kmeans."
        ]

    def seconds(self) -> dict[str, float]:
        """The time of each stage, in the order in which they run. Selection takes next to none.

        Of several processes the first one does everything but the training, which all of them share.
        """
        work, rates, n, config = self.work, self.rates, self.work.n_images, self.disk.config
        n_stored = sum(self.disk.views().values()) - 1  # beside the plain one
        training = sum(
            min(self.training_seconds(each), 60 * (each.config.minutes or math.inf)) for each in self.disk.trainings
        )
        n_init = 0 if self.disk.trainings and "n_init" in config.without_effect() else config.n_init
        after = n * rates.tuned / work.n_devices + self._clusters(n_init, n)
        is_trained = bool(self.disk.trainings)
        return {
            "extract": n * rates.extract,
            "estimate": self.is_counted
            * (min(n, TREE_IMAGES) ** 2 * rates.tree + n * work.n_categories * rates.mixture),
            "bank": n * (n_stored * rates.view + rates.plain),
            "train": work.n_seeds * (training + after),
            "check": is_trained * self._clusters(CHECKED_INIT, min(n, CHECKED_IMAGES)),
        }

    def stages(self) -> list[Stage]:
        """The stages, in the order in which they run."""
        n, dim, memory = self.work.n_images, self.backbone.dim, self.rates.memory
        listed, features = memory + n * IMAGE_BYTES, n * dim * FEATURE_BYTES
        held = {
            "estimate": memory
            + self.is_counted * (2 * features + n * AXES * FEATURE_BYTES + min(n, TREE_IMAGES) ** 2 * 4),
            "train": listed + features,
        }
        written: dict[str, int] = {}
        for each in self.disk.files():
            name = "extract" if each.what == "features" else "bank" if " view" in each.what else "train"
            written[name] = written.get(name, 0) + each.n_bytes
        times = self.seconds().items()
        return [Stage(name, seconds, held.get(name, listed), written.get(name, 0)) for name, seconds in times]

    def total(self) -> Stage:
        """All stages, one after the other."""
        stages = self.stages()
        seconds, memory, disk = zip(*((each.seconds, each.memory, each.disk) for each in stages), strict=True)
        return Stage("all", sum(seconds), max(memory), sum(disk))

    def to_json(self) -> dict[str, Any]:
        """The costs and rates as plain values."""
        return {
            "work": asdict(self.work),
            "steps": self.steps(),
            "stages": [asdict(stage) for stage in self.stages()],
            "cheaper": self.advice(),
            "rates": asdict(self.rates),
        }

    def advice(self) -> list[str]:
        """What makes the longest stage shorter, and the largest files smaller; and whether training is too short."""
        stages = self.stages()
        longest = max(stages, key=lambda stage: stage.seconds)
        largest = max(stages, key=lambda stage: stage.disk)
        said = self.too_short()
        said += [f"{longest.name} takes longest, {time_text(longest.seconds)}. Cheaper: {CHEAPER[longest.name]}."]
        for options, smaller in self.disk.smaller() if largest.name == "bank" else ():
            n_bytes = sum(each.n_bytes for each in smaller.files() if " view" in each.what)
            if n_bytes < largest.disk:
                return [*said, f"bank takes {size_text(largest.disk)}; with {options} {size_text(n_bytes)}."]
        return said


def time_text(seconds: float) -> str:
    """For a person: 40 s, 3.5 min, 2.1 h, 12 days, 3 years."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:,.2g} {unit}" if seconds < 100 * length else f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.2g} s"
