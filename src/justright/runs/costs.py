"""What a run costs, stage by stage: time from rates of this machine, memory and disk by arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from justright.discovery.methods import METHODS
from justright.errors import JustrightError
from justright.files import size_text
from justright.runs.disk import FEATURE_BYTES, SMALLER, DiskPlan

IMAGE_BYTES = 550
"""Of one image in memory: its row in a table, and its content id as text; 300,000 rows of a CSV were measured."""
TREE_IMAGES = 6000  # images that the tree of the estimate looks at, at most: see `SpreadCounter.max_images`
AXES = 128  # principal axes that the estimate keeps of every image
ROWS_AT_ONCE = 8192  # images that selection compares with all classes at a time

CHEAPER = {
    "audit": "leave it out: `discover` puts bad files aside by itself",
    "extract": "--device cuda, a smaller --backbone, or more --devices",
    "bank": "--set views=2, or --device cuda",
    "select": "--selector none, the default of discover",
    "estimate": "--k, if you know the number of categories",
    "train": "fewer --epochs, or --set n_steps",
    "predict": "a smaller --backbone",
}
"""What makes each stage quicker."""


@dataclass(frozen=True)
class Rates:
    """Seconds that a machine takes for one piece of work, all its cores or its one device busy.

    Parameters:
        audit, extract, predict: an image.
        view: drawing a view and bringing it through the frozen part of the network.
        step: an image in a step of training, from a bank.
        select: an image of the target, a class of the pool and a dimension.
        tree: a pair of the images that the estimate looks at.
        mixture: an image and a category.
        memory: bytes of the process, the network loaded and nothing else.
        about: where, when and with which network this was measured.
    """

    audit: float
    extract: float
    view: float
    step: float
    select: float
    tree: float
    mixture: float
    predict: float
    memory: float
    about: str

    @classmethod
    def of(cls, found: Any, source: str = "rates") -> Rates:
        """From what JSON holds, such as the result of `justright plan --json`; anything else is refused."""
        found = found.get("rates", found) if isinstance(found, Mapping) else None
        found = found if isinstance(found, Mapping) else {}
        names = [field.name for field in fields(cls)]
        numbers = [found.get(name) for name in names if name != "about"]
        if not all(isinstance(value, int | float) and 0 <= value < float("inf") for value in numbers):
            raise JustrightError(f"{source} holds no rates", expected="what `justright plan --json` printed")
        return cls(**{name: found.get(name, "") for name in names})


@dataclass(frozen=True)
class Work:
    """What is asked for, in numbers."""

    n_target: int
    n_labeled: int
    n_classes: int
    n_categories: int
    n_devices: int = 1


@dataclass(frozen=True)
class Stage:
    """One stage of a run: seconds, bytes of memory, bytes on disk."""

    name: str
    seconds: float
    memory: float
    disk: int = 0


class CostPlan:
    """Time, memory and disk of every stage.

    Parameters:
        work: how many images, classes and categories; devices share audit, extract, bank, select and training evenly.
        rates: of the machine.
        method: one of `METHODS`, with the settings `config`.
        backbone: says how large features and stored views are.
    """

    def __init__(self, work: Work, rates: Rates, method: str, config: Any, backbone: Any):
        self.work, self.rates, self.method, self.config, self.backbone = work, rates, method, config, backbone
        self.disk = DiskPlan(work.n_labeled, work.n_target, method, config, backbone, Path("run"))

    def at(self, n_target: int) -> CostPlan:
        """The same for another number of images in the target."""
        work = replace(self.work, n_target=n_target)
        return CostPlan(work, self.rates, self.method, self.config, self.backbone)

    def stages(self) -> list[Stage]:
        """In the order in which they run."""
        work, rates, dim = self.work, self.rates, self.backbone.dim
        n, memory = work.n_labeled + work.n_target, rates.memory
        listed, features = memory + n * IMAGE_BYTES, n * dim * FEATURE_BYTES
        disk, n_banked = self._disk(), work.n_target + self.config.sees_labels * work.n_labeled
        axes = 2 * features + n * AXES * FEATURE_BYTES
        tree = min(n, TREE_IMAGES) ** 2
        select = work.n_target * work.n_classes * dim * rates.select
        classes = work.n_classes * (dim + ROWS_AT_ONCE) * 8
        shared = [
            Stage("audit", n * rates.audit, listed),
            Stage("extract", n * rates.extract, listed, disk["extract"]),
            Stage("bank", self._n_views() * n_banked * rates.view, listed, disk["bank"]),
            Stage("select", select, memory + classes),
            Stage("train", self._training_seconds(), listed + features, disk["train"]),
        ]
        audit, extract, bank, selection, train = [replace(s, seconds=s.seconds / work.n_devices) for s in shared]
        counting = tree * rates.tree + n * work.n_categories * rates.mixture
        estimate = Stage("estimate", counting, memory + axes + tree * 4)
        predict = Stage("predict", n * rates.predict, listed + features, work.n_target * dim * FEATURE_BYTES)
        return [audit, extract, estimate, selection, bank, train, predict]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
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
        if largest.name == "bank" and METHODS[self.method].trainings(self.config):
            for settings in SMALLER:
                smaller = self.disk.with_config(self.config.with_settings(settings))
                n_bytes = sum(each.n_bytes for each in smaller.files() if " view" in each.what)
                if n_bytes < largest.disk:
                    words = " ".join(f"--set {name}={value}" for name, value in settings.items())
                    said.append(f"bank takes {size_text(largest.disk)}; with {words} {size_text(n_bytes)}.")
                    break
        return said

    def _disk(self) -> dict[str, int]:
        found = {"extract": 0, "bank": 0, "train": 0}
        for each in self.disk.files():
            found["extract" if each.what == "features" else "bank" if " view" in each.what else "train"] += each.n_bytes
        return found

    def _n_views(self) -> int:
        """Of each image: a plain one, and those of every stream that is stored."""
        return sum(self.disk.views().values())

    def _training_seconds(self) -> float:
        seconds, work = 0.0, self.work
        for config, streams in METHODS[self.method].trainings(self.config):
            n_steps = config.n_steps or -(-(work.n_labeled + work.n_target) // config.batch_size)
            n_images = config.n_epochs * n_steps * config.batch_size
            fresh = 2 * len(streams) * self.rates.view if config.views == "fresh" else 0.0
            seconds += n_images * (self.rates.step + fresh)
        return seconds


def time_text(seconds: float) -> str:
    """For a person: 40 s, 3.5 min, 2.1 h, 12 days, 3 years."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:,.2g} {unit}" if seconds < 100 * length else f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.2g} s"
