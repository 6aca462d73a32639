"""What a run will take, said before it starts: images, views, steps, time, and what would make it cheaper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from justright.data import ImageSet
from justright.discovery.methods import METHODS

LONG = 120.0  # seconds; of a shorter run nothing is said
FEWER_EPOCHS = 3


@dataclass(frozen=True)
class Outlook:
    """How often an image goes through the network, how often through a step of training, and what either takes."""

    n_images: int
    n_views: int
    n_steps: int
    n_in_steps: int
    seconds_image: float
    seconds_step: float

    @classmethod
    def of(cls, n_labeled: int, n_target: int, method: str, config: Any, image: float, step: float) -> Outlook:
        """The outlook of a run, by the seconds that `try_out` found. What earlier runs have left is not subtracted."""
        n_seen = n_target + config.sees_labels * n_labeled
        n_views, n_steps, n_in_steps = n_labeled + n_target + n_seen, 0, 0  # features, and a plain view
        for each, streams in METHODS[method].trainings(config):
            steps = each.n_epochs * (each.n_steps or -(-n_seen // each.batch_size))
            n_steps, n_in_steps = n_steps + steps, n_in_steps + steps * each.batch_size
            n_views += len(streams) * (2 * steps * each.batch_size if each.views == "fresh" else each.views * n_seen)
        return cls(n_labeled + n_target, n_views, n_steps, n_in_steps, image, step)

    @property
    def seconds(self) -> float:
        """In all."""
        return self.n_views * self.seconds_image + self.n_in_steps * self.seconds_step

    def __str__(self) -> str:
        steps = f" and {self.n_steps:,} steps of training" if self.n_steps else ""
        return f"{minutes(self.seconds)}: {self.n_images:,} images, {self.n_views:,} views of them{steps}"


def outlook(n_labeled: int, target: ImageSet, method: str, config: Any, backbone: Any) -> str:
    """What to say of a run that takes long, from two seconds of trying on its own images; nothing of a quick one."""
    from justright.features.automatic import CHEAPEST, CPU_COST
    from justright.features.speed import try_out

    image, step = try_out(backbone, target)
    found = Outlook.of(n_labeled, len(target), method, config, image, step)
    if found.seconds < LONG:
        return ""
    cheaper = []
    if METHODS[method].trainings(config):
        n_epochs = max(1, config.n_epochs // FEWER_EPOCHS)
        for option, settings in ((f"--epochs {n_epochs}", {"n_epochs": n_epochs}), ("--set views=2", {"views": 2})):
            other = Outlook.of(n_labeled, len(target), method, config.with_settings(settings), image, step)
            if other.seconds < 0.9 * found.seconds:
                cheaper.append(f"{option} ({minutes(other.seconds)})")
    cost = CPU_COST.get(backbone.name, 1.0)
    if backbone.device.type == "cpu" and cost > 1:
        lighter = replace(found, seconds_image=image / cost, seconds_step=step / cost)
        cheaper.append(f"--backbone {CHEAPEST} ({minutes(lighter.seconds)})")
    cheaper.append("--method kmeans, which does not train" if found.n_steps else "fewer images")
    return f"This takes up to {found}; less where earlier runs left features and views. Cheaper: {', '.join(cheaper)}."


def minutes(seconds: float) -> str:
    """A time for a person."""
    return f"{seconds / 60:,.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:,.1f} h"
