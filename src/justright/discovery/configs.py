"""What each method is set to: one frozen dataclass each, every default with its source.

The defaults are those of the published methods, meant for ViT-B and thousands of images. They are slow on a CPU; the
presets of `small` are not the originals, but light, and the run says which were used.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from justright.discovery.ranges import refuse_out_of_range
from justright.errors import JustrightError
from justright.features.bank_records import BankPrecision
from justright.features.feature_network import Precision
from justright.losses.defaults import (
    ENTROPY_SCALE,
    SUPERVISED_SHARE,
    TEMPERATURE_STUDENT,
    TEMPERATURE_SUP,
    TEMPERATURE_UNSUP,
)


@dataclass(frozen=True)
class Config:
    """What every method can be set to."""

    held_out_share: float = 0.0
    """Of the labeled images, kept from learning to calibrate the confidence; 0, as published, calibrates on all."""

    n_init: int = 10
    """Restarts of semi-supervised k-means, as in GCD's code; not used where a classifier decides."""

    def __post_init__(self) -> None:
        refuse_out_of_range(vars(self))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Any:
        """Read what `dataclasses.asdict` gave."""
        return with_settings(cls(), values)


@dataclass(frozen=True)
class KMeansConfig(Config):
    """Clusters of frozen features."""

    use_labels: bool = True
    """Semi-supervised k-means; without labels it is the k-means row of the tables."""


@dataclass(frozen=True)
class TrainConfig(Config):
    """What all trained methods share; defaults as in the scripts of GCD and SimGCD."""

    n_epochs: int = 200
    n_steps: int | None = None
    """Steps an epoch. None: as many as there are full batches of own and target images; a pool that guides does not
    make an epoch longer."""
    batch_size: int = 128
    learning_rate: float = 0.1
    backbone_share: float | None = None
    """The learning rate of the tuned part, as a share of that of the heads. None: 1, as published, for a network that
    ends in a norm, as a ViT does; 0.02 for others, whose last stage is larger and has nothing that holds it back."""
    floor_share: float = 1e-3
    """The last learning rate, as a share of the first."""
    momentum: float = 0.9
    weight_decay: float = 5e-5
    decay_vectors: bool = True
    """Whether biases and other vectors decay too: all in GCD and XCon, not in SimGCD."""

    supervised_share: float = SUPERVISED_SHARE
    temperature_unsup: float = TEMPERATURE_UNSUP
    temperature_sup: float = TEMPERATURE_SUP

    guide_share: float = 0.25
    """Images of a pool that guides which join each step, as a share of batch_size; 0 leaves the pool out."""
    guide_scale: float = 1.0
    """What their loss counts for beside the supervised ones of the method."""

    hidden_dim: int = 2048
    """Width of the projection head."""
    out_dim: int = 256

    views: int | Literal["fresh"] = 4
    """Views an image in the bank; "fresh" draws new ones at every step, as published, and stores nothing."""
    refresh: float = 0.0
    """Share of the bank that is drawn anew at each epoch."""
    bank_precision: BankPrecision = "float16"
    precision: Precision = "float32"
    """Of the network in training; the halves are mixed precision, losses stay in float32."""
    micro_batch: int | None = None
    """Views that go through the tuned part at once: less memory, more time, the same gradient. None takes all."""


@dataclass(frozen=True)
class GCDConfig(TrainConfig):
    """GCD, Vaze et al., CVPR 2022."""

    n_out: int | None = 65536
    """Learned vectors after the projection head, on which the losses act in the public code."""


@dataclass(frozen=True)
class XConConfig(GCDConfig):
    """XCon, Fei et al., BMVC 2022."""

    batch_size: int = 256
    n_experts: int = 8
    expert_scale: float = 0.1
    """What the mean loss of the experts counts for beside the global one."""


@dataclass(frozen=True)
class SimGCDConfig(TrainConfig):
    """SimGCD, Wen et al., ICCV 2023."""

    decay_vectors: bool = False
    temperature_student: float = TEMPERATURE_STUDENT
    entropy_scale: float = ENTROPY_SCALE
    temperature_teacher_first: float = 0.07
    temperature_teacher: float = 0.04
    n_warmup: int = 30
    """Epochs in which the teacher's temperature falls from first to last."""
    center: Literal["auto", "always", "never"] = "auto"
    """Whether the heads see features without their mean over all images before training; auto: unless the network
    ends in a norm. Pooled activations share a large part, which prototypes of known classes learn first; all images
    then lie closer to those than to any other, and new categories come into use late or never."""


@dataclass(frozen=True)
class MuGCDConfig(SimGCDConfig):
    """muGCD, Vaze et al., NeurIPS 2023: a reconstruction, for no code is public."""

    momentum_base: float = 0.7
    momentum_last: float = 0.999
    """Of the mean teacher; both second-hand."""
    infer_with: Literal["teacher", "student"] = "teacher"
    strong_area: float = 0.3
    """The smallest share of an image that a strong view shows; the recipe is unknown, and this one a guess."""
    strong_color: float = 1.0
    """How often strong views change color and sharpness, as a share of that guess; 0 leaves crop and flip."""
    stage1: GCDConfig = field(default_factory=GCDConfig)
    """The representation is first trained as in GCD."""


def small(config: Any, n_epochs: int = 30, **more: Any) -> Any:
    """A lighter form of a method for a CPU and small networks: fewer epochs, narrower heads. Not the original."""
    changes: dict[str, Any] = {"n_epochs": n_epochs, "hidden_dim": 512, "out_dim": 128} | more
    names = {item.name for item in fields(config)}
    if "n_out" in names:
        changes.setdefault("n_out", None)
    if "n_warmup" in names:
        changes.setdefault("n_warmup", max(2, n_epochs // 2))  # 30 of 200 would be too few steps for many categories
    if "stage1" in names:
        shared = {item.name for item in fields(config.stage1)} & more.keys()
        changes.setdefault("stage1", small(config.stage1, n_epochs, **{name: more[name] for name in shared}))
    return with_settings(config, changes)


def with_settings(config: Any, settings: dict[str, Any]) -> Any:
    """The config with some fields set; a name it lacks is refused with those it has."""
    known = {item.name for item in fields(config)}
    if unknown := sorted(set(settings) - known):
        raise JustrightError(
            f"{type(config).__name__} has no setting {unknown[0]!r}", expected=f"one of {', '.join(sorted(known))}"
        )
    if isinstance(stage1 := settings.get("stage1"), dict):
        settings = settings | {"stage1": with_settings(config.stage1, stage1)}
    return replace(config, **settings)
