from __future__ import annotations

import numpy as np

from justright.selection.distance_bins import assign_bins, bin_reasons, vote, vote_reasons

ONES = np.ones(7, dtype=int)


def test_survivors_fall_into_equal_bins_nearest_first_with_extra_classes_in_earlier_ones():
    distance = np.array([5.0, 1.0, 9.0, 3.0, 2.0, 4.0, 6.0])
    assert assign_bins(distance, 5.0, ONES, 2).tolist() == [2, 1, 0, 1, 1, 2, 0]


def test_a_class_at_the_threshold_stays():
    assert assign_bins(np.array([1.0, 2.0]), 2.0, ONES[:2], 1).tolist() == [1, 1]


def test_without_a_threshold_all_survive():
    assert assign_bins(np.array([3.0, 1.0, 2.0]), None, ONES[:3], 3).tolist() == [3, 1, 2]


def test_bins_of_equal_images_follow_the_counts():
    distance, counts = np.arange(5.0), np.array([100, 10, 30, 30, 30])
    assert assign_bins(distance, None, counts, 2, "images").tolist() == [1, 2, 2, 2, 2]


def test_a_vote_takes_the_most_frequent_bin():
    assert vote(np.array([[0, 1, 2], [0, 2, 2], [1, 2, 1]]), 2).tolist() == [0, 2, 2]


def test_reasons_say_which_step_decided():
    bins, distance = np.array([0, 1, 2, 3]), np.array([0.71, 0.1, 0.3, 0.6])
    assert bin_reasons(bins == 2, bins, distance, 0.64, 3, 2, True) == [
        "too far: 0.71 > 0.64",
        "too near: bin 1 of 3",
        "kept: bin 2 of 3",
        "too far: bin 3 of 3",
    ]
    assert bin_reasons(bins > 0, bins, distance, 0.64, 3, None, True)[1] == "kept: 0.10 <= 0.64"
    assert bin_reasons(bins >= 0, bins + 1, distance, 0.64, 4, None, False)[0] == "kept: nothing is discarded"


def test_reasons_show_enough_digits_to_be_true():
    reasons = bin_reasons(np.array([False]), np.array([0]), np.array([0.6412]), 0.6411, 2, 2, True)
    assert reasons == ["too far: 0.6412 > 0.6411"]


def test_votes_are_counted_out():
    reasons = vote_reasons(np.array([0.7, 0.2, 0.0]), np.array([True, False, False]), np.array([2, 1, 0]), 10, 2)
    assert reasons == [
        "kept: chosen in 7 of 10 splits",
        "too near: chosen in 2 of 10 splits",
        "too far: chosen in 0 of 10 splits",
    ]
