"""The methods by name. They are imported on first use, so that names and help need no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from justright.utils.registry import Registry

if TYPE_CHECKING:
    from justright.discovery.base import Discovery

FIRST_PARTS = ("stage1", "heads")
"""Subfolders of a run for the trainings before the last one."""


def is_trained(name: str) -> bool:
    """Whether a method trains a network."""
    return bool(METHODS[name].trainings(METHODS[name].config_class()))


METHODS: Registry[type[Discovery]] = Registry("method")
METHODS.add("kmeans", "justright.discovery.kmeans:KMeansBaseline", "semi-supervised k-means on frozen features")
METHODS.add("gcd", "justright.discovery.gcd:GCD", "contrastive learning with and without labels, then k-means")
METHODS.add("xcon", "justright.discovery.xcon:XCon", "GCD on all data and within each cluster of it")
METHODS.add("simgcd", "justright.discovery.simgcd:SimGCD", "features and prototypes together, self-distillation")
METHODS.add("mugcd", "justright.discovery.mugcd:MuGCD", "GCD, then SimGCD's losses with a mean teacher (rebuilt)")
METHODS.add("cms", "justright.discovery.cms:CMS", "contrastive mean-shift learning, then mean shift and a tree")
METHODS.add("selex", "justright.discovery.selex:SelEx", "contrastive learning with a hierarchy of clusters")
