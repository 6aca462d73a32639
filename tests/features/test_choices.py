"""What an extraction can be asked for by name."""

from __future__ import annotations

import subprocess
import sys

from justright.data.transforms import ImageRecipe
from justright.features import embedded
from justright.features.choices import BACKBONES
from justright.features.guarded_timm import timm


def test_every_named_backbone_is_known_to_timm():
    for name, what in BACKBONES.items():
        assert timm.is_model(what.architecture.partition(".")[0]), name


def test_preprocessing_follows_the_field_unless_the_network_differs():
    assert ImageRecipe(**BACKBONES["dinov2_vitb14"].recipe) == ImageRecipe()
    assert ImageRecipe(**BACKBONES["efficientnet_lite1"].recipe).resolution == 240
    assert ImageRecipe(**BACKBONES["glyph_vit"].recipe) == embedded.RECIPE


def test_names_and_descriptions_are_known_without_torch():
    code = "import sys, justright.features.choices as c; print(*map(c.BACKBONES.about, c.BACKBONES), *sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "DINOv2, small" in said
    assert "torch" not in said.split()
