"""Pool and target: how many images of what, a handful of each to look at, and a map of who lies near whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from justright.data import ImageSet
from justright.features.table import FeatureTable
from justright.geometry import row_norms
from justright.report.drawing import INK, PAPER, color_of, escape_legend, style_axes
from justright.report.elements import Name, Table, short
from justright.report.page_images import PageImages, SheetOrder
from justright.report.reading import Missing, Values, attempt
from justright.runs.problem import OWN
from justright.runs.run_folder import RunFolder
from justright.seeding import generator
from justright.types import Array

N_IMAGES, PIXELS, COLUMNS = 16, 64, 8
MOST_SETS = 12  # data sets that get a sheet; more are only counted
BUDGET = 600_000

MapKind = Literal["pca", "tsne"]
MAPS: tuple[MapKind, ...] = get_args(MapKind)
MOST_POINTS = 1000  # of pool and of target each; more would hide each other, and t-SNE would take minutes
MOST_MARKS = 300  # more marks of the pool than this go into the file as pixels
TARGET = -1
LONGEST_NAME = 24


def overview(run: RunFolder, seed: int = 0) -> Values:
    """A row a data set, and a sheet each."""
    rows, sheets, missing, sources = [], [], [], []
    for part, images in (
        ("target, unlabeled", attempt(lambda: run.target, "The list of target images cannot be read")),
        ("pool, labeled", attempt(lambda: run.pool, "The list of labeled images cannot be read")),
    ):
        if isinstance(images, Missing):
            missing.append(images)
            continue
        page_images = PageImages(images, BUDGET // 2)
        for number, (dataset, where) in enumerate(_by_dataset(images)):
            labels = np.unique(images.labels[where])
            side = "own classes, labeled" if part.startswith("pool") and dataset == OWN else part
            rows.append((side, Name(dataset), len(where), int((labels >= 0).sum()) or None))
            if number < MOST_SETS:
                drawn = generator(seed, "overview", f"{side}: ", dataset).permutation(len(where))[:N_IMAGES]
                what = f"images of {short(dataset)}, drawn at random"
                picture = page_images.sheet(SheetOrder(where[np.sort(drawn)], PIXELS, COLUMNS, what))
                sheets += [(side, dataset, picture)] if picture else []
        sources.append(page_images)
    sets = Table(("part", "data set", "images", "classes"), rows)
    return {"sets": sets, "sheets": sheets, "missing": missing, "sources": sources}


def _by_dataset(images: ImageSet) -> list[tuple[str, Int[Array, " rows"]]]:
    column = pc.fill_null(images.table["dataset"].cast(pa.string()), "").combine_chunks().dictionary_encode()
    numbers = column.indices.to_numpy()
    return [(name, np.flatnonzero(numbers == number)) for number, name in enumerate(column.dictionary.to_pylist())]


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Where images lie."""

    points: Float[Array, "points 2"]  # in the plane
    source: Int[Array, " points"]  # the data set of each image as a position in `names`, or TARGET
    names: tuple[str, ...]  # of the data sets of the pool
    kind: MapKind  # how the plane was found
    explained: float  # the share of variance that PCA shows
    n_images: tuple[int, int]  # of pool and target, before sampling

    @property
    def n_shown(self) -> tuple[int, int]:
        """How many images of the pool and of the target are drawn."""
        n_target = int((self.source == TARGET).sum())
        return len(self.source) - n_target, n_target


def feature_map(pool: FeatureTable, target: FeatureTable, kind: MapKind = "pca", seed: int = 0) -> FeatureMap:
    """Project a sample of both onto a plane; features are brought to length 1 first, as cosines see them."""
    rows = [_sample(len(table), seed, side) for table, side in ((pool, "pool"), (target, "target"))]
    x = np.concatenate([np.asarray(t.features[r], dtype=np.float64) for t, r in zip((pool, target), rows, strict=True)])
    x = x.reshape(len(x), -1)
    x = x / np.maximum(row_norms(x), 1e-12)[:, None]
    column = pool.index["dataset"].cast(pa.string()).combine_chunks().dictionary_encode()
    source = np.concatenate([column.indices.to_numpy()[rows[0]], np.full(len(rows[1]), TARGET)]).astype(np.int64)
    points, explained = _two_directions(x)
    if kind == "tsne":
        points = _neighbors(x, points, seed)
    names = tuple(column.dictionary.to_pylist())
    return FeatureMap(points, source, names, kind, explained, (len(pool), len(target)))


def draw_map(found: FeatureMap) -> Figure:
    """The pool in colors, the target over it."""
    figure = Figure(figsize=(5.6, 5.0), layout="constrained", facecolor=PAPER, dpi=180)
    axes = figure.subplots()
    style_axes(axes)
    axes.set(xticks=[], yticks=[])
    axes.spines[["left", "bottom"]].set_visible(False)
    is_pool = found.source != TARGET
    # drawn in one go and shuffled as sampled: no data set lies on top of the others
    colors = np.array([color_of(number) for number in found.source[is_pool].tolist()])
    x, y = found.points.T
    axes.scatter(
        x[is_pool], y[is_pool], s=14, c=colors, alpha=0.65, linewidths=0, rasterized=int(is_pool.sum()) > MOST_MARKS
    )
    axes.scatter(x[~is_pool], y[~is_pool], s=9, c=INK, marker="x", linewidths=0.7, alpha=0.8)
    for number, name in enumerate(found.names[:8]):
        said = short(name, LONGEST_NAME) if number < 7 else f"{len(found.names) - 7} more"
        axes.scatter([], [], s=22, c=color_of(number), label=said)
    axes.scatter([], [], s=16, c=INK, marker="x", linewidths=0.8, label="target, unlabeled")
    legend = figure.legend(
        loc="outside upper left", ncols=3, frameon=False, fontsize=8.5, labelcolor=INK, handletextpad=0.2,
        columnspacing=1.0, borderaxespad=0.2,
    )  # fmt: skip
    escape_legend(legend)
    return figure


def _sample(n: int, seed: int, side: str) -> Int[Array, " rows"]:
    return np.sort(generator(seed, "feature map", side).permutation(n)[:MOST_POINTS])


def _two_directions(x: Float[Array, "points dim"]) -> tuple[Float[Array, "points 2"], float]:
    centered = x - x.mean(axis=0)
    variance, directions = np.linalg.eigh(centered.T @ centered)
    main = directions[:, ::-1][:, :2]
    if main.shape[1] < 2:
        main = np.hstack([main, np.zeros_like(main)])
    # an eigenvector has no sign of its own: the largest entry shall be positive
    main = main * np.where(main[np.abs(main).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    total = float(variance.sum())
    return centered @ main, float(variance[-2:].sum()) / total if total > 0 else 1.0


def _neighbors(x: Float[Array, "points dim"], start: Float[Array, "points 2"], seed: int) -> Float[Array, "points 2"]:
    from sklearn.manifold import TSNE  # a second to import, and only those who ask for it wait

    perplexity = min(30.0, max(1.0, (len(x) - 1) / 3))
    start = start / max(float(start.std(axis=0).max()), 1e-12) * 1e-4
    with threadpool_limits(1):  # for so few points threads only wait for each other, minutes on a busy machine
        found = TSNE(perplexity=perplexity, init=start, random_state=seed).fit_transform(x)
    return np.asarray(found, dtype=np.float64)
