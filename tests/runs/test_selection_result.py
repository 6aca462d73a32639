from __future__ import annotations

import json

import numpy as np
import pytest

from justright.features.table import FeatureTable
from justright.runs.feature_pool import merge_tables
from justright.runs.saved_selection import CLASS_COLUMNS
from justright.runs.selection_result import SelectionResult, stability_of
from justright.selection import BetaSelector, BinsSelector, row_shards


@pytest.fixture
def pool():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 4)
    table = FeatureTable.of(1 + rng.normal(size=(20, 6)), label=labels, dataset=["birds"] * 12 + ["pets"] * 8)
    return merge_tables([table])


TARGET = FeatureTable.of(1 + np.random.default_rng(1).normal(size=(30, 6)))
BLOCKS = row_shards(TARGET.features)


def test_the_record_holds_what_the_selector_decided_and_what_led_there(pool):
    selector = BinsSelector(n_clusters=4, discard=False).fit_stream(pool, BLOCKS)
    stable = stability_of(selector, pool, TARGET, 3, seed=0)
    result = SelectionResult.of("bins", selector, pool, stable)
    assert result.classes.column_names == [*CLASS_COLUMNS, "distance", "bin", "kept_share", "weight_std"]
    assert np.array_equal(result.classes["bin"].to_numpy(), selector.bin_)
    assert np.array_equal(result.sample_weight, selector.sample_weight(pool.labels))
    assert result.images["reason"].to_pylist()[4] == selector.reason_[1]
    assert result.about == {"selector": "bins", "params": selector.get_params(), "threshold": selector.threshold_}


def test_images_that_were_weighed_one_by_one_have_reasons_of_their_own(pool):
    selector = BetaSelector(domain="affine", level="image").fit_stream(pool, BLOCKS)
    result = SelectionResult.of("beta", selector, pool)
    assert np.array_equal(result.sample_weight, selector.image_weight_)
    first = f"similarity {selector.image_similarity_[0]:.2f} weighs {selector.image_weight_[0]:.2f}"
    assert result.images["reason"][0].as_py() == first


def test_all_of_it_is_json(pool):
    selector = BetaSelector(domain="affine").fit_stream(pool, BLOCKS)
    value = json.loads(json.dumps(SelectionResult.of("beta", selector, pool).to_json()))
    assert [row["dataset"] for row in value["sources"]] == ["birds", "pets", "all"]
    assert (value["params"]["domain"], value["stability"], len(value["classes"])) == ("affine", None, 5)


def test_stability_is_computed_only_where_it_is_asked_for(pool):
    selector = BetaSelector(domain="affine").fit_stream(pool, BLOCKS)
    assert stability_of(selector, pool, TARGET, None, seed=0) is None
    assert stability_of(selector, pool, TARGET, 2, seed=0).n_resamples == 2
