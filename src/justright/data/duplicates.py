"""Near copies of images, by a perceptual hash and the mean color.

The hash is imagehash's `phash`: 64 bits, the signs of low frequencies. Scaling, re-encoding and brightness hardly
change it. It ignores color, so an orange and a lemon on white have equal hashes; the mean color separates them. See
docs/research/decisions.md, "near duplicates".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import imagehash
import numpy as np
from jaxtyping import Int, UInt64
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from justright.utils.errors import DataError
from justright.utils.types import Array

NEAR = 4
"""Near copies differ in at most this many of the 64 bits. Distances are even, because half of the bits are set."""

MAX_NEAR = 10
"""Beyond this, different photos of one composition match, and the search is slow."""

HASH_BITS = 64
HASH_PIXELS = 32  # side of the image that phash hashes

FLAT_CONTRAST = 8
"""An image whose gray levels span less than this has no structure to hash: all such images look alike."""

COLOR_STEPS = 1000
COLOR_TOLERANCE = 16
"""Largest difference of the shares of red, green and blue of two near copies, in thousandths."""

EDGES_AT_ONCE = 1_000_000


def look_of(image: Image.Image) -> tuple[int, int, int, int] | None:
    """The perceptual hash and the shares of red, green and blue in thousandths; None for a flat image."""
    # phash would shrink the image itself; one shrunk image in color serves both and takes a fifth of the time
    small = image.resize((HASH_PIXELS, HASH_PIXELS), Image.Resampling.LANCZOS, reducing_gap=2.0)
    gray = small.convert("L")
    darkest, brightest = gray.getextrema()
    if brightest - darkest < FLAT_CONTRAST:  # type: ignore[operator]  # one channel, one pair
        return None
    bits = imagehash.phash(gray).hash.ravel()
    mean = np.asarray(small).mean(axis=(0, 1)) + 1
    red, green, blue = np.rint(COLOR_STEPS * mean / mean.sum()).astype(int).tolist()
    return int.from_bytes(np.packbits(bits).tobytes(), "big"), red, green, blue


def groups_of(keys: Int[Array, " images"]) -> Iterator[Int[Array, " members"]]:
    """Positions that share a key, two or more of them, in order of their first member."""
    order = np.argsort(keys, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    yield from sorted((group for group in groups if len(group) > 1), key=lambda group: group[0])


def near_components(
    hashes: UInt64[Array, " images"], colors: Int[Array, "images 3"], near: int = NEAR
) -> Int[Array, " images"]:
    """The number of a component for each image; images connected by a chain of near copies share it.

    Exact: hashes at most `near` bits apart are equal in one of `near + 1` bands of bits, so only images with an equal
    band are compared. Memory is linear in the number of images, even if all of them look alike.
    """
    if not 0 <= near <= MAX_NEAR:
        raise DataError(f"near copies within {near} bits", expected=f"0 to {MAX_NEAR}")
    looks, inverse = np.unique(np.column_stack([hashes, colors.astype(np.uint64)]), axis=0, return_inverse=True)
    n = len(looks)
    component = np.arange(n)
    for band in range(near + 1):
        # every (near + 1)-th bit: neighboring frequencies correlate, so adjacent bits would have fewer values
        mask = np.uint64(sum(1 << bit for bit in range(band, HASH_BITS, near + 1)))
        for left, right in _close_in_band(looks[:, 0], looks[:, 1:].astype(np.int64), mask, near):
            edges = coo_array((np.ones(len(left), bool), (component[left], component[right])), shape=(n, n))
            component = connected_components(edges, directed=False)[1][component].astype(np.int64)
    return component[inverse.ravel()]


def _close_in_band(
    hashes: UInt64[Array, " looks"], colors: Int[Array, "looks 3"], mask: np.uint64, near: int
) -> Iterator[Int[Array, "2 edges"]]:
    """Yield near pairs among the looks that are equal under the mask, a bounded number at a time."""
    order = np.argsort(hashes & mask, kind="stable")
    hashes, colors = hashes[order], colors[order]
    band = hashes & mask
    first = np.arange(len(order))
    pairs: list[Array] = []
    n_pairs = 0
    for step in count(1):  # compare each look with the one `step` positions later, while both have the same band
        first = first[: np.searchsorted(first, len(order) - step)]
        first = first[band[first] == band[first + step]]
        if not len(first):
            break
        pair = first[np.bitwise_count(hashes[first] ^ hashes[first + step]) <= near]
        pair = pair[np.abs(colors[pair] - colors[pair + step]).max(axis=1, initial=0) <= COLOR_TOLERANCE]
        pairs.append(np.stack([order[pair], order[pair + step]]))
        n_pairs += len(pair)
        if n_pairs > EDGES_AT_ONCE:
            yield np.concatenate(pairs, axis=1)
            pairs, n_pairs = [], 0
    if pairs:
        yield np.concatenate(pairs, axis=1)
