"""SimGCD: representation and classifier at once, the network its own teacher (Wen et al., ICCV 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from justright.data.batches import BalancedBatches
from justright.discovery.additions import Additions, AdditionSettings
from justright.discovery.assigner import Center, Learned, by_prototypes
from justright.discovery.configs import MOST_EPOCHS, OF_KMEANS
from justright.discovery.heads_first import rows_for_heads
from justright.discovery.learner import BatchLabels, BatchWeights, Learner, Outputs, features_of, mean_feature
from justright.discovery.trained import TrainedDiscovery
from justright.discovery.training_data import TrainingData
from justright.features.backbone import Backbone, Stored
from justright.features.stored_views import Views
from justright.losses import LossParts, SimGCDObjective
from justright.models.heads import ProjectionHead, PrototypeClassifier
from justright.models.schedules import teacher_temperature
from justright.progress import Track
from justright.settings import NOT_NEGATIVE, POSITIVE, YES_OR_NO, at_least, one_of, setting
from justright.types import Array

# The length of both trainings where heads learn alone first; chosen on pets and plants, docs/discovery.md
STEPS_OF_HEADS_A_CATEGORY, FEWEST_STEPS_OF_HEADS = 25, 1000
STEPS_AFTER_HEADS_A_CATEGORY, FEWEST_STEPS_AFTER_HEADS = 6, 200
# Classes are uneven where the squared spread of their sizes, as a share of the mean, is by so much larger than chance
# makes it. Sizes of 10 to 1 in equal ratios have 0.4.
LEAST_UNEVEN = 0.2


@dataclass(frozen=True)
class SimGCDConfig(AdditionSettings):
    """SimGCD, Wen et al., ICCV 2023."""

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
    # on features of a conv net prototypes find most clusters by themselves; a ViT's last block changes its features so
    # much that what heads knew of the old ones brings nothing
    heads_first: int | None = setting(
        0,
        "steps in which the heads learn alone before the network is tuned; None: by categories, and 0 for a network "
        "that ends in a norm",
        at_least(0).or_none(),
    )

    # the mean entropy wants categories of one size: for uneven ones it tears the large ones apart
    entropy_scale_uneven: float | None = setting(
        None,
        "entropy_scale where sizes of labeled classes differ by more than chance; None: the same",
        NOT_NEGATIVE.or_none(),
    )

    def without_effect(self) -> dict[str, str]:
        """The settings of k-means, which is not used."""
        return super().without_effect() | dict.fromkeys(OF_KMEANS, "prototypes decide here, not k-means")

    def small(self) -> Any:
        """The warm-up grows with training: 30 epochs of 200 would be too few steps for many categories."""
        changed = {"n_warmup": None, "heads_first": None, "entropy_scale_uneven": 1.0}
        return super().small().with_settings(changed)

    def with_settings(self, settings: Mapping[str, Any]) -> Any:
        """The same with some settings changed; an entropy that is asked for holds for uneven classes too."""
        asked = {"entropy_scale_uneven": None} if "entropy_scale" in settings else {}
        return super().with_settings(asked | dict(settings))

    def for_classes(self, sizes: Int[Array, " classes"]) -> Any:
        """The same settings, with less entropy where the sizes of labeled classes say that categories are uneven."""
        if self.entropy_scale_uneven is None or not are_uneven(sizes):
            return self
        return replace(self, entropy_scale=self.entropy_scale_uneven)

    def fitted(self, n_images: int, n_categories: int, ends_in_norm: bool = True) -> Any:
        """The same with numbers of steps and epochs."""
        if self.heads_first is None:
            n_steps = 0 if ends_in_norm else max(FEWEST_STEPS_OF_HEADS, STEPS_OF_HEADS_A_CATEGORY * n_categories)
            return replace(self, heads_first=n_steps).fitted(n_images, n_categories, ends_in_norm)
        made = super().fitted(n_images, n_categories, ends_in_norm)
        n_warmup = 0 if made.heads_first else max(2, made.n_epochs // 5)  # what heads know the teacher knows too
        return made if made.n_warmup is not None else replace(made, n_warmup=n_warmup)

    def fewest_steps(self, n_categories: int, ends_in_norm: bool) -> int:
        """Fewer steps where the heads have learned alone before."""
        if not self.heads_first:
            return super().fewest_steps(n_categories, ends_in_norm)
        return max(FEWEST_STEPS_AFTER_HEADS, STEPS_AFTER_HEADS_A_CATEGORY * n_categories)

    def of_heads(self) -> Any:
        """The settings for heads that learn alone: a fifth of it warm-up, and a quarter of the time there is."""
        n_steps = math.ceil((self.heads_first or 0) / MOST_EPOCHS)
        minutes = None if self.minutes is None else self.minutes / 4
        return replace(
            self,
            n_epochs=MOST_EPOCHS,
            n_steps=n_steps,
            n_warmup=MOST_EPOCHS // 5,
            minutes=minutes,
            guide_share=0.0,
            refresh=0.0,
        )

    def after_heads(self) -> Any:
        """The settings of the training after that, with the time that is left."""
        return replace(self, minutes=None if self.minutes is None else self.minutes * 3 / 4)

    def temperature_at(self, epoch: int) -> float:
        """The teacher's temperature in an epoch."""
        return teacher_temperature(epoch, self.temperature_teacher_first, self.temperature_teacher, self.n_warmup or 0)


def are_uneven(sizes: Int[Array, " classes"]) -> bool:
    """Whether class sizes differ by more than if each image fell into any class with the same chance.

    var(n) / mean(n)^2 - 1 / mean(n) > LEAST_UNEVEN
    """
    if len(sizes) < 2 or not sizes.any():
        return False
    return bool(sizes.var() / sizes.mean() ** 2 - 1 / sizes.mean() > LEAST_UNEVEN)


class Heads(nn.Module):
    """A projection head and a prototype classifier side by side on the feature, its `center` taken off."""

    center: Tensor

    def __init__(
        self, dim: int, n_categories: int, config: SimGCDConfig, generator: torch.Generator, center: Center = None
    ):
        super().__init__()
        self.register_buffer("center", torch.zeros(dim) if center is None else torch.from_numpy(center))
        self.projector = ProjectionHead(dim, config.hidden_dim, config.out_dim, generator=generator)
        self.classifier = PrototypeClassifier(n_categories, dim, generator)

    def forward(self, features: Float[Tensor, "*rows dim"]) -> dict[str, Tensor]:
        """The outputs of both heads, `projections` and `logits`."""
        features = features - self.center
        return {"projections": self.projector(features), "logits": self.classifier(features)}

    def categories_of(self, features: Float[Array, "rows dim"]) -> Int[Array, " rows"]:
        """The category of each feature: that of the nearest prototype."""
        with torch.no_grad():
            centered = torch.from_numpy(features).to(self.center.device) - self.center
            return self.classifier(centered).argmax(dim=-1).cpu().numpy()

    def prototypes(self) -> Float[Array, "categories dim"]:
        """The learned prototypes, as numpy."""
        return self.classifier.prototypes.detach().cpu().numpy()


class LearnerWithHeads(Learner):
    """What SimGCD and muGCD share: heads, their losses, and additions to these if there are any."""

    def __init__(
        self,
        backbone: Backbone,
        config: SimGCDConfig,
        batches: BalancedBatches,
        heads: Heads,
        additions: Additions | None = None,
    ):
        super().__init__(backbone, [batches], config.micro_batch)
        self.config = config
        self.heads = heads
        self.losses = SimGCDObjective(config)
        self.additions = additions
        self.n_unsettled = config.n_warmup or 0

    def categories_of(self, features: Float[Array, "rows dim"]) -> Int[Array, " rows"]:
        """The category of each feature: that of the nearest prototype."""
        return self.heads.categories_of(features)

    def of_heads(self, features: Float[Tensor, "*rows dim"]) -> dict[str, Tensor]:
        """What the heads give, and those of the additions, which see the same features."""
        more = {} if self.additions is None else self.additions(features - self.heads.center)
        return self.heads(features) | more

    def taught(
        self, outputs: Outputs, of_teacher: Tensor, labels: BatchLabels, weight: BatchWeights, epoch: int
    ) -> LossParts:
        """The four losses of the batch, and those that are added; `of_teacher` are the logits of the teacher."""
        rows, temperature = (outputs["projections"], outputs["logits"], of_teacher), self.config.temperature_at(epoch)
        parts = self.losses(*rows, labels[0], weight[0], temperature_teacher=temperature)
        return parts if self.additions is None else self.additions.added_to(parts, outputs, labels[0], weight[0])

    def changing(self) -> dict[str, Tensor]:
        """What is learned, and what the additions remember."""
        return super().changing() | ({} if self.additions is None else self.additions.remembered())


class SimGCDLearner(LearnerWithHeads):
    """Eq. 6 on two weak views; the teacher is the network itself, without gradient."""

    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Projections and logits of both views."""
        return self.of_heads(self.features(stored["weak"], 2))

    def objective(self, outputs: Sequence[Outputs], labels: BatchLabels, weight: BatchWeights, epoch: int) -> LossParts:
        """The losses, with the network's own logits as those of the teacher."""
        return self.taught(outputs[0], outputs[0]["logits"], labels, weight, epoch)


def center_of(config: SimGCDConfig, backbone: Backbone, data: TrainingData, plain: Views) -> Center:
    """The mean feature of the images that learning sees, as the backbone is now; None where it stays in."""
    if config.center == "never" or (config.center == "auto" and backbone.cut.ends_in_norm):
        return None
    # not over the guides, whose common part is another
    return mean_feature(backbone, plain, np.concatenate([data.labeled, data.unlabeled]))


class WithHeads(TrainedDiscovery):
    """A method whose heads may learn alone before the network is tuned."""

    def _heads(self, backbone: Backbone, data: TrainingData, plain: Views) -> tuple[Heads, Additions | None, Center]:
        """Heads for the backbone as it is now, what is added to them, and the mean feature that they take off."""
        config, center = self.config, center_of(self.config, backbone, data, plain)
        heads = Heads(backbone.dim, self.n_categories, config, self._torch_generator("heads"), center)
        sizes = self.n_categories, len(data.known), backbone.dim
        return heads, Additions.of(config, *sizes, self._torch_generator("additions")), center

    def _settle(self, heads: Heads, config: SimGCDConfig, data: TrainingData, plain: Views, track: Track) -> Any:
        """Let the heads learn alone, where the settings ask for it; returns the settings of what follows."""
        if not config.heads_first:
            return config
        alone, folder = config.of_heads(), self.folder and self.folder / "heads"
        batches = data.batches(alone.batch_size, self.seed, "heads", *rows_for_heads(data))
        learner = SimGCDLearner(self.backbone_, alone, batches, heads)
        learner.is_tuned = False
        self._train(learner, data, plain, alone, folder, track, stage="heads")
        return config.after_heads()


class SimGCD(WithHeads):
    """Train the last block, a projection head and one prototype for each category; the prototypes decide."""

    name = "simgcd"
    config_class = SimGCDConfig

    def _learn(self, backbone: Backbone, data: TrainingData, plain: Views, track: Track) -> Learned:
        heads, additions, center = self._heads(backbone, data, plain)
        config = self._settle(heads, self.config, data, plain, track)
        learner = SimGCDLearner(backbone, config, data.batches(config.batch_size, self.seed), heads, additions)
        self._train(learner, data, plain, config, self.folder, track)
        return by_prototypes(data, features_of(backbone, plain), heads.prototypes(), center)
