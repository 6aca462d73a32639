from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open

from justright.data.catalog.glyphs import classes_of
from justright.features.backbone import load_backbone
from justright.features.checkpoints import find_checkpoint
from justright.features.cuts import ClassTokenCut
from justright.features.embedded import HELD_OUT, TRAINED_ON, centered, contrast
from justright.utils.errors import JustrightError

MAX_BYTES = 8_000_000


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("glyph_vit")


def test_glyph_vit_uses_the_exact_last_block(backbone):
    assert isinstance(backbone.cut, ClassTokenCut)
    images = torch.randn(2, 3, 64, 64)
    whole = backbone.model(images)
    assert torch.allclose(backbone(images), whole, atol=1e-5)
    assert whole.shape == (2, backbone.dim)


def test_file_is_small_and_lists_its_training_classes():
    file = find_checkpoint("glyph_vit")
    assert file.stat().st_size < MAX_BYTES
    with safe_open(file, "pt") as opened:
        listed = set(json.loads(opened.metadata()["trained_on"]))
    assert listed == {glyph.name for glyph in classes_of(*TRAINED_ON)}


def test_held_out_scripts_are_not_trained_on():
    assert {"armenian", "georgian"} <= set(HELD_OUT)
    assert not set(HELD_OUT) & set(TRAINED_ON)


def drawn(background, ink, shift=0):
    image = torch.ones(1, 3, 64, 64) * torch.tensor(background)[None, :, None, None]
    image[:, :, 20 + shift : 40 + shift, 25 + shift : 30 + shift] = torch.tensor(ink)[None, :, None, None]
    return image


def test_contrast_ignores_the_colors_of_ink_and_paper():
    dark, light = drawn([1.0, 1.0, 1.0], [0.0, 0.1, 0.0]), drawn([0.1, 0.0, 0.2], [0.9, 0.8, 0.3])
    assert torch.allclose(contrast(dark), contrast(light), atol=1e-2)


def test_centering_ignores_the_position_of_the_ink():
    here, there = (centered(contrast(drawn([1.0] * 3, [0.0] * 3, shift)), 32) for shift in (0, 12))
    assert torch.allclose(here, there, atol=0.1)
    assert here.max() > 0.5


def test_empty_page_gives_a_finite_feature(backbone):
    assert torch.isfinite(backbone(torch.zeros(1, 3, 64, 64))).all()


def test_other_image_sizes_give_similar_features(backbone):
    large = load_backbone("glyph_vit", img_size=96)
    image = drawn([1.0] * 3, [0.0] * 3)
    resized = torch.nn.functional.interpolate(image, size=96, mode="bilinear")
    assert torch.cosine_similarity(backbone(image), large(resized)).item() > 0.8
    assert large.stored_shapes != backbone.stored_shapes


def test_size_not_divisible_by_patches_raises_with_advice():
    with pytest.raises(JustrightError, match=r"images of 70 pixels for glyph_vit(.|\n)*--img-size 64"):
        load_backbone("glyph_vit", img_size=70)
