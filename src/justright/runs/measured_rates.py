"""Measure how fast this machine is: run every stage on a few images."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from justright.clustering import SemiSupKMeans
from justright.data import ImageSet, Split, glyph_set
from justright.discovery.methods import METHODS
from justright.geometry import evenly_spaced
from justright.runs.costs import LONG, CostPlan, Rates
from justright.utils.context import silent, use
from justright.utils.errors import BadImageError
from justright.utils.parallel import n_cores
from justright.utils.types import UNLABELED

T = TypeVar("T")

N_IMAGES = 32  # images that are extracted and trained on
BATCH = 4  # images at once, so that all cores have some
N_STEPS = 4  # timed steps of a training
BATCH_SECONDS = 4.0  # smaller batches are timed if extraction of one would take longer
DRAWN_SIZE = 400  # pixels of drawn images, about as many as a small photo has
N_ROWS, N_CLASSES = 1000, 20  # features that k-means is timed on


def with_rates(plan: CostPlan, images: ImageSet) -> CostPlan:
    """The plan with rates of this machine: rough ones if the run is short, else measured on some of the images."""
    if plan.rates == Rates():
        plan = replace(plan, rates=rough_rates(plan.backbone, images))
    if not plan.rates.about and (plan.total_seconds >= LONG or plan.trained_share < 1):
        plan = replace(plan, rates=measure(plan, images))
    return plan


def rough_rates(backbone: Any, images: ImageSet) -> Rates:
    """Rates from two images, rather too slow than too fast: they include the start of a call."""
    photos = _readable(images, 2)
    if not len(photos):
        return Rates()
    with TemporaryDirectory() as folder, use(engine=None):
        seconds = _extraction_rate(backbone, photos, Path(folder))
    return Rates(extract=seconds, view=seconds, step=seconds)


def measure(plan: CostPlan, images: ImageSet | None) -> Rates:
    """The rates of this machine for a plan, on some of the images, or on drawn photos."""
    from justright.features.bank import open_views

    backbone = plan.backbone
    with TemporaryDirectory() as temporary, use(progress=silent, engine=None):
        folder = Path(temporary)
        photos = _readable(glyph_set(1, size=DRAWN_SIZE) if images is None else images, N_IMAGES)
        extract = _extraction_rate(backbone, photos, folder)
        view = _seconds(lambda: open_views(backbone, photos, folder / "views", views=2, batch_size=BATCH)) / 2
        step = _step_rate(plan, photos, folder / "views", extract) if plan.trainings else 0.0
    kind = "drawn images" if images is None else "own images"
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    about = (
        f"{backbone.name} at {backbone.recipe.resolution} pixels on {backbone.device}, {n_cores()} cores of "
        f"{platform.machine()}, load {load:.1f}, {len(photos)} {kind}, {date.today()}"
    )
    return Rates(extract, view / len(photos), step, _clustering_rate(backbone.dim), _peak_memory(), about)


def _readable(images: ImageSet, n_images: int) -> ImageSet:
    """Some evenly spaced images, without the unreadable ones."""
    rows = []
    for row in evenly_spaced(len(images), n_images).tolist():
        with suppress(BadImageError):
            images.image(row)
            rows.append(row)
    return images.take(rows).without_labels()


def _extraction_rate(backbone: Any, images: ImageSet, folder: Path) -> float:
    """Seconds to extract the features of one image."""
    from justright.features.extract import extract

    extract(images.take([0]), backbone, folder / "first", batch_size=BATCH)  # loads libraries and compiles
    return _seconds(lambda: extract(images, backbone, folder / "second", batch_size=BATCH)) / len(images)


def _clustering_rate(dim: int) -> float:
    """Seconds of k-means by image and cluster."""
    rng = np.random.default_rng(0)
    labels = np.arange(N_ROWS) % N_CLASSES
    features = (3 + rng.normal(size=(N_CLASSES, dim))[labels] + rng.normal(size=(N_ROWS, dim))).astype(np.float32)
    given = np.where(np.arange(N_ROWS) < N_ROWS // 2, labels, UNLABELED)
    return _seconds(lambda: SemiSupKMeans(N_CLASSES, n_init=1).fit(features, given)) / (N_ROWS * N_CLASSES)


def _step_rate(plan: CostPlan, photos: ImageSet, views: Path, extract: float) -> float:
    """Seconds of one image in a training step, from a few steps.

    Batches are as large as in the run, unless a step would take too long; `extract` is the time to extract one image.
    """
    moments = []

    def timed(steps: Iterable[T], total: int, what: str) -> Iterator[T]:
        for step in steps:
            if what.startswith("training"):
                moments.append(time.perf_counter())
            yield step

    last = plan.trainings[-1].config
    size = min(last.batch_size, max(BATCH, int(BATCH_SECONDS / extract)))
    short = {"n_epochs": 1, "n_steps": 1 + N_STEPS, "batch_size": size, "views": 2, "minutes": None}
    short["held_out_share"] = 0.0
    if hasattr(last, "heads_first"):
        short["heads_first"] = 0
    method: Any = METHODS[plan.spec.method]
    fitted = method(min(plan.work.n_categories, len(photos)), plan.backbone, last.with_settings(short), bank=views)
    with use(progress=timed):
        fitted.fit(Split(photos.take([]), photos))
    return float(np.median(np.diff(moments))) / size


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _peak_memory() -> float:
    """The most bytes that this process has used."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 1e9
    unit = 1 if platform.system() == "Darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
