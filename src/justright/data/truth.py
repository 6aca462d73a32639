"""The labels of the target, sealed.

Selection and training receive a Split, and a Split holds no Truth: what they cannot reach they cannot use. Only
evaluation, runs, benchmark, report and the command line open it, and a test keeps every other package from naming it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa

from justright.data.image_set import ImageSet
from justright.data.parquet import write_parquet
from justright.utils.errors import DataError
from justright.utils.types import Labels, Mask


class Truth:
    """Label of every unlabeled image and whether its class is old, in the order of `Split.unlabeled`."""

    __slots__ = ("_images", "_old_classes")

    def __init__(self, images: ImageSet, old_classes: tuple[int, ...]):
        self._images = images
        self._old_classes = old_classes

    def __len__(self) -> int:
        return len(self._images)

    def __repr__(self) -> str:
        return f"Truth({len(self):,} labels, sealed)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Truth does not travel to other processes; save it and evaluate from the file")

    def with_old(self, old_classes: tuple[int, ...]) -> Truth:
        """The same labels, judged against other labeled data, which has these classes."""
        return Truth(self._images, old_classes)

    def named_by(self, images: ImageSet) -> Truth:
        """The same labels under the ids of these images, which are its own in the same order."""
        return Truth(self._images.named_by(images.table["id"]), self._old_classes)

    def open_for_evaluation(self) -> tuple[Labels, Mask]:
        """True labels and the mask of old classes, both aligned with the unlabeled images."""
        labels = self._images.labels
        return labels, np.isin(labels, self._old_classes)

    def save(self, path: Path) -> None:
        """Write path, id, label, class name and is_old as Parquet: what `justright evaluate --truth` reads."""
        if path.suffix != ".parquet":
            raise DataError(f"cannot write the truth to {path}", expected="a name that ends in .parquet")
        _, is_old = self.open_for_evaluation()
        table = self._images.table.select(["id", "path", "label", "class_name"])
        write_parquet(table.append_column("is_old", pa.array(is_old)), path)
