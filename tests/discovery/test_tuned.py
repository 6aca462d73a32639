from __future__ import annotations

import numpy as np
import torch
from tests.discovery.tiny import data_of

from justright.discovery import tuned
from justright.discovery.tuned import features_of, own_copy
from justright.features.bank import open_views


def test_a_copy_shares_what_is_frozen_and_owns_what_is_tuned(backbone):
    copied = own_copy(backbone)
    before = backbone.fingerprint
    for mine, other in zip(copied.model.parameters(), backbone.model.parameters(), strict=True):
        assert (mine is other) == (not other.requires_grad)
        assert mine.requires_grad == other.requires_grad
        if mine.requires_grad:
            mine.data += 1
    assert backbone.fingerprint == before
    assert copied.prefix_fingerprint == backbone.prefix_fingerprint
    images = torch.randn(2, 3, 16, 16)
    assert not torch.allclose(copied(images), backbone(images))


def test_features_are_those_of_the_test_transform_in_the_order_of_the_images(split, backbone, bank, monkeypatch):
    images = data_of(split).images
    plain = open_views(backbone, images, bank, transform="plain", views=1, precision="float32")
    batch = torch.stack([backbone.recipe.preprocess(np.array(images.image(row))) for row in range(len(images))])
    with torch.no_grad():
        expected = backbone(batch).numpy()
    for n_rows in (256, 7):
        monkeypatch.setattr(tuned, "FEATURE_ROWS", n_rows)
        np.testing.assert_allclose(features_of(backbone, plain, len(images)), expected, rtol=1e-3, atol=1e-4)
