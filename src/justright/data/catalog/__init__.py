"""The data sets of the field, each read from its official layout."""

from __future__ import annotations

from justright.data.catalog.base import Benchmark

CATALOG: dict[str, Benchmark] = {}
