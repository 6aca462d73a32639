"""t-SNE: places in the plane at which points have the neighbors that they have in space.

Van der Maaten and Hinton, Visualizing data using t-SNE, 2008. All pairs are computed: the trees of other programs pay
off from some thousand points on.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from justright.types import Array

N_EARLY, EXAGGERATION = 250, 12.0  # steps in which neighbors attract each other so many times as much
N_BISECTIONS = 50
BLOCK = 1 << 17  # pairs that are computed at a time: they stay in the cache of a core


def neighbor_map(
    x: Float[Array, "points dim"], start: Float[Array, "points 2"], perplexity: float, n_steps: int
) -> Float[Array, "points 2"]:
    """Places y that lower  sum_ij p_ij log(p_ij / q_ij),  from `start` on.

    p_ij are the `neighbor_shares` of x, and q_ij = w_ij / sum(w) with w_ij = 1 / (1 + |y_i - y_j|^2). The gradient is
    4 sum_j (p_ij - q_ij) w_ij (y_i - y_j).
    """
    p = neighbor_shares(x, perplexity).astype(np.float32)
    y = start.astype(np.float32)
    velocity, gain = np.zeros_like(y), np.ones_like(y)
    rate = max(len(x) / EXAGGERATION / 4, 50.0)
    for step in range(n_steps):
        scale, momentum = (EXAGGERATION, 0.5) if step < N_EARLY else (1.0, 0.8)
        pull, push = _forces(p, y)
        gradient = 4 * (scale * pull - push)
        gain = np.maximum(np.where(velocity * gradient < 0, gain + 0.2, 0.8 * gain), 0.01)
        velocity = momentum * velocity - rate * gain * gradient
        y = y + velocity
    return y.astype(np.float64)


def neighbor_shares(x: Float[Array, "points dim"], perplexity: float) -> Float[Array, "points points"]:
    """How much each pair of points is a pair of neighbors; all sum to 1.

    p_ij = (p_j|i + p_i|j) / 2n  with  p_j|i ~ exp(-b_i |x_i - x_j|^2),  and b_i such that i has `perplexity` neighbors.
    """
    n = len(x)
    square = (x * x).sum(axis=1)
    distance = np.maximum(square[:, None] + square - 2 * x @ x.T, 0.0)
    np.fill_diagonal(distance, np.inf)
    distance -= distance.min(axis=1, keepdims=True)  # changes no share, and the nearest never comes to 0
    n_near = min(n - 1, int(3 * perplexity) + 1)  # those farther away have no share to speak of
    sharpness = _sharpness(np.partition(distance, n_near - 1, axis=1)[:, :n_near], perplexity)
    share = np.exp(-sharpness[:, None] * distance)
    share /= share.sum(axis=1, keepdims=True)
    return (share + share.T) / (2 * n)


def _sharpness(distance: Float[Array, "points near"], perplexity: float) -> Float[Array, " points"]:
    """b of each point, by bisection: the entropy of its shares, log(perplexity), falls as b grows."""
    low, high = np.zeros(len(distance)), np.full(len(distance), np.inf)
    b = np.ones(len(distance))
    for _ in range(N_BISECTIONS):
        share = np.exp(-b[:, None] * distance)
        total = share.sum(axis=1)
        is_flat = np.log(total) + b * (share * distance).sum(axis=1) / total > np.log(perplexity)
        low, high = np.where(is_flat, b, low), np.where(is_flat, high, b)
        b = np.where(np.isinf(high), 2 * b, (low + high) / 2)
    return b


def _forces(
    p: Float[Array, "points points"], y: Float[Array, "points 2"]
) -> tuple[Float[Array, "points 2"], Float[Array, "points 2"]]:
    """sum_j p_ij w_ij (y_i - y_j)  and  sum_j q_ij w_ij (y_i - y_j).

    A point is at distance 0 from itself and pushes itself nowhere: only the sum of all w has to leave it out.
    """
    one = np.ones((len(y), 1), dtype=y.dtype)
    square = (y * y).sum(axis=1, keepdims=True)
    left, right = np.hstack([-2 * y, square + 1, one]), np.hstack([y, one, square])
    places = np.hstack([y, one])
    sums = np.empty((2, len(y), 3), dtype=y.dtype)  # of s_ij y_j, and of s_ij
    total = -float(len(y))
    n_rows = max(1, BLOCK // len(y))
    for start in range(0, len(y), n_rows):
        rows = slice(start, start + n_rows)
        w = left[rows] @ right.T  # 1 + |y_i - y_j|^2
        np.reciprocal(w, out=w)
        total += float(w.sum())
        sums[0, rows] = (p[rows] * w) @ places
        w *= w
        sums[1, rows] = w @ places
    pull, push = sums[..., 2:] * y - sums[..., :2]
    return pull, push / total
