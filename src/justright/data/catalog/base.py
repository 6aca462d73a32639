"""What every data set of the catalog says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from justright.data.image_set import ImageSet
from justright.errors import MissingDataError


@dataclass(frozen=True)
class Benchmark:
    """One data set: how to load it, what its layout is, on which terms and where it can be had."""

    name: str
    title: str
    loader: Callable[[Path], ImageSet]
    licence: str
    where: str
    layout: str

    def load(self, root: str | Path) -> ImageSet:
        """Read the data set below `root`; a missing file is named together with the layout and the place to ask."""
        try:
            return self.loader(Path(root))
        except FileNotFoundError as error:
            raise MissingDataError(
                f"{self.title}: {error.filename} is not there",
                expected=f"this layout below {root}:\n{self.layout}",
                advice=f"request or download it from {self.where}",
            ) from error
