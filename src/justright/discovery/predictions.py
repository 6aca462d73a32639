"""Predictions: a known class, a new cluster or neither for each image, with a confidence; votes of several runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from justright.data.columns import names_column, write_csv
from justright.data.parquet import read_parquet, write_parquet
from justright.utils.errors import DataError
from justright.utils.files import parsed_json, replacing, validator_of
from justright.utils.types import Array, Mask

FORMAT = "justright predictions 1"
KEY = b"justright"

CategoryKind = Literal["known", "discovered"]
KINDS: tuple[str, ...] = get_args(CategoryKind)

CSV_COLUMNS = ("path", "category", "kind", "confidence", "source")  # the columns of a CSV
NEITHER = "neither"  # the kind of an image that looks like none of the categories
NEITHER_SHARE = 0.01  # share of the target's images that would fit no category
UNCALIBRATED = "nothing: no labeled images were used"  # `calibrated_on` without labeled images
SOURCES = ("predicted", "given")  # where a category comes from: the method, or a person who labeled the image

NEW_NAME = re.compile(r"new-(\d{1,9})", re.IGNORECASE | re.ASCII)  # the name of a discovered cluster


@dataclass(frozen=True)
class Category:
    """One category: a known class of the labeled images under its name, or a discovered cluster."""

    name: str
    kind: CategoryKind


@dataclass(frozen=True, eq=False)
class Predictions:
    """One entry per image, in the order of the images."""

    index: pa.Table  # with id, dataset and path
    cluster: Int[Array, " images"]  # the likeliest category, as a position in `categories`
    confidence: Float[Array, " images"]  # the calibrated probability that it is the right one
    is_neither: Mask  # whether the image fits no category, not even the most likely one
    categories: tuple[Category, ...]  # known classes first, then discovered clusters
    is_given: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))  # whether a person labeled the image

    def __post_init__(self) -> None:
        if not len(self.is_given):
            object.__setattr__(self, "is_given", np.zeros(len(self.cluster), dtype=bool))

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

    @cached_property
    def purity(self) -> Float[Array, " categories"]:
        """The expected share of right images in each category: the mean confidence of its images without a given label.

        NaN where there are none.
        """
        is_open, n = ~self.is_given, len(self.categories)
        total = np.bincount(self.cluster[is_open], self.confidence[is_open], minlength=n)
        count = np.bincount(self.cluster[is_open], minlength=n).astype(np.float64)
        return total / np.where(count, count, np.nan)

    def table(self) -> pa.Table:
        """One row an image: id, dataset, path, cluster, category, kind, confidence, source.

        The kind is known, discovered or neither, the source predicted or given.
        """
        is_known = np.array([category.kind == "known" for category in self.categories])
        kind = np.where(self.is_neither, len(KINDS), np.where(is_known[self.cluster], 0, 1))
        columns = {
            "cluster": pa.array(self.cluster.astype(np.int32)),
            "category": names_column([category.name for category in self.categories], self.cluster),
            "kind": names_column([*KINDS, NEITHER], kind),
            "confidence": pa.array(self.confidence.astype(np.float32)),
            "source": names_column(SOURCES, self.is_given.astype(np.int64)),
        }
        table = self.index
        for name, values in columns.items():
            table = table.append_column(name, values)
        return table

    def with_given(self, names: Sequence[str | None]) -> Predictions:
        """Return a copy with the classes that a person gave to some images; None for the others."""
        known = {each.name: number for number, each in enumerate(self.categories) if each.kind == "known"}
        given = np.array([known.get(name or "", -1) for name in names], dtype=np.int64)
        is_given = self.is_given | (given >= 0)
        return replace(
            self,
            cluster=np.where(given >= 0, given, self.cluster),
            confidence=np.where(given >= 0, 1.0, self.confidence).astype(np.float32),
            is_neither=self.is_neither & ~is_given,
            is_given=is_given,
        )

    def save(self, path: Path) -> None:
        """Write as Parquet (`open` reads it) or CSV, by the ending of the name."""
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
        """Read a Parquet file written by `save`."""
        try:
            table = read_parquet(path)
            about = parsed_json((table.schema.metadata or {})[KEY])
            if about["format"] != FORMAT:
                raise ValueError(f"format {about['format']!r}")
            categories = tuple(validator_of(list[Category])(about["categories"]))
            cluster, confidence = table["cluster"].to_numpy(), table["confidence"].to_numpy()
            if cluster.dtype.kind != "i" or confidence.dtype.kind != "f":
                raise ValueError(f"clusters of {cluster.dtype} and confidences of {confidence.dtype}")
            cluster = cluster.astype(np.int64)
            if len(cluster) and not (cluster.min() >= 0 and cluster.max() < len(categories)):
                raise ValueError("a cluster without a category")
            is_neither = pc.equal(table["kind"].cast(pa.string()), NEITHER).to_numpy()
            is_given = pc.equal(table["source"].cast(pa.string()), SOURCES[1]).to_numpy()
            index = table.select(["id", "dataset", "path"]).replace_schema_metadata()
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} does not hold predictions of this version: {error}",
                advice="justright discover and justright predict write such a file",
            ) from error
        return Predictions(index, cluster, confidence, is_neither, categories, is_given)


def category_names(known: Sequence[str], n_categories: int) -> tuple[Category, ...]:
    """Known classes under their names, first; then discovered clusters as new-001, new-002, ...

    A class that kept such a name in an earlier round keeps it: numbers start after the highest one among the classes.
    """
    used = [int(match[1]) for name in known if (match := NEW_NAME.fullmatch(name))]
    first, n_new = max(used, default=0) + 1, n_categories - len(known)
    width = max(3, len(str(first + n_new - 1)))
    discovered = (Category(f"new-{first + number:0{width}d}", "discovered") for number in range(n_new))
    return (*(Category(name, "known") for name in known), *discovered)


MAX_ROUNDS = 20  # of matching and voting; a few are enough, the limit only prevents an endless loop


@dataclass(frozen=True, eq=False)
class Consensus:
    """The vote of several runs, one entry per image."""

    predictions: Predictions  # categories of the reference run; mean confidence, 0 for runs that disagree
    agreement: Float[Array, " images"]  # the share of runs that put the image where the vote puts it
    reference: int  # the run that agrees best with the others; its category numbers are used


def consensus(runs: Sequence[Predictions]) -> Consensus:
    """The vote of runs over the same images with the same known classes, each vote counted by its confidence."""
    agreements = []  # of each run: how many images the others, renumbered to match it, have where it has them
    for run in runs:
        others = [_renumbered(other, run.cluster, len(run.categories)) for other in runs]
        agreements.append(np.sum([np.mean(other == run.cluster) for other in others]))
    reference = int(np.argmax(agreements))  # of equals the first
    voted, n_categories = runs[reference].cluster, len(runs[reference].categories)
    confidence = np.stack([np.where(run.is_neither, 0.0, run.confidence) for run in runs])
    for _ in range(MAX_ROUNDS):
        matched = np.stack([_renumbered(run, voted, n_categories) for run in runs])
        candidates = np.concatenate([voted[None], matched])  # of equals the one before stays, so rounds end
        # a vote counts 1 and its confidence, so that a tie in number goes to the surer side
        votes = np.stack([((matched == each) * (1 + confidence)).sum(axis=0) for each in candidates])
        votes[candidates == n_categories] = -1  # clusters that match none
        before = voted
        voted = candidates[votes.argmax(axis=0), np.arange(len(voted))]
        if (before == voted).all():
            break
    agrees = matched == voted
    joined = replace(
        runs[reference],
        cluster=voted,
        confidence=np.where(agrees, confidence, 0.0).mean(axis=0).astype(np.float32),
        is_neither=np.mean([run.is_neither for run in runs], axis=0) > 0.5,
    )
    return Consensus(joined, agrees.mean(axis=0), reference)


def _renumbered(run: Predictions, reference: Int[Array, " images"], n_reference: int) -> Int[Array, " images"]:
    """The clusters of a run under the numbers of the reference; those without a match get the number after the last."""
    n, n_known = len(run.categories), sum(category.kind == "known" for category in run.categories)
    shared = np.zeros((n, n_reference), dtype=np.int64)
    np.add.at(shared, (run.cluster, reference), 1)
    row, column = linear_sum_assignment(shared[n_known:, n_known:], maximize=True)
    number = np.full(n, n_reference)
    number[:n_known] = np.arange(n_known)
    number[row + n_known] = column + n_known
    return number[run.cluster]
