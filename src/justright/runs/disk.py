"""What a run will write, known before it starts, and refused before it starts if there is no room for it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from justright.discovery.methods import FIRST_PARTS, METHODS
from justright.errors import JustrightError
from justright.files import bytes_of, home, parsed_json, size_text

FEATURE_BYTES = 4  # features are float32
SMALLER = ({"views": 2}, {"bank_precision": "int8"}, {"views": 2, "bank_precision": "int8"}, {"views": "fresh"})


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

    n_labeled: int
    n_target: int
    method: str  # one of `METHODS`
    config: Any  # its settings
    backbone: Any  # says how large a stored view is
    folder: Path  # of the run
    n_seeds: int = 1

    def files(self) -> list[PlannedFiles]:
        """Features, view banks and checkpoints."""
        return [*self._features(), *self._banks(), *self._checkpoints()]

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
        for settings in SMALLER if METHODS[self.method].trainings(self.config) else ():
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
        n_bytes = (self.n_labeled + self.n_target) * self.backbone.dim * FEATURE_BYTES
        n_there = bytes_of(*(self.folder / f"{part}.features" for part in ("pool", "target")))
        yield PlannedFiles("features", self.folder, n_bytes, n_there)
        # those of other images may fill the cache too, so it holds for sure only what the run has as well
        yield PlannedFiles("features", home() / "features", n_bytes, n_there)

    def _banks(self) -> Iterator[PlannedFiles]:
        from justright.features.bank_records import record_type

        n_images = self.n_target + self.config.sees_labels * self.n_labeled
        for (stream, precision, root), n_views in self.views().items():
            names, shapes = self.backbone.stored_names, self.backbone.stored_shapes
            layout = record_type(names, shapes, precision)  # type: ignore[arg-type]
            n_bytes = n_images * n_views * layout.itemsize
            what = f"{n_views} {stream} view{'s' * (n_views > 1)} of each image in {precision}"
            yield PlannedFiles(what, root, n_bytes, self._there(stream, precision, root, n_images))

    def views(self) -> dict[tuple[str, str, Path], int]:
        """How many views are stored, the plain one included, by what they are, their precision and their folder."""
        found = {("plain", "float32", home() / "banks"): 1}
        for number, (config, streams) in enumerate(trainings := METHODS[self.method].trainings(self.config)):
            folder = self.folder if number == len(trainings) - 1 else self.folder / "stage1"
            for stream in streams if config.views != "fresh" else ():
                root = folder / "bank" if config.refresh else home() / "banks"
                bank = stream, config.bank_precision, root
                found[bank] = max(found.get(bank, 0), config.views)
        return found

    def _there(self, stream: str, precision: str, root: Path, n_images: int) -> int:
        """The size of the largest bank of this kind with so many images; the bank itself checks which they are."""
        from justright.data.views import transform_named

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
        """Parameters and momentum, two generations and one that is being written; the model once."""
        tuned = sum(each.numel() for each in self.backbone.tuned_state().values())
        n_bytes = 0
        for config, _ in (trainings := METHODS[self.method].trainings(self.config)):
            head = config.hidden_dim * (self.backbone.dim + config.hidden_dim + config.out_dim)
            n_bytes += self.n_seeds * 3 * 2 * FEATURE_BYTES * (tuned + head)
        seeds = [self.folder, *self.folder.glob("seed-*")]
        there = [seed / part for seed in seeds for part in ("checkpoint", *FIRST_PARTS)] if trainings else []
        model = self.folder / "model.safetensors"
        n_there = n_bytes if model.exists() else bytes_of(*there)  # what was trained is kept smaller
        yield PlannedFiles("checkpoints", self.folder, n_bytes, n_there)
        yield PlannedFiles("the model", self.folder, FEATURE_BYTES * tuned, bytes_of(model))


def existing(place: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    return next(each for each in (place.absolute(), *place.absolute().parents) if each.exists())


def tidy(folder: Path) -> None:
    """Delete what a finished run no longer needs: all but one small checkpoint, and view banks of its own."""
    from justright.discovery.checkpoints import Checkpoints

    for each in (seed / part for seed in (folder, *folder.glob("seed-*")) for part in (".", *FIRST_PARTS)):
        Checkpoints(each / "checkpoint").finish()
        shutil.rmtree(each / "bank", ignore_errors=True)
