"""A t-SNE map of the features of pool and target, with the image of each mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from justright.data.image_set import ImageSet
from justright.data.pool import dataset_title
from justright.features.table import FeatureTable
from justright.geometry import unit_rows
from justright.report.drawing import INK, TIGHT, add_legend, color_of, datasets, figure_with_axes
from justright.report.elements import Missing, Picture, short
from justright.report.page_images import PageImages, SheetOrder, SmallImages
from justright.utils.seeding import generator
from justright.utils.types import Array

MOST_POINTS = 500  # of pool and of target each: more overlap, and t-SNE is slow
N_STEPS = 500
FEWEST = 5  # fewer points are only projected
MOST_MARKS = 300  # more marks of the pool are rasterized
TARGET = -1
LONGEST_NAME = 24
PIXELS, COLUMNS, N_TILES = 40, 5, 25  # of the sheets with the images of the marks
BUDGET = 450_000  # characters of them, for pool and target each


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Positions of the images, those of the pool first."""

    points: Float[Array, "points 2"]  # in the plane
    source: Int[Array, " points"]  # the data set of each image as a position in `names`, or TARGET
    rows: Int[Array, " points"]  # row of the image in the pool or the target
    names: tuple[str, ...]  # of the data sets of the pool
    n_images: tuple[int, int]  # of pool and target, before sampling

    @property
    def n_shown(self) -> tuple[int, int]:
        """Number of images drawn of the pool and of the target."""
        n_target = int((self.source == TARGET).sum())
        return len(self.source) - n_target, n_target


def feature_map(pool: FeatureTable, target: FeatureTable, seed: int = 0) -> FeatureMap:
    """Embed a sample of both into the plane by t-SNE of unit features."""
    rows, features = [], []
    for side, table in (("pool", pool), ("target", target)):
        sample = generator(seed, "feature map", side).permutation(len(table))[:MOST_POINTS]
        rows.append(np.sort(sample))
        features.append(np.asarray(table.features[rows[-1]], np.float64))
    x = np.concatenate(features)
    x = unit_rows(x.reshape(len(x), -1))
    names, of_image = datasets(pool.index["dataset"])
    source = np.concatenate([of_image[rows[0]], np.full(len(rows[1]), TARGET)]).astype(np.int64)
    with threadpool_limits(1):  # threads slow down so few points
        points = _tsne(x, seed)
    return FeatureMap(points, source, np.concatenate(rows), tuple(names), (len(pool), len(target)))


def draw_map(shown: FeatureMap) -> Figure:
    """Draw the pool in colors and the target on top."""
    figure, (axes,) = figure_with_axes(5.6, 5.0, dpi=180)
    axes.set(xticks=[], yticks=[])
    axes.spines[["left", "bottom"]].set_visible(False)
    is_pool = shown.source != TARGET
    # in one call and in random order, so that no data set hides the others
    colors = np.array([color_of(number) for number in shown.source[is_pool].tolist()])
    x, y = shown.points.T
    is_many = int(is_pool.sum()) > MOST_MARKS
    axes.scatter(x[is_pool], y[is_pool], s=14, c=colors, alpha=0.65, linewidths=0, rasterized=is_many)
    axes.scatter(x[~is_pool], y[~is_pool], s=9, c=INK, marker="x", linewidths=0.7, alpha=0.8)
    for number, name in enumerate(shown.names[:8]):
        label = short(dataset_title(name), LONGEST_NAME) if number < 7 else f"{len(shown.names) - 7} more"
        axes.scatter([], [], s=22, c=color_of(number), label=label)
    axes.scatter([], [], s=16, c=INK, marker="x", linewidths=0.8, label="target")
    add_legend(figure, ncols=3, **TIGHT)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # marks keep the positions that `map_tiles` reads
    return figure


def map_tiles(
    shown: FeatureMap, figure: Figure, sets: Sequence[ImageSet | SmallImages | Missing], budget: int = BUDGET
) -> list[tuple[Picture, str]]:
    """Sheets of the images, each with the positions of their marks in thousandths of the figure.

    sets: images of pool and target. A sheet with an unreadable image is omitted.
    """
    (axes,) = figure.axes
    at = axes.transData.transform(shown.points) / figure.bbox.size
    places = np.rint(1000 * np.column_stack([at[:, 0], 1 - at[:, 1]])).astype(int)
    sheets = []
    sides = np.split(np.arange(len(shown.points)), shown.n_shown[:1])
    for images, n_images, points in zip(sets, shown.n_images, sides, strict=True):
        if isinstance(images, Missing) or len(images) != n_images:
            continue
        parts = [points[start : start + N_TILES] for start in range(0, len(points), N_TILES)]
        page_images = PageImages(images, budget)
        orders = [SheetOrder(shown.rows[part], PIXELS, COLUMNS, "images of the map") for part in parts]
        n_problems = 0
        for part, picture in zip(parts, page_images.sheets(orders), strict=True):
            if picture is not None and len(page_images.problems) == n_problems:
                sheets.append((picture, " ".join(f"{x},{y}" for x, y in places[part].tolist())))
            n_problems = len(page_images.problems)
    return sheets


def _tsne(x: Float[Array, "points dim"], seed: int) -> Float[Array, "points 2"]:
    """t-SNE, initialized with the two main components to keep the global arrangement."""
    from sklearn.decomposition import PCA  # slow to import
    from sklearn.manifold import TSNE

    start = PCA(2, svd_solver="full").fit_transform(np.pad(x, ((0, 0), (0, 2))))  # features may have one dimension
    if len(x) < FEWEST:
        return start
    start = start / max(float(start.std(axis=0).max()), 1e-12) * 1e-4
    perplexity = min(30.0, (len(x) - 1) / 3)
    points = TSNE(perplexity=perplexity, init=start, random_state=seed, max_iter=N_STEPS).fit_transform(x)
    return np.asarray(points, dtype=np.float64)
