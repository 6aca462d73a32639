"""muGCD: GCD's representation, then SimGCD's losses with a slow teacher that sees easier views (NeurIPS 2023).

A reconstruction: the method's code is not public, and some values come from citations of its paper. Each such choice
is a field of MuGCDConfig, and docs/research/decisions.md gives its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from justright.data.transforms import Strong, Transform
from justright.discovery.assigner import Learned
from justright.discovery.configs import PlannedTraining
from justright.discovery.gcd import GCDConfig, GCDLearner
from justright.discovery.learner import FitInputs, Outputs, trainable_copy
from justright.discovery.loop import teacher_momentum
from justright.discovery.simgcd import Heads, SimGCD, SimGCDConfig, SimGCDLearner
from justright.features.backbone import Backbone, Stored
from justright.utils.errors import JustrightError
from justright.utils.settings import SHARE, Range, number, one_of, setting

ABOVE_0_TO_1 = number(lambda value: 0 < value <= 1, "above 0, up to 1")
GCD_SETTINGS = Range(lambda value: isinstance(value, GCDConfig), 'settings of GCD, such as {"n_epochs": 20}')


@dataclass(frozen=True)
class MuGCDConfig(SimGCDConfig):
    """muGCD, Vaze et al., NeurIPS 2023: a reconstruction. The momenta of the teacher are second-hand."""

    has_teacher = True
    # of GCD neither: its clustering is left out
    without_effect = SimGCDConfig.without_effect | {
        f"stage1.{name}": why for name, why in SimGCDConfig.without_effect.items()
    }

    momentum_base: float = setting(0.7, "momentum of the mean teacher at first", SHARE)
    momentum_last: float = setting(0.999, "momentum of the mean teacher at the end", SHARE)
    infer_with: Literal["teacher", "student"] = setting(
        "teacher", "which network decides", one_of("teacher", "student")
    )
    # the published strong views are unknown; stronger ones than these cost up to 9 points: docs/research/training.md
    strong_area: float = setting(0.7, "the smallest share of an image that a strong view shows", ABOVE_0_TO_1)
    strong_color: float = setting(0.0, "how often strong views change color and sharpness; 0: crop and flip", SHARE)
    stage1: GCDConfig = setting(GCDConfig, "settings of the first training; a common one is set for both", GCD_SETTINGS)

    def with_settings(self, settings: Mapping[str, Any]) -> Any:
        """Return a copy with some settings changed, also in `stage1` unless it is given."""
        first = settings.get("stage1", {})
        if isinstance(first, Mapping):
            common = {name: settings[name] for name in (item.name for item in fields(GCDConfig)) if name in settings}
            settings = {**settings, "stage1": self.stage1.with_settings(common | dict(first))}
        made = super().with_settings(settings)
        if made.minutes is not None and made.minutes < (made.stage1.minutes or 0):
            raise JustrightError(
                f"{made.stage1.minutes:g} minutes for the first training, {made.minutes:g} for both",
                expected="a part of them for the first one",
                advice="--minutes alone, which both share, or --set 'stage1={\"minutes\": 2}'",
            )
        return made

    def small(self) -> Any:
        """Both trainings in their small form."""
        return replace(super().small(), stage1=self.stage1.small())

    def fitted(self, n_images: int, n_categories: int, ends_in_norm: bool = True) -> Any:
        """Fill in both trainings; the first gets half of the time, unless `stage1` sets it."""
        first = self.stage1
        if self.minutes is not None and first.minutes in (None, self.minutes):
            first = replace(first, minutes=self.minutes / 2)
        second = super().fitted(n_images, n_categories, ends_in_norm)
        return replace(second, stage1=first.fitted(n_images, n_categories, ends_in_norm))

    def for_second_training(self) -> Any:
        """The settings with the time that remains after the first training."""
        if self.minutes is None or self.stage1.minutes is None:
            return self
        return replace(self, minutes=self.minutes - self.stage1.minutes)


class WithHeads(nn.Module):
    """Tuned part and heads as one network: the student, and as a copy the teacher."""

    def __init__(self, backbone: Backbone, heads: Heads):
        super().__init__()
        self.backbone, self.heads = backbone, heads

    def forward(self, *stored: Tensor) -> dict[str, Tensor]:
        """Map outputs of the frozen part to projections and logits."""
        return self.heads(self.backbone.suffix(stored))


class MuGCDLearner(SimGCDLearner):
    """Eq. 6 on two strong views; the teacher's logits of one weak view are the target of both."""

    config: MuGCDConfig
    streams = {"strong": 2, "weak": 1}  # noqa: RUF012

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.student = WithHeads(self.backbone, self.heads)
        self.teacher = trainable_copy(self.student).requires_grad_(False)

    def transform(self, stream: str) -> Transform:
        """Return the transform of a stream; strong views follow the settings."""
        if stream != "strong":
            return super().transform(stream)
        share, full = self.config.strong_color, Strong()
        return Strong(
            scale=(self.config.strong_area, 1.0),
            jitter=share * full.jitter,
            grayscale=share * full.grayscale,
            blur=share * full.blur,
        )

    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Projections and logits of the student, logits of the teacher."""
        with torch.no_grad():
            of_teacher = self.teacher(*stored["weak"])["logits"].unsqueeze(0)
        return self.heads(self.features(stored["strong"], 2)) | {"teacher_logits": of_teacher}

    def after_step(self, epoch: int) -> None:
        """Move the teacher towards the student."""
        config = self.config
        momentum = teacher_momentum(epoch, config.n_epochs or 1, config.momentum_base, config.momentum_last)
        follow(self.teacher, self.student, momentum)

    def changing(self) -> dict[str, Tensor]:
        """Student and teacher."""
        students = {name for name, p in self.student.named_parameters() if p.requires_grad}
        teacher = dict(self.teacher.named_parameters())
        return super().changing() | {f"teacher.{name}": teacher[name] for name in sorted(students)}


class MuGCD(SimGCD):
    """GCD's representation first, then SimGCD's losses with a mean teacher, which also assigns the images."""

    name = "mugcd"
    config_class = MuGCDConfig

    @classmethod
    def trainings(cls, config: Any) -> list[PlannedTraining]:
        """The training of GCD, then those of SimGCD, the last one with the teacher."""
        *heads, last = super().trainings(config.for_second_training())
        first = PlannedTraining(config.stage1, tuple(GCDLearner.streams), "stage1")
        return [first, *heads, last._replace(streams=tuple(MuGCDLearner.streams))]

    def _learn(self, inputs: FitInputs) -> Learned:
        backbone, data, first = inputs.backbone, inputs.data, self.config_.stage1
        batches = data.batches(first.batch_size, self.seed)
        representation = GCDLearner(backbone, first, batches, self._torch_generator("heads of stage 1"))
        self._train(representation, inputs, first, "stage1", stage=1)

        heads, config = self._heads(inputs, self.config_.for_second_training())
        learner = MuGCDLearner(backbone, config, data.batches(config.batch_size, self.seed), heads)
        self._train(learner, inputs, config, stage=2)

        network = learner.teacher if config.infer_with == "teacher" else learner.student
        parameters = dict(network.backbone.model.named_parameters())
        backbone.load_tuned_state({name: parameters[name] for name in backbone.tuned_state()})
        return self._by_prototypes(inputs, network.heads)


def follow(teacher: nn.Module, student: nn.Module, momentum: float) -> None:
    """Move every trained parameter of the teacher towards that of the student. Momentum 1 changes nothing.

    theta_T <- w theta_T + (1 - w) theta_S,     w the momentum
    """
    with torch.no_grad():
        for average, latest in zip(teacher.parameters(), student.parameters(), strict=True):
            if latest.requires_grad:
                average.lerp_(latest, 1 - momentum)
