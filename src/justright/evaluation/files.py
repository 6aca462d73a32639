"""Read predictions, truth and checks from CSV or Parquet files, joined by image."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from jaxtyping import Bool, Float, Int
from pyarrow import types

from justright.data.columns import nfc, nfc_column
from justright.data.parquet import read_parquet, write_parquet
from justright.evaluation.accuracy import evaluate
from justright.evaluation.scores import Protocol, Scores
from justright.utils.errors import DataError, MissingDataError
from justright.utils.types import UNLABELED, Array, Labels, Mask

KEYS = ("id", "path")  # columns that may name an image, in order of preference
BOTH = "id and path"  # used together where copies share an id, and archives share the paths inside them
TRUTH = ("label", "class_name", "is_old", "has_kept_labels")
CLUSTER = ("cluster", "category")  # columns that may hold the cluster; a CSV for people has only its name
NAMES = ("category", "kind")  # the name of a category, and whether it is a known class
SOURCE = "source"  # whether a category was predicted, or given by a person

_TEXT = {name: pa.string() for name in (*KEYS, "class_name")}  # an id such as 007 is no number
_N_EXAMPLES = 3


@dataclass(frozen=True, eq=False)
class JudgedPredictions:
    """Clusters and truth, one entry per image in the order of the predictions: the arguments of `evaluate`.

    Images whose category a person gave are left out.
    """

    y_true: Labels
    y_pred: Labels
    is_old: Mask
    has_kept_labels: Mask | None
    class_names: Mapping[int, str]
    n_more: int = 0  # number of images of the truth that were not predicted, where that is allowed
    is_given: Bool[Array, " predictions"] = field(default_factory=lambda: np.zeros(0, dtype=bool))  # of all images
    called: Labels | None = None  # the class whose name an image has; None if the files have no names

    def scores(self, protocol: Protocol = "v2") -> Scores:
        """The scores of the clusters."""
        kept, called = self.has_kept_labels, self.called
        return evaluate(self.y_true, self.y_pred, self.is_old, has_kept_labels=kept, called=called, protocol=protocol)


@dataclass(frozen=True, eq=False)
class CheckedPredictions:
    """Clusters and the checks of a person: the arguments of `estimate_accuracy`."""

    checked: Int[Array, " checked"]
    is_right: Bool[Array, " checked"]
    clusters: Int[Array, " images"]
    confidence: Float[Array, " images"] | None


def read_judged(
    predictions: Path | pa.Table,
    truth: Path | pa.Table,
    old_classes: Collection[str] | None = None,
    may_list_more: bool = False,
    known_classes: Collection[str] | None = None,
) -> JudgedPredictions:
    """Join predictions (id or path, cluster) with truth (id or path, label or class_name, is_old).

    Truth may have a column `has_kept_labels`. Every image must be in both files, once. Other columns are ignored.

    Parameters:
        predictions, truth: files, or the tables that they would hold.
        old_classes: the names of old classes, for a truth without the column is_old.
        may_list_more: whether the truth may list images that were not predicted.
        known_classes: the names of known categories. An old class among them has kept its labels, where the truth has
            no column has_kept_labels.
    """
    predicted = _File.of(predictions, *CLUSTER, "kind", SOURCE)
    true = _File.of(truth, *TRUTH)
    # columns before rows: for a wrong file, a missing column is a better message than ids that do not match
    y_pred, _ = predicted.codes(*CLUSTER)
    y_true, class_names = true.classes()
    is_old = true.is_old(old_classes)
    has_kept = true.flags("has_kept_labels") if true.has("has_kept_labels") else None
    if has_kept is None and known_classes is not None:
        kept = set(known_classes) & set(old_classes or ())
        has_kept = np.isin(y_true, [label for label, name in class_names.items() if name in kept])
    called = predicted.called(class_names) if class_names and all(map(predicted.has, NAMES)) else None
    key = _shared_key(predicted, true)
    row = predicted.rows_in(true, key)
    if not may_list_more:
        true.rows_in(predicted, key)
    is_given = predicted.equals(SOURCE, "given") if predicted.has(SOURCE) else np.zeros(len(y_pred), dtype=bool)
    if len(is_given) and is_given.all():
        raise DataError(f"every category in {predicted.path} was given by a person", expected="predictions to evaluate")
    judged = row[~is_given]
    return JudgedPredictions(
        y_true[judged],
        y_pred[~is_given],
        is_old[judged],
        None if has_kept is None else has_kept[judged],
        class_names,
        n_more=len(is_old) - len(row),
        is_given=is_given,
        called=None if called is None else called[~is_given],
    )


def classes_named(names: Sequence[str], class_names: Mapping[int, str]) -> Int[Array, " names"]:
    """The class of each name, with or without the data set before it; a number of no class for unknown names."""
    class_of = {name: label for label, name in class_names.items()}
    unknown = max(class_names) + 1
    classes = [class_of.get(name, class_of.get(name.rpartition("/")[2], unknown)) for name in names]
    return np.array(classes, dtype=np.int64)


def read_checked(predictions: Path, checks: Path) -> CheckedPredictions:
    """Join predictions (id or path, cluster, perhaps confidence) with checks (id or path, is_right) of some of them."""
    predicted, checked = _File.of(predictions, *CLUSTER, "confidence"), _File.of(checks, "is_right")
    (clusters, _), is_right = predicted.codes(*CLUSTER), checked.flags("is_right")
    confidence = None
    if predicted.has("confidence"):
        numbers = predicted.column("confidence", "numbers", types.is_floating, types.is_integer)
        confidence = np.asarray(numbers, dtype=np.float64)
    rows = checked.rows_in(predicted, _shared_key(checked, predicted))
    return CheckedPredictions(rows, is_right, clusters, confidence)


def expect_truth(truth: Path, images: pa.Table, old_classes: Collection[str], may_lack: float = 0.0) -> None:
    """Raise if a file of truth cannot be used for these images, before they are processed.

    Parameters:
        images: their table, with id and path. Before ids are computed, a truth that has ids is not compared.
        old_classes: as for `read_judged`.
        may_lack: share of the images that the truth need not list, because they may be unreadable.
    """
    true = _File.of(truth, *TRUTH)
    true.classes(), true.is_old(old_classes)
    has_ids = images["id"].null_count == 0
    if has_ids or not true.has("id"):
        target = _File("the target", images.select(list(KEYS) if has_ids else ["path"]))
        target.rows_in(true, _shared_key(target, true), may_lack)


def copy_truth(truth: Path, to: Path, old_classes: Collection[str]) -> None:
    """Write the columns of a truth that evaluation reads as Parquet, with a column is_old."""
    true = _File.of(truth, *TRUTH)
    is_old = true.is_old(old_classes)
    table = true.table if true.has("is_old") else true.table.append_column("is_old", pa.array(is_old))
    write_parquet(table, to)


@dataclass(frozen=True)
class _File:
    """A table, and its path for error messages."""

    path: Path | str
    table: pa.Table

    @staticmethod
    def of(source: Path | pa.Table, *columns: str) -> _File:
        """Read the keys and those of the columns that a file has, or take a table."""
        if not isinstance(source, Path):
            return _File("a table", _plain_columns(source))
        if not source.is_file():
            raise MissingDataError(f"There is no file {source}.")
        if (ending := source.suffix.lower()) not in (".csv", ".parquet"):
            raise DataError(f"{source} ends in {source.suffix!r}.", expected=".csv or .parquet")
        options = pyarrow.csv.ConvertOptions(column_types=_TEXT)
        try:
            is_csv = ending == ".csv"
            table = pyarrow.csv.read_csv(source, convert_options=options) if is_csv else read_parquet(source)
            names = [name for name in (*KEYS, *columns) if name in table.column_names]
            return _File(source, _plain_columns(table.select(names)))
        except (OSError, pa.ArrowException, ValueError) as error:
            problem = f"{source} cannot be read: {error}"
            raise DataError(problem, expected="CSV with a header line, or Parquet") from error

    def has(self, name: str) -> bool:
        return name in self.table.column_names

    def texts(self, name: str) -> pa.ChunkedArray:
        return self.table[name].cast(pa.string())

    def equals(self, name: str, text: str) -> Mask:
        """Whether each row has this text in a column."""
        return np.asarray(pc.equal(self.texts(name), text).fill_null(False).to_numpy())

    def names(self, key: str) -> pa.ChunkedArray:
        """The name of each image: its id, its path or both."""
        return pc.binary_join_element_wise(*map(self.texts, KEYS), " ") if key == BOTH else self.texts(key)

    def is_unique(self, key: str) -> bool:
        names = self.names(key)
        return names.null_count == 0 and pc.count_distinct(names).as_py() == len(names)

    def rows_in(self, other: _File, key: str, may_lack: float = 0.0) -> Int[Array, " rows"]:
        """For each row, the row of `other` with the same image; raises if a larger share than `may_lack` has none."""
        names = self.names(key)
        place = pc.index_in(names, value_set=other.names(key).combine_chunks())
        if place.null_count > may_lack * len(names):
            examples = _examples(names.filter(pc.is_null(place)))
            raise DataError(
                f"{place.null_count:,} of {len(names):,} images in {self.path} are not in {other.path}{examples}.",
                expected="the same images in both files",
                advice=f"compare how the two files write the {key}; if that is equal, add the missing images",
            )
        return np.asarray(place.fill_null(-1).to_numpy(), dtype=np.int64)

    def classes(self) -> tuple[Labels, dict[int, str]]:
        """The class of each row, and the names of classes that have one."""
        labels, texts = self.codes("label", "class_name")
        if texts is None and self.has("class_name"):
            classes, first = np.unique(labels, return_index=True)
            named = self.table["class_name"].take(pa.array(first)).to_pylist()
            return labels, {int(label): name for label, name in zip(classes, named, strict=True) if name is not None}
        return labels, dict(enumerate(texts or []))

    def is_old(self, old_classes: Collection[str] | None) -> Mask:
        """Whether the class of each row is old: the column is_old, or else by class name."""
        if self.has("is_old"):
            return self.flags("is_old")
        if old_classes is None:
            raise DataError(
                f"{self.path} has no column is_old.",
                expected="whether the class of each image is old",
                advice="evaluate the folder of a run, which lists its old classes, instead of its predictions",
            )
        labels, names = self.classes()
        if not names:
            raise DataError(
                f"{self.path} has neither class names nor a column is_old.",
                expected="a column class_name, with names as in the labeled images; or is_old",
            )
        old = set(map(nfc, old_classes))
        return np.isin(labels, [label for label, name in names.items() if name in old])

    def called(self, class_names: Mapping[int, str]) -> Labels:
        """The class whose name each row has, `UNLABELED` for rows that are not of the kind "known"."""
        category = self.texts("category").fill_null("").combine_chunks().dictionary_encode()
        classes = classes_named(category.dictionary.to_pylist(), class_names)
        return np.where(self.equals("kind", "known"), classes[category.indices], UNLABELED)

    def codes(self, *names: str) -> tuple[Labels, list[str] | None]:
        """The first of these columns: integers unchanged; text as its alphabetical rank, with the sorted texts."""
        name = next(filter(self.has, names), names[0])
        if not self.has(name):
            expected = f"columns id or path, and {' or '.join(names)}"
            raise DataError(f"{self.path} has no column {name}.", expected=expected)
        column = self.column(name, "whole numbers or text", types.is_integer, types.is_string, types.is_large_string)
        if types.is_integer(column.type):
            return np.asarray(column.to_numpy(), dtype=np.int64), None
        values, codes = np.unique(np.asarray(column.to_pylist(), dtype=object), return_inverse=True)
        return codes.astype(np.int64), [str(value) for value in values]

    def flags(self, name: str) -> Mask:
        expected = "true or false, 1 or 0"
        values = np.asarray(self.column(name, expected, types.is_boolean, types.is_integer))
        if len(other := values[(values != 0) & (values != 1)]):
            raise DataError(f"Column {name} of {self.path} holds {other[0]}.", expected=expected)
        return values.astype(bool)

    def column(self, name: str, expected: str, *is_allowed: Callable[[pa.DataType], bool]) -> pa.ChunkedArray:
        """A column of one of these types without missing values."""
        if not self.has(name):
            raise DataError(f"{self.path} has no column {name}.", expected=f"columns id or path, and {name}")
        column = self.table[name]
        if column.null_count:
            raise DataError(f"Column {name} of {self.path} is empty in {column.null_count:,} of {len(column):,} rows.")
        if not any(is_type(column.type) for is_type in is_allowed):
            raise DataError(f"Column {name} of {self.path} holds {column.type}.", expected=expected)
        return column


def _plain_columns(table: pa.Table) -> pa.Table:
    """Decode dictionaries, and convert names of classes to the Unicode form that sources of images use."""
    columns = {}
    for name in table.column_names:
        column = table[name]
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        is_text = types.is_string(column.type) or types.is_large_string(column.type)
        columns[name] = nfc_column(column) if is_text and name in {"label", "class_name", *CLUSTER} else column
    return pa.table(columns)


def _shared_key(left: _File, right: _File) -> str:
    """The column that names each image once in both files."""
    shared = [key for key in KEYS if left.has(key) and right.has(key)]
    if not shared:
        problem = f"{left.path} and {right.path} share neither an id nor a path column."
        raise DataError(problem, expected="a column id or path in both, to match their rows")
    # images with equal content may share an id; their paths still differ
    for key in [*shared, BOTH] if len(shared) == len(KEYS) else shared:
        if left.is_unique(key) and right.is_unique(key):
            return key
    key = shared[-1]
    file = right if left.is_unique(key) else left
    counts = pc.value_counts(file.table[key])
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    raise DataError(
        f"{file.path} lists {len(repeated):,} images more than once{_examples(repeated)}; "
        f"{file.table[key].null_count:,} rows have no {key}.",
        expected=f"a {key} in every row, each once",
    )


def _examples(names: pa.Array | pa.ChunkedArray) -> str:
    return f", e.g. {', '.join(map(str, names[:_N_EXAMPLES].to_pylist()))}" if len(names) else ""
