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
from PIL import Image

from justright.clustering import SemiSupKMeans
from justright.data import ImageSet, Split, open_images
from justright.discovery.methods import METHODS
from justright.estimation import COUNTERS
from justright.geometry import evenly_spaced
from justright.runs.costs import LONG, CostPlan, Rates
from justright.utils.context import use
from justright.utils.errors import BadImageError
from justright.utils.parallel import n_cores
from justright.utils.progress import silent

T = TypeVar("T")

N_IMAGES = 48  # images that are extracted and trained on
MIN_IMAGES, MAX_SECONDS = 24, 2.0  # a slow network gets fewer images, so that extraction takes about this long
BATCH = 4  # images at once, so that all cores have some
N_STEPS = 4  # timed steps of a training
BATCH_SECONDS = 4.0  # smaller batches are timed if extraction of one would take longer
MAX_CATEGORIES = 10_000  # in a timed training
N_ROWS, N_CLASSES = 1000, 20  # features that estimation and k-means are timed on


class _AllTimedError(Exception):
    """Ends a fit once all its trainings are timed."""


def with_rates(plan: CostPlan, images: ImageSet) -> CostPlan:
    """The plan with rates of this machine: rough ones if the run is short, else measured on some of the images."""
    if plan.work.n_devices > 1:  # other processes would wait
        return plan
    if plan.rates == Rates():
        plan = replace(plan, rates=rough_rates(plan.backbone, images))
    if not plan.rates.about and (plan.total_seconds >= LONG or plan.trained_share < 1):
        plan = replace(plan, rates=measure(plan, images))
    return plan


def rough_rates(backbone: Any, images: ImageSet) -> Rates:
    """Rates from two images, rather too slow than too fast: they include the start of a call."""
    from justright.features.extract import extract

    few = _readable(images, 2)
    if not len(few):
        return Rates()
    with TemporaryDirectory() as folder:
        extract(few, backbone, Path(folder) / "first", batch_size=BATCH)  # loads libraries and compiles
        an_image = _seconds(lambda: extract(few, backbone, Path(folder) / "second", batch_size=BATCH)) / len(few)
    return Rates(extract=an_image, view=an_image, plain=an_image, step=an_image, stage1=an_image, heads=an_image / 10)


def measure(plan: CostPlan, images: ImageSet | None) -> Rates:
    """The rates of this machine for a plan, on some of the images, or on drawn photos."""
    from justright.features.bank import open_views
    from justright.features.choices import BATCH_SIZE
    from justright.features.extract import extract
    from justright.features.feature_network import FeatureNetwork

    backbone = plan.backbone
    with TemporaryDirectory() as temporary, use(progress=silent):
        folder = Path(temporary)
        photos = drawn_photos(folder / "photos", N_IMAGES) if images is None else _readable(images, N_IMAGES)
        n = min(len(photos), max(MIN_IMAGES, int(MAX_SECONDS / rough_rates(backbone, photos).extract)))
        photos = photos.take(np.arange(n))
        rates = {
            "extract": _by_image(lambda some, place: extract(some, backbone, place, batch_size=BATCH), photos, folder),
            "view": _by_image(
                lambda some, place: open_views(backbone, some, place, views=2, batch_size=BATCH),
                photos,
                folder / "views",
            )
            / 2,
        }
        gives_views = FeatureNetwork(backbone, BATCH_SIZE, "float32", "class").gives_views
        rates["plain"] = 0.0 if gives_views else rates["extract"]
        rates |= _clustering_rates(backbone.dim) | _training_rates(plan, photos, folder, rates["extract"])
    kind = "drawn photos of 500 x 375" if images is None else "own images"
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    about = (
        f"{backbone.name} at {backbone.recipe.resolution} pixels on {backbone.device}, {n_cores()} cores of "
        f"{platform.machine()}, load {load:.1f}, {n} {kind}, {date.today()}"
    )
    return Rates(**rates, memory=_peak_memory(), about=about)


def drawn_photos(folder: Path, n_images: int) -> ImageSet:
    """Typical JPEGs: smooth with noise, 500 x 375 pixels."""
    rng = np.random.default_rng(0)
    (folder / "drawn").mkdir(parents=True)
    for number in range(n_images):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        smooth = coarse.resize((500, 375), Image.Resampling.BICUBIC)
        noisy = np.asarray(smooth, np.int16) + rng.integers(-8, 9, (375, 500, 3), dtype=np.int16)
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / "drawn" / f"{number}.jpg", quality=90)
    return open_images(str(folder))


def _readable(images: ImageSet, n_images: int) -> ImageSet:
    """Some evenly spaced images, without the unreadable ones."""
    rows = []
    for row in evenly_spaced(len(images), n_images).tolist():
        with suppress(BadImageError):
            images.image(row)
            rows.append(row)
    return images.take(rows).without_labels()


def _clustering_rates(dim: int) -> dict[str, float]:
    """Seconds of the estimate of K and of k-means, by unit of work."""
    rng = np.random.default_rng(0)
    labels = np.arange(N_ROWS) % N_CLASSES
    features = (3 + rng.normal(size=(N_CLASSES, dim))[labels] + rng.normal(size=(N_ROWS, dim))).astype(np.float32)
    some = np.where(np.arange(N_ROWS) < N_ROWS // 2, labels, -1)
    axes = features[:, : min(dim, 128)]
    mixture: Any = COUNTERS["mixture"]
    return {
        "tree": _seconds(lambda: COUNTERS["spread"](normalize=False).fit(axes, some)) / N_ROWS**2,
        "mixture": _seconds(lambda: mixture(start=N_CLASSES, n_init=1, normalize=False).fit(axes, some))
        / (N_ROWS * N_CLASSES),
        "cluster": _seconds(lambda: SemiSupKMeans(N_CLASSES, n_init=1).fit(features, some)) / (N_ROWS * N_CLASSES),
    }


def _training_rates(plan: CostPlan, photos: ImageSet, folder: Path, an_image: float) -> dict[str, float]:
    """Seconds of each training by image of a batch, and of one image through the tuned part.

    Batches are as large as in the run, unless a step would take too long: extraction takes `an_image` seconds.
    """
    from justright.discovery.learner import features_of
    from justright.features.bank import open_views

    backbone, trainings = plan.backbone, plan.trainings
    plain = open_views(backbone, photos, folder / "plain", views=1, transform="plain")
    rates = {"tuned": _seconds(lambda: features_of(backbone, plain)) / len(photos)}
    if not trainings:
        return rates
    times: list[list[float]] = []

    def timed(steps: Iterable[T], total: int, what: str) -> Iterator[T]:
        is_training = what.startswith("training")
        if is_training:
            times.append([])
        for step in steps:
            if is_training:
                times[-1].append(time.perf_counter())
            yield step
        if is_training and len(times) == len(trainings):
            raise _AllTimedError

    size = min(trainings[-1].config.batch_size, max(BATCH, int(BATCH_SECONDS / an_image)))
    short = {"n_epochs": 1, "n_steps": 1 + N_STEPS, "batch_size": size, "views": 2, "minutes": None}
    method: Any = METHODS[plan.spec.method]
    n_categories = 2  # their number changes nothing if they are not trained
    if method.has_categories:
        n_categories = min(plan.work.n_categories, MAX_CATEGORIES)
        short["heads_first"] = int(any(not training.is_tuned for training in trainings))
    config = plan.config.with_settings(short | {"held_out_share": 0.0})
    with suppress(_AllTimedError), use(progress=timed):
        method(n_categories, backbone, config, bank=folder / "views").fit(Split(photos.take([]), photos))
    for training, moments in zip(trainings, times, strict=True):
        rates[training.part or "step"] = float(np.median(np.diff(moments))) / size
    return rates


def _by_image(call: Callable[[ImageSet, Path], object], photos: ImageSet, folder: Path) -> float:
    """Seconds that one more image adds to a call, or the mean per image if noise hides that."""
    few = photos.take(np.arange(min(2, len(photos))))
    call(few, folder / "first")  # loads libraries and compiles
    start, whole = _seconds(lambda: call(few, folder / "few")), _seconds(lambda: call(photos, folder / "all"))
    return (
        (whole - start) / (len(photos) - len(few)) if whole > start and len(photos) > len(few) else whole / len(photos)
    )


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
