from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.features.tiny_banks import ROWS, VIEWS, bank_of, noise, tiny
from tests.forked_programs import Program

from justright.features import bank_records
from justright.features.backbone import Backbone
from justright.features.bank import ViewBank, open_views
from justright.features.stored_views import FreshViews
from justright.utils.context import use
from justright.utils.errors import DataError, JustrightError


def build_slowly(root):
    """Runs in a process of its own, which is killed meanwhile."""
    torch.set_num_threads(1)  # as the tests here do: matrix products on two threads round differently

    def slowly(steps, total, what):
        for step in steps:
            time.sleep(0.05)
            yield step

    with use(progress=slowly):
        bank_of(Path(root), noise(12)).build()


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_killed_build_goes_on_and_ends_with_the_same_bytes(tmp_path):
    code = f"import runpy, sys; runpy.run_path({__file__!r})['build_slowly'](sys.argv[1])"
    killed = tmp_path / "killed"
    process = Program("-c", code, killed)
    while len(list(killed.rglob("rows*.npy"))) < 4 and process.is_running():
        time.sleep(0.02)
    assert process.kill().code == -signal.SIGKILL
    finished = {path: path.stat().st_mtime_ns for path in killed.rglob("rows*.npy")}
    resumed = bank_of(killed, noise(12)).build()
    assert 0 < len(finished) < len(resumed.blocks) * 3
    assert all(path.stat().st_mtime_ns == written for path, written in finished.items())  # kept, not redone
    undisturbed = bank_of(tmp_path / "undisturbed", noise(12)).build()
    left = {name: data for name, data in contents(resumed.directory).items() if not name.endswith(".tmp")}
    assert left == contents(undisturbed.directory)


def test_a_shard_lost_between_two_views_comes_back_as_it_was(tmp_path):
    bank = bank_of(tmp_path).build()
    before = contents(bank.directory)
    sorted(bank.directory.glob("rows*-view001*.npy"))[0].unlink()
    with pytest.raises(JustrightError, match="not in the bank yet"):
        bank_of(tmp_path).batch(np.array([0]), np.array([1]))
    bank.build()
    assert contents(bank.directory) == before


def test_a_second_run_computes_nothing_and_tuning_does_not_matter(tmp_path, monkeypatch):
    bank_of(tmp_path).build()
    tuned = tiny()
    next(tuned.tuned_parameters()).data += 1
    again = bank_of(tmp_path, backbone=tuned)
    monkeypatch.setattr(Backbone, "prefix", lambda *_: pytest.fail("computed again"))
    again.build()
    assert len(again.batch(ROWS, VIEWS)[0]) == 4
    assert len(list(tmp_path.glob("[!.]*"))) == 1


def test_more_views_keep_those_that_are_there(tmp_path):
    few = bank_of(tmp_path, n_views=1).build()
    before = contents(few.directory)
    more = bank_of(tmp_path, n_views=3).build()
    assert more.directory == few.directory
    assert contents(more.directory).items() >= before.items()


def test_whatever_changes_the_numbers_changes_the_directory(tmp_path):
    images = noise()
    other = tiny()
    other.model.cls_token.data += 1
    banks = [
        bank_of(tmp_path, images),
        bank_of(tmp_path, images, seed=1),
        bank_of(tmp_path, images, transform="strong"),
        bank_of(tmp_path, images, precision="float16"),
        bank_of(tmp_path, images.take(range(6))),
        bank_of(tmp_path, images, backbone=other),
        bank_of(tmp_path, images, backbone=tiny(qk_norm=True)),
    ]
    assert len({bank.directory for bank in banks}) == len(banks)
    assert bank_of(tmp_path, noise()).directory == banks[0].directory


def test_no_room_is_said_before_anything_is_computed(tmp_path, monkeypatch):
    usage = type("usage", (), {"free": 10})
    monkeypatch.setattr("justright.features.bank.shutil.disk_usage", lambda _: usage)
    with pytest.raises(JustrightError, match="fewer views, another root"):
        bank_of(tmp_path).build()


def test_the_index_says_what_is_inside(tmp_path):
    bank = bank_of(tmp_path).build()
    index = json.loads((bank.directory / "index.json").read_text())
    assert index["backbone"] == "tiny"
    assert index["tensors"] == {"n": [5, 12], "x_0": [12]}
    assert bank.n_bytes == 7 * 3 * (5 * 12 + 12) * 4


def test_open_views_knows_both_ways(tmp_path):
    stored = open_views(tiny(), noise(), tmp_path, views=2, precision="float16", seed=1)
    fresh = open_views(tiny(), noise(), tmp_path, views="fresh", precision="float16", seed=1)
    assert isinstance(stored, ViewBank)
    assert isinstance(fresh, FreshViews)
    rows, views = np.array([1, 2]), np.array([0, 1])
    torch.testing.assert_close(stored.batch(rows, views)[0], fresh.batch(rows, views)[0], rtol=1e-2, atol=1e-2)


def test_a_bank_that_another_process_has_built_is_read_unchecked_and_never_built(tmp_path, monkeypatch):
    rows, views = np.array([3, 0]), np.array([1, 0])
    built = bank_of(tmp_path, noise(4)).build().batch(rows, views)
    monkeypatch.setattr(bank_records, "is_whole", None)
    monkeypatch.setattr(ViewBank, "_compute", None)
    read = bank_of(tmp_path, noise(4), is_built=True).build().batch(rows, views)
    assert all(torch.equal(one, other) for one, other in zip(built, read, strict=True))
    elsewhere = bank_of(tmp_path / "elsewhere", noise(4), is_built=True).build()
    with pytest.raises(DataError, match="not in the bank yet"):
        elsewhere.batch(rows, views)
