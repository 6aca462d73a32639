"""The data sets of the field, each read from its official layout."""

from __future__ import annotations

from justright.data.catalog.data_set import DataSet
from justright.registry import Registry

DATA_SETS: Registry[DataSet] = Registry("data set")  # by the name that `open_images` takes, as in `cub:/data/cub`
for _name, _place, _about in (
    ("glyphs", "glyph_set:DATA_SET", "872 characters of 29 scripts, drawn by the package"),
    ("cub", "cub:DATA_SET", "200 species of birds"),
    ("cars", "stanford_cars:DATA_SET", "196 makes, models and years of cars"),
    ("aircraft", "aircraft:DATA_SET", "100 variants of airplanes"),
    ("dogs", "stanford_dogs:DATA_SET", "120 breeds of dogs"),
    ("nabirds", "nabirds:DATA_SET", "555 kinds of birds of North America"),
    ("herbarium19", "herbarium:DATA_SET", "683 species of melastomes as dried specimens"),
    ("inat-insects", "inat_insects:DATA_SET", "2,526 species of insects"),
    ("imagenet100", "imagenet:IMAGENET100", "100 classes of ImageNet"),
    ("imagenet1k-ssb", "imagenet:IMAGENET1K_SSB", "ImageNet and the classes that SSB adds to it"),
):
    DATA_SETS.add(_name, f"justright.data.catalog.{_place}", _about)
