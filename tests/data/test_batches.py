from __future__ import annotations

import numpy as np
import pytest

from justright.data.batches import BalancedBatches
from justright.utils.errors import DataError


def batches(n_labeled=6, n_unlabeled=30, batch_size=8, **options):
    labeled = np.arange(n_labeled) * 10  # rows need not follow each other
    return BalancedBatches(labeled, 1000 + np.arange(n_unlabeled), batch_size, **options)


def probabilities_as_loops(made):
    """How likely each row is: labeled ones 1 each, or by their chance; unlabeled ones L / U each."""
    n_labeled, n_unlabeled = len(made.labeled), len(made.unlabeled)
    share = {}
    for place, row in enumerate(made.labeled.tolist()):
        share[row] = 1.0 if made.chance is None else float(made.chance[place]) * n_labeled / sum(made.chance.tolist())
    for row in made.unlabeled.tolist():
        share[row] = n_labeled / n_unlabeled if n_labeled else 1.0
    total = sum(share.values())
    return {row: each / total for row, each in share.items()}


CHANCE = np.array([0.0, 1.0, 2.0, 0.5, 4.0, 0.1])


@pytest.mark.parametrize(
    "made",
    [batches(), batches(chance=CHANCE), batches(n_labeled=0), batches(n_unlabeled=0), batches(n_unlabeled=2)],
    ids=["plain", "by chance", "nothing labeled", "nothing unlabeled", "little unlabeled"],
)
def test_row_frequencies_agree_with_loops(made):
    expected = probabilities_as_loops(made)
    drawn = np.concatenate([made.rows(epoch, n_steps=500).ravel() for epoch in range(4)])
    assert set(drawn.tolist()) <= set(expected)
    chi_square, n_free = 0.0, -1
    for row, probability in expected.items():
        n_drawn, n_expected = int((drawn == row).sum()), probability * len(drawn)
        if probability == 0:
            assert n_drawn == 0
            continue
        chi_square += (n_drawn - n_expected) ** 2 / n_expected
        n_free += 1
    assert abs(chi_square - n_free) < 5 * np.sqrt(2 * n_free)


@pytest.mark.parametrize("chance", [None, CHANCE, 1e-9 * CHANCE])
def test_half_of_each_batch_is_labeled_in_expectation(chance):
    drawn = batches(chance=chance).rows(0, n_steps=2000)
    assert 0.48 < (drawn < 1000).mean() < 0.52


def test_equal_chances_change_nothing():
    assert np.array_equal(batches(chance=np.full(6, 0.3)).rows(5), batches().rows(5))


def test_epoch_is_reproducible():
    made = batches(seed=3)
    late = made.rows(7)
    for epoch in range(7):
        made.rows(epoch)
    assert np.array_equal(made.rows(7), late)
    assert np.array_equal(batches(seed=3).rows(7), late)


def test_epochs_seeds_and_purposes_differ():
    drawn = [batches().rows(0), batches().rows(1), batches(seed=1).rows(0), batches(purpose="expert 0").rows(0)]
    assert len({rows.tobytes() for rows in drawn}) == 4


def test_epoch_has_full_batches_and_at_least_one():
    assert batches(6, 30, 8).n_steps == 4  # 36 images
    assert batches(6, 30, 36).n_steps == 1
    assert batches(6, 30, 100).n_steps == 1
    assert batches(6, 30, 100).rows(0).shape == (1, 100)
    assert batches().rows(0).shape == (4, 8)


def test_first_batches_do_not_depend_on_n_steps():
    assert batches().rows(0, n_steps=9).shape == (9, 8)
    assert np.array_equal(batches().rows(0, n_steps=9)[:4], batches().rows(0))


@pytest.mark.parametrize("options", [{"n_labeled": 0, "n_unlabeled": 0}, {"batch_size": 0}])
def test_empty_or_invalid_batches_are_rejected(options):
    with pytest.raises(DataError):
        batches(**options)


def test_part_without_labeled_images_may_have_chances_too():
    made = batches(n_labeled=0, chance=np.empty(0))
    assert (made.rows(0) >= 1000).all()


@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_steps_can_be_drawn_separately(batch_size):
    made = batches(batch_size=batch_size, chance=CHANCE)
    whole = made.rows(3, n_steps=20)
    for step in (0, 1, 7, 19):
        assert np.array_equal(made.rows(3, 1, step)[0], whole[step])
