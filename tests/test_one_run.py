"""The calls of one `discover`, as CONTRIBUTING lists them."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from inspect import unwrap
from itertools import takewhile
from pathlib import Path
from types import CodeType

import justright
from justright.data import ImageSet, glyph_set, open_images
from justright.data.folder import write_tree
from justright.data.readers import FolderReader
from justright.discovery.processes import Processes
from justright.features.backbone import Backbone
from justright.result import Result
from justright.runs.run_folder import RunFolder
from justright.utils.hashing import hash_file

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"


def listed_calls() -> list[tuple[str, str]]:
    """The first two columns of the table, in order: the name of a function and that of its caller."""
    table = CONTRIBUTING.read_text(encoding="utf-8").partition("## One run, call by call")[2].partition("## Habits")[0]
    return re.findall(r"^\| `([\w.]+)`[^|]*\| `([\w.]+)`", table, re.MULTILINE)


def code_of(name: str):
    """The code of a function, or of the initializer of a class, by its name below the package."""
    parts = name.split(".")
    n_modules = next(n for n, part in enumerate(parts) if part[0].isupper() or n == len(parts) - 1)
    found = import_module(".".join(["justright", *parts[:n_modules]]))
    for part in parts[n_modules:]:
        found = getattr(found, part)
    return unwrap(found.__init__ if isinstance(found, type) else found).__code__


def codes_above(frame) -> Iterator[CodeType]:
    """The functions that led to a call, the nearest first; without the frames of comprehensions and lambdas."""
    while (frame := frame.f_back) is not None:
        if not frame.f_code.co_name.startswith("<"):
            yield frame.f_code


def run_once(folder: Path, target: ImageSet, labeled: ImageSet) -> Result:
    """A short run with a pool, whose truth is known."""
    return justright.discover(
        target,
        labeled=[labeled],
        pool=[glyph_set(4, ["digits"], dataset="digits")],
        out=folder / "run",
        backbone="glyph_vit",
        device="cpu",
        settings={"n_epochs": 1, "n_steps": 1, "batch_size": 16, "heads_first": 0},
        target_has_labels=True,
        progress=False,
    )


def test_contributing_lists_the_calls_of_a_run_in_their_order(tmp_path, monkeypatch):
    """Each with its caller; at most one other function lies between, not counting the queue of several processes."""
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    letters = glyph_set(6, ["hebrew"])
    expected = listed_calls()
    assert len(expected) <= 25
    name_of = {code_of(name): name for name in ("api.discover", *(name for name, _ in expected))}
    package, queue = str(Path(justright.__file__).parent), unwrap(Processes.in_turn).__code__
    callers: dict[str, str] = {}
    between: dict[str, list[str]] = {}

    def note(frame, event, argument) -> None:
        name = name_of.get(frame.f_code)
        if event != "call" or name is None or name in callers:
            return
        stack = [code for code in codes_above(frame) if code.co_filename.startswith(package) and code is not queue]
        listed = [name_of[code] for code in stack if code in name_of]
        if "runs.measured_rates.with_rates" not in listed:  # it measures a small run of its own
            callers[name] = listed[0] if listed else ""
            between[name] = [code.co_qualname for code in takewhile(lambda code: code not in name_of, stack)]

    sys.setprofile(note)
    try:
        run_once(tmp_path, letters.take(range(60)), letters.take([0, 1, 6, 7, 12, 13]))
    finally:
        sys.setprofile(None)
    assert list(callers.items()) == [("api.discover", ""), *expected]
    assert {name: passed for name, passed in between.items() if name != "api.discover" and len(passed) > 1} == {}


def test_run_hashes_each_image_file_and_network_once_and_reads_no_result(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    letters = glyph_set(6, ["hebrew"])
    write_tree(letters.take(range(60)), tmp_path / "letters")
    images = open_images(tmp_path / "letters")
    hashed: Counter[str] = Counter()
    content, pieces = FolderReader.content, Backbone._pieces

    def noted_content(self, path):
        hashed[path] += 1
        return content(self, path)

    def noted_pieces(self, state):
        hashed[f"network of {len(state)} tensors"] += 1
        return pieces(self, state)

    def noted_file(path):
        hashed[str(path)] += 1
        return hash_file(path)

    monkeypatch.setattr(FolderReader, "content", noted_content)
    monkeypatch.setattr(Backbone, "_pieces", noted_pieces)
    for module in ("runs.run_folder", "features.store"):
        monkeypatch.setattr(f"justright.{module}.hash_file", noted_file)

    def noted_read(self, name):
        assert not (self.path / name).exists(), f"{name} was read back"
        return self.path / name

    monkeypatch.setattr(RunFolder, "_checked", noted_read)
    run = run_once(tmp_path, images, letters.take([0, 1, 6, 7, 12, 13])).path
    assert sum(path in hashed for path in images.paths) == len(images)
    assert str(run / "predictions.parquet") in hashed
    # both small files beside the features are verified when a store is opened
    assert {
        path for path, n in hashed.items() if n > 1 and not path.endswith(("index.parquet", "quarantine.json"))
    } == set()
    assert sum(path.startswith("network") for path in hashed) == 2, "all of it, and its frozen part"
