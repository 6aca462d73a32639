from __future__ import annotations

import pytest

from justright.benchmark.suite import MAIN_POOL, grid
from justright.utils.errors import DataError

SHARED = {"none": {"selector": "none"}, "bins": {"selector": "bins", "selector_params": {"n_bins": 2}}}
PROFILE = {
    "seeds": [0, 1],
    "run": {"backbone": "glyph_vit"},
    "settings": {"n_epochs": 3},
    "methods": {"xcon": {"n_experts": 2}},
    "problem": {"classes": 6},
    "sets": {
        "cub": {"name": "armenian", "source": "A", "settings": {"entropy_scale": 1.0}, "near": "N"},
        "dogs": {"name": "lao", "source": "L"},
        "insects": {"name": "dots", "source": "D"},
    },
    "subsets": {"original": {}, "similar": {"labels": ["rest", "{near}"], "needs": ["near"]}},
}
TABLE = {
    "about": "t",
    "targets": ["cub", "dogs"],
    "labeled": "all",
    "methods": ["kmeans", "xcon"],
    "rows": list(SHARED),
}


def test_grid_has_every_method_and_row_and_kmeans_once():
    made = grid(TABLE, SHARED, PROFILE)
    assert [each["name"] for each in made["settings"]] == [
        *("kmeans: none", "xcon: none", "xcon: bins"),
        *("xcon: none, as a guide", "xcon: bins, as a guide"),
    ]
    plain, _, bins, _, guide = (each["run"] for each in made["settings"])
    assert plain["settings"] == {"use_labels": False, "directions": "never"}
    assert bins["settings"] == {"n_epochs": 3, "n_experts": 2}
    assert bins["selector_params"] == {"n_bins": 2}
    assert (bins["pool_role"], bins["select_labeled"]) == ("rival", True)
    assert (guide["pool_role"], guide["select_labeled"]) == ("guide", False)


def test_pool_is_every_other_data_set_by_the_protocol():
    cub, dogs = grid(TABLE, SHARED, PROFILE)["problems"]
    assert cub["pool"] == {"lao": "L", "dots": "D"}
    assert dogs["pool"] == {"armenian": "A", "dots": "D"}
    assert cub["pool_by_protocol"]
    assert (cub["target"], cub["classes"], cub["settings"]) == ("A", 6, {"entropy_scale": 1.0})
    assert "insects" in MAIN_POOL


def test_own_labels_have_no_pool_and_no_guide():
    made = grid({**TABLE, "labeled": "own"}, SHARED, PROFILE)
    assert all("pool" not in each for each in made["problems"])
    assert {each["run"].get("pool_role") for each in made["settings"]} == {None, "rival"}


def test_subsets_become_separate_problems():
    made = grid({**TABLE, "labeled": "subsets", "rows": ["original", "similar"]}, SHARED, PROFILE)
    assert [each["name"] for each in made["problems"]] == [
        *("armenian, original labels", "armenian, similar labels", "lao, original labels"),
    ]
    assert made["problems"][1]["labels"] == ["rest", "N"]
    by_name = {each["name"]: each.get("problems") for each in made["settings"]}
    assert by_name["xcon: similar"] == ["armenian, similar labels"]
    assert by_name["kmeans: none"] == ["armenian, original labels", "lao, original labels"]
    assert made["columns"]["armenian, similar labels"] == "cub"


def test_only_pool_labels_have_a_role():
    far = {"old_share": 0.0, "pool": {"dots": "D"}}
    profile = {**PROFILE, "subsets": {"original": {}, "far": far}}
    made = grid({**TABLE, "labeled": "subsets", "rows": ["original", "far"]}, SHARED, profile)
    names = [each["name"] for each in made["settings"]]
    assert names == ["kmeans: none", "xcon: original", "xcon: far", "xcon: far, as a guide"]


def test_missing_targets_are_skipped_and_unknown_rows_rejected():
    made = grid({**TABLE, "targets": ["cars", "cub"]}, SHARED, PROFILE)
    assert list(made["columns"].values()) == ["cub"]
    with pytest.raises(DataError, match="the row 'gamma'"):
        grid({**TABLE, "rows": ["gamma"]}, SHARED, PROFILE)
