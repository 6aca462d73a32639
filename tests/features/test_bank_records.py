"""Shards of a bank: one record a stored view; whole or not there, every byte under its digest."""

from __future__ import annotations

import logging
import sys

import numpy as np
import pytest
import torch
from tests.features.tiny_banks import ROWS, VIEWS, bank_of, noise, tiny
from tests.forked_programs import Program

from justright.features.bank_records import is_whole, open_shard, record_type
from justright.utils.errors import JustrightError

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
    with pytest.raises(JustrightError, match="another layout"):
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
    assert is_whole(other.directory / FIRST)
    assert not is_whole(mine.directory / FIRST)


def test_a_shard_is_read_for_its_digest_once_a_bank(tmp_path, monkeypatch):
    n_shards = len(list(bank_of(tmp_path).build().directory.glob("rows*.npy")))
    checked = []
    monkeypatch.setattr("justright.features.bank_records.is_whole", lambda path: checked.append(path.name) or True)
    bank = bank_of(tmp_path).build().build()
    for _ in range(3):
        bank.batch(ROWS, VIEWS)
    assert len(checked) == len(set(checked)) == n_shards


def test_a_shard_is_an_npy_file_that_numpy_maps(tmp_path):
    bank = bank_of(tmp_path).build()
    path = bank.directory / FIRST
    ours = open_shard(path, bank.layout, len(bank.blocks[0]))
    assert np.array_equal(np.load(path, mmap_mode="r", allow_pickle=False), ours)


def build_with_small_files(root):
    """Runs in a process of its own, which may not write a file above its limit: a disk that is full."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    try:
        bank_of(root, shard_bytes=10_000).build()
    except JustrightError as error:
        sys.stdout.write(str(error))


def test_a_full_disk_is_an_error_that_says_what_to_do_and_leaves_nothing_behind(tmp_path):
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
