"""The network of an extraction: precision, pooling, threads and device."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.features.tiny_extraction import N, contents, run

from justright.data.transforms import ImageRecipe
from justright.features.automatic import usable
from justright.features.backbone import Backbone
from justright.features.guarded_timm import timm
from justright.utils.errors import DataError


def test_conv_net_runs_in_several_threads(drawn, tmp_path):
    torch.manual_seed(0)
    net = Backbone(timm.create_model("test_resnet", pretrained=False, num_classes=0), "conv", ImageRecipe(32, 32))
    run(drawn, tmp_path / "0", net)
    run(drawn, tmp_path / "4", net, n_workers=4)
    assert contents(tmp_path / "0") == contents(tmp_path / "4")


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_is_stored_in_half_and_stays_close(drawn, tmp_path, precision):
    exact = run(drawn, tmp_path / "exact").features
    near = run(drawn, tmp_path / "near", precision=precision).features
    assert near.dtype == np.float16
    np.testing.assert_allclose(near, exact, atol=0.1)


def test_every_pooling_has_its_shape(drawn, tmp_path):
    assert run(drawn, tmp_path / "a", pooling="average").features.shape == (N, 16)
    assert run(drawn, tmp_path / "p", pooling="patches").features.shape == (N, 4, 16)


def test_missing_device_raises():
    with pytest.raises(DataError, match="'abacus' cannot be used"):
        usable("abacus")
    assert usable("cpu") == "cpu"
