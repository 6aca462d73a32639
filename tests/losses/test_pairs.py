from __future__ import annotations

import torch
from tests.losses.batches import HALF

from justright.losses.pairs import pair_logits


def test_holds_cosines_over_the_temperature_and_minus_infinity_for_a_row_with_itself():
    logits = pair_logits(torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]]), 0.5)
    assert logits.tolist() == [[-torch.inf, 0, -2], [0, -torch.inf, 0], [-2, 0, -torch.inf]]


def test_autocast_does_not_lower_the_precision():
    rows = torch.randn(8, 32, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (rows @ rows.T).dtype == torch.bfloat16
        under_autocast = pair_logits(rows, 0.07)
    assert torch.equal(under_autocast, pair_logits(rows, 0.07))


def test_half_precision_goes_up_before_lengths_could_overflow():
    for dtype in HALF:
        logits = pair_logits(torch.full((2, 64), 60_000.0, dtype=dtype), 1.0)  # squared, far beyond float16
        assert torch.allclose(logits[0, 1], torch.tensor(1.0))
