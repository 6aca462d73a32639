import numpy as np
import pytest
import torch

from justright.clustering import SemiSupKMeans
from justright.clustering.lloyd import SeedingOrder
from justright.estimation import COUNTERS
from justright.estimation.base import CategoryCounter
from justright.estimation.labeled_search import LabeledSearchCounter, _best, _brent
from justright.evaluation import Counts, match_counts
from justright.utils.errors import DegenerateError, JustrightError
from justright.utils.seeding import generator


def mixture(n_images=600, n_classes=20, dim=24, noise=0.15, n_labeled_classes=10, seed=0):
    """Classes around random directions; half of the images of some classes are labeled."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_images) % n_classes)
    x = rng.normal(size=(n_classes, dim))[y] + noise * dim**0.5 * rng.normal(size=(n_images, dim))
    return x, y, np.where((y < n_labeled_classes) & (rng.random(n_images) < 0.5), y, -1)


# Every class is labeled, so every merge and every tear is seen; a local optimum of k-means may still shift K by one.
@pytest.mark.parametrize("seed", range(3))
def test_finds_the_number_of_classes_if_all_are_labeled(seed):
    x, _, labels = mixture(n_labeled_classes=20, seed=seed)
    counter = LabeledSearchCounter(max_k=100).fit(x, labels)
    assert abs(counter.n_categories_ - 20) <= 1


# Half of the classes are labeled: what happens to the ten others is not seen, so the accuracy is level around the
# truth, and K is known up to about a fifth. The interval has to say so.
@pytest.mark.parametrize("seed", range(3))
def test_estimate_is_close_if_half_of_the_classes_are_labeled(seed):
    x, _, labels = mixture(seed=seed)
    counter = LabeledSearchCounter(max_k=100).fit(x, labels)
    assert abs(counter.n_categories_ - 20) <= 4
    low, high = counter.interval(n_resamples=50)
    assert low <= 20 <= high


def test_the_curve_holds_the_accuracy_of_k_means_at_each_k():
    x, y, labels = mixture(noise=0.4)
    counter = LabeledSearchCounter(max_k=40, seed=3).fit(x, labels)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    order = SeedingOrder(unit, unit[:0], [generator(3, "k-means++")], counter.n_candidates)
    known = labels >= 0
    for k, accuracy in counter.curve_:
        start = unit[order.prefix(int(k))[0]]
        found = SemiSupKMeans(int(k), init=start, normalize=False).fit(unit).labels_
        assert accuracy == match_counts(Counts.of(y[known], found[known])).accuracy
    best = counter.curve_[counter.curve_[:, 1] == counter.curve_[:, 1].max(), 0]
    assert counter.n_categories_ in best


def test_ties_go_to_the_middle():
    assert _best({10: 0.5, 12: 0.9, 15: 0.9, 17: 0.9, 30: 0.2}) == 15
    assert _best({3: 0.9, 4: 0.9}) == 3


def test_search_covers_a_plateau_of_equal_accuracy():
    def count(k):
        n_right = 100 - max(0, 30 - k, k - 37)
        return k, Counts(np.array([0, 1]), np.array([0, 0]), np.array([n_right, 101 - n_right]))

    tried = _brent(count, 10, 100)
    assert {29, 30, 37, 38} <= set(tried)


def test_every_k_is_tried_once_within_bounds():
    x, _, labels = mixture()
    counter = LabeledSearchCounter(max_k=30).fit(x, labels)
    k = counter.curve_[:, 0]
    assert k.min() >= 10
    assert k.max() <= 30
    assert (np.diff(k) > 0).all()
    only = LabeledSearchCounter(max_k=10).fit(x, labels)
    assert only.curve_[:, 0].tolist() == [10]


def test_default_max_k_is_at_least_twice_the_labeled_classes():
    x, _, labels = mixture(n_images=500, n_classes=160, n_labeled_classes=160)
    labels[:120], labels[120:] = np.arange(120), np.where(labels[120:] < 120, labels[120:], -1)
    counter = LabeledSearchCounter().fit(x, labels)
    assert counter.curve_[:, 0].min() >= 120
    assert counter.curve_[:, 0].max() > 500 // 5
    assert counter.curve_[:, 0].max() <= 240


def test_interval_contains_the_estimate():
    x, _, labels = mixture(noise=0.5)
    counter = LabeledSearchCounter().fit(x, labels)
    low, high = counter.interval(n_resamples=5)
    assert low <= counter.n_categories_ <= high


def test_same_seed_same_result():
    x, _, labels = mixture(n_images=200, noise=0.4)
    one, other = (LabeledSearchCounter(max_k=40, seed=1).fit(x, labels) for _ in range(2))
    np.testing.assert_array_equal(one.curve_, other.curve_)
    assert one.interval(n_resamples=10) == other.interval(n_resamples=10)


def test_torch_and_numpy_agree():
    x, _, labels = mixture(n_images=200)
    ours = LabeledSearchCounter(max_k=40).fit(x, labels)
    theirs = LabeledSearchCounter(max_k=40).fit(torch.from_numpy(x), torch.from_numpy(labels))
    np.testing.assert_allclose(ours.curve_, theirs.curve_)


def test_half_precision_changes_k_by_at_most_2():
    x, _, labels = mixture(n_images=200)
    half, single = (LabeledSearchCounter(max_k=40).fit(x.astype(t), labels) for t in (np.float16, np.float32))
    assert abs(half.n_categories_ - single.n_categories_) <= 2


def test_max_k_is_at_most_the_number_of_distinct_images():
    x, _, labels = mixture(n_images=60, n_classes=6)
    counter = LabeledSearchCounter().fit(np.repeat(x, 2, axis=0), np.repeat(labels, 2))
    assert counter.curve_[:, 0].max() <= 60


@pytest.mark.parametrize(
    ("max_k", "labels", "problem"),
    [
        (None, np.full(60, -1), "No image is labeled"),
        (2, np.arange(60) % 4 - 1, "At most 2 clusters for 3 labeled classes"),
        (None, np.zeros(59, dtype=int), "59"),
        (None, np.full(60, -3), "a label below -1, e.g. -3"),
    ],
)
def test_invalid_input_is_rejected(max_k, labels, problem):
    with pytest.raises(JustrightError, match=problem):
        LabeledSearchCounter(max_k=max_k).fit(mixture(n_images=60)[0], labels)


def test_pool_of_other_kinds_is_rejected():
    x, y, _ = mixture(n_images=60)
    with pytest.raises(DegenerateError, match="CombinedCounter"):
        LabeledSearchCounter().fit(x[:30], None, pool=(x[30:], y[30:]))


def test_all_counters_are_registered_with_axes_of_their_curve():
    for counter in COUNTERS.values():
        assert issubclass(counter, CategoryCounter)
        assert len(counter.curve_axes) == 2
