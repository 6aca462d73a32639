"""What a run will write, known before it starts, and refused before it starts if there is no room for it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from justright.discovery.configs import PlannedTraining
from justright.discovery.methods import FIRST_PARTS, METHODS
from justright.runs.work import Work
from justright.utils.errors import JustrightError
from justright.utils.files import bytes_of, home, parsed_json, size_text

FEATURE_BYTES = 4  # features are float32
PLATEAU_IMAGES = 2048  # whose categories a checkpoint remembers, see `discovery.plateau`
CHECKPOINTS = 2  # kept of each training, see `discovery.checkpoints`; one more while it is written
EPOCH_BYTES = 600  # of the record of an epoch in a checkpoint
SMALLER = ({"views": 2}, {"views": "fresh"})


@dataclass(frozen=True)
class PlannedFiles:
    """Files of one kind in one folder: what they take in the end, and how much of that is there already."""

    what: str
    place: Path
    n_bytes: int
    n_there: int = 0

    @property
    def n_missing(self) -> int:
        """What will be written."""
        return max(0, self.n_bytes - self.n_there)


@dataclass(frozen=True)
class DiskPlan:
    """What a run writes with these settings."""

    work: Work
    method: str  # one of `METHODS`
    config: Any  # its settings
    backbone: Any  # says how large a stored view is
    folder: Path  # of the run

    @cached_property
    def trainings(self) -> list[PlannedTraining]:
        """The trainings of one seed, with the lengths that they will have."""
        sizes = self.work.n_used, self.work.n_categories, self.backbone.cut.ends_in_norm
        return METHODS[self.method].trainings(self.config.fitted(*sizes))

    def files(self) -> list[PlannedFiles]:
        """Features, view banks, checkpoints, and what is left of training."""
        return [*self._features(), *self._banks(), *self._checkpoints(), *self._results()]

    def __str__(self) -> str:
        files = [each for each in self.files() if each.n_missing]
        parts = [f"{each.what} {size_text(each.n_missing)} in {each.place}" for each in files]
        total = sum(each.n_missing for each in files)
        return f"Writes {size_text(total)}: {', '.join(parts)}." if parts else "Everything large is on disk already."

    def expect_room(self) -> None:
        """Refuse what does not fit, naming a setting that would."""
        lacking = self._lacking()
        if not lacking:
            return
        room = f"free {size_text(max(lacking.values()))}, or name another --out or JUSTRIGHT_HOME"
        fitting = next((f"{options}, or " for options, plan in self.smaller() if not plan._lacking()), "")
        places = ", ".join(f"{size_text(lack)} too little is free in {place}" for place, lack in lacking.items())
        raise JustrightError(f"there is no room for this run: {places}\n{self}", advice=fitting + room)

    def smaller(self) -> Iterator[tuple[str, DiskPlan]]:
        """Options that need less room, the mildest first, and the plan with each."""
        for settings in SMALLER if self.trainings else ():
            options = " ".join(f"--set {name}={value}" for name, value in settings.items())
            yield options, replace(self, config=self.config.with_settings(settings))

    def _lacking(self) -> Mapping[Path, int]:
        """How many bytes each disk that is too small lacks, by a folder on it."""
        needed: Counter[int] = Counter()
        place_on: dict[int, Path] = {}
        for each in self.files():
            place = existing(each.place)
            needed[place.stat().st_dev] += each.n_missing
            place_on.setdefault(place.stat().st_dev, place)
        lacking = {place: needed[disk] - shutil.disk_usage(place).free for disk, place in place_on.items()}
        return {place: n_bytes for place, n_bytes in lacking.items() if n_bytes > 0}

    def _features(self) -> Iterator[PlannedFiles]:
        n_bytes = self.work.n_images * self.backbone.dim * FEATURE_BYTES
        n_there = bytes_of(*(self.folder / f"{part}.features" for part in ("pool", "target")))
        yield PlannedFiles("features", self.folder, n_bytes, n_there)
        # those of other images may fill the cache too, so it holds for sure only what the run has as well
        yield PlannedFiles("features", home() / "features", n_bytes, n_there)

    def _banks(self) -> Iterator[PlannedFiles]:
        from justright.features.bank_records import record_type

        n_images = self.work.n_images
        for (stream, precision, root), n_views in self.views().items():
            names, shapes = self.backbone.stored_names, self.backbone.stored_shapes
            layout = record_type(names, shapes, precision)  # type: ignore[arg-type]
            n_bytes = n_images * n_views * layout.itemsize
            what = f"{n_views} {stream} view{'s' * (n_views > 1)} of each image in {precision}"
            yield PlannedFiles(what, root, n_bytes, self._there(stream, precision, root, n_images))

    def views(self) -> dict[tuple[str, str, Path], int]:
        """How many views are stored, the plain one included, by what they are, their precision and their folder."""
        found = {("plain", "float32", home() / "banks"): 1}
        for config, streams, _ in self.trainings:
            for stream in streams if config.views != "fresh" else ():
                n_views = config.views * (self.work.n_seeds if config.views_by_seed else 1)  # else all seeds share them
                bank = stream, config.bank_precision, home() / "banks"
                found[bank] = max(found.get(bank, 0), n_views)
        return found

    def _there(self, stream: str, precision: str, root: Path, n_images: int) -> int:
        """The size of the largest bank of this kind with so many images; the bank itself checks which they are."""
        from justright.data.transforms import transform_named

        sought = {"backbone": self.backbone.name, "precision": precision, "n_images": n_images}
        kind = type(transform_named(stream)).__name__
        sizes = [0]
        for index in root.glob("*/index.json"):
            try:
                about = parsed_json(index.read_text(encoding="utf-8"))
                is_alike = about["transform"]["kind"] == kind and sought.items() <= about.items()
            except (OSError, ValueError, TypeError, KeyError, AttributeError):
                continue
            if is_alike:
                sizes.append(bytes_of(index.parent))
        return max(sizes)

    def _checkpoints(self) -> Iterator[PlannedFiles]:
        """Those of all seeds, which stay until the run ends, and the largest once more while it is replaced."""
        sizes = [self._checkpoint_bytes(each) for each in self.trainings]
        n_bytes = self.work.n_seeds * CHECKPOINTS * sum(sizes) + max(sizes, default=0)
        seeds = [self.folder, *self.folder.glob("seed-*")]
        there = [seed / part / "checkpoint" for seed in seeds for part in ("", *FIRST_PARTS)] if sizes else []
        # what was trained is kept smaller
        n_there = n_bytes if (self.folder / "model.safetensors").exists() else bytes_of(*there)
        yield PlannedFiles("checkpoints", self.folder, n_bytes, n_there)

    def _checkpoint_bytes(self, training: PlannedTraining) -> int:
        """One checkpoint: parameters with their momentum, those of a teacher, what is remembered, and the records."""
        config, work, dim = training.config, self.work, self.backbone.dim
        guide = work.n_guide_classes * dim if config.guide_share else 0
        n_trained = config.head_size(dim, work.n_categories) + training.is_tuned * self._n_tuned + guide
        n_numbers = (2 + (config.has_teacher and training.is_tuned)) * n_trained
        remembered = config.remembered_bytes(work.n_seen, work.n_categories, work.n_known)
        return FEATURE_BYTES * n_numbers + remembered + 8 * PLATEAU_IMAGES + EPOCH_BYTES * (10 + (config.n_epochs or 0))

    def _results(self) -> Iterator[PlannedFiles]:
        """The model, with a vector of each category, and features of the target after training."""
        dim, n_categories = self.backbone.dim, self.work.n_categories
        n_numbers = {
            ("the model", "model.safetensors"): self._n_tuned + 2 * n_categories * (dim + 1) + dim,
            ("tuned features", "tuned.npy"): self.work.n_target * dim,
        }
        for (what, name), n in n_numbers.items():
            n_bytes = FEATURE_BYTES * n
            yield PlannedFiles(what, self.folder, n_bytes, n_bytes if (self.folder / name).exists() else 0)

    @cached_property
    def _n_tuned(self) -> int:
        return sum(each.numel() for each in self.backbone.tuned_state().values())


def existing(place: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    return next(each for each in (place.absolute(), *place.absolute().parents) if each.exists())


def tidy(folder: Path) -> None:
    """Delete what a finished run no longer needs: all but one small checkpoint."""
    from justright.discovery.checkpoints import Checkpoints

    for each in (seed / part for seed in (folder, *folder.glob("seed-*")) for part in (".", *FIRST_PARTS)):
        Checkpoints(each / "checkpoint").finish()
