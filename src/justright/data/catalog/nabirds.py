"""NABirds: birds of North America, with the official hierarchy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from justright.data.catalog import DataSet
from justright.data.catalog.layouts import Listing, assemble, check_present, inside, whole_numbers
from justright.data.columns import levels_of
from justright.data.image_set import ImageSet
from justright.utils.errors import DataError


def load(root: Path) -> ImageSet:
    """Labels count the official class numbers that have images, in increasing order (555 in the complete set).

    Official numbers are nodes of the tree, and only some nodes have images. Rows are in the order of `images.txt`.
    Super-categories are the ancestors of a class without the root.
    """
    root = inside(root, "nabirds")
    files = ("images", "classes", "hierarchy", "image_class_labels", "train_test_split")
    images, classes, parents, labels, parts = (Listing.read(root / f"{name}.txt") for name in files)
    name_of = dict(zip(classes.keys, classes.values, strict=True))
    number_of = dict(zip(classes.keys, whole_numbers(classes.keys, 0, 10**6, classes.at).tolist(), strict=True))
    for row, node in enumerate(labels.values):
        if node not in name_of:
            raise DataError(f"{labels.at(row)}: {node}", expected=f"a class number of {classes.file}")
    check_present(root / "images", images.values)
    nodes = sorted(set(labels.values), key=number_of.__getitem__)
    label_of = {node: label for label, node in enumerate(nodes)}
    label = np.array([label_of[labels.values[row]] for row in labels.rows_of(images)])
    is_train = parts.numbers(0, 1)[parts.rows_of(images)] == 1
    names, groups = [name_of[node] for node in nodes], [_ancestors(node, parents, name_of) for node in nodes]
    return assemble(root / "images", "nabirds", images.values, label, is_train, names, levels_of(groups))


def _ancestors(node: str, parents: Listing, name_of: dict[str, str]) -> list[str]:
    """The names above a node, coarse to fine, without the root."""
    row_of = {child: row for row, child in enumerate(parents.keys)}
    chain: list[str] = []
    while node in row_of:
        row = row_of[node]
        node = parents.values[row]
        if node not in name_of:
            raise DataError(f"{parents.at(row)}: {node}", expected="a class number of classes.txt")
        if node in chain:
            raise DataError(f"{parents.at(row)}: {node} is above itself", expected="a tree")
        chain.append(node)
    return [name_of[above] for above in reversed(chain[:-1])]


DATA_SET = DataSet(
    title="NABirds",
    loader=load,
    licence="non-commercial use, on the Cornell Lab's terms; see the site",
    where="https://dl.allaboutbirds.org/nabirds",
    layout="""\
    nabirds/
      images.txt
      image_class_labels.txt
      train_test_split.txt
      classes.txt
      hierarchy.txt
      images/0817/*.jpg""",
)
