"""The data sets of the field, each read from its official layout."""

from __future__ import annotations

from justright.data.catalog import (
    aircraft,
    cub,
    glyph_set,
    herbarium,
    imagenet,
    inat_insects,
    nabirds,
    stanford_cars,
    stanford_dogs,
)
from justright.data.catalog.base import Benchmark

CATALOG: dict[str, Benchmark] = {
    "glyphs": glyph_set.BENCHMARK,
    "cub": cub.BENCHMARK,
    "cars": stanford_cars.BENCHMARK,
    "aircraft": aircraft.BENCHMARK,
    "dogs": stanford_dogs.BENCHMARK,
    "nabirds": nabirds.BENCHMARK,
    "herbarium19": herbarium.BENCHMARK,
    "inat-insects": inat_insects.BENCHMARK,
    "imagenet100": imagenet.IMAGENET100,
    "imagenet1k-ssb": imagenet.IMAGENET1K_SSB,
}
"""By the name that `open_images` and the command line take, as in `cub:/data/cub`."""
