"""Commands in separate processes, on drawn letters."""

from __future__ import annotations

import time
from pathlib import Path

from tests.benchmark.test_suite import TINY
from tests.forked_programs import Program

from justright.utils.files import bytes_of

LETTERS = "glyphs:scripts=hebrew,per_class=2"
DIGITS = "glyphs:scripts=digits,per_class=2"


def wait_for(path: Path, process: Program) -> None:
    """Until a process has written something into a file, whose name may be a pattern."""
    while not any(bytes_of(each) for each in path.parent.glob(path.name)):
        assert process.is_running(), process.end()
        time.sleep(0.01)


def discover(out: Path, *more: object) -> list[object]:
    """A run that takes a moment: three epochs."""
    settings = ("--set", "views=2", "--set", "batch_size=16", "--epochs", 3, "--no-report")
    network = ("--backbone", "glyph_vit", "--k", 22, "--counter", "spread")  # the fastest one
    return ["discover", "--labeled", DIGITS, "--target", LETTERS, *network, *settings, "--out", out, *more]


def tiny_suite(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiny.toml").write_text(TINY)
    return folder / "tiny.toml"


RESULTS = ("predictions.parquet", "tuned.npy", "model.safetensors", "model.json", "weights.parquet")


def results(run: Path) -> dict[str, bytes]:
    """The bytes of what a run found; times and paths, which may differ, are in none of these files."""
    return {name: (run / name).read_bytes() for name in RESULTS if (run / name).exists()}
