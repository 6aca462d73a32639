from __future__ import annotations

import torch
from tests.features.tiny_extraction import tiny

from justright.data import open_images
from justright.features.speed import try_out


def test_an_image_and_a_step_take_some_time_and_nothing_is_changed(make_tree):
    backbone, threads = tiny(), torch.get_num_threads()
    before = backbone.fingerprint
    image, step = try_out(backbone, open_images(make_tree({"cats": 5})), seconds=0.01)
    assert 0 < image < 60
    assert 0 < step < 60
    assert backbone.fingerprint == before
    assert all(parameter.grad is None for parameter in backbone.tuned_parameters())
    assert torch.get_num_threads() == threads


def test_images_that_cannot_be_read_are_passed_over(make_tree):
    folder = make_tree({"cats": 3})
    (folder / "cats" / "0.png").write_bytes(b"no picture")
    assert try_out(tiny(), open_images(folder), seconds=0.01)[0] > 0
    for file in (folder / "cats").iterdir():
        file.write_bytes(b"no picture")
    assert try_out(tiny(), open_images(folder), seconds=0.01) == (0.0, 0.0)
