from __future__ import annotations

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

from justright.features import cache
from justright.features.backbone import Backbone
from justright.features.bank import FreshViews, ViewBank, open_views, record_type
from justright.features.cache import KeptBanks
from justright.utils.context import use
from justright.utils.errors import DataError, JustrightError
from justright.utils.hashing import hash_list
from justright.utils.locks import Lock


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of four views."""
    monkeypatch.setattr(cache, "BLOCK_BYTES", 1000)


def build_slowly(root):
    """Runs in another process, which is killed meanwhile."""
    torch.set_num_threads(1)  # as in conftest.py: matrix products on two threads round differently
    cache.BLOCK_BYTES = 1000

    def slowly(steps, total, what):
        for step in steps:
            time.sleep(0.05)
            yield step

    with use(progress=slowly):
        bank_of(Path(root), noise(12)).build()


def blocks(root):
    return sorted(root.rglob("*.block"))


def records(bank):
    """All views of a bank, as bytes."""
    rows, views = np.divmod(np.arange(len(bank.images) * bank.n_views), bank.n_views)
    return [part.numpy().tobytes() for part in bank.batch(rows, views)]


def test_killed_build_resumes_with_the_same_bytes(tmp_path):
    code = f"import runpy, sys; runpy.run_path({__file__!r})['build_slowly'](sys.argv[1])"
    killed = tmp_path / "killed"
    process = Program("-c", code, killed)
    while len(blocks(killed)) < 4 and process.is_running():
        time.sleep(0.02)
    assert process.kill().code == -signal.SIGKILL
    finished = {path: path.stat().st_size for path in blocks(killed)}
    resumed = bank_of(killed, noise(12)).build()
    assert 0 < len(finished) < len(blocks(killed))
    assert finished.keys() <= set(blocks(killed)), "finished blocks are kept"
    assert records(resumed) == records(bank_of(tmp_path / "undisturbed", noise(12)).build())


def test_lost_block_is_recomputed(tmp_path):
    bank = bank_of(tmp_path).build()
    before = records(bank)
    blocks(tmp_path)[1].unlink()
    with pytest.raises(JustrightError, match="not in the bank"):
        records(bank_of(tmp_path, is_built=True).build())
    assert records(bank_of(tmp_path).build()) == before


def test_second_bank_computes_nothing_even_after_tuning(tmp_path, monkeypatch):
    bank_of(tmp_path).build()
    tuned = tiny()
    next(tuned.tuned_parameters()).data += 1
    again = bank_of(tmp_path, backbone=tuned)
    monkeypatch.setattr(Backbone, "prefix", lambda *_: pytest.fail("computed again"))
    again.build()
    assert len(again.batch(ROWS, VIEWS)[0]) == 4
    assert len(list(tmp_path.glob("[!.]*"))) == 1


def test_larger_bank_computes_only_missing_views(tmp_path):
    def computed(**options):
        seen = []

        def progress(steps, total, what):
            seen.extend([total] * what.startswith("computing"))
            return iter(steps)

        with use(progress=progress):
            bank = bank_of(tmp_path, **options).build()
        assert records(bank) == records(bank_of(tmp_path / "alone", **options).build())
        return seen

    assert computed(images=noise(4), n_views=1) == [4]
    assert computed(images=noise(4), n_views=3) == [8]
    assert computed(images=noise(7), n_views=3) == [9]
    assert computed(images=noise(7).take([6, 0, 0]), n_views=2) == []


def test_images_with_equal_content_are_computed_once(tmp_path):
    images = noise(4).take([0, 1, 0, 2, 1])
    bank = bank_of(tmp_path, images).build()
    (section,) = KeptBanks(tmp_path).sections()
    assert section["views"] == 3 * 3
    one, other = (bank.batch(np.array([row]), np.array([1])) for row in (0, 2))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_each_setting_that_changes_views_has_its_own_section(tmp_path):
    images = noise()
    other = tiny()
    other.model.cls_token.data += 1
    banks = [
        bank_of(tmp_path, images),
        bank_of(tmp_path, images, seed=1),
        bank_of(tmp_path, images, transform="strong"),
        bank_of(tmp_path, images, precision="float16"),
        bank_of(tmp_path, images, batch_size=3),
        bank_of(tmp_path, images, backbone=other),
        bank_of(tmp_path, images, backbone=tiny(qk_norm=True)),
    ]
    assert len({bank.section.folder for bank in banks}) == len(banks)
    assert bank_of(tmp_path, noise(3)).section.folder == banks[0].section.folder


def test_sections_of_banks_are_listed_and_cleared(tmp_path):
    bank = bank_of(tmp_path).build()
    (section,) = KeptBanks(tmp_path).sections()
    listed = {"backbone": "tiny", "transform": "weak", "precision": "float32", "views": 21}
    assert listed.items() <= section.items()
    assert 7 * 3 * bank.layout.itemsize == 7 * 3 * (5 * 12 + 12) * 4 < section["bytes"]
    assert KeptBanks(tmp_path).clear("tiny") == 0, "a bank in use was deleted"
    del bank
    assert KeptBanks(tmp_path).clear("tiny") == section["bytes"]


def test_open_views_returns_stored_or_fresh_views(tmp_path):
    stored = open_views(tiny(), noise(), tmp_path, views=2, precision="float16", seed=1)
    fresh = open_views(tiny(), noise(), tmp_path, views="fresh", precision="float16", seed=1)
    assert isinstance(stored, ViewBank)
    assert isinstance(fresh, FreshViews)
    rows, views = np.array([1, 2]), np.array([0, 1])
    torch.testing.assert_close(stored.batch(rows, views)[0], fresh.batch(rows, views)[0], rtol=1e-2, atol=1e-2)


def test_built_bank_of_another_process_is_only_read(tmp_path, monkeypatch):
    rows, views = np.array([3, 0]), np.array([1, 0])
    built = bank_of(tmp_path, noise(4)).build().batch(rows, views)
    monkeypatch.setattr(cache, "is_intact", None)
    monkeypatch.setattr(ViewBank, "_compute", None)
    read = bank_of(tmp_path, noise(4), is_built=True).build().batch(rows, views)
    assert all(torch.equal(one, other) for one, other in zip(built, read, strict=True))
    elsewhere = bank_of(tmp_path / "elsewhere", noise(4), is_built=True).build()
    with pytest.raises(DataError, match="not in the bank"):
        elsewhere.batch(rows, views)


BUILDER = """
import sys
from pathlib import Path
from tests.features.tiny_banks import bank_of
print("waiting", flush=True)
bank = bank_of(Path(sys.argv[1]))
bank._compute = None  # nothing is left to compute
bank.build()
"""


def test_second_builder_waits_for_the_first(tmp_path):
    bank = bank_of(tmp_path)
    folder = bank.section.folder
    lock = Lock(tmp_path / f".{folder.name}.{hash_list([bank.ids.to_pylist()])}.in-build")
    second = subprocess.Popen([sys.executable, "-c", BUILDER, tmp_path], stdout=subprocess.PIPE, text=True)
    assert second.stdout.readline() == "waiting\n"
    built = bank_of(tmp_path / "elsewhere").build()
    shutil.copytree(built.section.folder, folder, dirs_exist_ok=True)
    lock.release()
    with second:
        pass
    assert second.returncode == 0


def test_float16_stays_close(tmp_path):
    exact = bank_of(tmp_path).build().batch(ROWS, VIEWS)
    half = bank_of(tmp_path, precision="float16").build().batch(ROWS, VIEWS)
    assert (half[0] - exact[0]).abs().max() <= 1e-3 * exact[0].abs().max()
    torch.testing.assert_close(half[1], exact[1], rtol=1e-5, atol=1e-6)  # x_0 is small and keeps its bits
    assert all(part.dtype == torch.float32 for part in half)


def test_view_of_vit_b_takes_395_kilobytes_in_float16():
    shapes = ((257, 768), (768,))
    assert record_type(("n", "x_0"), shapes, "float16").itemsize == 257 * 768 * 2 + 768 * 4


def test_float16_overflow_raises(tmp_path):
    backbone = tiny(qk_norm=True)
    backbone.model.blocks[0].mlp.fc2.weight.data.mul_(1e7)
    with pytest.raises(JustrightError, match="too large for float16"):
        bank_of(tmp_path, backbone=backbone, precision="float16").build()


def flip(path, place=-1000):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def zero(path):
    data = path.read_bytes()
    path.write_bytes(data[:200] + bytes(len(data) - 400) + data[-200:])


def swap(path):
    other = blocks(path.parent)[1]
    here, there = path.read_bytes(), other.read_bytes()
    path.write_bytes(there)
    other.write_bytes(here)


DAMAGE = {
    "a flipped bit": flip,
    "a flipped bit in the header": lambda path: flip(path, 30),
    "a flipped bit in the digest": lambda path: flip(path, -1),
    "zeros": zero,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "empty": lambda path: path.write_bytes(b""),
    "two files swapped": swap,
    "a byte more": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_block_is_recomputed_with_a_warning(tmp_path, caplog, damage):
    bank = bank_of(tmp_path).build()
    before = records(bank)  # what this process has mapped must not be used again
    DAMAGE[damage](blocks(tmp_path)[0])
    with caplog.at_level(logging.WARNING):
        again = bank_of(tmp_path).build()
    assert "is damaged: its images are computed again" in caplog.text
    assert records(again) == before


def test_each_block_is_checked_once_per_bank(tmp_path, monkeypatch):
    n_blocks = len(blocks(bank_of(tmp_path).build().cache.root))
    checked = []
    monkeypatch.setattr(cache, "is_intact", lambda path: checked.append(path.name) or True)
    bank = bank_of(tmp_path).build()
    for _ in range(3):
        bank.batch(ROWS, VIEWS)
    assert len(checked) == len(set(checked)) == n_blocks


def build_with_small_files(root):
    """Runs in another process, which may not write files above a limit: as on a full disk."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    try:
        cache.BLOCK_BYTES = 10_000
        bank_of(root).build()
    except OSError as error:
        sys.stdout.write(str(error))


def test_full_disk_raises_and_leaves_no_files(tmp_path):
    pytest.importorskip("resource")
    code = (
        f"import runpy, sys, pathlib; runpy.run_path({__file__!r})['build_with_small_files'](pathlib.Path(sys.argv[1]))"
    )
    ended = Program("-c", code, tmp_path).end()
    assert ended.code == 0, ended.err
    assert ".block" in ended.out
    assert "File too large" in ended.out
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"key.json", ".in-use"}
    rebuilt = bank_of(tmp_path).build()
    assert torch.equal(rebuilt.batch(ROWS, VIEWS)[0], bank_of(tmp_path / "alone").build().batch(ROWS, VIEWS)[0])


def test_progress_names_each_phase_and_counts_its_steps(tmp_path):
    seen = []

    def progress(steps, total, what):
        taken = []
        for step in steps:
            taken.append(step)
            yield step
        if not what.startswith("hashing"):
            seen.append((what, total, len(taken)))

    with use(progress=progress):
        bank_of(tmp_path).build()
        n_blocks = len(blocks(tmp_path))
        blocks(tmp_path)[0].unlink()
        n_lost = 21 - KeptBanks(tmp_path).sections()[0]["views"]
        bank_of(tmp_path).build()
        bank_of(tmp_path, n_views=1, transform="plain").build()
        bank_of(tmp_path, n_views=1, transform="strong").build()
    assert seen == [
        ("computing 3 training views of each image", 21, 21),
        ("checking 3 training views of each image", n_blocks - 1, n_blocks - 1),
        ("computing 3 training views of each image", n_lost, n_lost),
        ("computing plain views", 7, 7),
        ("computing 1 strong training view of each image", 7, 7),
    ]


def test_partial_batch_gives_the_same_bytes(tmp_path):
    images = noise(7)
    whole = bank_of(tmp_path / "whole", images, batch_size=5).build()
    for rows in (range(2), range(2, 7)):
        bank_of(tmp_path / "parts", images.take(rows), batch_size=5).build()
    assert records(bank_of(tmp_path / "parts", images, batch_size=5).build()) == records(whole)
