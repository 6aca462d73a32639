"""TrainedDiscovery: what the methods with training in them have in common."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

import torch

from justright.discovery.base import Discovery
from justright.discovery.board import Board
from justright.discovery.configs import TrainConfig
from justright.discovery.learner import Learner
from justright.discovery.loop import Training
from justright.discovery.processes import Processes
from justright.discovery.training_data import TrainingData
from justright.progress import Track
from justright.seeding import generator


class TrainedDiscovery(Discovery):
    """A method with training in it."""

    config_class: ClassVar[type[TrainConfig]]

    def _train(
        self,
        learner: Learner,
        data: TrainingData,
        config: TrainConfig,
        folder: Path | None,
        track: Track,
        **more: object,
    ) -> None:
        """Take a learner through the loop; `more` is what else a resumed run must find unchanged."""
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
        board = Board(folder / "tensorboard") if self.tensorboard and folder and Processes().is_first else None
        Training(learner, views, data, config, folder, made_with, board).run(f"training {self.name}", track)

    def _torch_generator(self, purpose: str) -> torch.Generator:
        """For the first parameters of heads."""
        return torch.Generator().manual_seed(int(generator(self.seed, purpose).integers(2**62)))
