"""How quick this machine is: every stage done for real on a few images, in seconds."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
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
from justright.runs.costs import Rates
from justright.runs.disk import DiskPlan
from justright.utils.context import track, use
from justright.utils.errors import BadImageError
from justright.utils.parallel import n_cores

Item = TypeVar("Item")

N_IMAGES = 48  # images that are read, extracted and trained on, at most
BATCH = 4  # images at once, so that all cores have some
FEWEST, SECONDS = 24, 2.0  # a slow network gets so few of them that extraction takes about this long, but not fewer
N_STEPS = 4  # steps of training that are timed
BATCH_SECONDS = 4.0  # batches are so small that extraction of one takes no longer; a step takes about half of that
MOST_CATEGORIES = 10_000  # that training is timed with
N_ROWS, N_CLASSES = 1000, 20  # features that estimation and k-means are timed on


class _EnoughError(Exception):
    """All trainings were timed; what would follow is not."""


def first_look(backbone: Any, images: ImageSet) -> Rates:
    """Rates from two images: rather too slow than too quick, for what a call costs before its first image counts."""
    from justright.features.extract import extract

    few = _readable(images, 2)
    if not len(few):
        return Rates()
    with TemporaryDirectory() as folder:
        extract(few, backbone, Path(folder) / "first", batch_size=BATCH)  # loads libraries, and compiles
        an_image = _seconds(lambda: extract(few, backbone, Path(folder) / "second", batch_size=BATCH)) / len(few)
    return Rates(extract=an_image, view=an_image, plain=an_image, step=an_image, stage1=an_image, heads=an_image / 10)


def measure(backbone: Any, plan: DiskPlan, images: ImageSet | None) -> Rates:
    """The rates of this machine for the trainings of a plan, on some of the `images`, or on drawn photos."""
    from justright.features.bank import open_views
    from justright.features.choices import BATCH_SIZE
    from justright.features.extract import extract
    from justright.features.feature_network import FeatureNetwork

    found: dict[str, float] = {}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        photos = drawn_photos(folder / "photos", N_IMAGES) if images is None else _readable(images, N_IMAGES)
        few = photos.take(np.arange(min(2, len(photos))))

        def extracted(some: ImageSet, name: str) -> object:
            return extract(some, backbone, folder / name, batch_size=BATCH)

        def banked(some: ImageSet, name: str) -> object:
            return open_views(backbone, some, folder / name, views=2, batch_size=BATCH)

        extracted(few, "first"), banked(few, "first_bank")  # the first call of a kind loads libraries, and compiles
        # what a call costs before its first image is not counted by image
        begin, begin_bank = _seconds(lambda: extracted(few, "second")), _seconds(lambda: banked(few, "second_bank"))
        n = min(len(photos), max(FEWEST, int(SECONDS * len(few) / begin)))
        photos = photos.take(np.arange(n))
        found["extract"] = _by_image(_seconds(lambda: extracted(photos, "features")), begin, n, len(few))
        found["view"] = _by_image(_seconds(lambda: banked(photos, "bank")), begin_bank, n, len(few)) / 2
        gives_views = FeatureNetwork(backbone, BATCH_SIZE, "float32", "class").gives_views
        found["plain"] = 0.0 if gives_views else found["extract"]
        work = _arithmetic(backbone.dim)
        for name, (call, n_pieces) in track(work.items(), len(work), "stages measured"):
            found[name] = _seconds(call) / n_pieces
        found |= _training(backbone, plan, photos, folder, found["extract"])
    kind = "drawn photos of 500 x 375" if images is None else "own images"
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    about = (
        f"{backbone.name} at {backbone.recipe.resolution} pixels on {backbone.device}, {n_cores()} cores of "
        f"{platform.machine()}, load {load:.1f}, {n} {kind}, {date.today()}"
    )
    return Rates(**found, memory=_memory(), about=about)


def drawn_photos(folder: Path, n_images: int) -> ImageSet:
    """JPEGs as cameras and data sets have them: smooth, with noise, 500 x 375 pixels."""
    rng = np.random.default_rng(0)
    (folder / "drawn").mkdir(parents=True)
    for number in range(n_images):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        smooth = coarse.resize((500, 375), Image.Resampling.BICUBIC)
        noisy = np.asarray(smooth, np.int16) + rng.integers(-8, 9, (375, 500, 3), dtype=np.int16)
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / "drawn" / f"{number}.jpg", quality=90)
    return open_images(str(folder))


def _readable(images: ImageSet, n_images: int) -> ImageSet:
    """Some of the images, evenly spaced, without those that cannot be read."""
    rows = []
    for row in evenly_spaced(len(images), n_images).tolist():
        try:
            images.image(row)
            rows.append(row)
        except BadImageError:
            continue
    return images.take(rows).without_labels()


def _arithmetic(dim: int) -> dict[str, tuple[Callable[[], object], int]]:
    rng = np.random.default_rng(0)
    labels = np.arange(N_ROWS) % N_CLASSES
    features = (3 + rng.normal(size=(N_CLASSES, dim))[labels] + rng.normal(size=(N_ROWS, dim))).astype(np.float32)
    some = np.where(np.arange(N_ROWS) < N_ROWS // 2, labels, -1)
    axes = features[:, : min(dim, 128)]
    return {
        "tree": (lambda: COUNTERS["spread"](normalize=False).fit(axes, some), N_ROWS**2),
        "mixture": (
            lambda: COUNTERS["mixture"](start=N_CLASSES, n_init=1, normalize=False).fit(axes, some),  # type: ignore[call-arg]
            N_ROWS * N_CLASSES,
        ),
        "cluster": (lambda: SemiSupKMeans(N_CLASSES, n_init=1).fit(features, some), N_ROWS * N_CLASSES),
    }


def _training(backbone: Any, plan: DiskPlan, photos: ImageSet, folder: Path, an_image: float) -> dict[str, float]:
    """Seconds of a step of each training by image of the batch, and of an image through the tuned part.

    Batches are as large as in the run, unless a step would take too long: `an_image` is what one takes to extract.
    """
    from justright.discovery.learner import features_of
    from justright.features.bank import open_views

    plain = open_views(backbone, photos, folder / "plain", views=1, transform="plain")
    found = {"tuned": _seconds(lambda: features_of(backbone, plain)) / len(photos)}
    if not (trainings := plan.trainings):
        return found
    largest = max(BATCH, int(BATCH_SECONDS / an_image))
    times: list[list[float]] = []

    def timed(steps: Iterable[Item], total: int, what: str) -> Iterator[Item]:
        is_training = what.startswith("training")
        if is_training:
            times.append([])
        for step in steps:
            if is_training:
                times[-1].append(time.perf_counter())
            yield step
        if is_training and len(times) == len(trainings):
            raise _EnoughError

    size = min(trainings[-1].config.batch_size, largest)
    light = {"n_epochs": 1, "n_steps": 1 + N_STEPS, "batch_size": size, "views": 2, "minutes": None}
    method: Any = METHODS[plan.method]
    if method.has_categories:
        light["heads_first"] = int(any(not each.is_tuned for each in trainings))
    n_categories = min(plan.work.n_categories, MOST_CATEGORIES) if method.has_categories else 2  # else of no matter
    config = plan.config.with_settings(light | {"held_out_share": 0.0})
    made = method(n_categories, backbone, config, bank=folder / "views")
    with suppress(_EnoughError), use(progress=timed):
        made.fit(Split(photos.take([]), photos))
    for training, each in zip(trainings, times, strict=True):
        found[training.part or "step"] = float(np.median(np.diff(each))) / size
    return found


def _by_image(whole: float, begin: float, n: int, n_few: int) -> float:
    """Seconds that one more image adds to a call; where noise hides that, the whole call divided by its images."""
    return (whole - begin) / (n - n_few) if whole > begin and n > n_few else whole / n


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _memory() -> float:
    """Bytes that this process has held at most."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 1e9
    unit = 1 if platform.system() == "Darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
