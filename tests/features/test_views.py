"""Views: drawn the same for any number of threads; workers of a bank give the same bytes as one process."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from tests.features.tiny_banks import ROWS, VIEWS, bank_of, noise, tiny
from tests.lost_workers import FAR_ENGINES, deadly

from justright.data import from_dataset
from justright.data.image_set import ImageSet, sent
from justright.data.transforms import ImageRecipe, Strong, Weak, draw_view, transform_named
from justright.features.bank import FreshViews, apply_prefix, draw_batch, draw_views, record_type
from justright.features.workers import tools
from justright.utils.context import use
from justright.utils.errors import BadImageError, JustrightError
from justright.utils.parallel import ENGINES

FEW = np.arange(7)
RECIPE = ImageRecipe(resolution=16, resize=20)
DRAW = partial(draw_views, Strong(), RECIPE, 3)


def files(root):
    return {path.name: path.read_bytes() for path in root.glob("*/*.block")}


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize("name", FAR_ENGINES)
def test_engine_is_byte_identical_with_a_killed_worker(drawn, tmp_path, name):
    here = bank_of(tmp_path / "here", drawn.take(FEW)).build()
    doomed = deadly(drawn.take(FEW), tmp_path / "marks")
    with ENGINES[name](1) as engine, use(engine=engine):
        there = bank_of(tmp_path / "there", doomed).build()
    assert (tmp_path / "marks" / "decoded").exists(), "no worker was killed"
    assert files(there.cache.root) == files(here.cache.root) != {}


def test_bad_image_raises_with_its_name(with_bad):
    images = with_bad.named_by([str(row) for row in range(len(with_bad))])
    row = images.paths.index("class0/003.png")
    with pytest.raises(BadImageError, match=r"class0/003\.png: not an image"):
        draw_batch(images.readers, DRAW, (sent(images, range(row, row + 1)), [0]))


def test_worker_with_other_versions_raises(drawn):
    images, backbone = drawn.take(FEW).with_ids(), tiny()
    layout = record_type(backbone.stored_names, backbone.stored_shapes, "float32")
    draw = partial(draw_views, transform_named("weak"), backbone.recipe, 0)
    views = draw_batch(images.readers, draw, (sent(images, range(2)), [0, 5]))
    here = tools(backbone.device)
    assert [len(records) for records in apply_prefix(backbone, layout, 3, here, views)] == [2, 2]
    with pytest.raises(JustrightError, match="a worker computes with"):
        apply_prefix(backbone, layout, 3, here | {"torch": "1.0"}, views)


def small_noise(n: int = 6) -> ImageSet:
    rng = np.random.default_rng(0)
    return from_dataset([(rng.integers(0, 256, (24, 30, 3), dtype=np.uint8), 0) for _ in range(n)], "noise").with_ids()


def test_drawn_views_do_not_depend_on_threads():
    images, rows, numbers = small_noise(), [5, 0, 5, 3], [0, 7, 1, 1 << 61]
    expected = [
        draw_view(images.image(row), Strong(), RECIPE, seed=3, image_id=images.ids[row], view=number)
        for row, number in zip(rows, numbers, strict=True)
    ]
    for n_threads in (0, 5):
        assert torch.equal(DRAW(images, rows, numbers, n_threads), torch.stack(expected))


def test_worker_draws_the_same_views():
    images = small_noise()
    first, second = draw_batch(images.readers, DRAW, (sent(images, np.array([1, 4])), [2, 9]))
    np.testing.assert_array_equal(first, DRAW(images, [1, 4], [2, 2]))
    np.testing.assert_array_equal(second, DRAW(images, [1, 4], [9, 9]))


def test_image_with_several_views_is_decoded_once(monkeypatch):
    images, decoded = small_noise(), []
    image = ImageSet.image
    monkeypatch.setattr(ImageSet, "image", lambda self, row: decoded.append(row) or image(self, row))
    DRAW(images, [1, 2, 1, 2], [0, 0, 1, 1], 2)
    assert sorted(decoded) == [1, 2]


@pytest.mark.parametrize("options", [{}, {"qk_norm": True}], ids=["exact last block", "last block"])
@pytest.mark.parametrize("transform", [Weak(), Strong()])
def test_bank_agrees_with_fresh_views(tmp_path, options, transform):
    backbone = tiny(**options)
    bank = bank_of(tmp_path, backbone=backbone, transform=transform).build()
    fresh = FreshViews(backbone, noise(), transform)
    for stored, computed in zip(bank.batch(ROWS, VIEWS), fresh.batch(ROWS, VIEWS), strict=True):
        torch.testing.assert_close(stored, computed, rtol=1e-5, atol=1e-6)


def test_training_from_the_bank_agrees_with_fresh_views(tmp_path):
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


def test_bad_images_raise_and_can_be_left_out(tmp_path, make_tree):
    from justright.data.folder import open_folder

    root = make_tree({"cats": 4})
    (root / "cats" / "1.png").write_bytes(b"no image")
    images = open_folder(root)
    bad = images.paths.index("cats/1.png")
    with pytest.raises(JustrightError, match=r"cats/1\.png: not an image"):
        bank_of(tmp_path / "bank", images).build()
    good = images.take([row for row in range(4) if row != bad])
    bank, fresh = bank_of(tmp_path / "bank", good).build(), FreshViews(tiny(), good)
    torch.testing.assert_close(
        bank.batch(np.arange(3), np.zeros(3, int)),
        fresh.batch(np.arange(3), np.zeros(3, int)),
        rtol=1e-5,
        atol=1e-6,
    )
