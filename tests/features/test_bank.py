from __future__ import annotations

import json
import logging
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.features.tiny_banks import ROWS, VIEWS, bank_of, noise, tiny
from tests.forked_programs import Program

from justright.features import array_files
from justright.features.array_files import is_intact, open_array
from justright.features.backbone import Backbone
from justright.features.bank import MissingBlock, ViewBank, ViewWork, build_blocks, open_views
from justright.features.views import FreshViews, record_type
from justright.features.workers import tools
from justright.utils.context import use
from justright.utils.errors import DataError, JustrightError
from justright.utils.locks import Lock


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


def test_bank_of_another_process_is_read_and_never_built(tmp_path, monkeypatch):
    rows, views = np.array([3, 0]), np.array([1, 0])
    built = bank_of(tmp_path, noise(4)).build().batch(rows, views)
    monkeypatch.setattr(array_files, "is_intact", None)
    monkeypatch.setattr(ViewBank, "_compute", None)
    read = bank_of(tmp_path, noise(4), is_built=True).build().batch(rows, views)
    assert all(torch.equal(one, other) for one, other in zip(built, read, strict=True))
    elsewhere = bank_of(tmp_path / "elsewhere", noise(4), is_built=True).build()
    with pytest.raises(DataError, match="not in the bank yet"):
        elsewhere.batch(rows, views)


BUILDER = """
import sys
from pathlib import Path
from tests.features.tiny_banks import bank_of
print("waiting", flush=True)
bank = bank_of(Path(sys.argv[1]))
bank._compute = None  # nothing is left to compute
print(len(list(bank.build().directory.glob("rows*.npy"))), flush=True)
"""


def test_second_builder_waits_and_finds_what_the_first_has_built(tmp_path):
    bank = bank_of(tmp_path)
    lock = Lock(tmp_path / f".{bank.directory.name}.in-build")
    second = subprocess.Popen([sys.executable, "-c", BUILDER, tmp_path], stdout=subprocess.PIPE, text=True)
    assert second.stdout.readline() == "waiting\n"
    built = bank_of(tmp_path / "elsewhere").build()
    shutil.copytree(built.directory, bank.directory, dirs_exist_ok=True)
    lock.release()
    with second:
        assert int(second.stdout.readline()) == len(list(built.directory.glob("rows*.npy"))) > 0
    assert second.returncode == 0


FIRST = "rows000000-view000.npy"


def test_float16_stays_close(tmp_path):
    exact = bank_of(tmp_path).build().batch(ROWS, VIEWS)
    given = bank_of(tmp_path, precision="float16").build().batch(ROWS, VIEWS)
    assert (given[0] - exact[0]).abs().max() <= 1e-3 * exact[0].abs().max()
    torch.testing.assert_close(given[1], exact[1], rtol=1e-5, atol=1e-6)  # x_0 is small and keeps its bits
    assert all(part.dtype == torch.float32 for part in given)


def test_view_of_vit_b_takes_395_kilobytes_in_float16():
    shapes = ((257, 768), (768,))
    assert record_type(("n", "x_0"), shapes, "float16").itemsize == 257 * 768 * 2 + 768 * 4


def test_float16_that_overflows_is_refused(tmp_path):
    backbone = tiny(qk_norm=True)
    backbone.model.blocks[0].mlp.fc2.weight.data.mul_(1e7)
    with pytest.raises(JustrightError, match="too large for float16"):
        bank_of(tmp_path, backbone=backbone, precision="float16").build()


def test_a_damaged_shard_is_named(tmp_path):
    bank = bank_of(tmp_path).build()
    np.save(bank.directory / "rows000000-view000.npy", np.zeros(3))
    with pytest.raises(JustrightError, match="is damaged"):
        bank_of(tmp_path).batch(np.array([0]), np.array([0]))
    with pytest.raises(JustrightError, match="0 to 2"):
        bank.batch(np.array([0]), np.array([3]))


def flip(path, place=-1000):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def zero(path):
    data = path.read_bytes()
    path.write_bytes(data[:200] + bytes(len(data) - 400) + data[-200:])


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def empty(path):
    path.write_bytes(b"")


def swap(path):
    other = path.with_name("rows000000-view001.npy")
    here, there = path.read_bytes(), other.read_bytes()
    path.write_bytes(there)
    other.write_bytes(here)


def grow(path):
    path.write_bytes(path.read_bytes() + b"\0")


DAMAGE = {
    "a flipped bit": flip,
    "a flipped bit in the header": lambda path: flip(path, 30),
    "a flipped bit in the digest": lambda path: flip(path, -1),
    "zeros": zero,
    "truncated": cut,
    "empty": empty,
    "two files swapped": swap,
    "a byte more": grow,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_shard_is_built_again_and_that_is_said(tmp_path, caplog, damage):
    bank = bank_of(tmp_path).build()
    before = {path.name: path.read_bytes() for path in bank.directory.iterdir()}
    bank.batch(ROWS, VIEWS)  # what this process has mapped must not be found again
    DAMAGE[damage](bank.directory / FIRST)
    again = bank_of(tmp_path)
    with pytest.raises(JustrightError, match=FIRST):
        again.batch(np.array([0]), np.array([0]))
    with caplog.at_level(logging.WARNING):
        again.build()
    assert f"{FIRST} is damaged; it is built again" in caplog.text
    assert {path.name: path.read_bytes() for path in bank.directory.iterdir()} == before
    for one, other in zip(
        again.batch(ROWS, VIEWS), bank_of(tmp_path / "alone").build().batch(ROWS, VIEWS), strict=True
    ):
        assert torch.equal(one, other)


def test_the_shard_of_another_bank_does_not_fit(tmp_path):
    mine, other = bank_of(tmp_path).build(), bank_of(tmp_path, noise(6)).build()
    (mine.directory / FIRST).write_bytes((other.directory / FIRST).read_bytes())
    assert is_intact(other.directory / FIRST)
    assert not is_intact(mine.directory / FIRST)


def test_a_shard_is_read_for_its_digest_once_a_bank(tmp_path, monkeypatch):
    n_shards = len(list(bank_of(tmp_path).build().directory.glob("rows*.npy")))
    checked = []
    monkeypatch.setattr("justright.features.array_files.is_intact", lambda path: checked.append(path.name) or True)
    bank = bank_of(tmp_path).build().build()
    for _ in range(3):
        bank.batch(ROWS, VIEWS)
    assert len(checked) == len(set(checked)) == n_shards


def test_a_shard_is_an_npy_file_that_numpy_maps(tmp_path):
    bank = bank_of(tmp_path).build()
    path = bank.directory / FIRST
    ours = open_array(path)
    assert (ours.dtype, ours.shape) == (bank.layout, (len(bank.blocks[0]),))
    assert np.array_equal(np.load(path, mmap_mode="r", allow_pickle=False), ours)


def build_with_small_files(root):
    """Runs in a process of its own, which may not write a file above its limit: a disk that is full."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    try:
        bank_of(root, shard_bytes=10_000).build()
    except JustrightError as error:
        sys.stdout.write(str(error))


def test_full_disk_raises_with_advice_and_leaves_no_files(tmp_path):
    pytest.importorskip("resource")
    code = (
        f"import runpy, sys, pathlib; runpy.run_path({__file__!r})['build_with_small_files'](pathlib.Path(sys.argv[1]))"
    )
    ended = Program("-c", code, tmp_path).end()
    assert ended.code == 0, ended.err
    assert "rows000000-view" in ended.out
    assert "cannot be written: File too large" in ended.out
    assert "make room and run again" in ended.out
    # a forked program ends without the finalizers that release leases; the next process removes them
    left = [path.name for path in tmp_path.rglob("*") if path.name.startswith((".", "rows"))]
    assert [name for name in left if not name.endswith(".lease")] == []
    rebuilt = bank_of(tmp_path, shard_bytes=10_000).build()
    assert torch.equal(rebuilt.batch(ROWS, VIEWS)[0], bank_of(tmp_path / "alone").build().batch(ROWS, VIEWS)[0])


def test_each_phase_has_a_name_and_counts_its_views_to_the_end(tmp_path):
    seen = []

    def noted(steps, total, what):
        taken = []
        for step in steps:
            taken.append(step)
            yield step
        if not what.startswith("hashing"):
            seen.append((what, total, len(taken)))

    with use(progress=noted):
        bank = bank_of(tmp_path).build()
        next(bank.directory.glob("rows000000-view001*.npy")).unlink()
        bank_of(tmp_path).build()
        bank_of(tmp_path, n_views=1, transform="plain").build()
        bank_of(tmp_path, n_views=1, transform="strong").build()
    n_rows, n_shards = len(bank.blocks[0]), 3 * len(bank.blocks)
    assert seen == [
        ("computing 3 training views of each image", 21, 21),
        ("checking 3 training views of each image", n_shards - 1, n_shards - 1),
        ("computing 3 training views of each image", n_rows, n_rows),  # one view of one shard was missing
        ("computing plain views", 7, 7),
        ("computing 1 strong training view of each image", 7, 7),
    ]


def test_plain_views_have_the_same_bytes_in_a_batch_that_is_not_full(tmp_path):
    images, backbone = noise(7).with_ids(), tiny()
    bank = bank_of(tmp_path / "banks", images, transform="plain")
    work = ViewWork(images.readers, bank.drawer, bank.layout, backbone, tools(backbone.device), batch_size=5)
    paths = {rows: tmp_path / f"{rows.start}-{rows.stop}.npy" for rows in (range(7), range(2), range(2, 7))}
    bank.batch_size = 5
    build_blocks(bank, work, [MissingBlock(rows, [0], [path]) for rows, path in paths.items()], None)
    size = bank.layout.itemsize
    whole, first, last = (path.read_bytes()[-16 - len(rows) * size : -16] for rows, path in paths.items())
    assert whole == first + last
