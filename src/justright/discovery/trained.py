"""TrainedDiscovery: what the methods with training in them have in common."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int

from justright.data.batches import BalancedBatches
from justright.discovery.base import Discovery
from justright.discovery.configs import TrainConfig
from justright.discovery.curve_writer import CurveWriter
from justright.discovery.guide import Guide
from justright.discovery.learner import Learner
from justright.discovery.loop import Training
from justright.discovery.processes import Processes
from justright.discovery.training_data import TrainingData
from justright.discovery.tuned import features_of
from justright.features.stored_views import Views
from justright.progress import Track
from justright.seeding import generator
from justright.types import Array


class TrainedDiscovery(Discovery):
    """A method with training in it."""

    config_class: ClassVar[type[TrainConfig]]

    def _train(
        self,
        learner: Learner,
        data: TrainingData,
        plain: Views,
        config: TrainConfig,
        folder: Path | None,
        track: Track,
        **more: object,
    ) -> None:
        """Take a learner through the loop; `more` is what else a resumed run must find unchanged."""
        learner.guide = self._guide(data, plain, config)
        views = {stream: self._views(data, stream, track) for stream in learner.streams}
        made_with = {
            "method": self.name,
            "seed": self.seed,
            "n_categories": self.n_categories,
            "config": asdict(config),
            "backbone": self.backbone.fingerprint,
            "data": data.fingerprint(),
            **more,
        }
        learner.to(self.backbone.device)
        curves = CurveWriter(folder / "tensorboard") if self.tensorboard and folder and Processes().is_first else None
        Training(learner, views, data, config, folder, made_with, curves).run(f"training {self.name}", track)

    def _guide(self, data: TrainingData, plain: Views, config: TrainConfig) -> Guide | None:
        """What images of the pool add; None where none guides."""
        rows, size = data.guides, round(config.guide_share * config.batch_size)
        if not len(rows) or not size:
            return None
        chance = None if data.chance is None else data.chance[rows]
        return Guide(
            BalancedBatches(rows, rows[:0], size, self.seed, "guide", chance),
            first_label=len(data.known),
            n_classes=len(np.unique(data.labels[rows])),
            dim=self.backbone.dim,
            scale=config.supervised_share * config.guide_scale,
            generator=self._torch_generator("guide"),
            center=None if self.backbone_.cut.ends_in_norm else self._mean_feature(data, plain, rows),
        )

    def _mean_feature(self, data: TrainingData, plain: Views, rows: Int[Array, " rows"]) -> Float[Array, " dim"]:
        """Over some images, as the backbone is now."""
        features = features_of(self.backbone_, plain, len(data.images))
        return features[rows].mean(axis=0, dtype=np.float64).astype(np.float32)

    def _torch_generator(self, purpose: str) -> torch.Generator:
        """For the first parameters of heads."""
        return torch.Generator().manual_seed(int(generator(self.seed, purpose).integers(2**62)))
