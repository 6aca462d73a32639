"""The data sets of the field: how to read each from its official layout, and where to get it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from justright.data.image_set import ImageSet
from justright.utils.errors import DataError, MissingDataError
from justright.utils.registry import Registry


@dataclass(frozen=True)
class DataSet:
    """One data set; `DATA_SETS.add` registers it under a name."""

    title: str  # its name in lists and errors
    loader: Callable[[Path], ImageSet]  # raises FileNotFoundError for missing files, DataError for damaged ones
    licence: str  # the terms of use
    where: str  # where to request or download it
    layout: str  # the files and folders that the loader expects, one per line

    def load(self, root: str | Path) -> ImageSet:
        """Read the data set below `root`; the error for a missing file shows the layout and where to get it."""
        try:
            return self.loader(Path(root))
        except FileNotFoundError as error:
            below = str(root) or "the current folder (name another one as NAME:FOLDER)"
            raise MissingDataError(
                f"{self.title}: {str(error.filename).rstrip(os.sep)} does not exist",
                expected=f"this layout below {below}\n{self.layout}",
                advice=f"request or download it from {self.where}",
            ) from error
        except OSError as error:
            raise DataError(f"{self.title}: {error.filename} cannot be read ({error.strerror})") from error


DATA_SETS: Registry[DataSet] = Registry("data set")  # by the name that `open_images` takes, as in `cub:/data/cub`
for _name, _place, _about in (
    ("glyphs", "glyphs:DATA_SET", "872 characters of 29 scripts, drawn by the package"),
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
