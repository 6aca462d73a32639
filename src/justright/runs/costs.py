"""Time, disk and memory of a run before it starts, from its counts and the rates of this machine."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from justright.discovery.checkpoints import N_KEPT
from justright.discovery.configs import PlannedTraining
from justright.discovery.learner import MAX_IMAGES_FOR_HEADS as HEADS_IMAGES
from justright.discovery.learner import N_FRESH as HEADS_VIEWS
from justright.discovery.loop import MAX_COMPARED as PLATEAU_IMAGES
from justright.discovery.methods import FIRST_PARTS, METHODS
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
            values: dict[str, Any] = {"about": ""} | dict(printed.get("rates", printed))
            rates = {field.name: values[field.name] for field in fields(cls)}
            if all(0 <= value < math.inf for name, value in rates.items() if name != "about"):
                return cls(**rates)
        except (ValueError, TypeError, LookupError, AttributeError):  # not JSON, not UTF-8, or other JSON
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
    disk: int = 0


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
        names = {"stage1": "of the first training", "heads": "of the heads alone", "": "of training"}
        text = " and ".join(f"{n:,} steps {names[part]}" for part, n in self.steps().items())
        return f"{text}, for each of {self.work.n_seeds} seeds" if text and self.work.n_seeds > 1 else text

    def _n_fresh_views(self, training: PlannedTraining) -> int:
        """Views that are drawn during a training and not stored."""
        config, streams, _ = training
        if config.views != "fresh":
            return 0
        if not training.is_tuned:
            return HEADS_VIEWS * min(self.work.n_seen, HEADS_IMAGES)
        return 2 * len(streams) * training.n_steps(self.work.n_seen) * config.batch_size

    def training_seconds(self, training: PlannedTraining) -> float:
        """Time of one training of one seed without a time limit.

        Processes share steps and features; each of them clusters all images.
        """
        work, rates, config = self.work, self.rates, training.config
        method: Any = METHODS[self.spec.method]
        guide_share = config.guide_share if work.n_guides else 0.0
        n_drawn = training.n_steps(work.n_seen) * config.batch_size * (1 + guide_share)
        n_features, clustering = 0.0, 0.0
        if not training.is_tuned:
            n_views = HEADS_VIEWS if config.views == "fresh" else config.views
            n_features = n_views * min(work.n_seen, HEADS_IMAGES)
        elif config.steady_share and method.has_categories:  # to see whether categories still change
            n_features = (config.n_epochs or 1) * config.steady_share * min(work.n_target, PLATEAU_IMAGES)
        elif n_passes := (config.n_epochs or 1) * method.extractions_per_epoch:
            n_features, clustering = n_passes * work.n_seen, n_passes * self._kmeans_seconds(1, work.n_seen)
        shared = (
            n_drawn * getattr(rates, training.part or "step")
            + self._n_fresh_views(training) * rates.view
            + n_features * rates.tuned
        )
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

    # Disk

    def files(self) -> list[PlannedFiles]:
        """All large files: features, views, checkpoints and the model."""
        work, dim, folder = self.work, self.backbone.dim, self.folder
        n_features = work.n_images * dim * FLOAT_BYTES
        # the cache may hold features of other images, so only those of this run are counted
        n_on_disk = bytes_of(*(folder / f"{part}.features" for part in ("pool", "target")))
        n_model = FLOAT_BYTES * (self._n_tuned + 2 * work.n_categories * (dim + 1) + dim)
        n_tuned_features = FLOAT_BYTES * work.n_target * dim
        checkpoints = [self._checkpoint_bytes(training) for training in self.trainings]
        # those of all seeds are kept until the run ends, and the largest is written beside the one it replaces
        n_checkpoints = work.n_seeds * N_KEPT * sum(checkpoints) + max(checkpoints, default=0)
        is_trained = (folder / "model.safetensors").exists()
        parts = [seed / part for seed in (folder, *folder.glob("seed-*")) for part in ("", *FIRST_PARTS)]
        n_saved = n_checkpoints if is_trained else bytes_of(*(part / "checkpoint" for part in parts))
        n_tuned_on_disk = n_tuned_features if (folder / "tuned.npy").exists() else 0
        return [
            PlannedFiles("features", "extract", folder, n_features, n_on_disk),
            PlannedFiles("features", "extract", home() / "features", n_features, n_on_disk),
            *self._view_files(),
            PlannedFiles("checkpoints", "train", folder, n_checkpoints, n_saved),
            PlannedFiles("the model", "train", folder, n_model, n_model if is_trained else 0),
            PlannedFiles("tuned features", "train", folder, n_tuned_features, n_tuned_on_disk),
        ]

    def _view_files(self) -> Iterator[PlannedFiles]:
        from justright.features.cache import KeptBanks
        from justright.features.views import record_type

        stored = KeptBanks().all()
        for (stream, precision), n_views in self.stored_views().items():
            layout = record_type(self.backbone.stored_names, self.backbone.stored_shapes, precision)  # type: ignore[arg-type]
            same = {"backbone": self.backbone.name, "transform": stream, "precision": precision}
            same["images"] = self.work.n_images
            n_on_disk = max((bank["bytes"] for bank in stored if same.items() <= bank.items()), default=0)
            what = f"{n_views} {stream} view{'s' * (n_views > 1)} of each image in {precision}"
            n_bytes = self.work.n_images * n_views * layout.itemsize
            yield PlannedFiles(what, "bank", home() / "banks", n_bytes, n_on_disk)

    def _view_bytes(self) -> int:
        return sum(each.n_bytes for each in self._view_files())

    def _checkpoint_bytes(self, training: PlannedTraining) -> int:
        """One checkpoint: parameters, momentum, a teacher, the state of the method, and the records of epochs."""
        config, work, dim = training.config, self.work, self.backbone.dim
        guide = work.n_guide_classes * dim if config.guide_share else 0
        n_trained = config.head_size(dim, work.n_categories) + training.is_tuned * self._n_tuned + guide
        n_copies = 2 + (config.has_teacher and training.is_tuned)
        remembered = config.extra_checkpoint_bytes(work.n_seen, work.n_categories, work.n_known) + 8 * PLATEAU_IMAGES
        return FLOAT_BYTES * n_copies * n_trained + remembered + EPOCH_BYTES * (10 + (config.n_epochs or 0))

    @cached_property
    def _n_tuned(self) -> int:
        return sum(tensor.numel() for tensor in self.backbone.tuned_state().values())

    def disk_text(self) -> str:
        """What is still to be written, for a person."""
        files = [each for each in self.files() if each.n_missing]
        parts = [f"{each.what} {size_text(each.n_missing)} in {each.folder}" for each in files]
        total = size_text(sum(each.n_missing for each in files))
        return f"Writes {total}: {', '.join(parts)}." if parts else "Everything large is on disk already."

    def check_disk(self) -> None:
        """Raise if the run does not fit on the disk, and name a setting with which it does."""
        lacking = self._lacking_bytes()
        if not lacking:
            return
        advice = f"free {size_text(max(lacking.values()))}, or set another --out or JUSTRIGHT_HOME"
        views = (2, "fresh") if self.trainings else ()
        fitting = [f"--set views={n}" for n in views if not self._with(views=n)._lacking_bytes()]
        folders = ", ".join(f"{size_text(lack)} too little is free in {folder}" for folder, lack in lacking.items())
        raise JustrightError(
            f"there is not enough disk space for this run: {folders}\n{self.disk_text()}",
            advice=", or ".join([*fitting[:1], advice]),
        )

    def _with(self, **settings: Any) -> CostPlan:
        # settings that lose their effect, such as the precision of views that are not stored, would raise
        kept = {name: value for name, value in self.spec.settings.items() if name != "bank_precision"}
        return replace(self, spec=replace(self.spec, settings=kept | settings))

    def _lacking_bytes(self) -> Mapping[Path, int]:
        """Missing bytes of each disk that is too small, by a folder on it."""
        needed: Counter[int] = Counter()
        folder_on: dict[int, Path] = {}
        for each in self.files():
            folder = existing(each.folder)
            needed[folder.stat().st_dev] += each.n_missing
            folder_on.setdefault(folder.stat().st_dev, folder)
        lacking = {folder: needed[disk] - shutil.disk_usage(folder).free for disk, folder in folder_on.items()}
        return {folder: n_bytes for folder, n_bytes in lacking.items() if n_bytes > 0}

    # All together

    def stages(self) -> list[Stage]:
        """The costs of each stage, in the order in which they run."""
        n, memory = self.work.n_images, self.rates.memory
        listed, features = memory + n * IMAGE_BYTES, n * self.backbone.dim * FLOAT_BYTES
        seconds = self.seconds()
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

    def to_json(self) -> dict[str, Any]:
        """The costs and rates as plain values."""
        return {
            "work": asdict(self.work),
            "steps": self.steps(),
            "stages": [asdict(stage) for stage in self.stages()],
            "cheaper": self.advice(),
            "rates": asdict(self.rates),
        }

    # Messages

    def advice(self) -> list[str]:
        """A warning if training is too short, and options that make the run cheaper."""
        advice = [*self.too_short(), f"Cheaper: {', '.join(self._cheaper())}."]
        if self.trainings and self._view_bytes() > sum(each.n_bytes for each in self.files()) / 2:
            fewer = size_text(self._with(views=2)._view_bytes())
            advice.append(f"Views take {size_text(self._view_bytes())} of disk; with --set views=2 {fewer}.")
        return advice

    def too_short(self) -> list[str]:
        """A warning if training has time for too few of its steps to be useful."""
        if self.trained_share >= LEAST_TRAINED:
            return []
        n_seeds = self.work.n_seeds
        minutes, seeds = self.config.minutes * n_seeds, f", shared by {n_seeds} seeds," if n_seeds > 1 else ""
        return [
            f"--minutes {minutes:g}{seeds} leaves time for about {self.trained_share:.0%} of the steps. With less than "
            f"{LEAST_TRAINED:.0%}, training is often worse than none: use --minutes "
            f"{minutes * LEAST_TRAINED / self.trained_share:.2g} or more{', fewer --seeds' if seeds else ''}, or "
            "--method kmeans."
        ]

    def message(self, is_resumed: bool = False) -> str:
        """A message before a run that is long or trains too briefly; empty for other runs.

        is_resumed: features, K and weights are computed already.
        """
        steps = self.steps_text()
        if self.work.n_devices > 1:  # nothing is measured while other processes wait
            return f"{steps[:1].upper()}{steps[1:]}." if steps else ""
        if self.total_seconds < LONG:
            return " ".join(self.too_short())
        if is_resumed:
            seconds = sum(self.seconds()[stage] for stage in REMAINING)
            text = f"{self.work.n_categories:,} categories: {steps or 'no training'}, up to {time_text(seconds)}."
            return " ".join([text, *self.too_short()])
        n_fresh = self.work.n_seeds * sum(map(self._n_fresh_views, self.trainings))
        n_views = sum(self.stored_views().values()) * self.work.n_images + n_fresh
        if steps and not self.work.is_k_known:
            steps += f"; {self.work.n_categories:,} categories are a guess until K is estimated"
        counts = ", ".join(filter(None, [f"{self.work.n_images:,} images", f"{n_views:,} views of them", steps]))
        text = f"This takes up to {time_text(self.total_seconds)}: {counts}; less if features or views are cached."
        return " ".join([text, f"Cheaper: {', '.join(self._cheaper())}.", *self.too_short()])

    def _cheaper(self) -> list[str]:
        """Options that make the whole run shorter, with the time of each."""
        from justright.features.automatic import CHEAPEST, CPU_COST

        options = []
        if self.trainings:
            minutes = max(1.0, round(self.seconds()["train"] / 60 / 3, 0))
            shorter = self._with(minutes=minutes)
            if shorter.total_seconds < 0.9 * self.total_seconds and not shorter.too_short():
                options.append(f"--minutes {minutes:g} ({time_text(shorter.total_seconds)})")
            fewer = self._with(views=2)
            if fewer.total_seconds < 0.9 * self.total_seconds:
                options.append(f"--set views=2 ({time_text(fewer.total_seconds)})")
        cost = CPU_COST.get(self.backbone.name, 1.0)
        if self.backbone.device.type == "cpu" and cost > 1:
            options.append(f"--backbone {CHEAPEST} ({time_text(self.total_seconds / cost)})")
        if not self.work.is_k_known:
            options.append("--k, if you know the number of categories")
        return [*options, "--method kmeans, which does not train" if self.trainings else "fewer images"]


def time_text(seconds: float) -> str:
    """A time for a person: 40 s, 3.5 min, 2.1 h, 12 days, 3 years."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:,.2g} {unit}" if seconds < 100 * length else f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.2g} s"
