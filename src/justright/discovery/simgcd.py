"""SimGCD: representation and classifier at once, the network its own teacher (Wen et al., ICCV 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from justright.data.batches import BalancedBatches
from justright.discovery.assigner import CategoryAssigner, Center, Learned
from justright.discovery.base import TrainedDiscovery
from justright.discovery.configs import KMEANS_FIELDS, MAX_EPOCHS, PlannedTraining, TrainConfig
from justright.discovery.learner import (
    BatchLabels,
    BatchWeights,
    FitInputs,
    Learner,
    Outputs,
    rows_for_heads,
)
from justright.discovery.loop import teacher_temperature
from justright.features.backbone import Backbone, Stored
from justright.losses import LossParts, SimGCDObjective, SimGCDSettings
from justright.losses.heads import ProjectionHead, PrototypeClassifier
from justright.utils.settings import NOT_NEGATIVE, POSITIVE, YES_OR_NO, at_least, one_of, setting
from justright.utils.types import Array

# Length of both trainings if heads are trained alone first; chosen on pets and plants, docs/research/training.md
HEAD_STEPS_PER_CATEGORY, MIN_HEAD_STEPS = 25, 1000
STEPS_AFTER_HEADS_PER_CATEGORY, MIN_STEPS_AFTER_HEADS = 6, 200
# Classes are uneven if var(n) / mean(n)^2 exceeds its expected value 1 / mean(n) by more than this. Sizes from 10 to 1
# in a geometric series have 0.4.
UNEVEN_THRESHOLD = 0.2


@dataclass(frozen=True)
class SimGCDConfig(SimGCDSettings, TrainConfig):
    """SimGCD, Wen et al., ICCV 2023."""

    # the warm-up grows with training: 30 epochs of 200 would be too few steps for many categories
    small_settings = {"n_warmup": None, "heads_first": None, "entropy_scale_uneven": 1.0}  # noqa: RUF012
    without_effect = dict.fromkeys(KMEANS_FIELDS, "the method assigns by prototypes, not k-means")

    decay_vectors: bool = setting(
        False, "biases and other vectors decay too: in GCD and XCon, not in SimGCD", YES_OR_NO
    )
    temperature_teacher_first: float = setting(0.07, "temperature of the teacher in the first epoch", POSITIVE)
    temperature_teacher: float = setting(0.04, "temperature of the teacher after the warm-up", POSITIVE)
    n_warmup: int | None = setting(
        30, "epochs in which the teacher's temperature falls; None: a fifth of all", at_least(0).or_none()
    )
    # Pooled activations share a large part, which prototypes of known classes learn first; all images then lie closer
    # to those than to any other, and new categories come into use late or never.
    center: Literal["auto", "always", "never"] = setting(
        "auto",
        "whether the heads see features without their mean before training; auto: unless the network ends in a norm",
        one_of("auto", "always", "never"),
    )
    # useful for conv nets, where prototypes find most clusters on frozen features; a ViT's last block changes its
    # features so much that heads trained before do not help
    heads_first: int | None = setting(
        0,
        "steps that train the heads alone before the network is tuned; None: by categories, and 0 for a network "
        "that ends in a norm",
        at_least(0).or_none(),
    )

    # the mean entropy favors categories of equal size and splits large categories if sizes are uneven
    entropy_scale_uneven: float | None = setting(
        None,
        "entropy_scale where sizes of labeled classes differ by more than chance; None: the same",
        NOT_NEGATIVE.or_none(),
    )

    def with_settings(self, settings: Mapping[str, Any]) -> Any:
        """Return a copy with some settings changed; `entropy_scale` then also holds for uneven classes."""
        implied = {"entropy_scale_uneven": None} if "entropy_scale" in settings else {}
        return super().with_settings(implied | dict(settings))

    def for_classes(self, sizes: Int[Array, " classes"]) -> Any:
        """Return a copy with `entropy_scale_uneven` if the sizes of labeled classes are uneven."""
        if self.entropy_scale_uneven is None or not are_uneven(sizes):
            return self
        return replace(self, entropy_scale=self.entropy_scale_uneven)

    def fitted(self, n_images: int, n_categories: int, ends_in_norm: bool = True) -> Any:
        """Return a copy with the number of steps and epochs filled in."""
        if self.heads_first is None:
            n_steps = 0 if ends_in_norm else max(MIN_HEAD_STEPS, HEAD_STEPS_PER_CATEGORY * n_categories)
            return replace(self, heads_first=n_steps).fitted(n_images, n_categories, ends_in_norm)
        fitted = super().fitted(n_images, n_categories, ends_in_norm)
        n_warmup = 0 if fitted.heads_first else max(2, fitted.n_epochs // 5)  # trained heads need no warm-up
        return fitted if fitted.n_warmup is not None else replace(fitted, n_warmup=n_warmup)

    def min_steps(self, n_categories: int, ends_in_norm: bool) -> int:
        """Fewer steps if the heads were trained before."""
        if not self.heads_first:
            return super().min_steps(n_categories, ends_in_norm)
        return max(MIN_STEPS_AFTER_HEADS, STEPS_AFTER_HEADS_PER_CATEGORY * n_categories)

    def head_size(self, dim: int, n_categories: int) -> int:
        """Parameters of the projection head and the prototypes."""
        return super().head_size(dim, n_categories) + n_categories * dim

    def for_heads_only(self) -> Any:
        """Settings for training the heads alone: a fifth of it is warm-up, and it gets a quarter of the time."""
        n_steps = math.ceil((self.heads_first or 0) / MAX_EPOCHS)
        minutes = None if self.minutes is None else self.minutes / 4
        return replace(
            self,
            n_epochs=MAX_EPOCHS,
            n_steps=n_steps,
            n_warmup=MAX_EPOCHS // 5,
            minutes=minutes,
            guide_share=0.0,
        )

    def after_heads(self) -> Any:
        """Settings of the training after that, with the remaining time."""
        return replace(self, minutes=None if self.minutes is None else self.minutes * 3 / 4)


def are_uneven(sizes: Int[Array, " classes"]) -> bool:
    """Whether class sizes differ by more than chance, if each image had any class with equal probability.

    var(n) / mean(n)^2 - 1 / mean(n) > UNEVEN_THRESHOLD
    """
    if len(sizes) < 2 or not sizes.any():
        return False
    return bool(sizes.var() / sizes.mean() ** 2 - 1 / sizes.mean() > UNEVEN_THRESHOLD)


class Heads(nn.Module):
    """A projection head and a prototype classifier on the feature minus `center`."""

    center: Tensor

    def __init__(
        self, dim: int, n_categories: int, config: SimGCDConfig, generator: torch.Generator, center: Center = None
    ):
        super().__init__()
        self.subtracted = center  # None: nothing is subtracted, and `center` is 0
        self.register_buffer("center", torch.zeros(dim) if center is None else torch.from_numpy(center))
        self.projector = ProjectionHead(dim, config.hidden_dim, config.out_dim, generator=generator)
        self.classifier = PrototypeClassifier(n_categories, dim, generator)

    def forward(self, features: Float[Tensor, "*rows dim"]) -> dict[str, Tensor]:
        """The outputs of both heads, `projections` and `logits`."""
        features = features - self.center
        return {"projections": self.projector(features), "logits": self.classifier(features)}

    def assigner(self) -> CategoryAssigner:
        """Return an assigner to the prototype with the largest cosine."""
        return CategoryAssigner.of_prototypes(self.classifier.prototypes.detach().cpu().numpy(), self.subtracted)


class SimGCDLearner(Learner):
    """Eq. 6 on two weak views; the teacher is the network itself, without gradient."""

    def __init__(self, backbone: Backbone, config: SimGCDConfig, batches: BalancedBatches, heads: Heads):
        super().__init__(backbone, [batches], config.micro_batch)
        self.config, self.heads = config, heads
        self.losses = SimGCDObjective(config)
        self.n_unsettled = config.n_warmup or 0

    def categories_of(self, features: Float[Array, "rows dim"]) -> Int[Array, " rows"]:
        """Return the nearest prototype of each feature."""
        with torch.no_grad():
            centered = torch.from_numpy(features).to(self.heads.center.device) - self.heads.center
            return self.heads.classifier(centered).argmax(dim=-1).cpu().numpy()

    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Projections and logits of both views."""
        return self.heads(self.features(stored["weak"], 2))

    def objective(self, outputs: Sequence[Outputs], labels: BatchLabels, weight: BatchWeights, epoch: int) -> LossParts:
        """The four losses of the batch; without `teacher_logits` the network is its own teacher."""
        output, config = outputs[0], self.config
        temperature = teacher_temperature(
            epoch, config.temperature_teacher_first, config.temperature_teacher, config.n_warmup or 0
        )
        return self.losses(
            output["projections"],
            output["logits"],
            output.get("teacher_logits", output["logits"]),
            labels[0],
            weight[0],
            temperature_teacher=temperature,
        )


class SimGCD(TrainedDiscovery):
    """Train the last block, a projection head and one prototype per category; prototypes assign the images.

    The heads may be trained alone before the network is tuned.
    """

    name = "simgcd"
    config_class = SimGCDConfig

    @classmethod
    def trainings(cls, config: Any) -> list[PlannedTraining]:
        """The heads alone if `heads_first` is set, then everything."""
        if not config.heads_first:
            return super().trainings(config)
        heads = PlannedTraining(config.for_heads_only(), tuple(SimGCDLearner.streams), "heads")
        return [heads, *super().trainings(config.after_heads())]

    def _learn(self, inputs: FitInputs) -> Learned:
        heads, config = self._heads(inputs, self.config_)
        batches = inputs.data.batches(config.batch_size, self.seed)
        self._train(SimGCDLearner(inputs.backbone, config, batches, heads), inputs, config)
        return self._by_prototypes(inputs, heads)

    def _heads(self, inputs: FitInputs, config: Any) -> tuple[Heads, Any]:
        """Make the heads, and train them alone if `heads_first` is set.

        Returns them and the settings of the next training.
        """
        backbone, data, center = inputs.backbone, inputs.data, None
        if config.center == "always" or (config.center == "auto" and not backbone.cut.ends_in_norm):
            center = inputs.mean_feature(data.seen)  # without the pool, whose mean differs
        heads = Heads(backbone.dim, self.n_categories_, config, self._torch_generator("heads"), center)
        if not config.heads_first:
            return heads, config
        alone = config.for_heads_only()
        batches = data.batches(alone.batch_size, self.seed, "heads", *rows_for_heads(data))
        learner = SimGCDLearner(backbone, alone, batches, heads)
        learner.is_tuned = False
        self._train(learner, inputs, alone, "heads", stage="heads")
        return heads, config.after_heads()

    def _by_prototypes(self, inputs: FitInputs, heads: Heads) -> Learned:
        """Assign each target image to the prototype with the largest cosine."""
        assigner = heads.assigner()
        category, _, _ = assigner.assign(inputs.features()[inputs.data.n_labeled :])
        return Learned(assigner, category)
