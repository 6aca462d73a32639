"""TrainedDiscovery: what the methods with training in them have in common."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import torch

from justright.discovery.base import Discovery
from justright.discovery.configs import PlannedTraining, TrainConfig
from justright.discovery.guide import Guide
from justright.discovery.heads_first import N_FRESH, FeatureViews
from justright.discovery.learner import FitInputs, Learner, mean_feature
from justright.discovery.loop import Training
from justright.features.views import Views
from justright.utils.seeding import generator


class TrainedDiscovery(Discovery):
    """A method with training in it: its `_learn` makes a learner and takes it through the loop with `_train`."""

    config_class: ClassVar[type[TrainConfig]]
    has_categories: ClassVar[bool] = False  # whether training tells them, and ends where they change no more
    features_an_epoch: ClassVar[int] = 0  # of each image, before its first step

    @classmethod
    def trainings(cls, config: Any) -> list[PlannedTraining]:
        """One training, with the views that a learner reads unless it says otherwise."""
        return [PlannedTraining(config, tuple(Learner.streams))]

    def _train(self, learner: Learner, inputs: FitInputs, config: TrainConfig, part: str = "", **more: object) -> None:
        """Train what is trained in a learner, from the last checkpoint on if there is one.

        Parameters:
            config: the settings of this training; a method may have several trainings, one after the other.
            part: the folder in that of the run for its checkpoints and curves.
            more: what else a resumed run must find unchanged.
        """
        data, folder = inputs.data, None if self.folder is None else self.folder / part
        learner.guide = self._guide(inputs, config)
        options: dict[str, Any] = {"views": config.views, "precision": config.bank_precision}
        options["seed"] = self.seed if config.views_by_seed else 0
        views: dict[str, Views] = {
            stream: self._views(learner.transform(stream), data, **options) for stream in learner.streams
        }
        if not learner.is_tuned:
            rows = np.concatenate([some for each in learner.batches for some in (each.labeled, each.unlabeled)])
            n_views = N_FRESH if config.views == "fresh" else config.views
            views = {stream: FeatureViews(each, np.unique(rows), n_views) for stream, each in views.items()}
        made_with = {
            "method": self.name,
            "seed": int(self.seed),
            "n_categories": self.n_categories_,
            "config": asdict(config),
            "backbone": self.backbone.fingerprint,
            "frozen": self.backbone.prefix_fingerprint,  # another version may tune another part
            "data": data.fingerprint(),
            **more,
        }
        learner.to(self.backbone.device)
        # that nothing changes any more is looked for only where an epoch costs much more than the look
        seen = inputs.plain if learner.is_tuned else None
        training = Training(learner, views, data, config, folder, made_with, seen, self.tensorboard)
        training.run(f"training {self.name}" if learner.is_tuned else f"training the heads of {self.name}")
        self.notes_ += training.notes()
        self.trained_share_ = min(self.trained_share_, training.trained_share)

    def _guide(self, inputs: FitInputs, config: TrainConfig) -> Guide | None:
        """What the pool adds to the training as a guide; None where it does not guide."""
        backbone, data = inputs.backbone, inputs.data
        rows, size = data.guides, round(config.guide_share * config.batch_size)
        if not len(rows) or not size:
            return None
        return Guide(
            data.batches(size, self.seed, "guide", rows, rows[:0]),
            first_label=len(data.known),
            n_classes=len(np.unique(data.labels[rows])),
            dim=backbone.dim,
            scale=config.supervised_share * config.guide_scale,
            generator=self._torch_generator("guide"),
            center=None if backbone.cut.ends_in_norm else mean_feature(backbone, inputs.plain, rows),
        )

    def _torch_generator(self, purpose: str) -> torch.Generator:
        """A generator for the initial parameters of heads."""
        return torch.Generator().manual_seed(int(generator(self.seed, purpose).integers(2**62)))
