import numpy as np

from justright.clustering import arrays


def test_sums_by_group_agree_with_loops(monkeypatch):
    monkeypatch.setattr(arrays, "_SUM_ROWS", 7)
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=(30, 4)).astype(np.float32), rng.integers(5, size=30)
    total = arrays.sum_by_group(x, group, 6)
    assert total.dtype == np.float64
    np.testing.assert_allclose(total, [x[group == k].sum(axis=0) for k in range(6)], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(arrays.squared_norms(x), [row @ row for row in x], rtol=1e-5)


def test_blocks_cover_every_row_once(monkeypatch):
    monkeypatch.setattr(arrays, "_BLOCK_NUMBERS", 20)
    blocks = list(arrays.row_blocks(11, 5))
    assert [row for block in blocks for row in range(11)[block]] == list(range(11))
    assert all(block.stop - block.start <= 4 for block in blocks)
    assert len(list(arrays.row_blocks(3, 1000))) == 3
