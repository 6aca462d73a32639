"""muGCD: SimGCD with a slow teacher who sees easier views (Vaze et al., NeurIPS 2023).

A reconstruction: no code of the method is public, and what is known comes from its paper at second hand. Every such
choice is a field of MuGCDConfig, and docs/decisions.md says where it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from justright.data.batches import BalancedBatches
from justright.data.views import Strong, Transform
from justright.discovery.configs import MuGCDConfig
from justright.discovery.gcd import GCDLearner, balanced_batches
from justright.discovery.learner import Outputs
from justright.discovery.simgcd import HeadOutputs, SimGCD, SimGCDLearner
from justright.discovery.training_data import TrainingData
from justright.features.backbone import Backbone, Stored
from justright.features.stored_views import Views
from justright.models import MeanTeacher, teacher_momentum
from justright.progress import Track


class Student(nn.Module):
    """Tuned part and heads as one network, for the teacher to follow."""

    def __init__(self, backbone: Backbone, heads: nn.Module):
        super().__init__()
        self.backbone = backbone
        self.heads = heads

    def forward(self, *stored: Tensor) -> HeadOutputs:
        """From what the frozen part gave to projections and logits."""
        found: HeadOutputs = self.heads(self.backbone.suffix(stored))
        return found


class MuGCDLearner(SimGCDLearner):
    """Eq. 6 on two strong views; what the teacher says of one weak view guides both."""

    streams = {"strong": 2, "weak": 1}  # noqa: RUF012

    def __init__(self, backbone: Backbone, config: MuGCDConfig, *rest: Any):
        super().__init__(backbone, config, *rest)
        self.momentum = (config.n_epochs, config.momentum_base, config.momentum_last)
        self.student = Student(self.backbone, self.heads)
        self.teacher = MeanTeacher(self.student)

    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Projections and logits of the student, logits of the teacher."""
        found: HeadOutputs = self.heads(self.features(stored["strong"], 2))
        of_teacher: HeadOutputs = self.teacher(*stored["weak"])
        logits = of_teacher.logits.unsqueeze(0)
        return {"projections": found.projections, "logits": found.logits, "teacher_logits": logits}

    def after_step(self, epoch: int) -> None:
        """The teacher moves towards the student."""
        self.teacher.update(self.student, teacher_momentum(epoch, *self.momentum))

    def changing(self) -> dict[str, Tensor]:
        """Student and teacher."""
        own = super().changing()
        students = {name for name, p in self.student.named_parameters() if p.requires_grad}
        teacher = dict(self.teacher.network.named_parameters())
        return own | {f"teacher.{name}": teacher[name] for name in sorted(students)}


class MuGCD(SimGCD):
    """GCD's representation first, then SimGCD's losses with a mean teacher, who also decides."""

    name = "mugcd"
    config_class = MuGCDConfig

    def _transform(self, stream: str) -> Transform:
        if stream != "strong":
            return super()._transform(stream)
        often, guess = self.config.strong_color, Strong()
        return Strong(
            scale=(self.config.strong_area, 1.0),
            jitter=often * guess.jitter,
            grayscale=often * guess.grayscale,
            blur=often * guess.blur,
        )

    def _learn(self, data: TrainingData, plain: Views, track: Track) -> None:
        config: MuGCDConfig = self.config
        stages = (None, None) if self.folder is None else (self.folder / "stage1", self.folder)
        first = config.stage1
        batches: BalancedBatches = balanced_batches(data, first.batch_size, self.seed)
        learner = GCDLearner(self.backbone_, first, batches, self._torch_generator("heads of stage 1"))
        self._train(learner, data, plain, first, stages[0], track, stage=1)

        batches = balanced_batches(data, config.batch_size, self.seed)
        self._center = self._center_of(data, plain)
        heads = self._torch_generator("heads")
        second = MuGCDLearner(self.backbone_, config, batches, self.n_categories, heads, self._center)
        self._train(second, data, plain, config, stages[1], track, stage=2)
        decides: Any = second.teacher.network if config.infer_with == "teacher" else second.student
        found = dict(decides.backbone.model.named_parameters())
        self.backbone_.load_tuned_state({name: found[name] for name in self.backbone_.tuned_state()})
        self._prototypes = decides.heads.classifier.prototypes.detach().cpu().numpy()
