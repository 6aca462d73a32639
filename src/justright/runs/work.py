"""The size of a run: images, classes, categories and seeds, as training counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from justright.discovery.training_data import n_held_out
from justright.runs.problem import Problem
from justright.runs.spec import RunSpec, config_of
from justright.utils.types import Array

IMAGES_PER_CATEGORY = 30  # assumed if K is unknown
NEW_PER_KNOWN = 1  # new categories per known class, assumed if K is unknown


@dataclass(frozen=True)
class Work:
    """Counts of a run."""

    n_target: int
    n_labeled: int = 0  # labeled images of all kinds
    n_known: int = 0  # classes that are categories
    n_guide_classes: int = 0  # classes that only guide
    n_guides: int = 0  # images of these classes in training
    n_unused: int = 0  # images not in training: held out, of weight 0, or both labeled and in the target
    n_categories: int = 2  # K, plus the classes of a rival pool
    is_k_known: bool = True  # else K is a guess
    n_devices: int = 1  # processes that train together
    n_seeds: int = 1  # trainings on the same features and views

    @property
    def n_images(self) -> int:
        """Number of all images, of the target and labeled."""
        return self.n_target + self.n_labeled

    @property
    def n_used(self) -> int:
        """Images in training, in batches or as guides."""
        return self.n_images - self.n_unused

    @property
    def n_seen(self) -> int:
        """Images that batches are drawn from."""
        return self.n_used - self.n_guides

    @staticmethod
    def of_sizes(
        spec: RunSpec,
        n_target: int,
        own: Sequence[int],
        others: Sequence[int],
        n_devices: int = 1,
        n_unweighed: int = 0,
    ) -> Work:
        """From the sizes of labeled classes.

        Parameters:
            own: sizes of classes that the target may contain.
            others: sizes of the classes of the pool.
            n_unweighed: labeled images of weight 0, not in these sizes.
        """
        is_rival, share = spec.pool_role == "rival", config_of(spec).held_out_share
        known = [*own, *others] if is_rival else own
        n_target_categories = spec.n_target
        if n_target_categories is None:
            n_target_categories = max(2, (1 + NEW_PER_KNOWN) * len(own), -(-n_target // IMAGES_PER_CATEGORY))
        return Work(
            n_target,
            n_labeled=sum(own) + sum(others) + n_unweighed,
            n_known=len(known),
            n_guide_classes=0 if is_rival else len(others),
            n_guides=0 if is_rival else sum(others),
            n_unused=n_unweighed + sum(n_held_out(size, share) for size in known),
            n_categories=n_target_categories + is_rival * len(others),
            is_k_known=spec.n_target is not None,
            n_devices=n_devices,
            n_seeds=spec.n_seeds,
        )

    @staticmethod
    def of(problem: Problem, spec: RunSpec, n_devices: int = 1, weight: Float[Array, " labeled"] | None = None) -> Work:
        """From the images of a run and, once known, the weight of each labeled one."""
        labels, own = problem.pool.images.labels, set(problem.own_classes)
        kept = labels if weight is None else labels[weight > 0]
        classes, sizes = (each.tolist() for each in np.unique(kept, return_counts=True))
        by_class = dict(zip(classes, sizes, strict=True))
        own_sizes = [size for label, size in by_class.items() if label in own]
        other_sizes = [size for label, size in by_class.items() if label not in own]
        work = Work.of_sizes(spec, len(problem.target), own_sizes, other_sizes, n_devices, len(labels) - len(kept))
        if not problem.given:
            return work
        # an image that is both labeled and in the target counts once
        rows = np.flatnonzero(problem.is_given_too() & np.isin(labels, classes))
        return replace(work, n_unused=work.n_unused + len(problem.rows_of_target(rows.tolist())))
