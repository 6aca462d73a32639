"""Add a selector of your own to the command line: python examples/your_selector.py select --selector middle --help

It keeps the classes whose similarity to the target lies in the middle: the simplest form of the paper's idea. Options,
help, tables, figures and pages of all commands follow from the class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from justright import SELECTORS, SHARE, ClassWeights, Selector, main, setting


@dataclass(repr=False, eq=False)
class MiddleSelector(Selector):
    """Keeps classes that are neither among the most similar nor among the least similar ones."""

    kept_share: float = setting(0.5, "share of the classes to keep, around the middle", SHARE)

    def _weigh(self, pool, target):
        sums = pool.sums()  # one pass over the pool, however large: sum and count of each class
        centroids = sums.centroids()
        middle = np.concatenate(list(target.batches(centroids.shape[1]))).mean(axis=0)
        cosine = centroids @ middle / (np.linalg.norm(centroids, axis=1) * np.linalg.norm(middle))
        place = (np.argsort(np.argsort(cosine)) + 0.5) / len(cosine)  # 0: least similar, 1: most similar
        kept = np.abs(place - 0.5) <= self.kept_share / 2
        reason = np.where(kept, "in the middle", np.where(place < 0.5, "too dissimilar", "too similar"))
        return ClassWeights(sums.classes, kept.astype(float), reason.tolist(), {"cosine": cosine})


SELECTORS.add("middle", MiddleSelector, "keeps classes of middling similarity")

if __name__ == "__main__":
    main()
