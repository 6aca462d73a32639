"""Whether training still changes anything: how many target images change category from one epoch to the next."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from justright.discovery.learner import Learner, features_of
from justright.discovery.training_data import TrainingData
from justright.features.views import Views
from justright.utils.types import Array

MOST_IMAGES = 2048  # of the target that are asked: enough to tell a change of one in a hundred
COMPARED_SHARE, FEWEST_COMPARED = 0.15, 6  # epochs that are compared with as many before them, of all planned ones
LEAST_FALL = 0.97  # a plateau: they change at least this share of what those before them changed
STILL = 0.005  # or: less than this share of the images changes category from one epoch to the next


class Assignments:
    """The categories of images of the target, looked at after every epoch under the test transform."""

    def __init__(self, data: TrainingData, plain: Views):
        self.rows, self.plain = data.unlabeled[:: -(-len(data.unlabeled) // MOST_IMAGES)], plain
        self.categories: Int[Array, " asked"] = np.full(len(self.rows), -1, dtype=np.int64)

    def change(self, learner: Learner) -> float:
        """The share of images whose category is another one than at the last call, for a learner that can tell it."""
        before = self.categories
        self.categories = learner.categories_of(features_of(learner.backbone, self.plain, self.rows))
        return float(np.mean(self.categories != before))


def is_plateau(changes: Sequence[float], n_epochs: int) -> bool:
    """Whether the shares of images that changed category, epoch by epoch, fall no longer; n_epochs are planned."""
    n = max(FEWEST_COMPARED, math.ceil(COMPARED_SHARE * n_epochs))
    if len(changes) < 2 * n:
        return False
    before, now = np.mean(changes[-2 * n : -n]), np.mean(changes[-n:])
    return bool(now < STILL or now >= LEAST_FALL * before)
