"""What it pays to look at a cluster: corrections that a click is expected to bring."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from justright.utils.types import Array

N_CLICKS = 3  # for what was found in a cluster: the action, where its images go, keep and go on (v or m, Enter, k)


def corrections_per_click(
    doubt: Float[Array, " images"], cluster: Int[Array, " images"], n_clusters: int
) -> Float[Array, " clusters"]:
    """Expected corrections per click of each cluster, 0 for one without images.

    Keys count as clicks. To go to an image takes one, to select a wrong one another, and N_CLICKS do something about
    those selected. With e the doubt of the images of a cluster, 1 - confidence, in descending order, looking at the
    first m of n brings sum_{i <= m} e_i corrections. Or one action is about all images, such as a merge: it corrects
    what was wrong, and what was right is wrong then.

        max( max_m  sum_{i <= m} e_i / (N_CLICKS + m + sum_{i <= m} e_i),  sum_{i <= n} (e_i - (1 - e_i)) / N_CLICKS )
    """
    order = np.lexsort((-doubt, cluster))
    e, home = doubt[order].astype(np.float64), cluster[order]
    start = np.searchsorted(home, np.arange(n_clusters))
    total = np.concatenate([[0.0], np.cumsum(e)])
    sums = total[1:] - total[start[home]]
    m = np.arange(len(e)) - start[home] + 1
    found = np.zeros(n_clusters)
    np.maximum.at(found, home, sums / (N_CLICKS + m + sums))
    n_images = np.bincount(cluster, minlength=n_clusters)
    whole = 2 * np.bincount(cluster, doubt, minlength=n_clusters) - n_images
    return np.maximum(found, whole / N_CLICKS)
