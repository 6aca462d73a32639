from __future__ import annotations

import numpy as np
import pytest

from justright.geometry import evenly_spaced, row_chunks, row_norms, unit_rows


def test_chunks_concatenate_to_the_features():
    features = np.random.default_rng(0).normal(size=(11, 3))
    assert np.array_equal(np.concatenate(list(row_chunks(features, chunk_rows=4))), features)


def test_norms_of_half_precision_do_not_overflow():
    features = np.full((2, 100), 1000.0, dtype=np.float16)  # its square is 1e8; half precision ends at 65504
    assert row_norms(features) == pytest.approx([1e4, 1e4])


def test_unit_rows_have_length_one_and_keep_their_precision():
    features = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    unit = unit_rows(features)
    assert unit.dtype == np.float32
    assert np.linalg.norm(unit, axis=1) == pytest.approx(np.ones(5), abs=1e-6)


def test_unit_rows_keep_a_row_of_zeros():
    found = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float16))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("n_rows", "most", "places"), [(10, 4, [0, 3, 6, 9]), (3, 8, [0, 1, 2]), (5, 1, [0]), (0, 3, [])]
)
def test_evenly_spaced_rows_start_with_the_first(n_rows, most, places):
    assert evenly_spaced(n_rows, most).tolist() == places
