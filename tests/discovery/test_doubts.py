from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from justright.discovery.doubts import (
    LEAST_IMAGES,
    LEAST_INNER,
    LEAST_SIDE,
    MOST_SHARED,
    Doubt,
    OtherClusterings,
    doubts,
    doubts_of,
)

N_KNOWN, N_CATEGORIES = 2, 7


def as_loops(category, members, inner, n_known):
    """Category, the other one and the deciding images of each doubt."""
    rows_of = [[row for row, each in enumerate(category) if each == number] for number in range(len(inner))]
    found = {}
    for number, rows in enumerate(rows_of):
        best = []
        for m, w in combinations(members, 2):
            cells = {}
            for row in rows:
                cells.setdefault((m[row], w[row]), []).append(row)
            ordered = sorted(cells)
            if not ordered:
                continue
            b = max(ordered, key=lambda cell: (len(cells[cell]), -ordered.index(cell)))
            apart = [cell for cell in ordered if cell[0] != b[0] and cell[1] != b[1]]
            if apart:
                side = cells[max(apart, key=lambda cell: (len(cells[cell]), -apart.index(cell)))]
                best = side if len(side) > len(best) else best
        if len(best) >= LEAST_IMAGES and len(best) >= LEAST_SIDE * len(rows) and inner[number] >= LEAST_INNER:
            found[number] = (number, None, tuple(best))

    def share(member, number, cluster):
        return sum(member[row] == cluster for row in rows_of[number]) / len(rows_of[number])

    for number in range(n_known, len(inner)):
        if number in found or len(rows_of[number]) < LEAST_IMAGES:
            continue
        candidates = {}
        for other in range(len(inner)):
            larger = other < n_known or len(rows_of[other]) >= len(rows_of[number])
            if other == number or len(rows_of[other]) < LEAST_IMAGES or not larger:
                continue
            places = [
                (member, cluster)
                for member in members
                for cluster in set(member)
                if min(share(member, number, cluster), share(member, other, cluster)) >= MOST_SHARED
            ]
            if len(places) >= 2:
                candidates[other] = [row for row in rows_of[number] if all(m[row] == b for m, b in places)]
        if candidates:
            other = max(candidates, key=lambda each: (len(rows_of[each]), -each))
            found[number] = (number, other, tuple(candidates[other]))
    return [found[number] for number in sorted(found)]


def plain(found):
    return [(each.category, each.other, each.rows) for each in found]


def drawn(seed, noise):
    """Members that mostly repeat the categories, with some of them divided and some put together."""
    rng = np.random.default_rng(seed)
    category = rng.integers(0, N_CATEGORIES, 90)
    half = rng.random(90) < 0.35
    divided, joined = rng.choice(N_CATEGORIES, 2, replace=False), rng.choice(N_CATEGORIES, 2, replace=False)
    members = []
    for _ in range(3):
        member = np.where(np.isin(category, divided) & half, category + N_CATEGORIES, category)
        member = np.where(member == joined[1], joined[0], member)
        is_noise = rng.random(90) < noise
        members.append(np.where(is_noise, rng.integers(0, 2 * N_CATEGORIES, 90), member))
    return category, np.array(members), rng.uniform(0.5, 1, N_CATEGORIES)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_doubts_agree_with_loops(noise):
    kinds = set()
    for seed in range(20):
        case = *drawn(seed, noise), N_KNOWN
        found = doubts(*case)
        assert plain(found) == as_loops(case[0].tolist(), case[1].tolist(), case[2].tolist(), N_KNOWN)
        kinds |= {each.kind for each in found}
    assert kinds == {"two kinds", "belongs with"}


def test_one_dissenting_clustering_is_no_doubt():
    category = np.repeat([0, 1, 2], 10)
    alone = np.where(np.arange(30) % 2, category + 3, category)
    members = np.array([category, alone, category])
    assert doubts(category, members, np.ones(3), 1) == []
    assert [each.kind for each in doubts(category, np.array([category, alone, alone]), np.ones(3), 1)] == 3 * [
        "two kinds"
    ]
    assert doubts(category, np.array([category, alone, alone]), np.full(3, 0.5), 1) == []


def test_merges_keep_known_classes_apart_and_prefer_the_known_one():
    category = np.repeat([0, 1, 2], [4, 4, 8])
    found = doubts(category, np.zeros((3, 16), int), np.zeros(3), 2)
    assert plain(found) == [(2, 0, tuple(range(8, 16)))]


def test_no_images_have_no_doubts():
    assert doubts(np.zeros(0, int), np.zeros((3, 0), int), np.zeros(2), 1) == []


def test_doubts_skip_labeled_target_images():
    # every other image of a target of 29 is an anchor
    side = (np.arange(15) % 3 == 0).astype(int)
    others = OtherClusterings(2 * np.arange(15), np.ones(15, int), np.stack([side, side, side]), np.ones(2), 1)
    given = np.zeros(29, dtype=bool)
    rows = tuple(2 * place for place in range(15) if place % 3 == 0)
    assert doubts_of(others, given) == [Doubt(1, None, rows)]
    given[list(rows[2:])] = True
    assert doubts_of(others, given) == []
