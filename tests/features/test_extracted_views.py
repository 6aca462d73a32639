"""Plain views that extraction leaves for a bank: computed once, and nobody can tell who computed them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.features.tiny_banks import noise, tiny

from justright.data import ImageSet
from justright.data.folder import open_folder
from justright.features.backbone import Backbone
from justright.features.bank import open_views
from justright.features.cache import FeatureCache, KeptBanks, digests
from justright.features.extract import extract
from justright.features.extracted_views import ExtractedViews
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


def shards(bank):
    return {path.name: path.read_bytes() for path in bank.directory.glob("rows*")}


@pytest.fixture
def alone(tmp_path):
    """The bank as it comes out without extraction."""
    return shards(plain(tiny(), noise(N), tmp_path / "alone", shard_bytes=4000))


def test_what_extraction_computed_the_bank_takes_to_the_byte(backbone, tmp_path, alone):
    extract(noise(N), backbone, tmp_path / "features", banks=tmp_path / "banks")
    backbone.n_seen = 0
    bank = plain(backbone, noise(N), tmp_path / "banks", shard_bytes=4000)
    assert backbone.n_seen == 0
    assert shards(bank) == alone
    assert len(alone) > 3
    assert list(tmp_path.glob("banks/[!.]*")) == [bank.directory], "what was staged is gone"


def test_features_are_the_same_bytes_with_and_without_views(backbone, tmp_path):
    with_views = extract(noise(N), backbone, tmp_path / "with", banks=tmp_path / "banks")
    without = extract(noise(N), backbone, tmp_path / "without")
    assert np.array_equal(with_views.features, without.features)
    assert with_views.header == without.header


def test_only_what_is_missing_is_computed(backbone, tmp_path, alone):
    cache = FeatureCache(tmp_path / "cache")
    extract(noise(10), backbone, tmp_path / "before", cache=cache)  # features without views, as `extract` leaves them
    extract(noise(N), backbone, tmp_path / "features", cache=cache, banks=tmp_path / "banks")
    staged = ExtractedViews(backbone, tmp_path / "banks")
    assert staged.holds(digests(noise(N).content_ids())).sum() == N - 10
    seen = []

    def noted(steps, total, what):
        if not what.startswith("hashing"):
            seen.append((what, total))
        return iter(steps)

    with use(progress=noted):
        bank = plain(backbone, noise(N), tmp_path / "banks", shard_bytes=4000)
    assert seen == [("computing plain views", 10)]
    assert shards(bank) == alone


def test_a_damaged_or_lost_file_is_computed_again(backbone, tmp_path, alone, caplog):
    for start in (0, 20):
        images = noise(N).take(range(start, start + 20))
        extract(images, backbone, tmp_path / str(start), banks=tmp_path / "banks")
    staged = ExtractedViews(backbone, tmp_path / "banks")
    first, _ = sorted(staged.folder.glob("*.ids.npy"))
    damaged = first.with_name(first.name.replace(".ids", ""))
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    assert shards(plain(backbone, noise(N), tmp_path / "banks", shard_bytes=4000)) == alone
    assert "is damaged" in caplog.text


def test_a_bank_that_is_there_already_leaves_nothing_staged(backbone, tmp_path):
    bank = plain(backbone, noise(N), tmp_path / "banks")
    extract(noise(N), backbone, tmp_path / "features", banks=tmp_path / "banks")
    assert len(list(tmp_path.glob("banks/[!.]*"))) == 2
    plain(backbone, noise(N), tmp_path / "banks")
    assert list(tmp_path.glob("banks/[!.]*")) == [bank.directory]


def test_nothing_stays_of_images_that_were_computed_twice(backbone, tmp_path):
    """As after a kill between the views of a shard and its features."""
    for n in (20, N):
        extract(noise(n), backbone, tmp_path / str(n), banks=tmp_path / "banks")
    bank = plain(backbone, noise(N), tmp_path / "banks")
    assert list(tmp_path.glob("banks/[!.]*")) == [bank.directory]


def test_views_of_images_that_another_bank_needs_stay(backbone, tmp_path):
    extract(noise(N), backbone, tmp_path / "features", banks=tmp_path / "banks")
    plain(backbone, noise(N).take(range(5)), tmp_path / "banks")
    assert ExtractedViews(backbone, tmp_path / "banks").holds(digests(noise(N).content_ids())).all()


def test_bad_images_leave_no_view(make_tree, backbone, tmp_path):
    root = make_tree({"cats": 6})
    (root / "cats" / "1.png").write_bytes(b"no image")
    images = open_folder(root)
    table = extract(images, backbone, tmp_path / "features", banks=tmp_path / "banks", max_bad=0.5)
    good = ImageSet(images.table, images.readers).take([row for row in range(6) if images.paths[row] != "cats/1.png"])
    backbone.n_seen = 0
    assert len(plain(backbone, good, tmp_path / "banks").images) == len(table) == 5
    assert backbone.n_seen == 0


def test_a_bad_image_among_cached_ones_does_not_end_a_second_extraction(make_tree, backbone, tmp_path):
    root = make_tree({"cats": 6})
    (root / "cats" / "1.png").write_bytes(b"no image")
    cache, how = FeatureCache(tmp_path / "cache"), {"banks": tmp_path / "banks", "max_bad": 0.5}
    tables = [extract(open_folder(root), backbone, tmp_path / name, cache=cache, **how) for name in ("one", "two")]
    assert np.array_equal(*(table.features for table in tables))
    assert tables[1].quarantined == tables[0].quarantined


def test_bad_images_alone_are_refused_by_name(make_tree, backbone, tmp_path):
    root = make_tree({"cats": 2})
    for file in root.rglob("*.png"):
        file.write_bytes(b"no image")
    with pytest.raises(DataError, match="no image of photos can be read, 2 of 2 are bad"):
        extract(open_folder(root), backbone, tmp_path / "features", banks=tmp_path / "banks", max_bad=1.0)


def test_staged_views_are_listed_and_cleared_with_banks(backbone, tmp_path):
    extract(noise(N), backbone, tmp_path / "features", banks=tmp_path / "banks")
    (listed,) = KeptBanks(tmp_path / "banks").all()
    assert (listed["backbone"], listed["transform"], listed["views"]) == ("tiny", "plain", 0)
    assert KeptBanks(tmp_path / "banks").clear("tiny") > 0
    assert not any(tmp_path.glob("banks/[!.]*"))


def test_another_network_does_not_meet_them(backbone, tmp_path):
    extract(noise(N), backbone, tmp_path / "features", banks=tmp_path / "banks")
    other = tiny()
    with torch.no_grad():
        other.model.cls_token.add_(1)
    assert not ExtractedViews(other, tmp_path / "banks").folder.exists()
    tuned = tiny()
    with torch.no_grad():
        next(tuned.tuned_parameters()).add_(1)
    assert ExtractedViews(tuned, tmp_path / "banks").folder.exists()
