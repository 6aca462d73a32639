"""A forward pass that ends at a module, in one thread only."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from justright.features.cuts import arguments_at, make_stoppable


class Network(nn.Module):
    """Two layers; the second takes more arguments than the tensor."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), Scaled()

    def forward_features(self, x):
        return self.second(self.first(x), "more", scale=3)


class Scaled(nn.Module):
    def forward(self, x, word, scale):
        return scale * x


@pytest.fixture
def network():
    network = Network()
    make_stoppable(network.second)
    return network


def test_arguments_at_returns_the_arguments_of_the_module(network):
    x = torch.ones(1, 2)
    tensor, word, named = arguments_at(network, network.second, x)
    assert torch.equal(tensor, network.first(x))
    assert (word, named) == ("more", {"scale": 3})


def test_other_threads_run_the_whole_network(network):
    x = torch.ones(1, 2)
    arguments_at(network, network.second, x)
    assert torch.equal(network.forward_features(x), 3 * network.first(x))
    with ThreadPoolExecutor(4) as threads:
        stopped = threads.map(lambda _: len(arguments_at(network, network.second, x)), range(40))
        through = threads.map(lambda _: network.forward_features(x).shape, range(40))
        assert set(stopped) == {3}
        assert set(through) == {(1, 2)}


def test_module_that_never_runs_raises(network):
    with pytest.raises(RuntimeError, match="never runs"):
        arguments_at(network, nn.Identity(), torch.ones(1, 2))
