"""`justright extract` on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tests.cli.conftest import invoke

from justright.features import automatic
from justright.features.cache import Section
from justright.features.choices import BACKBONES
from justright.features.guarded_timm import timm
from justright.features.table import FeatureTable

BACKBONE = "test_vit"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    torch.manual_seed(0)
    file = tmp_path_factory.mktemp("checkpoint") / "tiny.safetensors"
    save_file(timm.create_model(BACKBONE, pretrained=False).state_dict(), file)
    return file


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))


@pytest.fixture
def call(checkpoint):
    def call(*words, backbone=BACKBONE, exit_code=0):
        options = ("--backbone", backbone, "--checkpoint", checkpoint, "--batch-size", 2)
        return invoke([*words, *options], exit_code).output

    return call


def test_features_of_a_folder_become_a_table(call, make_tree, tmp_path):
    photos = make_tree({"cats": 3, "dogs": 2})
    out = tmp_path / "features"
    assert "test_vit: 5 x 64 float32" in call("extract", photos, "--out", out)
    table = FeatureTable.open(out)
    assert table.classes == {0: "cats", 1: "dogs"}
    value = json.loads(call("extract", photos, "--out", out, "--json"))
    assert (value["images"], value["shape"], value["quarantined"]) == (5, [64], [])


def test_bad_images_are_shown(call, make_tree, tmp_path):
    photos = make_tree({"cats": 3})
    (photos / "cats" / "9.jpg").write_bytes(b"no picture")
    text = call("extract", photos, "--out", tmp_path / "t", "--max-bad", 0.5)
    assert "1 unreadable images" in text
    assert "cats/9.jpg" in text
    assert "not an image" in text
    text = call("extract", photos, "--out", tmp_path / "u", exit_code=1)
    assert "1 of 4 images of photos are bad" in text


def test_other_features_are_replaced_only_with_overwrite(call, make_tree, tmp_path):
    out = tmp_path / "t"
    call("extract", make_tree({"cats": 3}), "--out", out)
    text = call("extract", make_tree({"dogs": 2}, "more"), "--out", out, exit_code=1)
    assert "data.images: 3, 2" in text
    assert "--overwrite" in text
    call("extract", make_tree({"dogs": 2}, "more"), "--out", out, "--overwrite")
    assert len(FeatureTable.open(out)) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "no such file or folder: nowhere"),
        (["{photos}", "--device", "abacus"], "the device 'abacus' cannot be used"),
    ],
)
def test_user_errors_show_one_message(call, make_tree, tmp_path, words, message):
    photos = make_tree({"cats": 1})
    words = [word.format(photos=photos) for word in words]
    text = call("extract", *words, "--out", tmp_path / "t", exit_code=1)
    assert text.startswith("Error: ")
    assert message in text


def test_extract_chooses_a_backbone_and_a_started_store_keeps_it(make_tree, tmp_path, monkeypatch):
    photos, out = make_tree({"cats": 3}), str(tmp_path / "t")
    for name in ("glyph_vit", "dinov2_vitb14"):
        monkeypatch.setattr(automatic, "choose_backbone", lambda _, name=name: automatic.Choice(name, "told so"))
        done = invoke(["extract", str(photos), "--out", out])
        assert FeatureTable.open(out).header.backbone["name"] == "glyph_vit"
    assert "Network: glyph_vit (as before)." in done.output


def test_own_features_in_the_place_of_the_output_raise(call, make_tree, tmp_path):
    FeatureTable.of(np.ones((3, 4), np.float32)).write(tmp_path / "clip.features")
    text = call("extract", make_tree({"cats": 1}), "--out", tmp_path / "clip.features", exit_code=1)
    assert "holds other features" in text


def test_unknown_backbone_raises(call, make_tree, tmp_path):
    text = call("extract", make_tree({"cats": 1}), "--out", tmp_path / "t", backbone="vit_nonsense", exit_code=1)
    assert "no backbone is called 'vit_nonsense'" in text


def test_unwritable_output_raises(call, make_tree, tmp_path):
    (tmp_path / "file").write_text("in the way")
    text = call("extract", make_tree({"cats": 1}), "--device", "cpu", "--out", tmp_path / "file" / "t", exit_code=1)
    assert text.strip().startswith("Error: ")
    assert "Not a directory" in text


def test_interrupt_keeps_finished_files(call, make_tree, tmp_path, monkeypatch):
    photos = make_tree({"cats": 40})

    added, add = [], Section.add

    def stop(section, ids, rows):
        if added:
            raise KeyboardInterrupt
        added.extend(ids)
        add(section, ids, rows)

    monkeypatch.setattr(Section, "add", stop)
    assert "Stopped." in call("extract", photos, "--out", tmp_path / "t", "--no-cache", exit_code=130)
    monkeypatch.setattr(Section, "add", add)
    assert Section(tmp_path / "t" / "parts").holds(np.array(added)).all()
    call("extract", photos, "--out", tmp_path / "t", "--no-cache")
    assert len(FeatureTable.open(tmp_path / "t")) == 40


def test_help_lists_every_backbone(call):
    message = call("extract", "--help")
    for name in BACKBONES:
        assert f"\n  {name} " in message


@pytest.mark.usefixtures("forked_workers")
def test_another_engine_and_an_address_give_the_same_features(call, make_tree, tmp_path):
    photos = make_tree({"cats": 3, "dogs": 2})
    call("extract", photos, "--out", tmp_path / "here", "--no-cache")
    there = f"memory://{tmp_path.name}/features"
    message = call("extract", photos, "--out", there, "--engine", "processes", "--workers", 1, "--no-cache")
    assert f"written to {there}" in message
    tables = FeatureTable.open(tmp_path / "here"), FeatureTable.open(there)
    assert tables[0].features.tobytes() == np.asarray(tables[1].features).tobytes()
