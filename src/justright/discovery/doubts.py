"""Doubts about categories, from other clusterings of the same images.

Two kinds: two clusterings divide a category in the same way. Belongs with: two of them join it with another category.
How often either was right: docs/reference/report.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from justright.utils.types import Array, Mask

LEAST_SIDE = 0.2  # of the images of a category, in the smaller of its two kinds
LEAST_IMAGES = 3  # of that side, and of categories that may belong together
LEAST_INNER = 0.7  # least `inner` of a category, see `WardClusters`
MOST_SHARED = 0.7  # least share of the images of both categories in one cluster of another clustering


@dataclass(frozen=True)
class Doubt:
    """A category that may be two kinds, or belong with another one."""

    category: int
    other: int | None  # the category it may belong with; None for two kinds
    rows: tuple[int, ...]  # images of the category that show it

    @property
    def kind(self) -> str:
        """The kind of doubt."""
        return "two kinds" if self.other is None else "belongs with"


class OtherClusterings(NamedTuple):
    """Other clusterings of the anchors of the target, which may cast doubt on categories."""

    rows: Int[Array, " anchors"]  # of the target
    category: Int[Array, " anchors"]
    members: Int[Array, "members anchors"]  # by the method, of features after training, of features before it
    inner: Float[Array, " categories"]  # see WardClusters
    n_known: int


def doubts_of(others: OtherClusterings, is_given: Mask) -> list[Doubt]:
    """Doubts about categories of the target, from its anchors; images with a given label do not count."""
    is_open = ~is_given[others.rows]
    rows = others.rows[is_open]
    found = doubts(others.category[is_open], others.members[:, is_open], others.inner, others.n_known)
    return [replace(each, rows=tuple(rows[list(each.rows)].tolist())) for each in found]


def doubts(
    category: Int[Array, " images"],
    members: Int[Array, "members images"],
    inner: Float[Array, " categories"],
    n_known: int,
) -> list[Doubt]:
    """At most one doubt about each category; two kinds takes precedence."""
    size = np.bincount(category, minlength=len(inner))
    rows_of = np.split(np.argsort(category, kind="stable"), np.cumsum(size)[:-1])
    doubt_of = {}
    for number, rows in enumerate(rows_of):
        side = smaller_side(members[:, rows])
        if inner[number] >= LEAST_INNER and len(side) >= max(LEAST_IMAGES, LEAST_SIDE * len(rows)):
            doubt_of[number] = Doubt(number, None, tuple(rows[side].tolist()))

    is_joined = shared(category, members, len(size))
    by_two = is_joined.sum(axis=0) >= 2
    for number in range(n_known, len(size)):
        if number in doubt_of or size[number] < LEAST_IMAGES:
            continue
        is_known_or_larger = (np.arange(len(size)) < n_known) | (size >= size[number])
        others = np.flatnonzero(by_two[number] & (size >= LEAST_IMAGES) & is_known_or_larger)
        others = others[others != number]
        if len(others):
            other, rows = int(others[size[others].argmax()]), rows_of[number]
            clusters = members[is_joined[:, number, other]][:, rows]  # in the members that join the two
            is_in_largest = [each == np.bincount(each).argmax() for each in clusters]
            doubt_of[number] = Doubt(number, other, tuple(rows[np.all(is_in_largest, axis=0)].tolist()))
    return [doubt_of[number] for number in sorted(doubt_of)]


def smaller_side(members: Int[Array, "members images"]) -> Int[Array, " side"]:
    """The smaller part of a category that two members divide in the same way.

        n(b, b') = |{i: m(i) = b, m'(i) = b'}|,   larger: argmax n(b, b'),   smaller: argmax n(c, c'), c != b, c' != b'

    The pair of members m, m' with the largest smaller side counts.
    """
    largest = np.zeros(0, dtype=np.int64)
    for pair in combinations(members, 2) if members.shape[1] else ():
        cells, cell, size = np.unique(np.stack(pair), axis=1, return_inverse=True, return_counts=True)
        is_apart = (cells != cells[:, [size.argmax()]]).all(axis=0)  # from the larger side, in both members
        if is_apart.any():
            side = np.flatnonzero(cell.ravel() == np.where(is_apart, size, 0).argmax())
            largest = max(largest, side, key=len)
    return largest


def shared(
    category: Int[Array, " images"], members: Int[Array, "members images"], n_categories: int
) -> Bool[Array, "members categories categories"]:
    """For each member, whether one of its clusters holds at least `MOST_SHARED` of both of two categories.

    That is more than half, so it can only be the cluster b(a) = argmax_b |a and b| of each.
    """
    of_members = []
    for member in members:
        counts = np.zeros((n_categories, int(member.max(initial=0)) + 1))
        np.add.at(counts, (category, member), 1)
        is_most = (counts.max(axis=1) >= MOST_SHARED * counts.sum(axis=1)) & counts.any(axis=1)
        best = np.where(is_most, counts.argmax(axis=1), -1)
        of_members.append((best[:, None] == best) & (best >= 0)[:, None])
    return np.array(of_members).reshape(len(members), n_categories, n_categories)
