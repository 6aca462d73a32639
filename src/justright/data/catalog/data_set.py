"""DataSet: how one data set of the catalog is read, and what a person must know to get it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from justright.data.image_set import ImageSet
from justright.errors import DataError, MissingDataError


@dataclass(frozen=True)
class DataSet:
    """One data set. `DATA_SETS.add` makes it known under a name."""

    title: str  # what it is called in lists and errors
    loader: Callable[[Path], ImageSet]  # FileNotFoundError for what its folder lacks, DataError for what is damaged
    licence: str  # on which terms it may be used
    where: str  # the place to request or download it
    layout: str  # the files and folders that the loader expects, a line each

    def load(self, root: str | Path) -> ImageSet:
        """Read the data set below `root`; a missing file is named together with the layout and the place to ask."""
        try:
            return self.loader(Path(root))
        except FileNotFoundError as error:
            below = str(root) or "the current folder (another one is given as NAME:FOLDER)"
            raise MissingDataError(
                f"{self.title}: {str(error.filename).rstrip(os.sep)} is not there",
                expected=f"this layout below {below}\n{self.layout}",
                advice=f"request or download it from {self.where}",
            ) from error
        except OSError as error:
            raise DataError(f"{self.title}: {error.filename} cannot be read ({error.strerror})") from error
