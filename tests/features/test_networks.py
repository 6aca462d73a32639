"""Networks by name, with the parameters of a matching checkpoint, at any resolution."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

from justright.features.backbone import load_backbone
from justright.features.guarded_timm import timm
from justright.utils.errors import JustrightError
from justright.utils.files import home


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))


def test_another_resolution_interpolates_the_positions():
    model = timm.create_model("test_vit", num_classes=0).eval()
    file = home() / "test_vit.safetensors"
    home().mkdir()
    save_file(model.state_dict(), file)
    backbone = load_backbone("test_vit", checkpoint=file, img_size=96)
    model.set_input_size((96, 96))
    images = torch.randn(1, 3, 96, 96)
    torch.testing.assert_close(backbone(images), model(images), rtol=1e-4, atol=1e-5)


def test_checkpoint_of_another_network_raises():
    file = home() / "x.safetensors"
    home().mkdir()
    save_file(timm.create_model("test_vit2", num_classes=0).state_dict(), file)
    with pytest.raises(JustrightError, match="does not fit test_vit"):
        load_backbone("test_vit", checkpoint=file)
    with pytest.raises(JustrightError, match="no such checkpoint"):
        load_backbone("test_vit", checkpoint=file.with_name("y.safetensors"))
