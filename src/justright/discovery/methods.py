"""The methods by name."""

from __future__ import annotations

from justright.discovery.base import Discovery
from justright.discovery.gcd import GCD
from justright.discovery.kmeans import KMeansBaseline
from justright.discovery.mugcd import MuGCD
from justright.discovery.simgcd import SimGCD
from justright.discovery.xcon import XCon

METHODS: dict[str, type[Discovery]] = {
    "kmeans": KMeansBaseline,
    "gcd": GCD,
    "xcon": XCon,
    "simgcd": SimGCD,
    "mugcd": MuGCD,
}
