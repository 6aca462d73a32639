"""Plain views that extraction computes on its way to the features, kept until a bank takes them.

A plain bank stores the output of the frozen prefix for each image under the test transform, and extraction needs the
same numbers. So an extraction that knows the folder of the banks leaves them there, by the content of the image, and
the bank computes only what is missing. Both use batches of one shape, so the bytes of a view do not depend on which of
them computed it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
from jaxtyping import Bool

from justright.data.transforms import Plain, describe
from justright.features.backbone import Backbone
from justright.features.cache import BANK_INDEX, CacheSection, Digests, blocks_of, remove_unread
from justright.features.choices import BATCH_SIZE
from justright.features.views import record_type
from justright.utils.files import write_json
from justright.utils.hashing import hash_value
from justright.utils.locks import ReaderLease
from justright.utils.types import Array

WAITING_BYTES = 32 << 20  # of views that wait in memory for the next file


def prefix_key(backbone: Backbone) -> dict[str, Any]:
    """Everything that the bytes of a stored view depend on, beside the view itself."""
    runtime = {} if (name := backbone.runtime) == "torch" else {"runtime": name}
    return runtime | {
        "backbone": backbone.name,
        "prefix_fingerprint": backbone.prefix_fingerprint,
        "recipe": backbone.recipe.as_dict(),
        "tensors": dict(zip(backbone.stored_names, map(list, backbone.stored_shapes), strict=True)),
    }


class ExtractedViews(CacheSection):
    """Plain views below `root` that no bank has taken yet. Only those of earlier extractions can be read."""

    def __init__(self, backbone: Backbone, root: Path):
        self.layout = record_type(backbone.stored_names, backbone.stored_shapes, "float32")
        how = {"transform": describe(Plain()), "precision": "float32", "batch_size": BATCH_SIZE}
        self.index = prefix_key(backbone) | how
        super().__init__(root / f"staged-{hash_value(self.index)[:24]}")
        self._waiting: list[tuple[Digests, Array]] = []
        self._release: finalize[Any, Any] | None = None

    def read(self, ids: Digests) -> tuple[Bool[Array, " images"], Array]:
        """For which of these images there is an intact view, and the records of those."""
        is_found, rows = super().read(ids)
        if rows is None:
            return is_found, np.zeros(0, self.layout)
        return is_found, np.ascontiguousarray(rows).view(self.layout)[:, 0]

    def add(self, ids: Digests, records: Array) -> None:
        """Keep the views of some images. They are on disk once `flush` has returned."""
        if not len(ids):  # every image of a batch is bad
            return
        self._waiting.append((ids, records))
        if sum(waiting.nbytes for _, waiting in self._waiting) >= WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the waiting views as one block."""
        if not self._waiting:
            return
        # the folder is not deleted to make room
        self._release = self._release or finalize(self, ReaderLease(self.folder).release)
        if not (self.folder / BANK_INDEX).exists():
            write_json(self.folder / BANK_INDEX, self.index | {"n_images": 0})  # for people
        ids, records = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        super().add(ids, records.view("<f4").reshape(len(ids), -1))  # all fields are float32
        self._waiting = []

    def close(self) -> None:
        """Release the folder, and delete it if it is empty."""
        if self._release is not None:
            self._release()
        if self.folder.exists() and not any(blocks_of(self.folder)):
            remove_unread(self.folder)
