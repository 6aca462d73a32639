"""Names of backbones."""

from __future__ import annotations

import subprocess
import sys

from justright.data.transforms import ImageRecipe
from justright.features import embedded
from justright.features.choices import BACKBONES
from justright.features.guarded_timm import timm


def test_every_named_backbone_is_known_to_timm():
    for name, spec in BACKBONES.items():
        assert timm.is_model(spec.architecture.partition(".")[0]), name


def test_recipes_are_the_default_unless_the_network_has_its_own():
    assert ImageRecipe(**BACKBONES["dinov2_vitb14"].recipe) == ImageRecipe()
    assert ImageRecipe(**BACKBONES["efficientnet_lite1"].recipe).resolution == 240
    assert ImageRecipe(**BACKBONES["glyph_vit"].recipe) == embedded.RECIPE


def test_names_and_descriptions_are_known_without_torch():
    code = "import sys, justright.features.choices as c; print(*map(c.BACKBONES.about, c.BACKBONES), *sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "DINOv2, small" in out
    assert "torch" not in out.split()
