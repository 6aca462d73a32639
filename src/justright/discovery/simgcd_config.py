"""What SimGCD can be set to, and how that depends on the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from jaxtyping import Int

from justright.discovery.configs import KMEANS_FIELDS, MOST_EPOCHS, TrainConfig
from justright.losses import SimGCDSettings
from justright.utils.settings import NOT_NEGATIVE, POSITIVE, YES_OR_NO, at_least, one_of, setting
from justright.utils.types import Array

# The length of both trainings where heads learn alone first; chosen on pets and plants, docs/discovery.md
STEPS_OF_HEADS_A_CATEGORY, FEWEST_STEPS_OF_HEADS = 25, 1000
STEPS_AFTER_HEADS_A_CATEGORY, FEWEST_STEPS_AFTER_HEADS = 6, 200
# Classes are uneven where the squared spread of their sizes, as a share of the mean, is by so much larger than chance
# makes it. Sizes of 10 to 1 in equal ratios have 0.4.
LEAST_UNEVEN = 0.2


@dataclass(frozen=True)
class SimGCDConfig(SimGCDSettings, TrainConfig):
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
        return super().without_effect() | dict.fromkeys(KMEANS_FIELDS, "prototypes decide here, not k-means")

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

    def head_size(self, dim: int, n_categories: int) -> int:
        """The projection head and the prototypes."""
        return super().head_size(dim, n_categories) + n_categories * dim

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
        )

    def after_heads(self) -> Any:
        """The settings of the training after that, with the time that is left."""
        return replace(self, minutes=None if self.minutes is None else self.minutes * 3 / 4)


def are_uneven(sizes: Int[Array, " classes"]) -> bool:
    """Whether class sizes differ by more than if each image fell into any class with the same chance.

    var(n) / mean(n)^2 - 1 / mean(n) > LEAST_UNEVEN
    """
    if len(sizes) < 2 or not sizes.any():
        return False
    return bool(sizes.var() / sizes.mean() ** 2 - 1 / sizes.mean() > LEAST_UNEVEN)
