"""Extraction: the same bytes however it is done, nothing computed twice, nothing silently lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from justright.data.folder import open_folder
from justright.data.image_set import ImageSet
from justright.data.objects import from_dataset
from justright.data.opening import open_images
from justright.data.quarantine import TooManyBadError
from justright.data.recipe import ImageRecipe
from justright.errors import DataError, DegenerateError
from justright.features.backbone import Backbone
from justright.features.cache import FeatureCache
from justright.features.extract import SHARD_BATCHES, extract, usable
from justright.features.guarded_timm import VisionTransformer, timm
from justright.features.table import FILES, FeatureTable, StoreMismatchError

N, BATCH = 70, 2  # three shards: 32, 32 and 6 images
N_BATCHES = 35


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small only wait when torch splits them over cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Counting(Backbone):
    """A tiny ViT that counts the batches it sees."""

    n_batches = 0
    pause = 0.0

    def forward(self, images, pooling="class"):
        self.n_batches += len(images) == BATCH  # not the single image that tells the shape
        time.sleep(self.pause)
        return super().forward(images, pooling)


def tiny(seed=0, **recipe):
    torch.manual_seed(seed)
    vit = VisionTransformer(img_size=16, patch_size=8, embed_dim=16, depth=2, num_heads=2, num_classes=0)
    return Counting(vit, "tiny", ImageRecipe(**{"resolution": 16, "resize": 18} | recipe))


def draw(root: Path, n=N, seed=0):
    rng = np.random.default_rng(seed)
    for i in range(n):
        place = root / f"class{i % 3}" / f"{i:03}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(place)
    return open_folder(root)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("drawn"))


def run(images, out, backbone=None, **options):
    return extract(images, backbone or tiny(), out, **{"batch_size": BATCH, "n_workers": 0} | options)


def contents(store: Path) -> dict[str, bytes]:
    return {name: (store / name).read_bytes() for name in FILES}


def test_agrees_with_one_image_at_a_time(drawn, tmp_path):
    backbone = tiny()
    table = run(drawn, tmp_path / "t", backbone)
    with torch.no_grad():
        slow = [backbone(backbone.recipe.preprocess(drawn.image(row))[None])[0].numpy() for row in range(N)]
    np.testing.assert_allclose(table.features, np.stack(slow), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(table.labels, drawn.labels)
    assert table.paths == drawn.paths
    assert table.ids == drawn.with_ids().ids
    assert table.classes == drawn.classes
    assert table.quarantined == []


def test_the_number_of_workers_changes_no_byte(drawn, tmp_path):
    stores = [tmp_path / str(n) for n in (0, 1, 2, 4)]
    for n, store in zip((0, 1, 2, 4), stores, strict=True):
        run(drawn, store, n_workers=n)
    assert all(contents(store) == contents(stores[0]) for store in stores)


def test_a_conv_net_may_run_in_several_threads(drawn, tmp_path):
    torch.manual_seed(0)
    net = Backbone(timm.create_model("test_resnet", pretrained=False, num_classes=0), "conv", ImageRecipe(32, 32))
    run(drawn, tmp_path / "0", net)
    run(drawn, tmp_path / "4", net, n_workers=4)
    assert contents(tmp_path / "0") == contents(tmp_path / "4")


def test_torch_gets_its_threads_back(drawn, tmp_path):
    torch.set_num_threads(3)
    run(drawn, tmp_path / "t", n_workers=2)
    assert torch.get_num_threads() == 3
    torch.set_num_threads(1)


def test_the_index_opens_as_images(drawn, tmp_path):
    run(drawn, tmp_path / "t")
    again = open_images(tmp_path / "t" / "index.parquet")
    assert again.image(3).tobytes() == drawn.image(3).tobytes()


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from test_extract import Counting, extract, open_folder, tiny
from pathlib import Path
backbone = tiny()
backbone.pause = 0.03
extract(open_folder(Path({images!r})), backbone, Path({out!r}), batch_size=2, n_workers={workers})
"""


@pytest.mark.parametrize("n_workers", [0, 2])
def test_kill_and_resume_give_the_bytes_of_an_undisturbed_run(tmp_path, n_workers):
    images = draw(tmp_path / "images")
    run(images, tmp_path / "whole")
    out = tmp_path / "killed"
    code = KILLED.format(
        tests=str(Path(__file__).parent), images=str(tmp_path / "images"), out=str(out), workers=n_workers
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_for_a_shard(process, out)
        time.sleep(random.uniform(0, 0.2))  # anywhere inside a shard
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    n_finished = (out / "shards.jsonl").read_bytes().count(b"\n")
    assert 1 <= n_finished < 3, "it was to be killed halfway"
    backbone = tiny()
    run(images, out, backbone, n_workers=n_workers)
    assert contents(out) == contents(tmp_path / "whole")
    assert backbone.n_batches == N_BATCHES - n_finished * SHARD_BATCHES


def wait_for_a_shard(process, out, seconds=60):
    end = time.monotonic() + seconds
    while not ((out / "shards.jsonl").exists() and (out / "shards.jsonl").stat().st_size):
        assert process.poll() is None, "the process ended by itself"
        assert time.monotonic() < end, "no shard was finished"
        time.sleep(0.005)


@pytest.mark.parametrize("n_workers", [0, 2])
def test_after_an_interruption_finished_shards_are_not_redone(drawn, tmp_path, n_workers):
    def interrupt(steps, total, what):
        for n, step in enumerate(steps):
            if what.startswith("extracting") and n == 40:
                raise KeyboardInterrupt
            yield step

    with pytest.raises(KeyboardInterrupt):
        run(drawn, tmp_path / "t", n_workers=n_workers, track=interrupt)
    backbone, steps = tiny(), []

    def count(each, total, what):
        steps.append((what, total))
        return iter(list(each))

    run(drawn, tmp_path / "t", backbone, n_workers=n_workers, track=count)
    assert backbone.n_batches == 3
    assert steps[-1] == (f"extracting {drawn.datasets[0]}", 6)
    run(drawn, tmp_path / "whole")
    assert contents(tmp_path / "t") == contents(tmp_path / "whole")


def test_a_finished_store_is_opened_not_computed(drawn, tmp_path):
    run(drawn, tmp_path / "t")
    backbone = tiny()
    assert len(run(drawn, tmp_path / "t", backbone)) == N
    assert backbone.n_batches == 0


def test_the_cache_computes_nothing_twice(drawn, tmp_path):
    run(drawn, tmp_path / "fresh")
    run(drawn, tmp_path / "first", cache=FeatureCache(tmp_path / "cache"))
    backbone = tiny()
    run(drawn, tmp_path / "second", backbone, cache=FeatureCache(tmp_path / "cache"), n_workers=2)
    assert backbone.n_batches == 0
    assert contents(tmp_path / "first") == contents(tmp_path / "second") == contents(tmp_path / "fresh")


def test_the_cache_knows_content_not_places(drawn, tmp_path):
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


def test_another_backbone_or_transform_does_not_meet_the_cache(drawn, tmp_path):
    run(drawn, tmp_path / "0", cache=FeatureCache(tmp_path / "cache"))
    for n, backbone in enumerate((tiny(seed=1), tiny(resize=20)), start=1):
        run(drawn, tmp_path / str(n), backbone, cache=FeatureCache(tmp_path / "cache"))
        assert backbone.n_batches == N_BATCHES


def test_ids_of_a_manifest_do_not_deceive_the_cache(drawn, tmp_path):
    def renamed(rows):
        images = drawn.take(rows)
        ids = [f"{i}" for i in range(len(rows))]
        table = images.table.set_column(0, "id", [ids])
        return ImageSet(table, images.readers)

    cache = FeatureCache(tmp_path / "cache")
    one = run(renamed([0, 1]), tmp_path / "one", cache=cache)
    two = run(renamed([2, 3]), tmp_path / "two", cache=cache)
    assert one.ids == two.ids == ["0", "1"]
    assert not np.array_equal(one.features, two.features)


def test_images_with_equal_content_are_computed_once(drawn, tmp_path):
    rows = [*range(8), *range(8), *range(40), *range(8)]  # copies within a shard and across shards
    backbone = tiny()
    table = run(drawn.take(rows), tmp_path / "t", backbone)
    assert backbone.n_batches == 20  # 40 images
    np.testing.assert_array_equal(table.features, run(drawn, tmp_path / "u").features[rows])


@pytest.fixture
def with_bad(tmp_path):
    draw(tmp_path / "images")
    (tmp_path / "images" / "class0" / "003.png").write_bytes(b"no picture")
    (tmp_path / "images" / "class1" / "064.png").write_bytes(b"")
    whole = (tmp_path / "images" / "class2" / "005.png").read_bytes()
    (tmp_path / "images" / "class2" / "005.png").write_bytes(whole[: len(whole) // 2])
    images = open_folder(tmp_path / "images")
    (tmp_path / "images" / "class2" / "008.png").unlink()
    return images


BAD = ["class0/003.png", "class1/064.png", "class2/005.png", "class2/008.png"]


def test_bad_images_are_set_aside_with_a_reason(with_bad, tmp_path):
    table = run(with_bad, tmp_path / "t", max_bad=0.1)
    assert [image.path for image in table.quarantined] == BAD
    assert [str(image.kind) for image in table.quarantined] == ["not an image", "empty", "truncated", "missing"]
    assert table.paths == [path for path in with_bad.paths if path not in BAD]


def test_bad_images_do_not_change_the_others(with_bad, drawn, tmp_path):
    table = run(with_bad, tmp_path / "t", max_bad=0.1, n_workers=2)
    kept = [row for row, path in enumerate(drawn.paths) if path not in BAD]
    np.testing.assert_array_equal(table.features, run(drawn, tmp_path / "u").features[kept])


def test_resuming_remembers_the_bad_images(with_bad, tmp_path):
    def stop(steps, total, what):
        yield from (step for n, step in enumerate(steps) if what != "extracting images" or n < 10 or stop_now())

    def stop_now():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(with_bad, tmp_path / "t", max_bad=0.1, track=stop)
    run(with_bad, tmp_path / "t", max_bad=0.1)
    run(with_bad, tmp_path / "whole", max_bad=0.1)
    assert contents(tmp_path / "t") == contents(tmp_path / "whole")


def test_too_many_bad_images_are_refused(with_bad, tmp_path):
    with pytest.raises(TooManyBadError, match="4 of 70 images"):
        run(with_bad, tmp_path / "t")


def test_copies_of_a_bad_image_are_bad(with_bad, tmp_path):
    rows = [*range(10), with_bad.paths.index("class0/003.png")]
    table = run(with_bad.take(rows), tmp_path / "t", max_bad=1.0)
    assert [image.path for image in table.quarantined] == ["class0/003.png"] * 2


def test_other_features_are_refused_with_what_differs(drawn, tmp_path):
    run(drawn, tmp_path / "t")
    before = contents(tmp_path / "t")
    for images, backbone, options, line in (
        (drawn, tiny(seed=1), {}, r"backbone\.fingerprint: \w+, \w+"),
        (drawn, tiny(resize=20), {}, r"transform\.resize: 18, 20"),
        (drawn, tiny(), {"pooling": "average"}, r"backbone\.pooling: class, average"),
        (drawn, tiny(), {"batch_size": 8}, r"computation\.batch_size: 2, 8"),
        (drawn, tiny(), {"precision": "bfloat16"}, r"computation\.precision: float32, bfloat16"),
        (drawn.take(range(9)), tiny(), {}, r"data\.images: 70, 9"),
        (drawn.without_labels(), tiny(), {}, r"data\.labels_and_paths: \w+, \w+"),
    ):
        with pytest.raises(StoreMismatchError, match=line):
            run(images, tmp_path / "t", backbone, **options)
    assert contents(tmp_path / "t") == before
    assert len(run(drawn.take(range(9)), tmp_path / "t", overwrite=True)) == 9


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_halves_are_stored_in_half_and_stay_near(drawn, tmp_path, precision):
    exact = run(drawn, tmp_path / "exact").features
    near = run(drawn, tmp_path / "near", precision=precision).features
    assert near.dtype == np.float16
    np.testing.assert_allclose(near, exact, atol=0.1)


def test_every_pooling_has_its_shape(drawn, tmp_path):
    assert run(drawn, tmp_path / "a", pooling="average").features.shape == (N, 16)
    assert run(drawn, tmp_path / "p", pooling="patches").features.shape == (N, 4, 16)


def test_features_that_are_not_finite_are_refused(drawn, tmp_path):
    backbone = tiny()
    backbone.model.norm.weight.data.fill_(float("nan"))
    with pytest.raises(DegenerateError, match="not finite"):
        run(drawn, tmp_path / "t", backbone)


def test_images_in_memory_need_no_file(tmp_path):
    pictures = [np.full((20, 20, 3), shade, np.uint8) for shade in range(10)]
    table = run(from_dataset([(p, 0) for p in pictures], "shades"), tmp_path / "t")
    assert len(table) == 10


def test_nothing_to_do_and_no_device_are_said_clearly(drawn, tmp_path):
    with pytest.raises(DataError, match="0 images"):
        run(drawn.take([]), tmp_path / "t")
    with pytest.raises(DataError, match="'abacus' cannot be used"):
        usable("abacus")
    assert usable("cpu") == "cpu"
