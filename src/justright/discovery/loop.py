"""The one training loop: batch, loss, step, record. Read it from top to bottom.

Everything random is a function of seed, epoch and step, so a checkpoint needs no generator state, and a run that was
killed and went on ends with the same bytes as one that was left alone.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from justright.discovery.checkpoints import Checkpoint, Checkpoints, refuse_changes
from justright.discovery.configs import TrainConfig
from justright.discovery.curve_writer import CurveWriter
from justright.discovery.failures import stop_if_no_gradient, stop_if_not_finite
from justright.discovery.learner import Learner, Outputs
from justright.discovery.processes import Processes
from justright.discovery.training_data import TrainingData
from justright.features.stored_views import Views
from justright.files import write_text
from justright.losses import LossParts
from justright.models import learning_rate
from justright.progress import Track, silent
from justright.types import Array

CHECKPOINT_SECONDS = 60.0
"""At most so much work is lost to a kill; writing more often would cost more than it saves."""

SHARE_WITHOUT_NORM = 0.02
"""Of the learning rate, for the tuned part of a network that ends in no norm; chosen on birds, docs/discovery.md."""


@dataclass
class Progress:
    """How far training is: the next epoch and step, and the sums of this epoch's terms so far."""

    epoch: int = 0
    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StepReport:
    """What a progress bar may say beside the number of the step."""

    said: str


class Training:
    """A learner on its way through the epochs.

    Parameters: views, the views of each stream; folder, where checkpoints and metrics.jsonl go, or None for nowhere;
    made_with, what a resumed run must find unchanged.
    """

    def __init__(
        self,
        learner: Learner,
        views: Mapping[str, Views],
        data: TrainingData,
        config: TrainConfig,
        folder: Path | None,
        made_with: Mapping[str, Any],
        curves: CurveWriter | None = None,
    ):
        self.learner, self.views, self.data, self.config = learner, views, data, config
        self.processes = Processes()
        self.folder, self.curves = folder, curves
        self.checkpoints = None if folder is None else Checkpoints(folder / "checkpoint")
        self.made_with = json.loads(json.dumps(made_with))  # as it will be read back
        self.device = learner.backbone.device
        self.n_steps = config.n_steps or max(batches.n_steps for batches in learner.batches)
        self.trained = {name: p for name, p in learner.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.SGD(self._groups(), lr=config.learning_rate, momentum=config.momentum)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=config.precision == "float16")
        self.progress = Progress()

    def run(self, what: str, track: Track = silent) -> None:
        """Train to the last epoch, from where a checkpoint stands."""
        self._resume()
        n_left = self.config.n_epochs * self.n_steps - self._n_done
        for _ in track(self._steps(), n_left, what):
            pass

    def _steps(self) -> Iterator[StepReport]:
        progress, saved_at = self.progress, time.monotonic()
        while progress.epoch < self.config.n_epochs:
            epoch = progress.epoch
            started = time.monotonic()
            rate = learning_rate(epoch, self.config.n_epochs, self.config.learning_rate, self.config.floor_share)
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["share"]
            self._refresh(epoch)
            rows = [batches.rows(epoch, self.n_steps) for batches in self.learner.all_batches]
            while progress.step < self.n_steps:
                parts = self._step(epoch, [of_part[progress.step] for of_part in rows])
                for name, value in {"loss": parts.total.detach(), **parts.terms}.items():
                    progress.sums[name] = progress.sums.get(name, 0.0) + float(value)
                progress.step += 1
                if time.monotonic() - saved_at > CHECKPOINT_SECONDS:
                    self._save()
                    saved_at = time.monotonic()
                yield StepReport(f"epoch {epoch + 1}, loss {progress.sums['loss'] / progress.step:.3f}")
            self._record(rate, time.monotonic() - started)
            progress.epoch, progress.step, progress.sums = epoch + 1, 0, {}
        self._save()

    def _step(self, epoch: int, rows: list[Int[Array, " _"]]) -> LossParts:
        config, learner = self.config, self.learner
        half = torch.bfloat16 if config.precision == "bfloat16" else torch.float16
        with torch.autocast(self.device.type, half, enabled=config.precision != "float32"):
            outputs = [self._outputs(epoch, part, of_part) for part, of_part in enumerate(rows)]
            labels = [torch.from_numpy(self.data.labels[of_part]).to(self.device) for of_part in rows]
            weight = [torch.from_numpy(self.data.weight[of_part]).float().to(self.device) for of_part in rows]
            parts = learner.loss(outputs, labels, weight, epoch)
        where = f"epoch {epoch + 1}, step {self.progress.step + 1} of {self.n_steps}"
        stop_if_not_finite(parts, outputs, [self._ids(of_part) for of_part in rows], where, self.folder)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(parts.total).backward()  # type: ignore[no-untyped-call]
        self.processes.sum_gradients(list(self.trained.values()))
        if not self.scaler.is_enabled():  # the scaler of float16 looks for itself, and skips the step
            stop_if_no_gradient(self.trained.values(), where)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        learner.after_step(epoch)
        return parts

    def _outputs(self, epoch: int, part: int, rows: Int[Array, " batch"]) -> Outputs:
        """What this process's share of a batch gives, gathered from all processes."""
        mine = self.processes.share(len(rows))
        number = self.progress.step * len(self.learner.all_batches) + part
        stored = {}
        for stream, n_views in self.learner.streams.items():
            chosen = self.views[stream].choose(epoch, number, len(rows), n_views)[:, mine]
            stored[stream] = self.views[stream].batch(np.tile(rows[mine], n_views), chosen.ravel())
        outputs = self.learner.all_outputs(stored, part)
        return {name: self.processes.gather(rows, dim=1) for name, rows in outputs.items()}

    def _groups(self) -> list[dict[str, Any]]:
        config, groups = self.config, defaultdict(list)
        by_itself = 1.0 if self.learner.backbone.cut.ends_in_norm else SHARE_WITHOUT_NORM
        of_backbone = by_itself if config.backbone_share is None else config.backbone_share
        for name, parameter in self.trained.items():
            decay = config.weight_decay if config.decay_vectors or parameter.ndim > 1 else 0.0
            share = of_backbone if name.startswith("backbone.") else 1.0
            groups[decay, share].append(parameter)
        return [{"params": each, "weight_decay": decay, "share": share} for (decay, share), each in groups.items()]

    def _refresh(self, epoch: int) -> None:
        # one process draws what is missing, the others then find it
        for view in self.views.values():
            if self.processes.is_first:
                view.refresh(epoch)
            self.processes.wait()
            if not self.processes.is_first:
                view.refresh(epoch)

    def _ids(self, rows: Int[Array, " batch"]) -> list[str]:
        return self.data.images.take(rows).ids

    @property
    def _n_done(self) -> int:
        return self.progress.epoch * self.n_steps + self.progress.step

    def _save(self) -> None:
        if self.checkpoints is None or not self.processes.is_first:
            return
        tensors = {f"network/{name}": tensor for name, tensor in self.learner.changing().items()}
        for name, parameter in self.trained.items():
            if (buffer := self.optimizer.state[parameter].get("momentum_buffer")) is not None:
                tensors[f"momentum/{name}"] = buffer
        progress = vars(self.progress)
        state = {"made_with": self.made_with, "progress": progress, "scaler": self.scaler.state_dict()}
        self.checkpoints.save(self._n_done, Checkpoint(tensors, state))

    def _resume(self) -> None:
        # in turn, for the first one sets damaged files aside
        found = None if self.checkpoints is None else self.processes.in_turn(self.checkpoints.load)
        if found is None:
            self._forget_records(0)
            return
        refuse_changes(found.state["made_with"], self.made_with, self.folder or Path())
        _take_over(self.learner.changing(), found.tensors, "network/")
        for name, parameter in self.trained.items():
            if (buffer := found.tensors.get(f"momentum/{name}")) is not None:
                self.optimizer.state[parameter]["momentum_buffer"] = buffer.to(parameter.device).clone()
        self.scaler.load_state_dict(found.state["scaler"])
        self.progress = Progress(**found.state["progress"])
        self._forget_records(self.progress.epoch)

    def _record(self, rate: float, seconds: float) -> None:
        """One line an epoch in metrics.jsonl."""
        if self.folder is None or not self.processes.is_first:
            return
        means = {name: value / self.n_steps for name, value in self.progress.sums.items()}
        line = {"epoch": self.progress.epoch, "learning_rate": rate, **means, "seconds": seconds}
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self.curves is not None:
            self.curves.write(line)

    def _forget_records(self, epoch: int) -> None:
        """Drop lines that the checkpoint does not know of: their epochs come again."""
        path = None if self.folder is None else self.folder / "metrics.jsonl"
        if path is None or not path.exists() or not self.processes.is_first:
            return
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        write_text(path, "".join(f"{line}\n" for line in lines if _is_record_before(line, epoch)))


def _is_record_before(line: str, epoch: int) -> bool:
    """Whether a line of metrics.jsonl is whole and of an earlier epoch; a kill may have torn it."""
    try:
        return bool(json.loads(line)["epoch"] < epoch)
    except (ValueError, KeyError, TypeError):
        return False


def _take_over(own: Mapping[str, Tensor], found: Mapping[str, Tensor], prefix: str) -> None:
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(found[prefix + name])
