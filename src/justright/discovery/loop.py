"""The one training loop: draw a batch, compute the loss, update the parameters, record the epoch.

One step of SimGCD, call by call; each method has a learner of its own:

    Training._step           labels and weights of a batch of images
    Training._outputs        two stored views of each image
    SimGCDLearner.outputs    the last block of the network and the heads: projections z and logits
    SimGCDLearner.objective  Eq. 6, by `losses.SimGCDObjective`
    Training._step           gradients, and a step of SGD

Everything random is a function of seed, epoch and step, so a checkpoint needs no generator state. A resumed run is
byte-identical to an uninterrupted one.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from justright.discovery.checkpoints import (
    ASSIGNED,
    MOMENTUM,
    Checkpoint,
    Checkpoints,
    EpochRecords,
    check_same_settings,
)
from justright.discovery.configs import TrainConfig
from justright.discovery.learner import Learner, Outputs, features_of
from justright.discovery.processes import Processes
from justright.discovery.training_data import TrainingData
from justright.features.bank import Views
from justright.losses import LossParts
from justright.utils.context import current, track
from justright.utils.errors import JustrightError
from justright.utils.types import Array
from justright.utils.wording import first_names

CHECKPOINT_SECONDS = 60.0  # the most work that an interruption can lose
TIME_UP = "time was up"


@dataclass
class Progress:
    """The next epoch and step, the sums of the loss terms in this epoch, and the records of earlier epochs."""

    epoch: int = 0
    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    n_epochs: int = 0  # of the whole training; fewer than planned after an early stop
    why_fewer: str = ""  # the reason
    seconds: float = 0.0  # of training so far, over all resumes


class StepMessage(NamedTuple):
    """Text that a progress bar shows beside the number of the step."""

    text: str


@dataclass(eq=False)
class Training:
    """Trains a learner over all epochs, with checkpoints and a record of each epoch."""

    learner: Learner  # the network, its batches and what it minimizes
    views: Mapping[str, Views]  # the views of each stream
    data: TrainingData  # labels and weights of the images
    config: TrainConfig  # how long and how fast to train
    folder: Path | None  # where checkpoints and metrics.jsonl go; None for nowhere
    made_with: Mapping[str, Any]  # must not change when a run is resumed
    plain: Views | None = None  # test views of all images, to detect a plateau

    def __post_init__(self) -> None:
        learner, config = self.learner, self.config
        self.processes, self.records = Processes(), EpochRecords(self.folder, current().tensorboard)
        assert config.n_epochs is not None, "`fitted` fills it in"
        self.n_planned = config.n_epochs
        self.progress = Progress(n_epochs=self.n_planned)
        self.assignments = None
        has_categories = type(learner).categories_of is not Learner.categories_of
        if self.plain is not None and config.steady_share and has_categories:
            self.assignments = Assignments(self.data, self.plain)
        self.checkpoints = None if self.folder is None else Checkpoints(self.folder / "checkpoint")
        self.device = learner.backbone.device
        self.n_steps = config.n_steps or max(batches.n_steps for batches in learner.batches)
        self.trained = learner.trained()
        # fused: same bits in half the time; torch has no fused form for scaled losses on a CPU
        is_fused = self.device.type == "cpu" and config.precision != "float16"
        self.optimizer = torch.optim.SGD(
            self._groups(), lr=config.learning_rate, momentum=config.momentum, fused=is_fused
        )
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=config.precision == "float16")

    def run(self, what: str) -> None:
        """Train to the last epoch, resuming from a checkpoint."""
        self._resume()
        self.records.write(self.progress.records)
        n_left = self.progress.n_epochs * self.n_steps - self._n_done
        for _ in track(self._steps(), n_left, what):
            pass

    def _steps(self) -> Iterator[StepMessage]:
        """Train step by step, epoch by epoch; yield a message for the progress bar after each step."""
        progress, config, learner = self.progress, self.config, self.learner
        if progress.epoch == progress.n_epochs:  # resumed from the last checkpoint
            return
        saved_at = self._timed_at = time.monotonic()
        while progress.epoch < progress.n_epochs:
            epoch = progress.epoch
            n_steady = int(config.steady_share * progress.n_epochs)
            rate = learning_rate(epoch, progress.n_epochs, config.learning_rate, config.floor_share, n_steady)
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["share"]
            if progress.step == 0:  # an epoch that is resumed later has its state from the checkpoint
                learner.begin_epoch(epoch, self.views)
            while progress.step < self.n_steps:
                rows = [batches.rows(epoch, n_steps=1, first=progress.step)[0] for batches in learner.all_batches]
                loss = self._step(epoch, rows)
                for name, value in {"loss": loss.total.detach(), **loss.terms}.items():
                    progress.sums[name] = progress.sums.get(name, 0.0) + float(value)
                progress.step += 1
                if time.monotonic() - saved_at > CHECKPOINT_SECONDS:
                    self._save()
                    saved_at = time.monotonic()
                yield StepMessage(f"epoch {epoch + 1}, loss {progress.sums['loss'] / progress.step:.3f}")
            self._end_epoch(rate, is_steady=epoch < n_steady)
        self._save(is_last=True)

    def _step(self, epoch: int, rows: list[Int[Array, " _"]]) -> LossParts:
        """Compute the loss of one batch, and update the parameters; `rows` has the images of each part of it."""
        config, learner = self.config, self.learner
        labels = [torch.from_numpy(self.data.labels[of_part]).long().to(self.device) for of_part in rows]
        weight = [torch.from_numpy(self.data.weight[of_part]).float().to(self.device) for of_part in rows]
        learner.batch_rows = rows
        half = torch.bfloat16 if config.precision == "bfloat16" else torch.float16
        with torch.autocast(self.device.type, half, enabled=config.precision != "float32"):
            outputs = [self._outputs(epoch, part, of_part) for part, of_part in enumerate(rows)]
            loss = learner.loss(outputs, labels, weight, epoch)

        where = f"epoch {epoch + 1}, step {self.progress.step + 1} of {self.n_steps}"
        if not bool(torch.isfinite(loss.total)):
            raise divergence(loss, outputs, [self.data.images.take(of_part).ids for of_part in rows], where)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss.total).backward()  # type: ignore[no-untyped-call]
        self.processes.sum_gradients(list(self.trained.values()))
        if not self.scaler.is_enabled():  # the scaler of float16 checks gradients itself and skips the step
            stop_if_gradient_not_finite(self.trained.values(), where)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        learner.after_step(epoch)
        return loss

    def _outputs(self, epoch: int, part: int, rows: Int[Array, " batch"]) -> Outputs:
        """Compute this process's share of one part of a batch, and gather the outputs of all processes."""
        mine = self.processes.share(len(rows))
        number = self.progress.step * len(self.learner.all_batches) + part
        stored = {}
        for stream, n_views in self.learner.streams.items():
            chosen = self.views[stream].choose(epoch, number, len(rows), n_views)[:, mine]
            stored[stream] = self.views[stream].batch(np.tile(rows[mine], n_views), chosen.ravel())
        outputs = self.learner.all_outputs(stored, part)
        return {name: self.processes.gather(output) for name, output in outputs.items()}

    def _end_epoch(self, rate: float, is_steady: bool) -> None:
        """Record the epoch; at its steady rate, decide whether the rate starts to fall early."""
        progress = self.progress
        means = {name: value / self.n_steps for name, value in progress.sums.items()}
        if self.assignments is not None and is_steady:
            means["changed"] = self.assignments.change(self.learner)
        self._count_time()
        progress.seconds = self.processes.of_first(progress.seconds, self.device)
        spent = progress.seconds - sum(record["seconds"] for record in progress.records)
        progress.records.append({"epoch": progress.epoch, "learning_rate": rate, **means, "seconds": spent})
        self.records.write(progress.records)
        progress.epoch, progress.step, progress.sums = progress.epoch + 1, 0, {}
        if is_steady and (why := self._reason_to_end()):
            progress.n_epochs = n_epochs_with(progress.epoch, progress.n_epochs, self.config.steady_share)
            progress.why_fewer = why
            self._save()  # the decision to stop early is made once

    def _reason_to_end(self) -> str:
        """Why the learning rate starts to fall early: time is up, or a plateau; empty if it does not."""
        config, progress = self.config, self.progress
        if config.minutes is not None and progress.seconds >= config.steady_share * 60 * config.minutes:
            return TIME_UP
        settled = progress.records[self.learner.n_unsettled :]
        changes = [record["changed"] for record in settled if "changed" in record]
        return "the categories of the target's images had settled" if is_plateau(changes, self.n_planned) else ""

    def notes(self) -> list[str]:
        """Return remarks for the reader of the result."""
        n = self.progress.n_epochs
        if n == self.n_planned:
            return []
        what = "training" if self.learner.is_tuned else "training the heads"
        return [f"{n} epochs of {what} where {self.n_planned} were planned: {self.progress.why_fewer}"]

    @property
    def trained_share(self) -> float:
        """Share of the planned epochs that ran, if time was up; 1 if training ended for another reason."""
        return self.progress.n_epochs / self.n_planned if self.progress.why_fewer == TIME_UP else 1.0

    def _count_time(self) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._timed_at
        self._timed_at = now

    def _groups(self) -> list[dict[str, Any]]:
        """Group parameters by weight decay and share of the learning rate."""
        config, backbone, groups = self.config, self.learner.backbone, defaultdict(list)
        tuned_share = config.tuned_share(backbone.cut.ends_in_norm, backbone.dim)
        for name, parameter in self.trained.items():
            decay = config.weight_decay if config.decay_vectors or parameter.ndim > 1 else 0.0
            share = tuned_share if name.startswith("backbone.") else 1.0
            groups[decay, share].append(parameter)
        return [{"params": each, "weight_decay": decay, "share": share} for (decay, share), each in groups.items()]

    @property
    def _n_done(self) -> int:
        return self.progress.epoch * self.n_steps + self.progress.step

    def _save(self, is_last: bool = False) -> None:
        """Write a checkpoint; the last one without what only further steps need."""
        if self.checkpoints is None or not self.processes.is_first:
            return
        self._count_time()
        tensors = {f"network/{name}": tensor for name, tensor in self.learner.changing().items()}
        if not is_last:
            for name, parameter in self.trained.items():
                if (buffer := self.optimizer.state[parameter].get("momentum_buffer")) is not None:
                    tensors[f"{MOMENTUM}{name}"] = buffer
            if self.assignments is not None:
                tensors[ASSIGNED] = torch.from_numpy(self.assignments.categories)
        state = {
            "made_with": self.made_with,
            "progress": vars(self.progress),
            "scaler": self.scaler.state_dict(),
            "processes": self.processes.n,
        }
        self.checkpoints.save(self._n_done, Checkpoint(tensors, state))

    def _resume(self) -> None:
        # in turn: the first process renames damaged files
        saved = None if self.checkpoints is None else self.processes.in_turn(self.checkpoints.load)
        if saved is None:
            return
        check_same_settings(saved.state["made_with"], self.made_with, self.folder or Path())
        self.progress = Progress(**saved.state["progress"])
        if self.progress.epoch < self.progress.n_epochs:  # a finished training may be read by any number of processes
            self.processes.expect(saved.state["processes"], self.folder or Path())
        with torch.no_grad():
            for name, tensor in self.learner.changing().items():
                tensor.copy_(saved.tensors[f"network/{name}"])
        for name, parameter in self.trained.items():
            if (buffer := saved.tensors.get(f"{MOMENTUM}{name}")) is not None:
                self.optimizer.state[parameter]["momentum_buffer"] = buffer.to(parameter.device).clone()
        if self.assignments is not None and ASSIGNED in saved.tensors:
            self.assignments.categories = saved.tensors[ASSIGNED].numpy()
        self.scaler.load_state_dict(saved.state["scaler"])


def learning_rate(epoch: int, n_epochs: int, base: float, floor_share: float, n_steady: int = 0) -> float:
    """Half a cosine from the base rate down to a floor, one step per epoch, as in GCD, XCon and SimGCD.

    floor + (base - floor) (1 + cos(pi t / T)) / 2,     floor = floor_share * base

    The first `n_steady` epochs have the base rate; t and T count the epochs after them.
    """
    floor = floor_share * base
    return floor + (base - floor) * _half_cosine(max(0, epoch - n_steady), n_epochs - n_steady)


def n_epochs_with(n_steady: int, n_planned: int, steady_share: float) -> int:
    """Number of epochs if the steady part ends after `n_steady`: the same proportion, at least one more epoch.

    min(n_planned, ceil(n_steady / steady_share))
    """
    return min(n_planned, max(n_steady + 1, math.ceil(n_steady / steady_share)))


def teacher_temperature(epoch: int, first: float, last: float, n_warmup: int) -> float:
    """A straight line over the first n_warmup epochs, both ends included, then constant, as in SimGCD.

    first + (last - first) t / (n_warmup - 1)     for t < n_warmup

    A sharp teacher helps only once its predictions are good.
    """
    if epoch >= n_warmup - 1:
        return last
    return first + (last - first) * epoch / (n_warmup - 1)


def teacher_momentum(epoch: int, n_epochs: int, base: float, last: float) -> float:
    """Half a cosine up: the teacher follows quickly at first and slowly at the end, as in muGCD.

    last - (1 - base) (1 + cos(pi t / T)) / 2

    It starts at last - (1 - base), 0.699 by default, not at the base: the formula is muGCD's.
    """
    return last - (1 - base) * _half_cosine(epoch, n_epochs)


def _half_cosine(epoch: int, n_epochs: int) -> float:
    # Past the last epoch the cosine would rise again.
    return (1 + math.cos(math.pi * min(epoch / n_epochs, 1.0))) / 2


MAX_IDS_SHOWN = 8


class DivergedError(JustrightError):
    """A loss or gradient is not finite."""


def divergence(loss: LossParts, outputs: Sequence[Outputs], ids: Sequence[Sequence[str]], where: str) -> DivergedError:
    """Return the error for a loss that is not finite; it names the terms and the images to blame."""
    terms = [name for name, value in loss.terms.items() if not bool(torch.isfinite(value))] or ["loss"]
    bad: list[str] = []
    for of_batch, names in zip(outputs, ids, strict=True):
        is_bad = torch.zeros(len(names), dtype=torch.bool)
        for output in of_batch.values():
            is_bad |= ~torch.isfinite(output.detach()).all(dim=-1).all(dim=0).cpu()
        bad += np.array(names)[is_bad.numpy()].tolist()
    images = "all outputs of the network are finite"
    if bad:
        images = f"nor are the outputs of {len(bad)} images: {first_names(bad, MAX_IDS_SHOWN)}"
    return DivergedError(
        f"{' and '.join(terms)} is not finite in {where}; {images}.",
        expected="finite losses",
        advice="a lower learning rate, precision float32, or leave these images out",
    )


def stop_if_gradient_not_finite(parameters: Iterable[nn.Parameter], where: str) -> None:
    """Raise before the step: a finite loss may still have an infinite gradient."""
    gradients = (p.grad for p in parameters if p.grad is not None)
    # a finite sum has finite terms and costs a tenth; an infinite one may be an overflow
    if all(bool(torch.isfinite(each.sum())) or bool(torch.isfinite(each).all()) for each in gradients):
        return
    raise DivergedError(
        f"the gradient is not finite in {where}; the loss still was. Nothing was changed.",
        expected="finite gradients",
        advice="a lower learning rate, or precision float32",
    )


MAX_COMPARED = 2048  # target images; enough to measure a change of 1 %
# is_plateau compares the last epochs with as many before them: this share of all epochs, at least this many
COMPARED_SHARE, MIN_COMPARED = 0.15, 6
PLATEAU_RATIO = 0.97  # a plateau: the mean change is at least this share of the mean change before
FEW_CHANGES = 0.005  # or: the mean change is below this share of the images


class Assignments:
    """The categories of target images after every epoch, under the test transform."""

    def __init__(self, data: TrainingData, plain: Views):
        self.rows, self.plain = data.unlabeled[:: math.ceil(len(data.unlabeled) / MAX_COMPARED)], plain
        self.categories: Int[Array, " compared"] = np.full(len(self.rows), -1, dtype=np.int64)

    def change(self, learner: Learner) -> float:
        """Return the share of images whose category changed since the last call."""
        before = self.categories
        self.categories = learner.categories_of(features_of(learner.backbone, self.plain, self.rows))
        return float(np.mean(self.categories != before))


def is_plateau(changes: Sequence[float], n_epochs: int) -> bool:
    """Whether the share of images that change category no longer falls; one value an epoch."""
    n = max(MIN_COMPARED, math.ceil(COMPARED_SHARE * n_epochs))
    if len(changes) < 2 * n:
        return False
    before, now = np.mean(changes[-2 * n : -n]), np.mean(changes[-n:])
    return bool(now < FEW_CHANGES or now >= PLATEAU_RATIO * before)
