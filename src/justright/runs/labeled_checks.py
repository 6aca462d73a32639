"""What a run warns of in the labels that it learns from: class names that look alike, images with several classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from justright.data import Pool
from justright.data.audit import ALIKE, comparable_name, location
from justright.data.columns import look_alikes
from justright.data.pool import OWN, Origin
from justright.data.quarantine import printable

N_SHOWN = 3


def label_warnings(pool: Pool, target_classes: Iterable[str] = ()) -> list[str]:
    """A sentence for each kind of doubt, without its full stop.

    `target_classes` are the names of the target's own classes, where these are to be judged by: a name of the labeled
    images that looks like one of them is probably meant to be that one.
    """
    return [said for said in (_alike(pool, target_classes), _conflicts(pool)) if said]


def _alike(pool: Pool, target_classes: Iterable[str]) -> str:
    names: dict[str, set[str]] = defaultdict(set)
    for origin in pool.origins:
        names[origin.dataset].add(origin.class_name)
    names[OWN] |= set(target_classes)
    groups = [group for each in names.values() for group in look_alikes(each)]
    if not groups:
        return ""
    shown = "; ".join(" and ".join(map(repr, group)) for group in groups[:N_SHOWN])
    more = f" and {len(groups) - N_SHOWN:,} more" if len(groups) > N_SHOWN else ""
    return f"names of different classes {ALIKE}: {shown}{more}"


def _conflicts(pool: Pool) -> str:
    """Images, equal byte for byte, with several classes: by label inside a data set, by name between data sets."""
    images = pool.images
    table = pa.table({"content": images.content_column(is_strict=False), "label": images.table["label"]})
    counts = table.group_by("content").aggregate([("label", "count_distinct")])
    several = counts.filter(pc.greater(counts["label_count_distinct"], 1))["content"]
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row in np.flatnonzero(pc.is_in(table["content"], value_set=several)).tolist():
        rows_of[table["content"][row].as_py()].append(row)
    rows_of.pop("", None)  # unreadable
    groups = [rows for rows in rows_of.values() if _disagree({pool.origins[images.labels[row]] for row in rows})]
    if not groups:
        return ""
    first = {pool.origins[images.labels[row]].name: row for row in reversed(groups[0])}
    shown = " and ".join(f"{_place(pool, row)} ({name!r})" for name, row in sorted(first.items()))
    n = len(groups)
    which = "1 labeled image has" if n == 1 else f"{n:,} labeled images have"
    return f"{which} several classes, such as {shown}; `justright audit` lists all"


def _place(pool: Pool, row: int) -> str:
    source, path = (pool.images.table[name][row].as_py() for name in ("source", "path"))
    return printable(location(source, path))


def _disagree(origins: set[Origin]) -> bool:
    datasets = {origin.dataset for origin in origins}
    if len(origins) > len(datasets):
        return True
    return len({comparable_name(origin.class_name) for origin in origins} - {None}) > 1
