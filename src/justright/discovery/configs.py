"""Settings of the methods: frozen dataclasses whose fields have default, help and range. Each method adds its own.

The defaults are those of the published methods, for ViT-B and thousands of images. They are slow on a CPU. The lighter
ones of `small` are not the originals; the run records which were used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple

from jaxtyping import Int

from justright.features.choices import BANK_PRECISIONS, PRECISIONS, BankPrecision, Precision
from justright.losses import ContrastiveSettings
from justright.utils.errors import JustrightError
from justright.utils.settings import (
    BELOW_1,
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    YES_OR_NO,
    Range,
    at_least,
    check_ranges,
    one_of,
    setting,
)
from justright.utils.types import Array

# Default length of training; chosen on drawn characters, docs/research/training.md
STEPS_PER_CATEGORY = 20
STEPS_PER_CATEGORY_WITHOUT_NORM = 12  # for networks without a final norm: a step costs ten times as much
MIN_STEPS = 300
MIN_PASSES = 3  # over all images
STEADY_SHARE = 0.6  # of the epochs are at the first rate
# Learning rate of the tuned part, as a share of that of the heads: of a network without a final norm, whose last stage
# is larger and has nothing that holds it back (docs/research/training.md); and of a ViT with at least so many features
# at a steady rate, which at the full rate forgets what it knows (docs/research/vit.md). Both were chosen on birds.
SHARE_WITHOUT_NORM = 0.02
SHARE_OF_LARGE_VIT, LARGE_VIT = 0.03, 192
MAX_EPOCHS = 50  # of such a training: the rate falls, and a plateau is looked for, once an epoch

KMEANS_FIELDS = ("n_init", "max_iter")

# two views of an image make a pair
VIEWS = Range(lambda value: value == "fresh" or at_least(2).allows(value), f'{at_least(2).expected}, or "fresh"')


@dataclass(frozen=True)
class Config:
    """Settings of every method. `small_settings` and `exact_settings` of a subclass add to those of its bases."""

    small_settings: ClassVar[Mapping[str, Any]] = {"directions": "auto"}
    exact_settings: ClassVar[Mapping[str, Any]] = {"n_init": 100, "max_iter": 200}
    without_effect: ClassVar[Mapping[str, str]] = {}  # settings the method ignores, and why; requesting one raises

    held_out_share: float = setting(0.0, "share of labeled images kept from training to calibrate on; 0: none", BELOW_1)
    n_init: int = setting(10, "restarts of semi-supervised k-means, where a method clusters", COUNT)
    max_iter: int = setting(100, "most iterations of one restart of semi-supervised k-means", COUNT)
    # pooled activations of a conv net differ most by what all categories share
    directions: Literal["auto", "always", "never"] = setting(
        "never",
        "cluster in as many principal directions as categories; auto: unless the network ends in a norm",
        one_of("auto", "always", "never"),
    )

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def sees_labels(self) -> bool:
        """Whether the method uses labeled images."""
        return True

    def in_directions(self, ends_in_norm: bool) -> bool:
        """Whether features are clustered in principal directions; `ends_in_norm` as for `fitted`."""
        return self.directions == "always" or (self.directions == "auto" and not ends_in_norm)

    def with_settings(self, settings: Mapping[str, Any]) -> Any:
        """Return a copy with some settings changed; unknown names raise."""
        known = {item.name for item in fields(self)}
        if unknown := sorted(set(settings) - known):
            raise JustrightError(
                f"{type(self).__name__} has no setting {unknown[0]!r}", expected=f"one of {', '.join(sorted(known))}"
            )
        return replace(self, **settings)

    def small(self) -> Any:
        """Return lighter settings for a CPU and small networks; not the original method."""
        return self.with_settings(self._of_all_bases("small_settings"))

    def exact(self) -> Any:
        """Return the settings of the published scripts, also where the defaults save work: `--scale paper`."""
        return self.with_settings(self._of_all_bases("exact_settings"))

    def _of_all_bases(self, name: str) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        for each in reversed(type(self).__mro__):  # bases first
            settings |= vars(each).get(name, {})
        return settings

    def fitted(self, n_images: int, n_categories: int, ends_in_norm: bool = True) -> Any:
        """Return a copy with unset values that depend on data and network filled in.

        ends_in_norm: whether features leave the network through a norm, as those of a ViT do.
        """
        return self

    def for_classes(self, sizes: Int[Array, " classes"]) -> Any:
        """Return a copy adapted to the sizes of the labeled classes."""
        return self


@dataclass(frozen=True)
class TrainConfig(ContrastiveSettings, Config):
    """Settings of all trained methods; defaults as in the scripts of GCD and SimGCD."""

    has_teacher: ClassVar[bool] = False  # a copy of all that is trained follows it, and is in checkpoints too
    # length of training by the data, a steady rate first, and narrower heads
    small_settings = {"n_epochs": None, "steady_share": STEADY_SHARE, "hidden_dim": 512, "out_dim": 128}  # noqa: RUF012
    exact_settings = {"views": "fresh"}  # noqa: RUF012

    n_epochs: int | None = setting(200, "epochs of training; None: by images and categories", COUNT.or_none())
    # a pool that guides does not make an epoch longer
    n_steps: int | None = setting(None, "steps an epoch; None: as many as fill batches", COUNT.or_none())
    batch_size: int = setting(128, "images a step", COUNT)
    learning_rate: float = setting(0.1, "learning rate of the heads in the first epoch", NOT_NEGATIVE)
    backbone_share: float | None = setting(
        None, "rate of the tuned part, as a share of the heads'; None: by network", SHARE.or_none()
    )
    # above 0, training may end early: at a plateau, or when time is up
    steady_share: float = setting(0.0, "share of the epochs at the first rate, before it falls", BELOW_1)
    minutes: float | None = setting(None, "minutes for training, which then has fewer epochs", POSITIVE.or_none())
    floor_share: float = setting(1e-3, "the last learning rate, as a share of the first", SHARE)
    momentum: float = setting(0.9, "momentum of SGD", BELOW_1)
    weight_decay: float = setting(5e-5, "weight decay of SGD", NOT_NEGATIVE)
    decay_vectors: bool = setting(True, "biases and other vectors decay too: in GCD and XCon, not in SimGCD", YES_OR_NO)
    guide_share: float = setting(0.25, "guiding images a step, as a share of batch_size; 0: none", NOT_NEGATIVE)
    guide_scale: float = setting(1.0, "factor of the loss on guiding images beside the method's own", NOT_NEGATIVE)
    hidden_dim: int = setting(2048, "width of the projection head", COUNT)
    out_dim: int = setting(256, "output size of the projection head", COUNT)
    views: int | Literal["fresh"] = setting(4, 'views of an image in the bank; "fresh": new ones at every step', VIEWS)
    views_by_seed: bool = setting(False, "views drawn by the seed of the run; else all seeds share them", YES_OR_NO)
    bank_precision: BankPrecision = setting("float16", "number format of stored views", one_of(*BANK_PRECISIONS))
    precision: Precision = setting("float32", "precision of training; losses stay in float32", one_of(*PRECISIONS))
    # less memory, more time, the same gradient
    micro_batch: int | None = setting(None, "views through the tuned part at once; None: all", COUNT.or_none())

    def fitted(self, n_images: int, n_categories: int, ends_in_norm: bool = True) -> Any:
        """Return a copy with a number of epochs; if it was not set, epochs are short enough for a smooth schedule."""
        if self.minutes is not None and not self.steady_share:
            return replace(self, steady_share=STEADY_SHARE).fitted(n_images, n_categories, ends_in_norm)
        if self.n_epochs is not None:
            return self
        passes = MIN_PASSES * n_images / self.batch_size
        n_steps = math.ceil(max(self.min_steps(n_categories, ends_in_norm), passes))
        an_epoch = self.n_steps or min(max(1, n_images // self.batch_size), math.ceil(n_steps / MAX_EPOCHS))
        return replace(self, n_epochs=math.ceil(n_steps / an_epoch), n_steps=an_epoch)

    def tuned_share(self, ends_in_norm: bool, dim: int) -> float:
        """The learning rate of the tuned part, as a share of that of the heads, for features of `dim` numbers."""
        if self.backbone_share is not None:
            return self.backbone_share
        if not ends_in_norm:
            return SHARE_WITHOUT_NORM
        return SHARE_OF_LARGE_VIT if self.steady_share and dim >= LARGE_VIT else 1.0

    def head_size(self, dim: int, n_categories: int) -> int:
        """Number of trained parameters of the heads, for features of `dim` numbers."""
        return projection_size(dim, self.hidden_dim, self.out_dim)

    def extra_checkpoint_bytes(self, n_seen: int, n_categories: int, n_known: int) -> int:
        """Bytes in a checkpoint beside the parameters, for `n_seen` images in training."""
        return 0

    def min_steps(self, n_categories: int, ends_in_norm: bool) -> int:
        """Minimum number of steps for so many categories, if the length is not set."""
        return max(MIN_STEPS, n_categories * (STEPS_PER_CATEGORY if ends_in_norm else STEPS_PER_CATEGORY_WITHOUT_NORM))


class PlannedTraining(NamedTuple):
    """One training of a method, with settings that fit the data."""

    config: Any
    streams: tuple[str, ...]  # the kinds of views that it reads
    part: str = ""  # its folder inside that of the run: one of `FIRST_PARTS`, or "" for the last training

    @property
    def is_tuned(self) -> bool:
        """Whether the network is trained, not the heads alone."""
        return self.part != "heads"

    def n_steps(self, n_seen: int) -> int:
        """Number of steps for batches from `n_seen` images.

        Training may end earlier, at a plateau or when time is up. There are more steps if an expert of XCon has more
        than its share of the images and `n_steps` is not set.
        """
        return (self.config.n_epochs or 1) * (self.config.n_steps or max(1, n_seen // self.config.batch_size))


def projection_size(dim: int, hidden_dim: int, out_dim: int, n_out: int | None = None) -> int:
    """The number of parameters of a `ProjectionHead`."""
    layers = (dim + 1) * hidden_dim + (hidden_dim + 1) * hidden_dim + (hidden_dim + 1) * out_dim
    return layers + (n_out or 0) * out_dim
