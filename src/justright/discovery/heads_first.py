"""Heads that learn alone first, on features as the network gives them.

A step of heads costs a hundredth of one that also tunes a conv net, and on such features prototypes find most of the
clusters by themselves. Tuned from the first step on, the last stage follows known classes before that.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from justright.discovery.learner import features_of
from justright.discovery.training_data import TrainingData
from justright.features.cuts import Stored
from justright.features.views import Views
from justright.utils.context import track
from justright.utils.seeding import generator
from justright.utils.types import Array

MOST_IMAGES = 20_000  # that heads learn from alone: their features stay in memory
N_FRESH = 4  # views of an image where none are stored


def rows_for_heads(data: TrainingData) -> tuple[Int[Array, " labeled"], Int[Array, " unlabeled"]]:
    """Labeled and unlabeled images from which heads learn alone: all, or evenly spaced ones of many."""
    step = -(-(len(data.labeled) + len(data.unlabeled)) // MOST_IMAGES)
    return data.labeled[::step], data.unlabeled[::step]


class FeatureViews(Views):
    """The features of `n_views` views of some images, as the network gives them now, in memory.

    `views` has what is stored, or drawn, of all images; `rows` are in ascending order.
    """

    def __init__(self, views: Views, rows: Int[Array, " rows"], n_views: int):
        super().__init__(views.backbone, views.images, views.transform, views.seed, views.ids)
        self.views, self.rows, self.n_views = views, rows, n_views
        self.features: Float[Tensor, "views rows dim"] | None = None

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """One feature of each row; all are computed at the first call, which a finished training never makes."""
        if self.features is None:
            found = [
                features_of(self.backbone, self.views, self.rows, np.full_like(self.rows, view))
                for view in track(range(self.n_views), self.n_views, "features of training views")
            ]
            self.features = torch.from_numpy(np.stack(found)).to(self.backbone.device)
        return (self.features[torch.from_numpy(views), torch.from_numpy(np.searchsorted(self.rows, rows))],)

    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Views of each image, drawn without replacement."""
        chance = generator(self.seed, "views of heads", epoch, step).random((self.n_views, n_images))
        return chance.argsort(axis=0)[:n_views]
