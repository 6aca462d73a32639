"""What the losses are set to: every default once, with its source. The configs of the methods inherit these fields."""

from __future__ import annotations

from dataclasses import dataclass

from justright.settings import NOT_NEGATIVE, POSITIVE, SHARE, YES_OR_NO, refuse_out_of_range, setting


@dataclass(frozen=True)
class ContrastiveSettings:
    """Settings of the two contrastive losses; defaults as in the public code of GCD, XCon and SimGCD."""

    supervised_share: float = setting(0.35, "share of the losses that read labels (lambda)", SHARE)
    temperature_unsup: float = setting(1.0, "temperature of Eq. 1; the paper gives no number", POSITIVE)
    temperature_sup: float = setting(0.07, "temperature of Eq. 2", POSITIVE)

    def __post_init__(self) -> None:
        refuse_out_of_range(self)


@dataclass(frozen=True)
class SimGCDSettings(ContrastiveSettings):
    """Settings of all losses of SimGCD."""

    # the paper prints tau_s here too, yet the two were never equal
    temperature_student: float = setting(0.1, "temperature of the classifier", POSITIVE)
    # as for CUB; SimGCD's scripts have 1 for Cars, Aircraft, Herbarium and ImageNet, 4 for CIFAR-100
    entropy_scale: float = setting(2.0, "weight of the mean entropy in Eq. 5 (epsilon)", NOT_NEGATIVE)
    weigh_contrastive: bool = setting(True, "weights act in Eq. 2 too; in the public code in Eq. 4 only", YES_OR_NO)
