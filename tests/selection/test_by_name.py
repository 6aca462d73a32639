from __future__ import annotations

from justright.selection.by_name import choosing_selectors, selector_of


def test_a_selector_takes_k_and_the_seed_where_it_has_use_for_them():
    selector = selector_of("bins", {"n_bins": 3}, seed=5, n_clusters=7)
    params = selector.get_params()
    assert (params["n_bins"], params["n_clusters"], params["seed"]) == (3, 7, 5)
    assert selector_of("beta", {}, seed=5, n_clusters=7).get_params()["alpha"] == 5.0


def test_those_that_only_serve_to_compare_do_not_choose():
    assert choosing_selectors() == ["cui", "bins", "beta"]
