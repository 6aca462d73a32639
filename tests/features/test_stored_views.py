"""Views after the frozen prefix, stored or drawn anew."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.features.tiny_banks import ROWS, VIEWS, bank_of, noise, tiny

from justright.data.transforms import Strong, Weak
from justright.features.stored_views import FreshViews
from justright.utils.errors import JustrightError


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
    good = images.take([row for row in range(4) if row != bad])
    bank, fresh = bank_of(tmp_path / "bank", good).build(), FreshViews(tiny(), good)
    torch.testing.assert_close(
        bank.batch(np.arange(3), np.zeros(3, int)),
        fresh.batch(np.arange(3), np.zeros(3, int)),
        rtol=1e-5,
        atol=1e-6,
    )
