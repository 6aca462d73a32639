"""The stages of the soak: their commands, inputs and expected results."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.forked import Ended, Forked

from justright.features.store import FILES

LETTERS = "glyphs:scripts=hebrew,per_class=3"
DIGITS = "glyphs:scripts=digits,per_class=3"
NETWORK = ["--backbone", "glyph_vit"]
SMALL = [word for each in ("views=2", "batch_size=16", "hidden_dim=32", "out_dim=16") for word in ("--set", each)]
RUN = ["run.json", "weights.parquet", "weights.classes.parquet", "count.json", "metrics.jsonl", "tuned.npy",
       "predictions.parquet", "truth.parquet", "scores.json", "model.json", "model.safetensors", "target.parquet",
       "pool.parquet", "pool.features/features.npy", "target.features/features.npy"]  # fmt: skip
SUITE = """
about = "tiny"
seeds = [0, 1]
baseline = "own"
run = { backbone = "glyph_vit", method = "kmeans", settings = { n_init = 2 } }

[[problems]]
name = "digits"
target = "glyphs:per_class=3,scripts=digits"
pool = { letters = "glyphs:per_class=2,scripts=hebrew" }

[[settings]]
name = "own"
run = { selector = "own" }

[[settings]]
name = "none"
run = { selector = "none" }
"""
DISCOVER = ["discover", "--labeled", "split/labeled.parquet", "--pool", DIGITS, "--target", "split/target.parquet",
            "--truth", "split/truth.parquet", *NETWORK, "--selector", "beta", "--counter", "spread", *SMALL,
            "--stability", "2", "--epochs", "3", "--no-report", "--out", "run"]  # fmt: skip

Results = dict[str, bytes]  # contents by the name of a file or page


def prepare(tell: Callable[[str], None]) -> None:
    """Let a command report when it begins to build a bank and to train, save often, and draw quickly."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from justright.discovery import loop
    from justright.features import cache
    from justright.features import extract as extraction
    from justright.features.bank import ViewBank
    from justright.report import feature_map

    # t-SNE and the places of axes take most of the time of a page and touch no file
    feature_map._tsne = lambda x, seed: x[:, :2]
    ConstrainedLayoutEngine.execute = lambda *each: None  # type: ignore[method-assign]
    loop.CHECKPOINT_SECONDS = 0.02
    extraction.PART_BATCHES = 1
    cache.BLOCK_BYTES = 200_000
    build, train = ViewBank.build, loop.Training.run
    ViewBank.build = lambda *each: (tell("bank"), build(*each))[1]  # type: ignore[method-assign]
    loop.Training.run = lambda *each: (tell("train"), train(*each))[1]  # type: ignore[method-assign]


def start(folder: Path, words: list[str], limit: int | None = None) -> Forked:
    return Forked(words, Path("home"), folder, limit, prepare)


@dataclass
class Stage:
    """A command that writes files.

    Parameters:
        words: the arguments of the command.
        outputs: the files and folders that it writes.
        reads: a pattern of the files that it reads, its own outputs included.
        files: the outputs that are compared.
        moment: the event after which it is killed.
        shows_parts: the result may leave out a damaged file if it names it.
        first_damage: the kind of file that the first round of this stage damages; a random kind if not given.
    """

    name: str
    words: list[str]
    outputs: list[str]
    reads: str
    files: list[str]
    moment: str = "start"
    shows_parts: bool = False
    first_damage: str | None = None
    seconds: float = 1.0
    n_bytes: int = 0
    expected: Results = field(default_factory=dict)

    def begin(self) -> None:
        """Called when a round starts."""

    def clear(self, folder: Path) -> None:
        """Remove the outputs."""
        for name in self.outputs:
            place = folder / name
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)

    def kill(self, folder: Path, part: float) -> None:
        """Start the command and kill it after a part of its usual time."""
        begun = start(folder, self.words)
        if (since := begun.wait_for(self.moment)) is not None:
            time.sleep(max(0.0, since + part * self.seconds - time.monotonic()))
            begun.kill()
        begun.end()

    def finish(self, folder: Path, limit: int | None = None) -> Ended:
        """Run the command to its end."""
        return start(folder, self.words, limit).end()

    def results(self, folder: Path, ended: Ended) -> Results:
        """The files to compare."""
        return {name: untimed(folder / name) for name in self.files if (folder / name).exists()}

    def fits(self, found: Results) -> bool:
        """Whether these are the results of an undisturbed run."""
        return found == self.expected

    def learn(self, folder: Path) -> None:
        """Run undisturbed, and remember the time and the results."""
        self.clear(folder)
        before = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        begun = start(folder, self.words)
        since = begun.wait_for(self.moment)
        assert since is not None, begun.end()
        ended = begun.end()
        assert ended.code == 0, ended
        self.seconds = time.monotonic() - since
        self.n_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) - before
        self.expected = self.results(folder, ended)


class SuiteStage(Stage):
    """A suite; its result is its output."""

    def results(self, folder: Path, ended: Ended) -> Results:
        lines = json.loads(ended.out)["lines"] if ended.code == 0 else []
        return {"lines": json.dumps([_without_times(line) for line in lines]).encode()}


def untimed(file: Path) -> bytes:
    """The content of a file without times and checksums."""
    try:
        if file.name == "metrics.jsonl":
            return b"\n".join(json.dumps(_without_times(json.loads(line))).encode() for line in file.open("rb"))
        if file.name == "run.json":
            return json.dumps(_without_times(json.loads(file.read_bytes()))).encode()
    except ValueError:  # damaged: the bytes differ
        pass
    return file.read_bytes()


def _without_times(value: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if name not in ("seconds", "own_checksum", "crc", "files")}


def stages(review: Stage) -> list[Stage]:
    """All stages in order: each reads files of earlier ones."""
    out_of_run = [f"run/{name}" for name in RUN]
    return [
        Stage("extract", ["extract", "split/target.parquet", *NETWORK, "--batch-size", "4", "--out", "target.features"],
              ["target.features"], r"home/features|target\.features",
              [f"target.features/{name}" for name in FILES], first_damage="block of features"),
        Stage("bank", DISCOVER, ["run"], r"home/|split/(labeled|target)", out_of_run, "bank",
              first_damage="block of views"),
        Stage("select", ["select", "pool.features", "--target", "target.features", "--n-clusters", "5", "--selector",
                         "bins", "--out", "weights.parquet"], ["weights.parquet", "weights.classes.parquet"],
              r"(pool|target)\.features|weights", ["weights.parquet", "weights.classes.parquet"]),
        Stage("train", DISCOVER, ["run"], r"run/(?!review)|split/", out_of_run, "train"),
        Stage("predict", ["predict", "run", DIGITS, "--out", "found.parquet"], ["found.parquet"], r"run/model|found",
              ["found.parquet"]),
        SuiteStage("suite", ["benchmark", "run", "suite.toml", "--out", "study", "--json"], ["study"],
                   r"study/|home/", []),
        review,
        Stage("report", ["report", "run", "--out", "page.html"], ["page.html"], r"run/", ["page.html"],
              shows_parts=True),
    ]  # fmt: skip
