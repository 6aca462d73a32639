"""A cache with two blocks of three images each, for the tests of the cache and of its sections."""

from __future__ import annotations

from justright.features.cache import FeatureCache, digests

KEY = {"backbone": {"name": "tiny", "pooling": "class"}, "computation": {"precision": "float32"}}
ABOUT = {"backbone": "tiny", "pooling": "class", "precision": "float32"}
IDS = digests([f"image {i}" for i in range(6)])


def add(section, ids, rows):
    section.add(ids, rows)
    section.flush()


def filled(root, features, key=KEY, limit=None, **about):
    cache = FeatureCache(root, limit)
    section = cache.section(key, ABOUT | about)
    add(section, IDS[:3], features[:3])
    add(section, IDS[3:], features[3:])
    return cache
