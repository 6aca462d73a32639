"""Extraction: the same bytes for any workers and interruptions, nothing computed twice, nothing lost."""

from __future__ import annotations

import random
import signal

import numpy as np
import pytest
from PIL import Image
from tests.features.tiny_extraction import BAD, N_BATCHES, N, contents, draw, run, tiny
from tests.forked_programs import Program

from justright.data.folder import open_folder
from justright.features.cache import FeatureCache
from justright.features.extract import PART_BATCHES
from justright.features.table import FeatureTable
from justright.utils.context import use
from justright.utils.errors import DegenerateError


def test_number_of_workers_changes_no_byte(drawn, tmp_path):
    stores = [tmp_path / str(n) for n in (0, 1, 2, 4)]
    for n, store in zip((0, 1, 2, 4), stores, strict=True):
        run(drawn, store, n_workers=n)
    assert all(contents(store) == contents(stores[0]) for store in stores)


KILLED = """
import os, signal, sys
from justright.utils.context import use
from tests.features.tiny_extraction import extract, open_folder, tiny
from pathlib import Path

def killed_at(steps, total, what):
    for n, step in enumerate(steps):
        if what.startswith("extracting") and n == int(last):
            os.kill(os.getpid(), signal.SIGKILL)
        yield step

images, out, n_workers, last = sys.argv[1:]
with use(progress=killed_at):
    extract(open_folder(Path(images)), tiny(), Path(out), batch_size=2, n_workers=int(n_workers))
"""


@pytest.mark.parametrize(("n_workers", "last"), [(0, 33), (0, 50), (2, 40), (2, 66)])
def test_resumed_run_is_byte_identical_to_an_uninterrupted_one(tmp_path, n_workers, last):
    images = draw(tmp_path / "images")
    run(images, tmp_path / "whole")
    out = tmp_path / "killed"
    ended = Program("-c", KILLED, tmp_path / "images", out, n_workers, last).end()
    assert ended.code == -signal.SIGKILL, ended.err
    n_finished = len(list((out / "parts").glob("*.block")))
    assert 1 <= n_finished < 3, "not killed halfway"
    backbone = tiny()
    run(images, out, backbone, n_workers=n_workers)
    assert contents(out) == contents(tmp_path / "whole")
    assert backbone.n_batches == N_BATCHES - n_finished * PART_BATCHES


def interrupted_at(number):
    """A progress that raises KeyboardInterrupt at an image of an extraction."""

    def progress(steps, total, what):
        for n, step in enumerate(steps):
            if what.startswith("extracting") and n == number:
                raise KeyboardInterrupt
            yield step

    return progress


@pytest.mark.parametrize("n_workers", [0, 2])
def test_nothing_is_recomputed_after_an_interruption(drawn, tmp_path, n_workers):
    with pytest.raises(KeyboardInterrupt), use(progress=interrupted_at(66)):
        run(drawn, tmp_path / "t", n_workers=n_workers)
    backbone, steps = tiny(), []

    def count(each, total, what):
        steps.append((what, total))
        return iter(list(each))

    with use(progress=count):
        run(drawn, tmp_path / "t", backbone, n_workers=n_workers)
    assert backbone.n_batches == 1
    assert steps[-1] == (f"extracting {drawn.datasets[0]}", 2)
    run(drawn, tmp_path / "whole")
    assert contents(tmp_path / "t") == contents(tmp_path / "whole")


def test_cached_images_are_not_recomputed(drawn, tmp_path):
    run(drawn, tmp_path / "fresh")
    run(drawn, tmp_path / "first", cache=FeatureCache(tmp_path / "cache"))
    backbone = tiny()
    run(drawn, tmp_path / "second", backbone, cache=FeatureCache(tmp_path / "cache"), n_workers=2)
    assert backbone.n_batches == 0
    assert contents(tmp_path / "first") == contents(tmp_path / "second") == contents(tmp_path / "fresh")


def test_progress_counts_computed_images_only(drawn, tmp_path):
    phases = []

    def progress(steps, total, what):
        taken = list(steps)
        phases.append((what.partition(" ")[0], total, len(taken)))
        return iter(taken)

    run(drawn.take(range(0, N, 2)), tmp_path / "half", cache=FeatureCache(tmp_path / "cache"))
    with use(progress=progress):
        run(drawn.take([*range(N), 0, 1]), tmp_path / "all", cache=FeatureCache(tmp_path / "cache"))
    assert phases[-1] == ("extracting", N // 2, N // 2)


def test_cache_identifies_images_by_content(drawn, tmp_path):
    run(drawn, tmp_path / "first", cache=FeatureCache(tmp_path / "cache"))
    (tmp_path / "moved").mkdir()
    order = random.Random(0).sample(range(N), 20)
    for new, old in enumerate(order):
        (tmp_path / "moved" / f"{new:02}.png").write_bytes(drawn.encoded(old))
    rng = np.random.default_rng(9)
    Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)).save(tmp_path / "moved" / "new.png")
    backbone = tiny()
    images = open_folder(tmp_path / "moved")
    table = run(images, tmp_path / "second", backbone, cache=FeatureCache(tmp_path / "cache"))
    assert backbone.n_batches == 1
    np.testing.assert_array_equal(table.features[:20], FeatureTable.open(tmp_path / "first").features[order])
    fresh = run(images, tmp_path / "fresh")
    np.testing.assert_array_equal(table.features, fresh.features)


def test_another_backbone_or_transform_does_not_use_the_cache(drawn, tmp_path):
    run(drawn, tmp_path / "0", cache=FeatureCache(tmp_path / "cache"))
    for n, backbone in enumerate((tiny(seed=1), tiny(resize=20)), start=1):
        run(drawn, tmp_path / str(n), backbone, cache=FeatureCache(tmp_path / "cache"))
        assert backbone.n_batches == N_BATCHES


def test_images_with_equal_content_are_computed_once(drawn, tmp_path):
    rows = [*range(8), *range(8), *range(40), *range(8)]  # copies in one batch and across batches
    backbone = tiny()
    table = run(drawn.take(rows), tmp_path / "t", backbone)
    assert backbone.n_batches == 20  # 40 images
    np.testing.assert_array_equal(table.features, run(drawn, tmp_path / "u").features[rows])


def test_bad_images_do_not_change_the_others(with_bad, drawn, tmp_path):
    table = run(with_bad, tmp_path / "t", max_bad=0.1, n_workers=2)
    kept = [row for row, path in enumerate(drawn.paths) if path not in BAD]
    np.testing.assert_array_equal(table.features, run(drawn, tmp_path / "u").features[kept])


def test_resumed_run_lists_the_same_bad_images(with_bad, tmp_path):
    with pytest.raises(KeyboardInterrupt), use(progress=interrupted_at(40)):
        run(with_bad, tmp_path / "t", max_bad=0.1)
    run(with_bad, tmp_path / "t", max_bad=0.1)
    run(with_bad, tmp_path / "whole", max_bad=0.1)
    assert contents(tmp_path / "t") == contents(tmp_path / "whole")


def test_features_that_are_not_finite_raise(drawn, tmp_path):
    backbone = tiny()
    backbone.model.norm.weight.data.fill_(float("nan"))
    with pytest.raises(DegenerateError, match="not finite"):
        run(drawn, tmp_path / "t", backbone)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:-1] + b"x", lambda data: b""])
def test_damaged_part_is_recomputed(drawn, tmp_path, damage):
    with pytest.raises(KeyboardInterrupt), use(progress=interrupted_at(66)):
        run(drawn, tmp_path / "t")
    part = max((tmp_path / "t" / "parts").glob("*.block"), key=lambda path: path.stat().st_size)
    part.write_bytes(damage(part.read_bytes()))
    backbone = tiny()
    run(drawn, tmp_path / "t", backbone)
    assert backbone.n_batches == PART_BATCHES + 1
    run(drawn, tmp_path / "whole")
    assert contents(tmp_path / "t") == contents(tmp_path / "whole")
