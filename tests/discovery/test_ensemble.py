from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from justright.clustering.spreading import nearest_rows, spread
from justright.clustering.ward import constrained_ward
from justright.discovery.ensemble import N_HALVES, N_NEIGHBORS, NEIGHBOR_SHARE, ensemble, most_votes
from justright.evaluation import Counts, match_counts
from justright.utils.seeding import generator

N_CLASSES, N_KNOWN = 10, 4
CENTERS = np.random.default_rng(1).normal(size=(N_CLASSES, 40))


def parts_of(noise, n=240, seed=0):
    """Classes, the parts of z, and the labels, which a quarter of the images of known classes have."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % N_CLASSES
    z = (CENTERS[y] + noise * rng.normal(size=(n, 40))).astype(np.float32)
    return y, (z[:, :18], z[:, 18:36], z[:, 36:]), np.where((y < N_KNOWN) & (np.arange(n) % 40 < N_CLASSES), y, -1)


def votes_as_loops(parts, fixed):
    """The first clustering as it is; of each other one, every new cluster is added where it overlaps most."""

    def one(z):
        start = constrained_ward(z, fixed, N_CLASSES).labels
        return spread(start, fixed, nearest_rows(z, z, N_NEIGHBORS, np.arange(len(z))), N_CLASSES, NEIGHBOR_SHARE)

    total = one(np.concatenate(parts, axis=1)).astype(float)
    for number in range(N_HALVES):
        draw = generator(0, "halves", number)
        more = one(np.concatenate([part[:, draw.random(part.shape[1]) < 0.5] for part in parts], axis=1))
        shared = np.zeros((N_CLASSES - N_KNOWN, N_CLASSES - N_KNOWN))
        for a in range(N_KNOWN, N_CLASSES):
            for b in range(N_KNOWN, N_CLASSES):
                shared[a - N_KNOWN, b - N_KNOWN] = sum(total[i, a] * more[i, b] for i in range(len(more)))
        place = dict(zip(*linear_sum_assignment(shared, maximize=True), strict=True))
        added = np.zeros_like(total)
        for i in range(len(more)):
            for a in range(N_CLASSES):
                added[i, a] = more[i, a] if a < N_KNOWN else more[i, N_KNOWN + place[a - N_KNOWN]]
        total += added
    return total / (1 + N_HALVES)


def test_votes_agree_with_loops():
    _, parts, fixed = parts_of(noise=1.5)
    np.testing.assert_allclose(ensemble(parts, fixed, N_CLASSES).votes, votes_as_loops(parts, fixed), atol=1e-5)


def test_labeled_images_keep_their_class_in_every_clustering():
    _, parts, fixed = parts_of(noise=3.0)
    votes = ensemble(parts, fixed, N_CLASSES).votes
    labeled = np.flatnonzero(fixed >= 0)
    np.testing.assert_allclose(votes[labeled, fixed[labeled]], 1.0, atol=1e-6)


def test_wrong_images_have_fewer_votes():
    y, parts, fixed = parts_of(noise=1.6)
    votes = ensemble(parts, fixed, N_CLASSES).votes
    right = is_right(y, votes)
    assert votes[right].max(axis=1).mean() > votes[~right].max(axis=1).mean() + 0.1


def test_vote_for_a_known_class_counts_less():
    votes = np.array([[0.55, 0.0, 0.45], [0.6, 0.0, 0.4], [0.0, 1.0, 0.0]], dtype=np.float32)
    assert most_votes(votes, n_known=2).tolist() == [2, 0, 1]
    assert most_votes(votes, n_known=0).tolist() == [0, 0, 1]


def is_right(y, votes):
    category = votes.argmax(axis=1)
    return match_counts(Counts.of(y, category)).to_classes(category) == y
