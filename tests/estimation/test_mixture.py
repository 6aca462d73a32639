import numpy as np
import pytest
import torch

from justright.estimation.mixture import MixtureCounter
from justright.utils.errors import DegenerateError


def mixture(n_images=500, n_classes=12, dim=32, noise=0.5, seed=0):
    """Classes with a falling spectrum; half of the images of half of the classes are labeled."""
    rng = np.random.default_rng(seed)
    spectrum = (1 + np.arange(dim)) ** -0.5
    y = rng.integers(n_classes, size=n_images)
    x = (rng.normal(size=(n_classes, dim))[y] + noise * rng.normal(size=(n_images, dim))) * spectrum
    return x, y, np.where((y < n_classes // 2) & (rng.random(n_images) < 0.5), y, -1)


# The odds of a true pair and of a spurious split differ by dozens of nats here, so only a local optimum of k-means can
# add or cost a cluster: one is allowed.
@pytest.mark.parametrize(("noise", "seed"), [(0.3, 0), (0.6, 1), (0.6, 2)])
def test_finds_the_number_of_classes(noise, seed):
    x, _, labels = mixture(noise=noise, seed=seed)
    assert abs(MixtureCounter().fit(x, labels).n_categories_ - 12) <= 1


@pytest.mark.parametrize("start", [6, 24])
def test_k_falls_or_rises_from_its_start(start):
    x, _, labels = mixture()
    counter = MixtureCounter(start=start).fit(x, labels)
    assert counter.curve_[0].tolist() == [0, start]
    assert abs(counter.n_categories_ - 12) <= 1


def test_rounds_end_when_k_is_stable_for_three():
    x, _, labels = mixture()
    counter = MixtureCounter().fit(x, labels)
    k = counter.curve_[:, 1]
    assert k[0] == 9
    assert set(k[-4:]) == {counter.n_categories_}
    np.testing.assert_array_equal(counter.curve_[:, 0], np.arange(len(k)))
    assert len(MixtureCounter(max_rounds=1).fit(x, labels).curve_) == 2


def test_interval_contains_the_true_k():
    x, _, labels = mixture(noise=0.6)
    low, high = MixtureCounter().fit(x, labels).interval(n_resamples=4)
    assert low <= 12 <= high
    assert high - low <= 4


def test_interval_contains_the_estimate():
    x, _, labels = mixture(n_images=220, noise=1.0)
    counter = MixtureCounter().fit(x, labels)
    low, high = counter.interval(n_resamples=4)
    assert 6 <= low <= counter.n_categories_ <= high


def test_counts_a_target_alone_with_the_prior_of_a_pool():
    x, y, _ = mixture(n_images=800, n_classes=20, noise=0.3)
    is_target = y < 8
    counter = MixtureCounter().fit(x[is_target], None, pool=(x[~is_target], y[~is_target]))
    assert abs(counter.n_categories_ - 8) <= 2
    low, high = counter.interval(n_resamples=2)
    assert low <= counter.n_categories_ <= high


def test_same_seed_same_result_and_torch_agrees():
    x, _, labels = mixture(n_images=200, n_classes=6)
    one, other = (MixtureCounter(seed=2, max_rounds=3).fit(x, labels) for _ in range(2))
    np.testing.assert_array_equal(one.curve_, other.curve_)
    assert one.interval(n_resamples=2) == other.interval(n_resamples=2)
    tensors = MixtureCounter(seed=2, max_rounds=3).fit(torch.from_numpy(x), torch.from_numpy(labels))
    np.testing.assert_array_equal(tensors.curve_, one.curve_)


def test_needs_labeled_classes():
    x, _, _ = mixture(n_images=200, n_classes=5)
    with pytest.raises(DegenerateError, match="No image is labeled"):
        MixtureCounter(start=4).fit(x, np.full(200, -1))


def test_duplicates_are_not_counted_as_classes():
    x, _, labels = mixture(n_images=300, n_classes=6)
    counter = MixtureCounter(max_rounds=5).fit(np.repeat(x, 3, axis=0), np.repeat(labels, 3))
    assert counter.n_categories_ >= 3
    with pytest.raises(DegenerateError, match="All features are the same"):
        MixtureCounter().fit(np.ones((30, 4)), np.arange(30) % 3 - 1)


def test_a_single_labeled_class_is_rejected():
    x, _, labels = mixture(n_images=200, n_classes=6)
    with pytest.raises(DegenerateError, match="1 labeled classes") as error:
        MixtureCounter().fit(x, np.where(labels == 0, 0, -1))
    assert "CombinedCounter" in str(error.value)
