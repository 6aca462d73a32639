"""What a run costs, stage by stage: time from rates of this machine, memory and disk by arithmetic."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from justright.discovery.methods import METHODS
from justright.errors import JustrightError
from justright.files import parsed_json, size_text
from justright.runs.disk import FEATURE_BYTES, DiskPlan

IMAGE_BYTES = 550  # of one image in memory, its row and its content id as text: 300,000 rows of a CSV were measured
TREE_IMAGES = 6000  # images that the tree of the estimate looks at, at most: see `SpreadCounter.max_images`
IMAGES_A_CATEGORY = 30  # of the target, where K is not known yet
AXES = 128  # principal axes that the estimate keeps of every image
HEADS_COST = 0.1  # of a step in which heads learn alone, beside one that tunes EfficientNet-Lite0 at 224 pixels
ROWS_AT_ONCE = 8192  # images that selection compares with all classes at a time

CHEAPER = {  # what makes each stage quicker
    "audit": "leave it out: `discover` puts bad files aside by itself",
    "extract": "--device cuda, a smaller --backbone, or more --devices",
    "bank": "--set views=2, or --device cuda",
    "select": "--selector none, the default of discover",
    "estimate": "--k, if you know the number of categories",
    "train": "--minutes, or fewer --epochs",
    "predict": "a smaller --backbone",
}


@dataclass(frozen=True)
class Rates:
    """Seconds that a machine takes for one piece of work, all its cores or its one device busy."""

    audit: float = 0.0  # an image
    extract: float = 0.0  # an image
    view: float = 0.0  # drawing a view and bringing it through the frozen part of the network
    step: float = 0.0  # an image in a step of training, from a bank
    select: float = 0.0  # an image of the target, a class of the pool and a dimension
    tree: float = 0.0  # a pair of the images that the estimate looks at
    mixture: float = 0.0  # an image and a category
    predict: float = 0.0  # an image
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
class Work:
    """What is asked for, in numbers."""

    n_target: int
    n_labeled: int
    n_classes: int = 0
    n_categories: int = 0
    n_devices: int = 1  # they share audit, extract, bank, select and training evenly
    n_seeds: int = 1  # trainings from the same features and views, one after the other

    @property
    def n_images(self) -> int:
        """Number of all images, of the target and labeled."""
        return self.n_target + self.n_labeled


@dataclass(frozen=True)
class Stage:
    """One stage of a run: seconds, bytes of memory, bytes on disk."""

    name: str
    seconds: float
    memory: float
    disk: int = 0


@dataclass(frozen=True)
class CostPlan:
    """Time, memory and disk of every stage."""

    work: Work
    rates: Rates
    method: str  # one of `METHODS`
    config: Any  # its settings
    backbone: Any  # says how large features and stored views are

    @cached_property
    def disk(self) -> DiskPlan:
        """What the run writes."""
        return DiskPlan(self.work.n_labeled, self.work.n_target, self.method, self.config, self.backbone, Path("run"))

    @cached_property
    def n_stored(self) -> int:
        """Views in banks: of each image a plain one, and those of every stream that is stored."""
        return sum(self.disk.views().values()) * (self.work.n_target + self.config.sees_labels * self.work.n_labeled)

    @cached_property
    def in_training(self) -> tuple[int, int, int]:
        """Steps of all trainings, the images that they see, and views that are drawn for them and not stored."""
        n_steps = n_seen = n_fresh = 0
        n_categories = self.work.n_categories or -(-self.work.n_target // IMAGES_A_CATEGORY)
        fitted = self.config.fitted(self.work.n_images, n_categories, self.backbone.cut.ends_in_norm)
        for config, streams in METHODS[self.method].trainings(fitted):
            steps = config.n_epochs * (config.n_steps or -(-self.work.n_images // config.batch_size))
            n_steps, n_seen = n_steps + steps, n_seen + steps * config.batch_size
            n_seen += round(HEADS_COST * getattr(config, "heads_first", 0) * config.batch_size)
            n_fresh += 2 * len(streams) * steps * config.batch_size if config.views == "fresh" else 0
        n_seeds = self.work.n_seeds
        return n_steps * n_seeds, n_seen * n_seeds, n_fresh * n_seeds

    def seconds(self) -> dict[str, float]:
        """The time of each stage, in the order in which they run."""
        work, rates, n = self.work, self.rates, self.work.n_images
        _, n_seen, n_fresh = self.in_training
        minutes = getattr(self.config, "minutes", None)  # that the training of one seed may take
        longest = math.inf if minutes is None else 60 * (minutes * work.n_seeds)
        return {
            "audit": n * rates.audit / work.n_devices,
            "extract": n * rates.extract / work.n_devices,
            "estimate": min(n, TREE_IMAGES) ** 2 * rates.tree + n * work.n_categories * rates.mixture,
            "select": work.n_target * work.n_classes * self.backbone.dim * rates.select / work.n_devices,
            "bank": self.n_stored * rates.view / work.n_devices,
            "train": min((n_seen * rates.step + n_fresh * rates.view) / work.n_devices, longest),
            "predict": n * rates.predict,
        }

    def stages(self) -> list[Stage]:
        """The stages, in the order in which they run."""
        n, dim, memory = self.work.n_images, self.backbone.dim, self.rates.memory
        listed, features = memory + n * IMAGE_BYTES, n * dim * FEATURE_BYTES
        held = {
            "estimate": memory + 2 * features + n * AXES * FEATURE_BYTES + min(n, TREE_IMAGES) ** 2 * 4,
            "select": memory + self.work.n_classes * (dim + ROWS_AT_ONCE) * 8,
            "train": listed + features,
            "predict": listed + features,
        }
        written = {"predict": self.work.n_target * dim * FEATURE_BYTES}
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
            "stages": [asdict(stage) for stage in self.stages()],
            "cheaper": self.advice(),
            "rates": asdict(self.rates),
        }

    def advice(self) -> list[str]:
        """What makes the longest stage shorter, and the largest files smaller."""
        stages = self.stages()
        longest = max(stages, key=lambda stage: stage.seconds)
        largest = max(stages, key=lambda stage: stage.disk)
        said = [f"{longest.name} takes longest, {time_text(longest.seconds)}. Cheaper: {CHEAPER[longest.name]}."]
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
