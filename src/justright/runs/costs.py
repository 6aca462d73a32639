"""Time, disk and memory of a run before it starts, from its counts and the rates of this machine."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from justright.discovery.checkpoints import N_KEPT
from justright.discovery.configs import PlannedTraining
from justright.discovery.learner import MAX_IMAGES_FOR_HEADS as HEADS_IMAGES
from justright.discovery.learner import N_FRESH as HEADS_VIEWS
from justright.discovery.loop import MAX_COMPARED as PLATEAU_IMAGES
from justright.discovery.methods import METHODS
from justright.estimation.combined import CombinedCounter
from justright.estimation.spread import SpreadCounter
from justright.runs.counting import MOST_CHECKED
from justright.runs.frozen_check import LEAST_TRAINED, MOST_IMAGES, N_INIT
from justright.runs.spec import RunSpec, config_of
from justright.runs.work import Work
from justright.utils.errors import JustrightError
from justright.utils.files import bytes_of, existing, home, parsed_json, size_text

FLOAT_BYTES = 4  # features and parameters are float32
IMAGE_BYTES = 550  # memory of one image: its row and its content id as text, measured on a CSV of 300,000 rows
EPOCH_BYTES = 600  # the record of one epoch in a checkpoint
LONG = 120.0  # seconds; no message is printed before shorter runs
REMAINING = ("bank", "train", "check")  # stages that follow the selection
STEPS_OF = {"stage1": "of the first training", "heads": "of the heads alone", "": "of training"}


@dataclass(frozen=True)
class Rates:
    """Seconds that this machine takes for one unit of work, with all its cores or its one device."""

    extract: float = 0.0  # one image
    view: float = 0.0  # one view: drawn and passed through the frozen part of the network
    plain: float = 0.0  # the plain view of one image; 0 if extraction stores it
    step: float = 0.0  # one image in a step of the last training
    stage1: float = 0.0  # one image in a step of muGCD's first training
    heads: float = 0.0  # one image in a step of the heads alone
    tuned: float = 0.0  # one image through the tuned part of the network, without gradient
    tree: float = 0.0  # one pair of images in the estimate of K
    mixture: float = 0.0  # one image and one category in the estimate of K
    cluster: float = 0.0  # one image and one category in one restart of k-means
    memory: float = 0.0  # bytes of the process with the network loaded
    about: str = ""  # machine, date and network; empty for a rough measurement

    @classmethod
    def read(cls, file: Path) -> Rates:
        """Read the output of `justright plan --json`."""
        try:
            printed = parsed_json(file.read_text(encoding="utf-8"))
            rates = cls(**printed.get("rates", printed))
            *numbers, _ = asdict(rates).values()
            if rates != cls() and all(0 <= number < math.inf for number in numbers):
                return rates
        except (ValueError, TypeError, AttributeError):  # not JSON, not UTF-8, or other JSON
            pass
        raise JustrightError(f"{file} holds no rates", expected="the output of `justright plan --json`")


@dataclass(frozen=True)
class PlannedFiles:
    """Files that a stage writes to a folder: their final size, and how much of it is on disk already."""

    what: str
    stage: str
    folder: Path
    n_bytes: int
    n_on_disk: int = 0

    @property
    def n_missing(self) -> int:
        """Bytes still to write."""
        return max(0, self.n_bytes - self.n_on_disk)


@dataclass(frozen=True)
class Stage:
    """Costs of one stage: seconds, bytes of memory, bytes on disk."""

    name: str
    seconds: float
    memory: float
    disk: int


@dataclass(frozen=True)
class CostPlan:
    """Steps, time, memory and disk of a run."""

    work: Work
    spec: RunSpec
    backbone: Any
    folder: Path = Path("run")
    rates: Rates = Rates()

    @cached_property
    def config(self) -> Any:
        """The settings of the method."""
        return config_of(self.spec)

    @cached_property
    def trainings(self) -> list[PlannedTraining]:
        """The trainings of one seed, with settings that fit the data."""
        sizes = self.work.n_used, self.work.n_categories, self.backbone.cut.ends_in_norm
        return METHODS[self.spec.method].trainings(self.config.fitted(*sizes))

    def stored_views(self) -> dict[tuple[str, str], int]:
        """Views stored of each image, by kind and precision; a plain one if something is trained."""
        views = {("plain", "float32"): 1} if self.trainings else {}
        for config, streams, _ in self.trainings:
            for stream in streams if config.views != "fresh" else ():
                n_views = config.views * (self.work.n_seeds if config.views_by_seed else 1)
                views[stream, config.bank_precision] = max(views.get((stream, config.bank_precision), 0), n_views)
        return views

    # Steps and time

    def steps(self) -> dict[str, int]:
        """Steps of each training of one seed by its part; the last training has the part ""."""
        return {training.part: training.n_steps(self.work.n_seen) for training in self.trainings}

    def steps_text(self) -> str:
        """The steps of all trainings in words; empty if nothing is trained."""
        text = " and ".join(f"{n:,} steps {STEPS_OF[part]}" for part, n in self.steps().items())
        return f"{text}, for each of {self.work.n_seeds} seeds" if text and self.work.n_seeds > 1 else text

    def training_seconds(self, training: PlannedTraining) -> float:
        """Time of one training of one seed without a time limit.

        Processes share steps and features; each of them clusters all images.
        """
        work, rates, config = self.work, self.rates, training.config
        method: Any = METHODS[self.spec.method]
        n_drawn = training.n_steps(work.n_seen) * config.batch_size
        n_epochs, is_fresh = config.n_epochs or 1, config.views == "fresh"
        n_features, clustering = 0.0, 0.0
        n_fresh = 2 * len(training.streams) * n_drawn * is_fresh
        if not training.is_tuned:
            n_features = (HEADS_VIEWS if is_fresh else config.views) * min(work.n_seen, HEADS_IMAGES)
            n_fresh = n_features * is_fresh
        elif config.steady_share and method.has_categories:  # to see whether categories still change
            n_features = n_epochs * config.steady_share * min(work.n_target, PLATEAU_IMAGES)
        elif n_passes := n_epochs * method.extractions_per_epoch:
            n_features, clustering = n_passes * work.n_seen, n_passes * self._kmeans_seconds(1, work.n_seen)
        n_drawn *= 1 + (config.guide_share if work.n_guides else 0)
        shared = n_drawn * getattr(rates, training.part or "step") + n_fresh * rates.view + n_features * rates.tuned
        return shared / work.n_devices + clustering

    def _kmeans_seconds(self, n_init: int, n_images: int) -> float:
        return n_init * n_images * self.work.n_categories * self.rates.cluster

    def seconds(self) -> dict[str, float]:
        """The time of each stage, in the order in which they run. Selection takes next to none.

        Several processes share the training; the first one does all other work.
        """
        work, rates, n = self.work, self.rates, self.work.n_images
        is_k_checked = not work.is_k_known or n <= MOST_CHECKED
        training = sum(
            min(self.training_seconds(each), 60 * (each.config.minutes or math.inf)) for each in self.trainings
        )
        n_init = 0 if self.trainings and "n_init" in self.config.without_effect() else self.config.n_init
        after_training = n * rates.tuned / work.n_devices + self._kmeans_seconds(n_init, n)
        estimate = min(n, SpreadCounter.max_images) ** 2 * rates.tree + n * work.n_categories * rates.mixture
        return {
            "extract": n * rates.extract,
            "estimate": estimate if is_k_checked else 0.0,
            "bank": n * ((sum(self.stored_views().values()) - 1) * rates.view + rates.plain) if self.trainings else 0.0,
            "train": work.n_seeds * (training + after_training),
            "check": self._kmeans_seconds(N_INIT, min(n, MOST_IMAGES)) if self.trainings else 0.0,
        }

    @property
    def total_seconds(self) -> float:
        """The time of all stages."""
        return sum(self.seconds().values())

    @cached_property
    def trained_share(self) -> float:
        """Share of its steps that a training has time for: the smallest of all trainings."""
        limited = [each for each in self.trainings if each.config.minutes and self.training_seconds(each)]
        return min([60 * each.config.minutes / self.training_seconds(each) for each in limited] + [1.0])

    # Disk and memory

    def files(self) -> list[PlannedFiles]:
        """All large files: features, views, checkpoints and the model."""
        work, dim, folder = self.work, self.backbone.dim, self.folder
        n_tuned = sum(tensor.numel() for tensor in self.backbone.tuned_state().values())
        checkpoints = [self._checkpoint_bytes(training, n_tuned) for training in self.trainings]
        # those of all seeds are kept until the run ends, and the largest is written beside the one it replaces
        n_checkpoints = work.n_seeds * N_KEPT * sum(checkpoints) + max(checkpoints, default=0)
        n_features, n_after = (FLOAT_BYTES * n * dim for n in (work.n_images, work.n_target))
        n_model = FLOAT_BYTES * (n_tuned + 2 * work.n_categories * (dim + 1) + dim)
        # the cache may hold features of other images, so only those of this run are counted
        n_extracted = bytes_of(*(folder / f"{part}.features" for part in ("pool", "target")))
        n_saved = bytes_of(*folder.rglob("checkpoint"))
        return [
            PlannedFiles("features", "extract", folder, n_features, n_extracted),
            PlannedFiles("features", "extract", home() / "features", n_features, n_extracted),
            *self._view_files(),
            PlannedFiles("checkpoints", "train", folder, n_checkpoints, n_saved),
            PlannedFiles("the model", "train", folder, n_model),
            PlannedFiles("tuned features", "train", folder, n_after),
        ]

    def _view_files(self) -> Iterator[PlannedFiles]:
        from justright.features.cache import KeptBanks
        from justright.features.views import record_type

        stored = KeptBanks().sections()
        for (stream, precision), n_views in self.stored_views().items():
            layout = record_type(self.backbone.stored_names, self.backbone.stored_shapes, precision)  # type: ignore[arg-type]
            same = {"backbone": self.backbone.name, "transform": stream, "precision": precision}
            what = f"{n_views} {stream} view{'s' * (n_views > 1)} of each image in {precision}"
            n_bytes = self.work.n_images * n_views * layout.itemsize
            # of these or of other images: which ones is known once they are read
            n_on_disk = max((min(n_bytes, bank["bytes"]) for bank in stored if same.items() <= bank.items()), default=0)
            yield PlannedFiles(what, "bank", home() / "banks", n_bytes, n_on_disk)

    def _checkpoint_bytes(self, training: PlannedTraining, n_tuned: int) -> int:
        """One checkpoint: parameters, momentum, a teacher, the state of the method, and the records of epochs."""
        config, work, dim = training.config, self.work, self.backbone.dim
        guide = work.n_guide_classes * dim if config.guide_share else 0
        n_trained = config.head_size(dim, work.n_categories) + training.is_tuned * n_tuned + guide
        n_copies = 2 + (config.has_teacher and training.is_tuned)
        remembered = config.extra_checkpoint_bytes(work.n_seen, work.n_categories, work.n_known) + 8 * PLATEAU_IMAGES
        return FLOAT_BYTES * n_copies * n_trained + remembered + EPOCH_BYTES * (10 + (config.n_epochs or 0))

    def check_disk(self) -> None:
        """Raise if the run does not fit on the disk, and name a setting with which it does."""
        lacking = {} if (self.folder / "model.safetensors").exists() else self._lacking_bytes()
        if not lacking:
            return
        files = ", ".join(f"{each.what} {size_text(each.n_missing)} in {each.folder}" for each in self.files())
        total = size_text(sum(each.n_missing for each in self.files()))
        advice = [f"free {size_text(max(lacking.values()))}, or set another --out or JUSTRIGHT_HOME"]
        for views in (2, "fresh") if self.trainings else ():
            # settings that lose their effect, such as the precision of views that are not stored, would raise
            others = {name: value for name, value in self.spec.settings.items() if name != "bank_precision"}
            if not replace(self, spec=replace(self.spec, settings=others | {"views": views}))._lacking_bytes():
                advice.insert(0, f"--set views={views}")
                break
        raise JustrightError(
            "there is not enough disk space for this run: "
            + ", ".join(f"{size_text(lack)} too little is free in {folder}" for folder, lack in lacking.items()),
            expected=f"{total} of disk space: {files}",
            advice=", or ".join(advice),
        )

    def _lacking_bytes(self) -> dict[Path, int]:
        """Missing bytes of each disk that is too small, by a folder on it."""
        needed: Counter[int] = Counter()
        folder_on: dict[int, Path] = {}
        for each in self.files():
            folder = existing(each.folder)
            needed[folder.stat().st_dev] += each.n_missing
            folder_on.setdefault(folder.stat().st_dev, folder)
        lacking = {folder: needed[disk] - shutil.disk_usage(folder).free for disk, folder in folder_on.items()}
        return {folder: n_bytes for folder, n_bytes in lacking.items() if n_bytes > 0}

    def stages(self) -> list[Stage]:
        """The costs of each stage, in the order in which they run."""
        n, memory, seconds = self.work.n_images, self.rates.memory, self.seconds()
        listed, features = memory + n * IMAGE_BYTES, n * self.backbone.dim * FLOAT_BYTES
        held = {"train": listed + features, "estimate": memory}
        if seconds["estimate"]:
            axes = n * CombinedCounter.n_axes * FLOAT_BYTES
            held["estimate"] += 2 * features + axes + min(n, SpreadCounter.max_images) ** 2 * FLOAT_BYTES
        written: Counter[str] = Counter()
        for each in self.files():
            written[each.stage] += each.n_bytes
        return [Stage(name, spent, held.get(name, listed), written[name]) for name, spent in seconds.items()]

    def total(self) -> Stage:
        """The costs of all stages."""
        stages = self.stages()
        memory = max(stage.memory for stage in stages)
        return Stage("all", self.total_seconds, memory, sum(stage.disk for stage in stages))

    # Messages

    def to_json(self) -> dict[str, Any]:
        """The costs and rates as plain values."""
        return {
            "work": asdict(self.work),
            "steps": self.steps(),
            "stages": [asdict(stage) for stage in self.stages()],
            "cheaper": self.advice(),
            "rates": asdict(self.rates),
        }

    def message(self, is_resumed: bool = False) -> str:
        """A message before a run that is long or trains too briefly; empty for other runs.

        is_resumed: features, K and weights are computed already.
        """
        work, steps = self.work, self.steps_text()
        if work.n_devices > 1:  # nothing is measured while other processes wait
            return steps and f"{steps}."
        if self.total_seconds < LONG:
            return self.too_short()
        steps = steps or "no training"
        if is_resumed:
            seconds = sum(self.seconds()[stage] for stage in REMAINING)
            return f"{work.n_categories:,} categories: {steps}, up to {time_text(seconds)}. {self.too_short()}".strip()
        guess = "" if work.is_k_known else f"; {work.n_categories:,} categories are a guess until K is estimated"
        time = f"This takes up to {time_text(self.total_seconds)}: {work.n_images:,} images, {steps}{guess}"
        return f"{time}; less if features or views are cached. {self.advice()}"

    def advice(self) -> str:
        """Options that make a run cheaper, and a warning if training is too short."""
        from justright.features.automatic import CHEAPEST, CPU_COST

        options = ["--set views=2", "--method kmeans"] if self.trainings else []
        if self.trainings and not self.too_short():
            options.insert(0, f"--minutes {max(1, round(self.seconds()['train'] / 180))}")
        if self.backbone.device.type == "cpu" and CPU_COST.get(self.backbone.name, 1.0) > 1:
            options.append(f"--backbone {CHEAPEST}")
        options.append("fewer images" if self.work.is_k_known else "--k, if you know the number of categories")
        return f"Cheaper: {', '.join(options)}. {self.too_short()}".strip()

    def too_short(self) -> str:
        """A warning if training has time for too few of its steps to be useful; else empty."""
        if self.trained_share >= LEAST_TRAINED:
            return ""
        n_seeds = self.work.n_seeds
        minutes, seeds = self.config.minutes * n_seeds, f", shared by {n_seeds} seeds," if n_seeds > 1 else ""
        return (
            f"--minutes {minutes:g}{seeds} leaves time for about {self.trained_share:.0%} of the steps. With less than "
            f"{LEAST_TRAINED:.0%}, training is often worse than none: use --minutes "
            f"{minutes * LEAST_TRAINED / self.trained_share:.2g} or more{', fewer --seeds' if seeds else ''}, or "
            "--method kmeans."
        )


def time_text(seconds: float) -> str:
    """A time for a person: 40 s, 3.5 min, 2.1 h, 12 days, 3 years."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:,.2g} {unit}" if seconds < 100 * length else f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.2g} s"
