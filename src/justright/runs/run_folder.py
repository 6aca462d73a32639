"""The folder of a run, which report and review read; docs/reference/files.md lists its files.

Files are written atomically; a property is None until the run has written its file. run.json of a finished run holds
the hash of each file, which is compared before the file is read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from justright.data import ImageSet, open_images
from justright.data.columns import CONTENT
from justright.data.manifest import read_table
from justright.data.parquet import read_parquet
from justright.data.pool import OWN
from justright.discovery.doubts import Doubt
from justright.discovery.evidence import ExpectedRight
from justright.discovery.methods import FIRST_PARTS
from justright.discovery.predictions import Predictions
from justright.evaluation import Scores
from justright.evaluation.files import JudgedPredictions, read_judged
from justright.features.table import FeatureTable
from justright.runs.cluster_table import CLUSTERS, doubts_from
from justright.runs.selection import Selection, load_selection
from justright.runs.source_checks import LEFT_OUT, LeftOut, read_left_out
from justright.utils.errors import DataError, JustrightError, MissingDataError
from justright.utils.files import explain_disk_full, parsed_json, write_json
from justright.utils.hashing import hash_file, signed, verified
from justright.utils.locks import Lock, LockedError
from justright.utils.types import Array

FORMAT = "justright run 1"
DOUBTS = "doubts.json"
RECOMPUTED = (  # files that a run computes again if it is started again
    "target.parquet", "pool.parquet", "left_out.csv", "weights.parquet", "weights.classes.parquet", "count.json",
    "diagnosis.json", "tuned.npy", "predictions.parquet", "predictions.csv", CLUSTERS, DOUBTS, "scores.json",
    "model.json", "model.safetensors", "metrics.jsonl",
)  # fmt: skip
TRUTH = "truth.parquet"  # rewritten only if the labels are given again
# files that it does not compute again; the header of a feature store has the hashes of its other files
KEPT = (TRUTH, "pool.features/store.json", "target.features/store.json")
LOCK = ".owner"  # the lock file in the folder; it is deleted when the work is done

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunFolder:
    """A run on disk. Every property reads one file of the folder `path`."""

    path: Path

    @staticmethod
    def open(path: Path) -> RunFolder:
        """Open a folder that holds a run; raises otherwise."""
        folder = RunFolder(path)
        _ = folder.about
        return folder

    @cached_property
    def about(self) -> dict[str, Any]:
        """The content of run.json."""
        path = self.path / "run.json"
        about = _object(path) if path.exists() else {}
        if about.get("format") != FORMAT:
            raise MissingDataError(
                f"{self.path} does not hold a run",
                expected=f'a folder with run.json of "{FORMAT}"',
                advice="justright discover --out makes one",
            )
        return about

    def save_about(self, about: dict[str, Any]) -> None:
        """Write run.json; if the run is finished, with the hash of each file."""
        about = {name: value for name, value in about.items() if name != "files"}
        if about.get("is_finished"):
            names = [name for name in (*RECOMPUTED, *KEPT) if (self.path / name).is_file()]
            about["files"] = {name: hash_file(self.path / name) for name in names}
        self.save_json("run.json", {"format": FORMAT} | about)

    def save_json(self, name: str, value: dict[str, Any]) -> None:
        """Write a JSON file of the run, with a checksum of itself, and forget what was read of it before."""
        write_json(self.path / name, signed(value))
        self.__dict__.pop("about" if name == "run.json" else Path(name).stem, None)

    def begin_again(self, has_truth: bool = False) -> None:
        """Mark a finished run as unfinished. Warns of damaged files that are recomputed, and raises for others.

        Parameters:
            has_truth: the labels of the target were given again.
        """
        for name in self._hashes:
            if self._is_unchanged(name):
                continue
            path = self.path / name
            if name not in RECOMPUTED and not (name == TRUTH and has_truth):
                raise DataError(
                    f"{path} is missing or not what the run finished with",
                    advice="restore it from a copy, or use another --out: a run does not recompute it",
                )
            _log.warning("%s is missing or damaged; it is recomputed", path)
            path.unlink(missing_ok=True)
        self.save_about(self.about | {"is_finished": False})

    @property
    def _hashes(self) -> dict[str, str]:
        """The hash of each file, once the run is finished."""
        return dict(self.about.get("files", {})) if (self.path / "run.json").exists() else {}

    def _is_unchanged(self, name: str) -> bool:
        path = self.path / name
        return name not in self._hashes or (path.is_file() and hash_file(path) == self._hashes[name])

    def _checked(self, name: str) -> Path:
        """The path of a file; raises if it differs from what the run finished with."""
        if not self._is_unchanged(name):
            raise DataError(
                f"{self.path / name} is missing or not what the run finished with",
                expected="the file with the hash in run.json",
                advice="start the run again with the same --out, which recomputes it",
            )
        return self.path / name

    def _existing(self, name: str) -> Path | None:
        """The path of a file, None if the run has not written it yet; raises as `_checked`."""
        path = self._checked(name)
        return path if path.exists() else None

    def _written(self, name: str) -> Path:
        """The path of a file; raises if the run has not written it yet."""
        path = self._existing(name)
        if path is None:
            raise MissingDataError(
                f"{self.path} has no {name}: the run is not finished",
                advice="call justright discover again with the same options, which continues it",
            )
        return path

    @cached_property
    def target(self) -> ImageSet:
        """The unlabeled images. Reading a file that changed since the run raises."""
        return self._images("target.parquet")

    @cached_property
    def pool(self) -> ImageSet:
        """The labeled images. Reading a file that changed since the run raises."""
        return self._images("pool.parquet")

    def _images(self, name: str) -> ImageSet:
        path = self._checked(name)
        return open_images(path).with_content(read_table(path)[CONTENT])

    @cached_property
    def predictions(self) -> Predictions:
        """A category for every target image, in the order of `target`."""
        return Predictions.open(self._written("predictions.parquet"))

    @property
    def expected(self) -> ExpectedRight | None:
        """How many images of the target are expected to be right; None if confidences are not calibrated."""
        expected = self.about.get("expected_right")
        return None if expected is None else ExpectedRight(**expected)

    @cached_property
    def doubts(self) -> list[Doubt]:
        """Categories that may be two kinds or belong with another."""
        return doubts_from(self._json(DOUBTS), self.predictions)

    def given_labels(self) -> dict[str, str]:
        """The class of each labeled image, by content; empty if pool.parquet is missing."""
        try:
            images = self.pool
        except DataError:
            return {}
        named = zip(images.table[CONTENT].to_pylist(), images.table["class_name"].to_pylist(), strict=True)
        return {content: name for content, name in named if content}

    def with_own_answers(self, new: Predictions, images: ImageSet) -> Predictions:
        """Predictions of the model, with the category and confidence of the run for images of its target.

        A tree of clusters (CMS) or a vote of seeds may differ from the model, which judges each image by itself. Images
        are compared by content.
        """
        try:
            before, target = self.predictions, self.target
        except DataError:  # a model that was copied without the rest of its run
            return new
        row_of = {content: row for row, content in enumerate(target.table[CONTENT].to_pylist()) if content}
        content_of = dict(zip(images.paths, images.content_ids(is_strict=False), strict=True))
        rows = np.array([row_of.get(content_of[path], -1) for path in new.index["path"].to_pylist()], dtype=np.int64)
        is_in_run = (rows >= 0) & ~new.is_given
        return replace(
            new,
            cluster=np.where(is_in_run, before.cluster[rows], new.cluster),
            confidence=np.where(is_in_run, before.confidence[rows], new.confidence),
        )

    @cached_property
    def tuned(self) -> Float[Array, "target dim"]:
        """Features of the target after training, memory-mapped."""
        path = self._written("tuned.npy")
        try:
            features: Array = np.load(path, mmap_mode="r", allow_pickle=False)
            if features.ndim != 2 or not np.issubdtype(features.dtype, np.floating):
                raise ValueError(f"an array of {features.dtype} with the shape {features.shape}")
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path} cannot be read: {error}", advice="run discover again to recompute it") from error
        return features

    @cached_property
    def frozen(self) -> tuple[FeatureTable, FeatureTable] | None:
        """Features of pool and target before training."""
        if not all((self.path / name).is_dir() for name in ("pool.features", "target.features")):
            return None
        pool, target = (self._checked(f"{part}.features/store.json").parent for part in ("pool", "target"))
        return FeatureTable.open(pool), FeatureTable.open(target)

    @cached_property
    def selection(self) -> Selection | None:
        """The weights of images and classes."""
        self._checked("weights.classes.parquet")
        path = self._existing("weights.parquet")
        return None if path is None else load_selection(path)

    @cached_property
    def count(self) -> dict[str, Any] | None:
        """The estimates of K and their curves."""
        return self._json("count.json")

    @cached_property
    def diagnosis(self) -> dict[str, Any] | None:
        """The recommended selector, and why."""
        return self._json("diagnosis.json")

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """One record for each epoch; an incomplete last line is left out."""
        return self._records(Path())

    @cached_property
    def curves(self) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """The records of every training, in the order in which they ran: by part ("" is the last one), then by seed."""
        seeds = sorted(self.path.glob("seed-*"), key=lambda path: (len(path.name), path.name))
        folders = {path.name.replace("-", " "): Path(path.name) for path in seeds} or {"this run": Path()}
        curves: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for part in (*FIRST_PARTS, ""):
            for name, folder in folders.items():
                if records := self._records(folder / part):
                    curves.setdefault(part, {})[name] = records
        return curves

    def _records(self, folder: Path) -> list[dict[str, Any]]:
        path = self._existing(str(folder / "metrics.jsonl"))
        if path is None:
            return []
        whole = path.read_bytes().rpartition(b"\n")[0]
        return [_object(path, line) for line in whole.split(b"\n") if line]

    @cached_property
    def left_out(self) -> list[LeftOut] | None:
        """The files that were not used, and why."""
        path = self._existing(LEFT_OUT)
        return None if path is None else read_left_out(path)

    @cached_property
    def scores(self) -> Scores | None:
        """All / Old / New."""
        path = self._existing("scores.json")
        return None if path is None else Scores.load(path)

    @property
    def truth_file(self) -> Path | None:
        """The file with the labels of the target, for `judged`."""
        return self._existing(TRUTH)

    @cached_property
    def own_classes(self) -> frozenset[str]:
        """Names of the labeled classes that the target may show: the old classes of an evaluation."""
        table = read_parquet(self._checked("pool.parquet"))
        pairs = zip(table["dataset"].to_pylist(), table["class_name"].to_pylist(), strict=True)
        return frozenset(name.removeprefix(f"{OWN}/") for dataset, name in pairs if dataset == OWN)

    def judged(self, truth: Path) -> JudgedPredictions:
        """The clusters and the truth, a file that needs only paths and class names and may list further images.

        Classes are old if they were labeled, and have kept their labels if they are known classes of the result.
        """
        known = [category.name for category in self.predictions.categories if category.kind == "known"]
        return read_judged(self._checked("predictions.parquet"), truth, self.own_classes, True, known)

    def _json(self, name: str) -> dict[str, Any] | None:
        path = self._existing(name)
        return None if path is None else _object(path)


def _object(path: Path, line: bytes | None = None) -> dict[str, Any]:
    """The JSON object of a file, or of a line of it; raises for anything else."""
    try:
        value = parsed_json(path.read_bytes() if line is None else line)
        if isinstance(value, dict):
            return verified(value) if line is None else value  # a line has no checksum
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}", expected="JSON as the run wrote it") from error
    raise DataError(f"{path} holds a {type(value).__name__}", expected="JSON of names and values, {...}")


class OwnedError(JustrightError):
    """Another process is writing to the folder."""


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Lock the folder for writing, and create it if it does not exist; OwnedError if another process holds the lock."""
    was_there = folder.exists()
    try:
        with explain_disk_full(folder / LOCK):
            lock = Lock(folder / LOCK)
    except LockedError as error:
        raise OwnedError(
            f"{folder} is being written by {error}",
            expected="one process at a time",
            advice="wait for it, stop it, or name another --out",
        ) from error
    try:
        yield
    finally:
        lock.release()
        if not was_there:
            with suppress(OSError):  # stays unless it is empty
                folder.rmdir()
