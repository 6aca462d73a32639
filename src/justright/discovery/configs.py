"""What methods can be set to: frozen dataclasses whose fields say default, help and range. Each method adds its own.

The defaults are those of the published methods, meant for ViT-B and thousands of images. They are slow on a CPU; the
lighter ones of `small` are not the originals, and the run says which were used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from justright.errors import JustrightError
from justright.features.bank_records import BANK_PRECISIONS, BankPrecision
from justright.features.feature_network import PRECISIONS, Precision
from justright.losses import ContrastiveSettings
from justright.settings import (
    BELOW_1,
    COUNT,
    NOT_NEGATIVE,
    SHARE,
    YES_OR_NO,
    Range,
    at_least,
    one_of,
    refuse_out_of_range,
    setting,
)

SMALL_EPOCHS = 30  # epochs of the small form, unless somebody asks for another number

# two views of an image make a pair
VIEWS = Range(lambda value: value == "fresh" or at_least(2).allows(value), f'{at_least(2).expected}, or "fresh"')


@dataclass(frozen=True)
class Config:
    """What every method can be set to."""

    held_out_share: float = setting(0.0, "share of labeled images kept to calibrate on; 0: all of them", BELOW_1)
    n_init: int = setting(10, "restarts of semi-supervised k-means, where a method clusters", COUNT)
    max_iter: int = setting(100, "iterations of one such restart at most", COUNT)

    def __post_init__(self) -> None:
        refuse_out_of_range(self)

    @property
    def sees_labels(self) -> bool:
        """Whether the method learns from labeled images at all."""
        return True

    def with_settings(self, settings: Mapping[str, Any]) -> Any:
        """The same with some settings changed, as `asdict` gives them; a name that it lacks is refused."""
        known = {item.name for item in fields(self)}
        if unknown := sorted(set(settings) - known):
            raise JustrightError(
                f"{type(self).__name__} has no setting {unknown[0]!r}", expected=f"one of {', '.join(sorted(known))}"
            )
        return replace(self, **settings)

    def small(self, n_epochs: int = SMALL_EPOCHS) -> Any:
        """A lighter form of the method for a CPU and small networks. Not the original."""
        return self

    def exact(self) -> Any:
        """The method as its scripts run it, also where the defaults save work: `--scale paper`."""
        return self.with_settings({"n_init": 100, "max_iter": 200})


@dataclass(frozen=True)
class TrainConfig(ContrastiveSettings, Config):
    """What all trained methods share; defaults as in the scripts of GCD and SimGCD."""

    n_epochs: int = setting(200, "epochs of training", COUNT)
    # a pool that guides does not make an epoch longer
    n_steps: int | None = setting(None, "steps an epoch; None: as many as fill batches", COUNT.or_none())
    batch_size: int = setting(128, "images a step", COUNT)
    learning_rate: float = setting(0.1, "learning rate of the heads in the first epoch", NOT_NEGATIVE)
    # None: 1, as published, for a network that ends in a norm, as a ViT does; 0.02 for others, whose last stage is
    # larger and has nothing that holds it back
    backbone_share: float | None = setting(None, "rate of the tuned part, as a share of the heads'", SHARE.or_none())
    floor_share: float = setting(1e-3, "the last learning rate, as a share of the first", SHARE)
    momentum: float = setting(0.9, "momentum of SGD", BELOW_1)
    weight_decay: float = setting(5e-5, "weight decay of SGD", NOT_NEGATIVE)
    decay_vectors: bool = setting(True, "biases and other vectors decay too: in GCD and XCon, not in SimGCD", YES_OR_NO)
    guide_share: float = setting(0.25, "guiding images a step, as a share of batch_size; 0: none", NOT_NEGATIVE)
    guide_scale: float = setting(1.0, "factor of their loss beside the supervised ones of the method", NOT_NEGATIVE)
    hidden_dim: int = setting(2048, "width of the projection head", COUNT)
    out_dim: int = setting(256, "numbers that the projection head gives", COUNT)
    views: int | Literal["fresh"] = setting(4, 'views of an image in the bank; "fresh": new ones at every step', VIEWS)
    views_by_seed: bool = setting(False, "views drawn by the seed of the run; else all seeds share them", YES_OR_NO)
    refresh: float = setting(0.0, "share of the bank that is drawn anew at each epoch", SHARE)
    bank_precision: BankPrecision = setting("float16", "precision of the bank", one_of(*BANK_PRECISIONS))
    precision: Precision = setting("float32", "of the network in training; losses stay in float32", one_of(*PRECISIONS))
    # less memory, more time, the same gradient
    micro_batch: int | None = setting(None, "views through the tuned part at once; None: all", COUNT.or_none())

    def small(self, n_epochs: int = SMALL_EPOCHS) -> Any:
        """Fewer epochs, narrower heads."""
        return self.with_settings({"n_epochs": n_epochs, "hidden_dim": 512, "out_dim": 128})

    def exact(self) -> Any:
        """With new views at every step."""
        return super().exact().with_settings({"views": "fresh"})
