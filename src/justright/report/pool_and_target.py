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

from justright.features.table import FeatureTable
from justright.geometry import directions
from justright.report.drawing import INK, TIGHT, add_legend, color_of, quiet_panels
from justright.report.elements import Missing, Name, Table, Values, attempt, short
from justright.report.page_images import PageImages, SheetOrder
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
        names, of_image = _datasets(images.table["dataset"])
        for number, dataset in enumerate(names):
            where = np.flatnonzero(of_image == number)
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


def _datasets(column: pa.ChunkedArray) -> tuple[list[str], Int[Array, " rows"]]:
    """The names in a column, and which of them each row has."""
    coded = pc.fill_null(column.cast(pa.string()), "").combine_chunks().dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy()


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
    tables = {"pool": pool, "target": target}
    drawn = [generator(seed, "feature map", side).permutation(len(table)) for side, table in tables.items()]
    rows = [np.sort(each[:MOST_POINTS]) for each in drawn]
    x = np.concatenate([np.asarray(t.features[r], np.float64) for t, r in zip(tables.values(), rows, strict=True)])
    x = directions(x.reshape(len(x), -1))
    names, of_image = _datasets(pool.index["dataset"])
    source = np.concatenate([of_image[rows[0]], np.full(len(rows[1]), TARGET)]).astype(np.int64)
    points, explained = _two_directions(x)
    if kind == "tsne":
        points = _neighbors(x, points, seed)
    return FeatureMap(points, source, tuple(names), kind, explained, (len(pool), len(target)))


def draw_map(found: FeatureMap) -> Figure:
    """The pool in colors, the target over it."""
    figure, (axes,) = quiet_panels(5.6, 5.0, dpi=180)
    axes.set(xticks=[], yticks=[])
    axes.spines[["left", "bottom"]].set_visible(False)
    is_pool = found.source != TARGET
    # drawn in one go and shuffled as sampled: no data set lies on top of the others
    colors = np.array([color_of(number) for number in found.source[is_pool].tolist()])
    x, y = found.points.T
    is_many = int(is_pool.sum()) > MOST_MARKS
    axes.scatter(x[is_pool], y[is_pool], s=14, c=colors, alpha=0.65, linewidths=0, rasterized=is_many)
    axes.scatter(x[~is_pool], y[~is_pool], s=9, c=INK, marker="x", linewidths=0.7, alpha=0.8)
    for number, name in enumerate(found.names[:8]):
        said = short(name, LONGEST_NAME) if number < 7 else f"{len(found.names) - 7} more"
        axes.scatter([], [], s=22, c=color_of(number), label=said)
    axes.scatter([], [], s=16, c=INK, marker="x", linewidths=0.8, label="target, unlabeled")
    add_legend(figure, ncols=3, **TIGHT)
    return figure


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
