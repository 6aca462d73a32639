"""What a method says of every image: a known class, a discovered cluster or neither, and how sure it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float, Int

from justright.data.columns import names_column, write_csv
from justright.data.parquet import read_parquet, write_parquet
from justright.errors import DataError
from justright.files import parsed_json, reader_of, replacing
from justright.types import Array, Mask

FORMAT = "justright predictions 1"
KEY = b"justright"

CategoryKind = Literal["known", "discovered"]
KINDS: tuple[str, ...] = get_args(CategoryKind)

CSV_COLUMNS = ("path", "category", "kind", "confidence")  # the columns of a CSV
NEITHER = "neither"  # the kind of an image that looks like none of the categories


@dataclass(frozen=True)
class Category:
    """One category: a known class of the labeled images under its name, or a discovered cluster."""

    name: str
    kind: CategoryKind


@dataclass(frozen=True, eq=False)
class Predictions:
    """One entry an image, in the order of the images."""

    index: pa.Table  # with id, dataset and path
    cluster: Int[Array, " images"]  # the likeliest category, as a position in `categories`
    confidence: Float[Array, " images"]  # the calibrated probability that it is the right one
    is_neither: Mask  # whether the image is too unlike all categories for even the likeliest to be believed
    categories: tuple[Category, ...]  # known classes first, then discovered clusters

    def __len__(self) -> int:
        return len(self.cluster)

    @property
    def ids(self) -> list[str]:
        """One id an image."""
        return list(self.index["id"].to_pylist())

    @cached_property
    def sizes(self) -> Int[Array, " categories"]:
        """Number of images of each category."""
        return np.bincount(self.cluster, minlength=len(self.categories))

    def table(self) -> pa.Table:
        """One row an image: id, dataset, path, cluster, category, kind (known, discovered or neither), confidence."""
        is_known = np.array([category.kind == "known" for category in self.categories])
        kind = np.where(self.is_neither, len(KINDS), np.where(is_known[self.cluster], 0, 1))
        columns = {
            "cluster": pa.array(self.cluster.astype(np.int32)),
            "category": names_column([category.name for category in self.categories], self.cluster),
            "kind": names_column([*KINDS, NEITHER], kind),
            "confidence": pa.array(self.confidence.astype(np.float32)),
        }
        table = self.index
        for name, values in columns.items():
            table = table.append_column(name, values)
        return table

    def save(self, path: Path) -> None:
        """Write as Parquet, which `open` reads back, or as CSV for people, by the ending of the name."""
        if (ending := path.suffix.lower()) not in (".parquet", ".csv"):
            raise DataError(f"cannot write predictions to {path}", expected="a name that ends in .parquet or .csv")
        table = self.table()
        if ending == ".csv":
            with replacing(path) as temporary:
                write_csv(table.select(CSV_COLUMNS), temporary)
        else:
            about = {"format": FORMAT, "categories": [asdict(category) for category in self.categories]}
            write_parquet(table.replace_schema_metadata({KEY: json.dumps(about).encode()}), path)

    @staticmethod
    def open(path: Path) -> Predictions:
        """Read what `save` wrote as Parquet."""
        try:
            table = read_parquet(path)
            about = parsed_json((table.schema.metadata or {})[KEY])
            if about["format"] != FORMAT:
                raise ValueError(f"format {about['format']!r}")
            categories = tuple(reader_of(list[Category])(about["categories"]))
            cluster, confidence = table["cluster"].to_numpy(), table["confidence"].to_numpy()
            if cluster.dtype.kind != "i" or confidence.dtype.kind != "f":
                raise ValueError(f"clusters of {cluster.dtype} and confidences of {confidence.dtype}")
            cluster = cluster.astype(np.int64)
            if len(cluster) and not (cluster.min() >= 0 and cluster.max() < len(categories)):
                raise ValueError("a cluster without a category")
            is_neither = pc.equal(table["kind"].cast(pa.string()), NEITHER).to_numpy()
            index = table.select(["id", "dataset", "path"]).replace_schema_metadata()
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} does not hold predictions of this version: {error}",
                advice="justright discover and justright predict write such a file",
            ) from error
        return Predictions(index, cluster, confidence, is_neither, categories)


def category_names(known: Sequence[str], n_categories: int) -> tuple[Category, ...]:
    """Known classes under their names, first; then discovered clusters as new-001, new-002, ..."""
    n_new = n_categories - len(known)
    width = max(3, len(str(n_new)))
    discovered = (Category(f"new-{number:0{width}d}", "discovered") for number in range(1, n_new + 1))
    return (*(Category(name, "known") for name in known), *discovered)
