"""Extraction: one feature for each image, in order, and no store replaced by accident."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.features.tiny_extraction import N, contents, run, tiny

from justright.data.image_set import ImageSet
from justright.data.objects import from_dataset
from justright.data.opening import open_images
from justright.features.cache import FeatureCache
from justright.features.store import StoreMismatchError
from justright.utils.errors import DataError


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


def test_index_opens_as_images(drawn, tmp_path):
    run(drawn, tmp_path / "t")
    again = open_images(tmp_path / "t" / "index.parquet")
    assert again.image(3).tobytes() == drawn.image(3).tobytes()


def test_finished_store_is_opened_without_computing(drawn, tmp_path):
    run(drawn, tmp_path / "t")
    backbone = tiny()
    assert len(run(drawn, tmp_path / "t", backbone)) == N
    assert backbone.n_batches == 0


def test_cache_ignores_ids_of_a_manifest(drawn, tmp_path):
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


def test_other_settings_raise_with_the_difference(drawn, tmp_path):
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


def test_images_in_memory_need_no_file(tmp_path):
    pictures = [np.full((20, 20, 3), shade, np.uint8) for shade in range(10)]
    table = run(from_dataset([(p, 0) for p in pictures], "shades"), tmp_path / "t")
    assert len(table) == 10


def test_extracting_no_images_raises(drawn, tmp_path):
    with pytest.raises(DataError, match="0 images"):
        run(drawn.take([]), tmp_path / "t")


def test_other_network_raises_before_images_are_read(drawn, tmp_path, monkeypatch):
    run(drawn, tmp_path / "f")
    monkeypatch.setattr(ImageSet, "content_column", lambda *_, **__: pytest.fail("images are read"))
    with pytest.raises(StoreMismatchError, match="pooling"):
        run(drawn, tmp_path / "f", pooling="average")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(DataError, match="is no feature store"):
        run(drawn, tmp_path / "other")
