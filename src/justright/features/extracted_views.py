"""Plain views that extraction has computed on its way to the features, kept until their bank takes them.

A plain bank stores what the frozen prefix makes of each image under the test transform, and extraction brings the same
numbers through the rest of the network. So an extraction that knows the root of the banks leaves them there, by the
content of the image, and the bank computes only what it does not find. Both compute in batches of one shape, so the
bytes of a view do not tell who computed it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
from jaxtyping import Bool

from justright.data.transforms import Plain, describe
from justright.features.backbone import Backbone
from justright.features.bank_records import record_type
from justright.features.cache_section import CacheSection, Digests, blocks_of
from justright.features.choices import BATCH_SIZE
from justright.features.kept_banks import INDEX, alone, hold
from justright.utils.files import write_json
from justright.utils.hashing import hash_value
from justright.utils.types import Array

WAITING_BYTES = 32 << 20  # of views that wait in memory for the next file


def prefix_key(backbone: Backbone) -> dict[str, Any]:
    """All that the stored bytes of a given view depend on."""
    runtime = {} if (name := backbone.runtime) == "torch" else {"runtime": name}
    return runtime | {
        "backbone": backbone.name,
        "prefix_fingerprint": backbone.prefix_fingerprint,
        "recipe": backbone.recipe.as_dict(),
        "tensors": dict(zip(backbone.stored_names, map(list, backbone.stored_shapes), strict=True)),
    }


class ExtractedViews(CacheSection):
    """Plain views below `root` that no bank has taken yet; those that were there when this was made can be read.

    Who holds it keeps them from being removed to make room.
    """

    def __init__(self, backbone: Backbone, root: Path):
        self.layout = record_type(backbone.stored_names, backbone.stored_shapes, "float32")
        how = {"transform": describe(Plain()), "precision": "float32", "batch_size": BATCH_SIZE}
        self.index = prefix_key(backbone) | how
        super().__init__(root / f"staged-{hash_value(self.index)[:24]}")
        self._waiting: list[tuple[Digests, Array]] = []
        self._lock: finalize[Any, Any] | None = None

    def read(self, ids: Digests) -> tuple[Bool[Array, " images"], Array]:
        """For which of these images the view is here and whole, and the records of those."""
        is_found, rows = super().read(ids)
        if rows is None:
            return is_found, np.zeros(0, self.layout)
        return is_found, np.ascontiguousarray(rows).view(self.layout)[:, 0]

    def add(self, ids: Digests, records: Array) -> None:
        """Keep the views of some images. They are safe once `flush` has returned."""
        if not len(ids):  # every image of a batch is bad
            return
        self._waiting.append((ids, records))
        if sum(each.nbytes for _, each in self._waiting) >= WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits, as one block."""
        if not self._waiting:
            return
        self._lock = self._lock or hold(self.folder, self)
        if not (self.folder / INDEX).exists():
            write_json(self.folder / INDEX, self.index | {"n_images": 0})  # it tells people what is inside
        ids, records = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        super().add(ids, records.view("<f4").reshape(len(ids), -1))  # all fields are float32
        self._waiting = []

    def close(self) -> None:
        """Hold it no longer; nothing is left of a folder that is empty."""
        if self._lock is not None:
            self._lock()
        if self.folder.exists() and not any(blocks_of(self.folder)):
            with alone(self.folder) as is_free:
                if is_free:
                    shutil.rmtree(self.folder, ignore_errors=True)
