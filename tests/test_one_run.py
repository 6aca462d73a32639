"""The calls of one `discover`, as CONTRIBUTING lists them."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from inspect import unwrap
from pathlib import Path

import justright
from justright.data import glyph_set

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"


def listed_calls() -> list[str]:
    """The first column of the table, in order."""
    table = CONTRIBUTING.read_text(encoding="utf-8").partition("## One run, call by call")[2].partition("## Habits")[0]
    return re.findall(r"^\| `([\w.]+)`", table, re.MULTILINE)


def code_of(name: str):
    """The code of a function, or of the initializer of a class, by its name below the package."""
    parts = name.split(".")
    n_modules = next(n for n, part in enumerate(parts) if part[0].isupper() or n == len(parts) - 1)
    found = import_module(".".join(["justright", *parts[:n_modules]]))
    for part in parts[n_modules:]:
        found = getattr(found, part)
    return unwrap(found.__init__ if isinstance(found, type) else found).__code__


def test_contributing_lists_the_calls_of_a_run_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    letters, digits = glyph_set(6, ["hebrew"]), glyph_set(4, ["digits"], dataset="digits")
    expected = listed_calls()
    assert len(expected) <= 25
    name_of = {code_of(name): name for name in expected}
    called: dict[str, None] = {}

    def note(frame, event, argument) -> None:
        if event == "call" and frame.f_code in name_of:
            called.setdefault(name_of[frame.f_code])

    sys.setprofile(note)
    try:
        justright.discover(
            letters.take(range(60)),
            labeled=[letters.take([0, 1, 6, 7, 12, 13])],
            pool=[digits],
            out=tmp_path / "run",
            backbone="glyph_vit",
            device="cpu",
            settings={"n_epochs": 1, "n_steps": 1, "batch_size": 16, "heads_first": 0},
            target_has_labels=True,
            progress=False,
        )
    finally:
        sys.setprofile(None)
    assert list(called) == expected
