"""Plain views that extraction keeps for banks: computed once, with the same bytes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.features.tiny_banks import noise, tiny

from justright.data import ImageSet
from justright.data.folder import open_folder
from justright.features.backbone import Backbone
from justright.features.bank import open_views
from justright.features.cache import FeatureCache, KeptBanks
from justright.features.extract import extract
from justright.utils.context import use
from justright.utils.errors import DataError

N = 40


class CountingBackbone(Backbone):
    """Counts the images that go through its prefix."""

    n_seen = 0

    def prefix(self, images):
        self.n_seen += len(images)
        return super().prefix(images)


@pytest.fixture
def backbone():
    made = tiny()
    made.__class__ = CountingBackbone
    return made


def plain(backbone, images, root, **options):
    return open_views(backbone, images, root, views=1, transform="plain", precision="float32", **options)


def records(bank):
    return [part.numpy().tobytes() for part in bank.batch(np.arange(N), np.zeros(N, int))]


@pytest.fixture
def alone(tmp_path):
    """The bank without extraction."""
    return records(plain(tiny(), noise(N), tmp_path / "alone"))


def test_bank_uses_the_views_of_extraction_to_the_byte(backbone, tmp_path, alone):
    extract(noise(N), backbone, tmp_path / "features", banks=tmp_path / "banks")
    backbone.n_seen = 0
    assert records(plain(backbone, noise(N), tmp_path / "banks")) == alone
    assert backbone.n_seen == 0


def test_keeping_views_changes_no_byte_of_the_features(backbone, tmp_path):
    with_views = extract(noise(N), backbone, tmp_path / "with", banks=tmp_path / "banks")
    without = extract(noise(N), backbone, tmp_path / "without")
    assert np.array_equal(with_views.features, without.features)
    assert with_views.header == without.header


def test_bank_computes_only_views_that_extraction_lacks(backbone, tmp_path, alone):
    cache = FeatureCache(tmp_path / "cache")
    extract(noise(10), backbone, tmp_path / "before", cache=cache)  # features without views, as `extract` leaves them
    extract(noise(N), backbone, tmp_path / "features", cache=cache, banks=tmp_path / "banks")
    seen = []

    def progress(steps, total, what):
        seen.extend([(what, total)] * what.startswith("computing"))
        return iter(steps)

    with use(progress=progress):
        bank = plain(backbone, noise(N), tmp_path / "banks")
    assert seen == [("computing plain views", 10)]
    assert records(bank) == alone


def test_damaged_block_is_recomputed(backbone, tmp_path, alone, caplog):
    for start in (0, 20):
        images = noise(N).take(range(start, start + 20))
        extract(images, backbone, tmp_path / str(start), banks=tmp_path / "banks")
    damaged, _ = sorted(tmp_path.glob("banks/*/*.block"))
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    assert records(plain(backbone, noise(N), tmp_path / "banks")) == alone
    assert "is damaged" in caplog.text


def test_bad_images_leave_no_view(make_tree, backbone, tmp_path):
    root = make_tree({"cats": 6})
    (root / "cats" / "1.png").write_bytes(b"no image")
    images = open_folder(root)
    table = extract(images, backbone, tmp_path / "features", banks=tmp_path / "banks", max_bad=0.5)
    good = ImageSet(images.table, images.readers).take([row for row in range(6) if images.paths[row] != "cats/1.png"])
    backbone.n_seen = 0
    assert len(plain(backbone, good, tmp_path / "banks").images) == len(table) == 5
    assert backbone.n_seen == 0


def test_second_extraction_from_the_cache_allows_bad_images(make_tree, backbone, tmp_path):
    root = make_tree({"cats": 6})
    (root / "cats" / "1.png").write_bytes(b"no image")
    cache, how = FeatureCache(tmp_path / "cache"), {"banks": tmp_path / "banks", "max_bad": 0.5}
    tables = [extract(open_folder(root), backbone, tmp_path / name, cache=cache, **how) for name in ("one", "two")]
    assert np.array_equal(*(table.features for table in tables))
    assert tables[1].quarantined == tables[0].quarantined


def test_only_bad_images_raise_with_the_name_of_the_source(make_tree, backbone, tmp_path):
    root = make_tree({"cats": 2})
    for file in root.rglob("*.png"):
        file.write_bytes(b"no image")
    with pytest.raises(DataError, match="no image of photos can be read, 2 of 2 are bad"):
        extract(open_folder(root), backbone, tmp_path / "features", banks=tmp_path / "banks", max_bad=1.0)


def test_views_depend_on_the_frozen_network_only(backbone, tmp_path):
    extract(noise(N), backbone, tmp_path / "features", banks=tmp_path / "banks")
    tuned = tiny()
    with torch.no_grad():
        next(tuned.tuned_parameters()).add_(1)
    plain(tuned, noise(N), tmp_path / "banks")
    assert len(KeptBanks(tmp_path / "banks").sections()) == 1
    other = tiny()
    with torch.no_grad():
        other.model.cls_token.add_(1)
    plain(other, noise(N), tmp_path / "banks")
    assert len(KeptBanks(tmp_path / "banks").sections()) == 2
