"""Time, disk and memory of a run before it starts: its counts times the rates of this machine."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from justright.discovery.checkpoints import N_KEPT
from justright.discovery.configs import PlannedTraining
from justright.discovery.learner import MAX_IMAGES_FOR_HEADS, N_FRESH
from justright.discovery.loop import MAX_COMPARED
from justright.discovery.methods import METHODS
from justright.discovery.training_data import n_held_out
from justright.estimation.spread import SpreadCounter
from justright.runs.counting import MOST_CHECKED
from justright.runs.frozen_check import LEAST_TRAINED, N_INIT
from justright.runs.problem import Problem
from justright.runs.spec import RunSpec, config_of
from justright.utils.errors import JustrightError
from justright.utils.files import bytes_of, home, nearest_existing, parsed_json, size_text

FLOAT_BYTES = 4  # features and parameters are float32
IMAGE_BYTES = 550  # memory of one image: its row and its content id as text, measured on a CSV of 300,000 rows
EPOCH_BYTES = 600  # the record of one epoch in a checkpoint
# times of similar work, as shares of the time of a training step
FORWARD_SHARE = 1 / 3  # features without gradients, of one view instead of two
HEADS_SHARE = 0.1  # a step of the heads alone
COUNT_RESTARTS = 10  # an estimate of K takes about as long as this many restarts of k-means
LONG = 120.0  # seconds; no message is printed before shorter runs
IMAGES_PER_CATEGORY = 30  # assumed if K is unknown
STEPS_OF = {"stage1": "of the first training", "heads": "of the heads alone", "": "of training"}


@dataclass(frozen=True)
class Work:
    """Counts of a run."""

    n_target: int
    n_labeled: int = 0  # labeled images of all kinds
    n_classes: int = 0  # of the labeled images
    n_guides: int = 0  # labeled images that only guide training
    n_seen: int = 0  # images that batches are drawn from
    n_categories: int = 2  # K, plus the classes of a rival pool
    is_k_known: bool = True  # else K is a guess
    n_devices: int = 1  # processes that train together
    n_seeds: int = 1  # trainings on the same features and views

    @property
    def n_images(self) -> int:
        """Number of all images, of the target and labeled."""
        return self.n_target + self.n_labeled

    @staticmethod
    def of_sizes(spec: RunSpec, n_target: int, own: Sequence[int], pool: Sequence[int], n_devices: int = 1) -> Work:
        """From the number of images of each labeled class; `own` are classes that the target may contain.

        If K is unknown, half of the categories are assumed to be new.
        """
        is_rival, n_categories = spec.pool_role == "rival", spec.n_target
        known = [*own, *pool] if is_rival else own
        if n_categories is None:
            n_categories = max(2, 2 * len(own), -(-n_target // IMAGES_PER_CATEGORY))
        held_out_share = config_of(spec).held_out_share
        held_out = sum(n_held_out(size, held_out_share) for size in known)
        return Work(
            n_target,
            n_labeled=sum(own) + sum(pool),
            n_classes=len(own) + len(pool),
            n_guides=0 if is_rival else sum(pool),
            n_seen=n_target + sum(known) - held_out,
            n_categories=n_categories + is_rival * len(pool),
            is_k_known=spec.n_target is not None,
            n_devices=n_devices,
            n_seeds=spec.n_seeds,
        )

    @staticmethod
    def of(problem: Problem, spec: RunSpec, n_devices: int = 1) -> Work:
        """From the images of a run, as if all of the pool were used."""
        classes, sizes = np.unique(problem.pool.images.labels, return_counts=True)
        is_own = np.isin(classes, problem.own_classes)
        work = Work.of_sizes(spec, len(problem.target), sizes[is_own].tolist(), sizes[~is_own].tolist(), n_devices)
        if problem.given:  # labeled images of the target count once
            copies = np.flatnonzero(problem.is_given_too()).tolist()
            work = replace(work, n_seen=work.n_seen - len(problem.rows_of_target(copies)))
        return work


@dataclass(frozen=True)
class Rates:
    """Seconds that this machine takes for one unit of work, with all its cores or its one device."""

    extract: float = 0.0  # one image
    view: float = 0.0  # one view: drawn and passed through the frozen part of the network
    step: float = 0.0  # one image in a training step
    cluster: float = 0.0  # one image and one category in one restart of k-means
    memory: float = 0.0  # bytes of the process with the network loaded
    about: str = ""  # machine, date and network; empty for a rough measurement

    @classmethod
    def read(cls, file: Path) -> Rates:
        """Read the output of `justright plan --json`."""
        try:
            rates = cls(**parsed_json(file.read_text(encoding="utf-8"))["rates"])
            *numbers, _ = asdict(rates).values()
            if all(0 <= number < math.inf for number in numbers):
                return rates
        except (ValueError, TypeError, LookupError):  # not JSON, not UTF-8, or other JSON
            pass
        raise JustrightError(f"{file} holds no rates", expected="the output of `justright plan --json`")


class PlannedFiles(NamedTuple):
    """Files that a stage writes to a folder: their final size, and the bytes that are on disk already."""

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
        work, ends_in_norm = self.work, self.backbone.cut.ends_in_norm
        fitted = self.config.fitted(work.n_seen + work.n_guides, work.n_categories, ends_in_norm)
        return METHODS[self.spec.method].trainings(fitted)

    def stored_views(self) -> dict[tuple[str, str], int]:
        """Views stored of each image, by kind and precision; a plain one if something is trained."""
        views = {("plain", "float32"): 1} if self.trainings else {}
        for config, streams, _ in self.trainings:
            for stream in streams if config.views != "fresh" else ():
                n_views = config.views * (self.work.n_seeds if config.views_by_seed else 1)
                views[stream, config.bank_precision] = max(views.get((stream, config.bank_precision), 0), n_views)
        return views

    def steps(self) -> dict[str, int]:
        """Steps of each training of one seed by its part; the last training has the part ""."""
        return {training.part: training.n_steps(self.work.n_seen) for training in self.trainings}

    def steps_text(self) -> str:
        """The steps of all trainings in words."""
        text = " and ".join(f"{n:,} steps {STEPS_OF[part]}" for part, n in self.steps().items()) or "no training"
        return f"{text}, for each of {self.work.n_seeds} seeds" if self.trainings and self.work.n_seeds > 1 else text

    def training_seconds(self, training: PlannedTraining) -> float:
        """Time of one training of one seed without a time limit."""
        work, rates, config = self.work, self.rates, training.config
        n_drawn = training.n_steps(work.n_seen) * config.batch_size
        is_fresh = config.views == "fresh"
        if training.is_tuned:
            n_views = 2 * len(training.streams) * n_drawn * is_fresh
            n_features = (config.n_epochs or 1) * METHODS[self.spec.method].extractions_per_epoch * work.n_seen
        else:  # features of views are computed once
            n_features = (N_FRESH if is_fresh else config.views) * min(work.n_seen, MAX_IMAGES_FOR_HEADS)
            n_views = n_features * is_fresh
        n_drawn *= 1 + (config.guide_share if work.n_guides else 0)
        n_steps = n_drawn * (1 if training.is_tuned else HEADS_SHARE) + n_features * FORWARD_SHARE
        return (n_steps * rates.step + n_views * rates.view) / work.n_devices

    def seconds(self) -> dict[str, float]:
        """The time of each stage in order. Processes share the training; the first one does all other work."""
        work, rates, n = self.work, self.rates, self.work.n_images
        is_k_estimated = not work.is_k_known or n <= MOST_CHECKED
        n_views = sum(n for (kind, _), n in self.stored_views().items() if kind != "plain")  # extraction has plain ones
        n_restarts = 0 if "n_init" in self.config.without_effect else self.config.n_init
        training = 0.0
        if self.trainings:  # and then features, and k-means as a comparison
            times = [
                min(self.training_seconds(each), 60 * (each.config.minutes or math.inf)) for each in self.trainings
            ]
            training = sum(times) + n * FORWARD_SHARE * rates.step / work.n_devices
            n_restarts += N_INIT
        a_restart = n * work.n_categories * rates.cluster
        return {
            "extract": n * rates.extract,
            "estimate": COUNT_RESTARTS * a_restart if is_k_estimated else 0.0,
            "views": n * n_views * rates.view,
            "train": work.n_seeds * (training + n_restarts * a_restart),
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

    def files(self) -> list[PlannedFiles]:
        """All large files: features, views, checkpoints and the model."""
        from justright.features.bank import record_type
        from justright.features.cache import KeptBanks

        work, dim, folder, backbone = self.work, self.backbone.dim, self.folder, self.backbone
        n_tuned = sum(tensor.numel() for tensor in backbone.tuned_state().values())
        checkpoints = [self._checkpoint_bytes(training, n_tuned) for training in self.trainings]
        # those of all seeds are kept until the run ends, and the largest is written beside the one it replaces
        n_checkpoints = work.n_seeds * N_KEPT * sum(checkpoints) + max(checkpoints, default=0)
        n_features, n_after = (FLOAT_BYTES * n * dim for n in (work.n_images, work.n_target))
        n_model = FLOAT_BYTES * (n_tuned + 2 * work.n_categories * (dim + 1) + dim)
        # the cache may hold features of other images, so only those of this run are counted
        n_extracted = bytes_of(*(folder / f"{part}.features" for part in ("pool", "target")))
        files = [
            PlannedFiles("features", "extract", folder, n_features, n_extracted),
            PlannedFiles("features", "extract", home() / "features", n_features, n_extracted),
            PlannedFiles("checkpoints", "train", folder, n_checkpoints, bytes_of(*folder.rglob("checkpoint"))),
            PlannedFiles("model and tuned features", "train", folder, n_model + n_after),
        ]
        banks = KeptBanks().sections()
        for (stream, precision), n_views in self.stored_views().items():
            layout = record_type(backbone.stored_names, backbone.stored_shapes, precision)  # type: ignore[arg-type]
            same = {"backbone": backbone.name, "transform": stream, "precision": precision}
            # of these or of other images: which ones is known once they are read
            n_kept = max((bank["bytes"] for bank in banks if same.items() <= bank.items()), default=0)
            what = f"{n_views} {stream} view{'s' * (n_views > 1)} of each image in {precision}"
            n_bytes = work.n_images * n_views * layout.itemsize
            files.append(PlannedFiles(what, "views", home() / "banks", n_bytes, n_kept))
        return files

    def _checkpoint_bytes(self, training: PlannedTraining, n_tuned: int) -> int:
        """One checkpoint: parameters, momentum, a teacher, the state of the method, and the records of epochs."""
        config, work, dim = training.config, self.work, self.backbone.dim
        guide = work.n_classes * dim if config.guide_share else 0
        n_trained = config.head_size(dim, work.n_categories) + training.is_tuned * n_tuned + guide
        n_copies = 2 + (config.has_teacher and training.is_tuned)
        remembered = config.extra_checkpoint_bytes(work.n_seen, work.n_categories, work.n_classes) + 8 * MAX_COMPARED
        return FLOAT_BYTES * n_copies * n_trained + remembered + EPOCH_BYTES * (10 + (config.n_epochs or 0))

    def disk(self) -> dict[str, int]:
        """Bytes that each stage writes."""
        files = self.files()
        return {stage: sum(each.n_bytes for each in files if each.stage == stage) for stage in self.seconds()}

    def memory(self) -> float:
        """Bytes of memory at most: the process, the list of images, their features, and the estimate of K."""
        n, features = self.work.n_images, self.work.n_images * self.backbone.dim * FLOAT_BYTES
        tree = features + min(n, SpreadCounter.max_images) ** 2 * FLOAT_BYTES if self.seconds()["estimate"] else 0
        return self.rates.memory + n * IMAGE_BYTES + features + tree

    def check_disk(self) -> None:
        """Raise if the run does not fit on the disk."""
        if (self.folder / "model.safetensors").exists():
            return
        needed: Counter[int] = Counter()  # bytes by disk
        folder_on: dict[int, Path] = {}
        for each in self.files():
            folder = nearest_existing(each.folder)
            needed[folder.stat().st_dev] += each.n_missing
            folder_on.setdefault(folder.stat().st_dev, folder)
        lacking = {folder: needed[disk] - shutil.disk_usage(folder).free for disk, folder in folder_on.items()}
        texts = [f"{size_text(lack)} more is needed in {folder}" for folder, lack in lacking.items() if lack > 0]
        if not texts:
            return
        files = ", ".join(f"{each.what} {size_text(each.n_missing)} in {each.folder}" for each in self.files())
        fewer_views = ", or store fewer views: --set views=2, or --set views=fresh for none"
        if all(kind == "plain" for kind, _ in self.stored_views()):
            fewer_views = ""
        raise JustrightError(
            f"there is not enough disk space for this run: {', '.join(texts)}",
            expected=f"{size_text(sum(needed.values()))} of disk space: {files}",
            advice=f"free {size_text(max(lacking.values()))}, set another --out or JUSTRIGHT_HOME{fewer_views}",
        )

    def to_json(self) -> dict[str, Any]:
        """The costs and rates as plain values."""
        disk = self.disk()
        return {
            "work": asdict(self.work),
            "steps": self.steps(),
            "stages": [{"name": name, "seconds": s, "disk": disk[name]} for name, s in self.seconds().items()],
            "memory": self.memory(),
            "cheaper": self.advice(),
            "rates": asdict(self.rates),
        }

    def message(self) -> str:
        """A message for a run that is long or trains too briefly; empty for other runs."""
        if self.total_seconds < LONG:
            return self.too_short()
        work = self.work
        guess = "" if work.is_k_known else f"; {work.n_categories:,} categories are a guess until K is estimated"
        time = f"This takes up to {time_text(self.total_seconds)}: {work.n_images:,} images, {self.steps_text()}{guess}"
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
        minutes = self.config.minutes * self.work.n_seeds  # seeds share them
        enough = minutes * LEAST_TRAINED / self.trained_share
        return (
            f"--minutes {minutes:g} leaves time for about {self.trained_share:.0%} of the steps. With less than "
            f"{LEAST_TRAINED:.0%}, training is often worse than none: use --minutes {enough:.2g} or more, or "
            "--method kmeans."
        )


def time_text(seconds: float) -> str:
    """A time for a person: 40 s, 3.5 min, 2.1 h, 12 days, 3 years."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:,.2g} {unit}" if seconds < 100 * length else f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.2g} s"
