from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch

from justright.selection import (
    SELECTORS,
    BetaSelector,
    BinsSelector,
    CuiSelector,
    OwnSelector,
    RandomSelector,
    UniformSelector,
    selector_of,
)
from justright.utils.errors import DataError, JustrightError


def fitted(data, **given):
    return BinsSelector(**given).fit(data.pool, data.labels, data.target, data.clusters)


def test_sample_weight_is_the_weight_of_the_class(cloud):
    selector = BetaSelector(domain="affine").fit(cloud.pool, cloud.labels, cloud.target)
    weight = selector.sample_weight(np.array([3, 0, 3]))
    assert weight.tolist() == selector.class_weight_[[3, 0, 3]].tolist()


def test_error_names_an_unknown_label(plane):
    with pytest.raises(DataError, match="label 99 is none of the 30 classes"):
        fitted(plane).sample_weight(np.array([1, 99]))


def test_sample_weight_before_fit_raises():
    with pytest.raises(JustrightError, match="not been fitted"):
        BetaSelector().sample_weight(np.array([0]))


def test_init_only_stores_parameters():
    selector = BetaSelector(alpha=-1.0, domain="nonsense")  # rejected by fit only
    assert selector.get_params()["domain"] == "nonsense"
    assert repr(selector) == "BetaSelector(alpha=-1.0, domain='nonsense')"


def test_torch_tensors_agree_with_arrays(cloud):
    expected = BetaSelector(domain="affine").fit(cloud.pool, cloud.labels, cloud.target)
    pool = torch.tensor(cloud.pool, requires_grad=True)
    tensors = (pool, torch.tensor(cloud.labels), torch.tensor(cloud.target))
    given = BetaSelector(domain="affine").fit(*tensors)
    assert np.array_equal(given.class_weight_, expected.class_weight_)
    assert isinstance(given.class_weight_, np.ndarray)
    assert np.array_equal(given.sample_weight(tensors[1]), expected.sample_weight(cloud.labels))
    half = BetaSelector(domain="affine").fit(pool.bfloat16(), tensors[1], tensors[2].bfloat16())
    assert half.class_weight_ == pytest.approx(expected.class_weight_, rel=0.2)


@pytest.mark.parametrize(
    "selector",
    [
        UniformSelector(),
        BetaSelector(domain="affine"),
        BetaSelector(domain="affine", reduction="median"),
        BetaSelector(domain="affine", level="image"),
        BinsSelector(n_clusters=5),
        BinsSelector(n_clusters=5, metric="l2"),
        CuiSelector(n_clusters=5),
    ],
    ids=repr,
)
def test_shards_agree_with_arrays(cloud, selector):
    whole = selector.fit(cloud.pool, cloud.labels, cloud.target)
    expected, reason = whole.class_weight_, whole.reason_
    cuts = [0, 7, 7, 30, 59, 60]
    spans = [slice(a, b) for a, b in itertools.pairwise(cuts)]
    streamed = selector.fit_stream([(cloud.pool[s], cloud.labels[s]) for s in spans], [cloud.target[s] for s in spans])
    assert np.array_equal(streamed.classes_, np.arange(10))
    assert streamed.class_weight_ == pytest.approx(expected, abs=1e-12)
    assert streamed.reason_ == reason


@pytest.mark.parametrize("name", list(SELECTORS))
def test_every_selector_gives_a_reason_for_each_class(plane, name):
    selector = SELECTORS[name]()
    if "n_clusters" in selector.get_params():
        selector.n_clusters = 12
    selector.fit(plane.pool, plane.labels, plane.target)
    assert len(selector.classes_) == len(selector.class_weight_) == len(selector.reason_) == 30
    assert selector.class_weight_.min() >= 0


def test_importing_selection_loads_nothing_heavy():
    code = (
        "import sys, justright.selection\n"
        "loaded = {'torch', 'ot', 'sklearn', 'scipy'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_selector_of_sets_seed_and_n_clusters_if_the_selector_has_them():
    params = selector_of("bins", {"n_bins": 3}, seed=5, n_clusters=7).get_params()
    assert (params["n_bins"], params["n_clusters"], params["seed"]) == (3, 7, 5)
    assert selector_of("none", {}, seed=5, n_clusters=7).get_params() == {}


def test_none_gives_every_class_weight_1(cloud):
    selector = UniformSelector().fit(cloud.pool, cloud.labels, cloud.target)
    assert selector.class_weight_.tolist() == [1.0] * 10
    assert np.array_equal(selector.selected_classes_, np.arange(10))
    assert selector.reason_[0] == "kept: every class weighs 1"


def test_own_gives_every_class_weight_0(cloud):
    selector = OwnSelector().fit(cloud.pool, cloud.labels, cloud.target)
    assert selector.class_weight_.tolist() == [0.0] * 10
    assert len(selector.selected_classes_) == 0
    assert selector.reason_[0] == "left out: own labels only"


POOL, LABELS, TARGET = np.eye(40, 5) + 0.1, np.repeat(np.arange(10), 4), np.ones((3, 5))


def test_random_keeps_a_share_of_the_classes_by_seed():
    kept = [set(RandomSelector(0.3, seed).fit(POOL, LABELS, TARGET).selected_classes_.tolist()) for seed in range(6)]
    assert {len(each) for each in kept} == {3}
    assert len(set(map(frozenset, kept))) > 1
    again = RandomSelector(0.3, seed=2).fit(POOL, LABELS, TARGET)
    assert set(again.selected_classes_.tolist()) == kept[2]


def test_at_least_one_class_is_kept():
    assert len(RandomSelector(0.0).fit(POOL, LABELS, TARGET).selected_classes_) == 1
