from __future__ import annotations

import pytest
import torch

from justright.discovery.learner import in_chunks


@pytest.mark.parametrize("size", [1, 3, 7, 8, None])
def test_chunks_give_the_same_features_and_the_same_gradient(size, backbone):
    stored = backbone.prefix(torch.randn(7, 3, 16, 16, generator=torch.Generator().manual_seed(0)))
    parameters = list(backbone.tuned_parameters())
    expected = backbone.suffix(stored)
    found = in_chunks(backbone, stored, size)
    torch.testing.assert_close(found, expected)
    wanted = torch.autograd.grad(expected.pow(3).sum(), parameters)
    given = torch.autograd.grad(found.pow(3).sum(), parameters)
    for one, other in zip(given, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_no_more_rows_than_asked_go_through_at_once(backbone, monkeypatch):
    sizes, suffix = [], type(backbone).suffix
    monkeypatch.setattr(
        type(backbone), "suffix", lambda self, stored: sizes.append(len(stored[0])) or suffix(self, stored)
    )
    in_chunks(backbone, backbone.prefix(torch.randn(7, 3, 16, 16)), 3)
    assert sizes == [3, 3, 1]
