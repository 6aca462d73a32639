"""Losses and heads: small modules, tensors in, a scalar out.

Every loss takes the whole batch as views x images, and labels with -1 for an unlabeled image. Several processes gather
the whole batch before they call it, so that no loss deals with processes.
"""

from justright.losses.classification import DistillationLoss, SimGCDObjective, SimGCDSettings, WeightedCrossEntropy
from justright.losses.contrastive import (
    ContrastiveObjective,
    ContrastiveSettings,
    SelfContrastiveLoss,
    WeightedSupConLoss,
)
from justright.losses.mean_shift import CMSObjective, CMSSettings, MeanShiftLoss
from justright.losses.reduction import LossParts, labeled_mean
from justright.losses.self_expertise import (
    DistanceSupConLoss,
    HierarchyLoss,
    SelExObjective,
    SelExSettings,
    SmoothedContrastiveLoss,
)
