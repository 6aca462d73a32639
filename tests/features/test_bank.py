from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from justright.data.objects import from_dataset
from justright.data.recipe import ImageRecipe
from justright.data.views import Strong, Weak
from justright.errors import JustrightError
from justright.features.backbone import Backbone
from justright.features.bank import ViewBank, open_views
from justright.features.bank_records import record_type
from justright.features.guarded_timm import timm
from justright.features.stored_views import FreshViews

RECIPE = ImageRecipe(resolution=16, resize=18)


def noise(n=7):
    pixels = np.random.default_rng(0).integers(0, 256, (n, 20, 24, 3), dtype=np.uint8)
    return from_dataset([(picture, 0) for picture in pixels], "noise")


def tiny(**options):
    sizes = {"img_size": 16, "patch_size": 8, "embed_dim": 12, "depth": 2, "num_heads": 3, "num_classes": 0}
    torch.manual_seed(0)
    return Backbone(timm.create_model("vit_tiny_patch16_224", **sizes | options), "tiny", RECIPE)


def bank_of(root, images=None, backbone=None, **options):
    small = {"n_views": 3, "batch_size": 2, "shard_bytes": 1000, "precision": "float32"}
    return ViewBank(backbone or tiny(), images or noise(), root, **small | options)


def build_slowly(root):
    """Runs in a process of its own, which is killed meanwhile."""
    torch.set_num_threads(1)  # as the tests here do: matrix products on two threads round differently

    def slowly(steps, total, what):
        for step in steps:
            time.sleep(0.05)
            yield step

    bank_of(Path(root), noise(12)).build(slowly)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


ROWS, VIEWS = np.array([5, 0, 3, 5]), np.array([2, 0, 1, 1])


@pytest.mark.parametrize("options", [{}, {"qk_norm": True}], ids=["exact last block", "general path"])
@pytest.mark.parametrize("transform", [Weak(), Strong()])
def test_a_bank_and_fresh_views_give_the_same_numbers(tmp_path, options, transform):
    backbone = tiny(**options)
    bank = bank_of(tmp_path, backbone=backbone, transform=transform).build()
    fresh = FreshViews(backbone, noise(), transform)
    for stored, computed in zip(bank.batch(ROWS, VIEWS), fresh.batch(ROWS, VIEWS), strict=True):
        torch.testing.assert_close(stored, computed, rtol=1e-5, atol=1e-6)


def test_training_from_the_bank_is_training_from_fresh_views(tmp_path):
    losses = []
    for kind in ("bank", "fresh"):
        backbone = tiny()
        views = bank_of(tmp_path, backbone=backbone).build() if kind == "bank" else FreshViews(backbone, noise())
        optimizer = torch.optim.SGD(backbone.tuned_parameters(), lr=0.05)
        for step in range(6):
            loss = backbone.suffix(views.batch(ROWS, (VIEWS + step) % 3)).pow(4).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[:6] == pytest.approx(losses[6:], rel=1e-4)
    assert losses[0] != pytest.approx(losses[5], rel=1e-2)


@pytest.mark.parametrize(("precision", "tolerance"), [("float16", 1e-3), ("int8", 2e-2)])
def test_fewer_bits_stay_close(tmp_path, precision, tolerance):
    exact = bank_of(tmp_path).build().batch(ROWS, VIEWS)
    given = bank_of(tmp_path, precision=precision).build().batch(ROWS, VIEWS)
    assert (given[0] - exact[0]).abs().max() <= tolerance * exact[0].abs().max()
    torch.testing.assert_close(given[1], exact[1], rtol=1e-5, atol=1e-6)  # x_0 is small and keeps its bits
    assert all(part.dtype == torch.float32 for part in given)


def test_int8_is_rounding_by_one_scale_a_token(tmp_path):
    exact = bank_of(tmp_path).build().batch(ROWS, VIEWS)[0]
    scale = exact.abs().amax(dim=-1, keepdim=True) / 127
    expected = (exact / scale).round() * scale
    given = bank_of(tmp_path, precision="int8").build().batch(ROWS, VIEWS)[0]
    assert ((given - expected).abs() <= 1e-5 + (given != expected) * scale).all()  # a tie may round either way
    assert ((given - expected).abs() < 1e-5).double().mean() > 0.98


def test_a_view_of_vit_b_takes_395_kilobytes_in_float16_and_half_of_it_in_int8():
    shapes = ((257, 768), (768,))
    assert record_type(("n", "x_0"), shapes, "float16").itemsize == 257 * 768 * 2 + 768 * 4
    assert record_type(("n", "x_0"), shapes, "int8").itemsize == 257 * 768 + 257 * 4 + 768 * 4


def test_a_killed_build_goes_on_and_ends_with_the_same_bytes(tmp_path):
    code = f"import runpy, sys; runpy.run_path({__file__!r})['build_slowly'](sys.argv[1])"
    killed = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", code, str(killed)])
    try:
        while len(list(killed.rglob("rows*.npy"))) < 4 and process.poll() is None:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.wait()
    assert process.returncode == -signal.SIGKILL
    finished = {path: path.stat().st_mtime_ns for path in killed.rglob("rows*.npy")}
    resumed = bank_of(killed, noise(12)).build()
    assert 0 < len(finished) < resumed.n_blocks * 3
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
    assert len(list(tmp_path.iterdir())) == 1


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
        bank_of(tmp_path, images, precision="int8"),
        bank_of(tmp_path, images, rows=range(6)),
        bank_of(tmp_path, images, backbone=other),
        bank_of(tmp_path, images, backbone=tiny(qk_norm=True)),
    ]
    assert len({bank.directory for bank in banks}) == len(banks)
    assert bank_of(tmp_path, noise()).directory == banks[0].directory


def test_refresh_renews_its_share_in_turn_and_is_a_function_of_the_epoch(tmp_path):
    bank = bank_of(tmp_path / "a", refresh=0.25, transform="strong").build()
    rows, views = np.repeat(np.arange(7), 3), np.tile(np.arange(3), 7)
    seen = [bank.batch(rows, views)[0]]
    for epoch in range(1, 6):
        bank.refresh(epoch)
        seen.append(bank.batch(rows, views)[0])
        changed = (seen[-1] != seen[-2]).flatten(1).any(dim=1).double().mean()
        assert 0.1 < changed < 0.4
    assert (seen[5] != seen[0]).flatten(1).any(dim=1).all()  # by now each view was renewed
    assert len(list(bank.directory.glob("rows*.npy"))) == bank.n_blocks * 3
    late = bank_of(tmp_path / "b", refresh=0.25, transform="strong")
    late.refresh(5)  # as a resumed run does
    assert torch.equal(late.batch(rows, views)[0], seen[5])


def test_choose_gives_each_image_different_views(tmp_path):
    bank, fresh = bank_of(tmp_path), FreshViews(tiny(), noise())
    for views in (bank, fresh):
        chosen = views.choose(epoch=3, step=2, n_images=50, n_views=2)
        assert chosen.shape == (2, 50)
        assert (chosen[0] != chosen[1]).all()
        assert np.array_equal(chosen, views.choose(3, 2, 50, 2))
        assert not np.array_equal(chosen, views.choose(3, 3, 50, 2))
    assert set(bank.choose(0, 0, 200).ravel()) == {0, 1, 2}
    with pytest.raises(JustrightError, match="at most 3"):
        bank.choose(0, 0, 5, n_views=4)


def test_bad_images_are_named_and_can_be_left_out(tmp_path, make_tree):
    from justright.data.folder import open_folder

    root = make_tree({"cats": 4})
    (root / "cats" / "1.png").write_bytes(b"no image")
    images = open_folder(root)
    bad = images.paths.index("cats/1.png")
    with pytest.raises(JustrightError, match=r"(?s)cats/1.png: not an image.*good rows"):
        bank_of(tmp_path / "bank", images).build()
    good = [row for row in range(4) if row != bad]
    bank = bank_of(tmp_path / "bank", images, rows=good).build()
    assert len(bank.batch(np.array(good), np.zeros(3, int))[0]) == 3
    with pytest.raises(JustrightError, match=f"rows \\[{bad}\\] have no views"):
        bank.batch(np.array([good[0], bad]), np.zeros(2, int))
    fresh = FreshViews(tiny(), images, rows=good)
    torch.testing.assert_close(
        bank.batch(np.array(good), np.zeros(3, int)),
        fresh.batch(np.array(good), np.zeros(3, int)),
        rtol=1e-5,
        atol=1e-6,
    )


def test_no_room_is_said_before_anything_is_computed(tmp_path, monkeypatch):
    usage = type("usage", (), {"free": 10})
    monkeypatch.setattr("justright.features.bank.shutil.disk_usage", lambda _: usage)
    with pytest.raises(JustrightError, match="fewer views, precision int8"):
        bank_of(tmp_path).build()


def test_float16_that_overflows_is_refused(tmp_path):
    backbone = tiny(qk_norm=True)
    backbone.model.blocks[0].mlp.fc2.weight.data.mul_(1e7)
    with pytest.raises(JustrightError, match="too large for float16"):
        bank_of(tmp_path, backbone=backbone, precision="float16").build()


def test_a_damaged_shard_is_named(tmp_path):
    bank = bank_of(tmp_path).build()
    np.save(bank.directory / "rows000000-view000-round0000.npy", np.zeros(3))
    with pytest.raises(JustrightError, match="another layout"):
        bank_of(tmp_path).batch(np.array([0]), np.array([0]))
    with pytest.raises(JustrightError, match="0 to 2"):
        bank.batch(np.array([0]), np.array([3]))


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
    fresh.refresh(1)
