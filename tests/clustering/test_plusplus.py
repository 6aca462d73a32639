import numpy as np
from tests.clustering.blobs import blobs

from justright.clustering.lloyd import SeedingOrder


def plus_plus_as_loops(x, centroids, uniform):
    picks = []
    for u in uniform:
        places = list(centroids) + [x[p] for p in picks]
        weight = [min((sum((row - c) ** 2) for c in places), default=1.0) for row in x]
        target, running = u * sum(weight), 0.0
        for i, w in enumerate(weight):
            running += w
            if running > target:
                picks.append(i)
                break
    return picks


def streams(n=1):
    return [np.random.default_rng(seed) for seed in range(n)]


def test_the_seeding_agrees_with_the_draws_written_as_loops():
    x, _, _ = blobs(n_images=60)
    for given_centroids in (x[:0], x[:3] + 0.1):
        picks = SeedingOrder(x, given_centroids, streams(4)).prefix(7)
        assert picks.tolist() == [plus_plus_as_loops(x, given_centroids, r.random(7)) for r in streams(4)]


def test_the_best_candidate_is_taken():
    x, _, _ = blobs(n_images=60)
    picks = SeedingOrder(x, x[:1], streams(), n_candidates=3).prefix(1)[0]
    candidates = [plus_plus_as_loops(x, x[:1], [u])[0] for u in streams()[0].random(3)]
    least = ((x - x[0]) ** 2).sum(axis=1)
    left = [np.minimum(least, ((x - x[c]) ** 2).sum(axis=1)).sum() for c in candidates]
    assert picks.tolist() == [candidates[int(np.argmin(left))]]


def test_a_longer_seeding_order_begins_with_the_shorter_one():
    x, _, _ = blobs()
    one, other = (SeedingOrder(x, x[:0], streams(2), n_candidates=4) for _ in range(2))
    short = one.prefix(5)
    np.testing.assert_array_equal(other.prefix(20)[:, :5], short)
    np.testing.assert_array_equal(one.prefix(20), other.prefix(20))
    assert SeedingOrder(np.repeat(x[:4], 3, axis=0), x[:0], streams(2)).prefix(9).shape == (2, 4)
