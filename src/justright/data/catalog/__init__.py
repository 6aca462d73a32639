"""The data sets of the field: how to read each from its official layout, and where to get it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name

from justright.data.image_set import ImageSet
from justright.utils.errors import DataError, MissingDataError
from justright.utils.registry import Registry


@dataclass(frozen=True)
class DataSet:
    """One data set; `DATA_SETS.add` registers it under a name."""

    title: str  # its name in lists and errors
    # from its folder to its images, or "module:function", which is imported when needed
    loader: Callable[[Path], ImageSet] | str
    licence: str  # the terms of use
    where: str  # where to request or download it
    layout: str  # the files and folders that the loader expects, one per line

    def load(self, root: str | Path) -> ImageSet:
        """Read the data set below `root`; the error for a missing file shows the layout and where to get it."""
        try:
            loader = self.loader if callable(self.loader) else resolve_name(f"{__package__}.{self.loader}")
            images: ImageSet = loader(Path(root))
            return images
        except FileNotFoundError as error:
            place = str(root) or "the current folder (name another one as NAME:FOLDER)"
            raise MissingDataError(
                f"{self.title}: {str(error.filename).rstrip(os.sep)} does not exist",
                expected=f"this layout below {place}\n{self.layout}",
                advice=f"request or download it from {self.where}",
            ) from error
        except OSError as error:
            raise DataError(f"{self.title}: {error.filename} cannot be read ({error.strerror})") from error
        except (ValueError, LookupError) as error:
            raise DataError(
                f"{self.title}: files below {root} are damaged or do not belong together: {error!r}",
                expected=f"the official files, unchanged\n{self.layout}",
                advice=f"unpack them again, from {self.where}",
            ) from error


DATA_SETS: Registry[DataSet] = Registry("data set")  # by the name that `open_images` takes, as in `cub:/data/cub`
for _name, _entry in tomllib.loads(files(__package__).joinpath("data_sets.toml").read_text(encoding="utf-8")).items():
    DATA_SETS.add(_name, DataSet(**{key: value for key, value in _entry.items() if key != "about"}), _entry["about"])
