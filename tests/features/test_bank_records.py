"""One stored view as one record."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.features.tiny_banks import ROWS, VIEWS, bank_of, tiny

from justright.errors import JustrightError
from justright.features.bank_records import record_type


@pytest.mark.parametrize(("precision", "tolerance"), [("float16", 1e-3), ("int8", 2e-2)])
def test_fewer_bits_stay_close(tmp_path, precision, tolerance):
    exact = bank_of(tmp_path).build().batch(ROWS, VIEWS)
    given = bank_of(tmp_path, precision=precision).build().batch(ROWS, VIEWS)
    assert (given[0] - exact[0]).abs().max() <= tolerance * exact[0].abs().max()
    torch.testing.assert_close(given[1], exact[1], rtol=1e-5, atol=1e-6)  # x_0 is small and keeps its bits
    assert all(part.dtype == torch.float32 for part in given)


def test_int8_is_rounding_by_one_scale_a_token(tmp_path):
    exact = bank_of(tmp_path).build().batch(ROWS, VIEWS)[0]
    scale = exact.abs().amax(dim=-1, keepdim=True) / 127
    expected = (exact / scale).round() * scale
    given = bank_of(tmp_path, precision="int8").build().batch(ROWS, VIEWS)[0]
    assert ((given - expected).abs() <= 1e-5 + (given != expected) * scale).all()  # a tie may round either way
    assert ((given - expected).abs() < 1e-5).double().mean() > 0.98


def test_a_view_of_vit_b_takes_395_kilobytes_in_float16_and_half_of_it_in_int8():
    shapes = ((257, 768), (768,))
    assert record_type(("n", "x_0"), shapes, "float16").itemsize == 257 * 768 * 2 + 768 * 4
    assert record_type(("n", "x_0"), shapes, "int8").itemsize == 257 * 768 + 257 * 4 + 768 * 4


def test_float16_that_overflows_is_refused(tmp_path):
    backbone = tiny(qk_norm=True)
    backbone.model.blocks[0].mlp.fc2.weight.data.mul_(1e7)
    with pytest.raises(JustrightError, match="too large for float16"):
        bank_of(tmp_path, backbone=backbone, precision="float16").build()


def test_a_damaged_shard_is_named(tmp_path):
    bank = bank_of(tmp_path).build()
    np.save(bank.directory / "rows000000-view000-round0000.npy", np.zeros(3))
    with pytest.raises(JustrightError, match="another layout"):
        bank_of(tmp_path).batch(np.array([0]), np.array([0]))
    with pytest.raises(JustrightError, match="0 to 2"):
        bank.batch(np.array([0]), np.array([3]))
