"""The view bank: views after the frozen prefix, computed once and read from disk at every step.

What the tuned suffix reads depends on the image, the view and frozen parameters only. So V views an image are drawn
once, pushed through the prefix once, and training reads them from disk. `FreshViews` answers the same calls with the
same numbers and stores nothing.
"""

from __future__ import annotations

import logging
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from weakref import finalize

import numpy as np
from jaxtyping import Int

from justright.data.image_set import ImageSet
from justright.data.transforms import Plain, Weak, describe
from justright.features import bank_records
from justright.features.backbone import Backbone
from justright.features.bank_build import BankBuild, MissingBlock
from justright.features.bank_records import BankPrecision
from justright.features.cache_section import digests
from justright.features.choices import BATCH_SIZE
from justright.features.cuts import Stored
from justright.features.extracted_views import ExtractedViews, prefix_key
from justright.features.kept_banks import KeptBanks, building, hold
from justright.features.stored_views import FreshViews, Views
from justright.features.view_work import ViewWork
from justright.features.workers import tools
from justright.utils.context import track
from justright.utils.errors import DataError, JustrightError
from justright.utils.files import write_json
from justright.utils.hashing import hash_list, hash_value, in_blocks
from justright.utils.parallel import Engine
from justright.utils.seeding import generator
from justright.utils.types import Array

_log = logging.getLogger(__name__)

FORMAT = 3
SHARD_BYTES = 64 << 20


class ViewBank(Views):
    """`n_views` views of each image on disk, below `root` in a directory named by all that they depend on.

    A shard is one view of some neighboring rows; finished ones are kept when a build is killed. Each is compared with
    its checksum once before it is read, and a damaged one is built again.

    Parameters, beside those of `Views`:
        root: the folder of all banks.
        n_views: how many views of each image are stored.
        precision: float32 or float16.
        batch_size: images that go through the prefix at once; of plain views those of an extraction.
        shard_bytes: about how large a file gets.
        engine: where views are drawn and computed instead of in threads, one a core; it changes no byte.
        is_built: another process has built and checked the bank: it is neither built nor checked again.
    """

    def __init__(
        self,
        backbone: Backbone,
        images: ImageSet,
        root: Path,
        *,
        n_views: int = 2,
        precision: BankPrecision = "float16",
        batch_size: int = 32,
        shard_bytes: int = SHARD_BYTES,
        is_built: bool = False,
        engine: Engine | None = None,
        **of_views: Any,
    ):
        super().__init__(backbone, images, **of_views)
        if n_views < 1:
            raise JustrightError(f"{n_views} views", expected="at least 1")
        # plain views have the bytes that extraction would give them
        self.is_plain = isinstance(self.transform, Plain)
        self.batch_size = BATCH_SIZE if self.is_plain else batch_size
        self.n_views = n_views
        self.engine, self.is_built = engine, is_built
        self.layout = bank_records.record_type(backbone.stored_names, backbone.stored_shapes, precision)
        self.rows_per_shard = max(1, shard_bytes // self.layout.itemsize)
        n, size = len(self.images), self.rows_per_shard
        self.blocks = [range(start, min(start + size, n)) for start in range(0, n, size)]
        self.index = self._index(precision)
        self.directory = root / hash_value(self.index)[:24]
        name = "rows{:06d}-view{:03d}.npy"
        shards = np.ndindex(len(self.blocks), n_views)
        self._paths = {shard: self.directory / name.format(*shard) for shard in shards}
        self._whole: set[Path] = set()
        self._lock: finalize[Any, Any] | None = None
        self._opened = lru_cache(maxsize=256)(self._open)  # each map holds a file descriptor

    def _index(self, precision: BankPrecision) -> dict[str, Any]:
        """All that the stored bytes depend on."""
        about = {
            "format": FORMAT,
            "transform": describe(self.transform),
            "seed": self.seed,
            "n_images": len(self.images),
            "images": hash_list(in_blocks(self.ids)),
            "precision": precision,
            "rows_per_shard": self.rows_per_shard,
        }
        return prefix_key(self.backbone) | about | ({"batch_size": self.batch_size} if self.is_plain else {})

    @property
    def what(self) -> str:
        """The bank in words: "plain views", or "4 training views of each image"."""
        if self.is_plain:
            return "plain views"
        kind = "" if isinstance(self.transform, Weak) else f"{type(self.transform).__name__.lower()} "
        return f"{self.n_views} {kind}training view{'s' * (self.n_views > 1)} of each image"

    @property
    def n_bytes(self) -> int:
        """What the whole bank takes on disk."""
        return self.layout.itemsize * len(self.images) * self.n_views

    def build(self) -> ViewBank:
        """Compute what is missing or damaged. Killed at any point, the next call goes on and ends with the same bytes.

        On a CPU every worker draws and computes with one core, so the bytes depend neither on how many there are nor
        on how many threads torch has; on another device or build they may differ by rounding.
        """
        self._lock = self._lock or hold(self.directory, self)
        if self.is_built:
            self._whole.update(self._paths.values())
            return self
        with building(self.directory):
            missing, staged = self._missing(), self._staged()
            if missing:
                self._compute(missing, staged)
        if staged is not None:
            for ids in in_blocks(self.ids):
                staged.drop(digests(ids))
            staged.close()
        return self

    def _compute(self, missing: list[MissingBlock], staged: ExtractedViews | None) -> None:
        KeptBanks(self.directory.parent).make_room(self.n_bytes)
        n_records = sum(len(block.rows) * len(block.paths) for block in missing)
        needed, free = n_records * self.layout.itemsize, shutil.disk_usage(self.directory).free
        if needed > free:
            raise JustrightError(
                f"the view bank needs {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free in {self.directory.parent}",
                advice="fewer views, another root, or fresh views, which store nothing",
            )
        write_json(self.directory / "index.json", self.index)
        own = self.backbone if self.backbone.device.type == "cpu" else None
        shape = self.batch_size if self.is_plain else None
        computed_by = tools(self.backbone.device, self.backbone.runtime)
        work = ViewWork(self.images.readers, self.drawer, self.layout, own, computed_by, shape)
        build = BankBuild(self.images, self.backbone, work, self.batch_size, staged)
        build.run(missing, self.engine, f"computing {self.what}")
        paths = [path for block in missing for path in block.paths]
        if not self.images.content_column(is_fresh=True).equals(self.ids):
            for path in paths:
                path.unlink(missing_ok=True)
            raise DataError("images changed while their views were computed", advice="run again once they stay")
        self._whole.update(paths)

    def _staged(self) -> ExtractedViews | None:
        """Plain views that extraction has left beside this bank; None where there are none, or of another precision."""
        if not self.is_plain or self.index["precision"] != "float32":
            return None
        staged = ExtractedViews(self.backbone, self.directory.parent)
        return staged if staged.folder.exists() else None

    def _missing(self) -> list[MissingBlock]:
        """Blocks with the views that are not there. A shard that this bank has not seen yet is read once."""
        unseen = [path for path in self._paths.values() if path not in self._whole and path.exists()]
        for path in track(unseen, len(unseen), f"checking {self.what}") if unseen else ():
            if bank_records.is_whole(path):
                self._whole.add(path)
            else:
                _log.warning("%s is damaged; it is built again", path)
                path.unlink()
        missing = []
        for block, rows in enumerate(self.blocks):
            views = [view for view in range(self.n_views) if not self._paths[block, view].exists()]
            missing.append(MissingBlock(rows, views, [self._paths[block, view] for view in views]))
        return [each for each in missing if each.paths]

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """Read one view of each row, as float32."""
        if views.min() < 0 or views.max() >= self.n_views:
            raise DataError(f"views up to {views.max()}", expected=f"0 to {self.n_views - 1}: the bank holds no others")
        blocks, places = np.divmod(rows, self.rows_per_shard)
        pairs = list(zip(blocks.tolist(), views.tolist(), strict=True))
        # looked up once a batch, not once a row
        shards = {pair: self._opened(self._paths[pair], len(self.blocks[pair[0]])) for pair in set(pairs)}
        records = [shards[pair][place] for pair, place in zip(pairs, places.tolist(), strict=True)]
        return bank_records.unpacked(records, self.backbone.stored_names)

    def choose(self, epoch: int, step: int, n_images: int, n_views: int = 2) -> Int[Array, "views batch"]:
        """Views of the bank, drawn without replacement for each image."""
        if n_views > self.n_views:
            raise DataError(f"{n_views} views a step", expected=f"at most {self.n_views}, what the bank holds")
        chance = generator(self.seed, "views", epoch, step).random((self.n_views, n_images))
        return chance.argsort(axis=0)[:n_views]

    def _open(self, path: Path, n_rows: int) -> Array:
        if not path.exists():
            raise DataError(f"{path.name} is not in the bank yet", advice="bank.build() computes what is missing")
        shard = bank_records.open_shard(path, self.layout, n_rows)
        if path not in self._whole and not bank_records.is_whole(path):
            raise DataError(f"{path} is damaged", advice="bank.build() computes it again")
        self._whole.add(path)
        return shard


def open_views(
    backbone: Backbone,
    images: ImageSet,
    root: Path,
    *,
    views: int | Literal["fresh"] = 2,
    **options: Any,
) -> Views:
    """A finished bank with so many views an image, or with "fresh" one that stores nothing."""
    if views == "fresh":
        of_banks = ("precision", "batch_size", "shard_bytes", "is_built", "engine")
        return FreshViews(backbone, images, **{name: options[name] for name in options if name not in of_banks})
    return ViewBank(backbone, images, root, n_views=views, **options).build()
