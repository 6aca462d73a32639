"""Selectors, counters and k-means follow scikit-learn's conventions for parameters."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

from justright.clustering import SemiSupKMeans
from justright.estimation import COUNTERS
from justright.selection import SELECTORS
from justright.utils.errors import JustrightError
from justright.utils.estimator import Estimator
from justright.utils.settings import setting

RNG = np.random.default_rng(0)
LABELS = np.arange(120) % 6
FEATURES = 3 + RNG.normal(size=(6, 8))[LABELS] + 0.3 * RNG.normal(size=(120, 8))
ESTIMATORS = {
    **{name: SELECTORS[name] for name in SELECTORS},
    **{name: COUNTERS[name] for name in COUNTERS},
    "k-means": lambda: SemiSupKMeans(5),
}
every = pytest.mark.parametrize("name", ESTIMATORS)


def made(name):
    estimator = ESTIMATORS[name]()
    return estimator.set_params(n_clusters=7) if "n_clusters" in estimator.get_params() else estimator


def fitted(estimator):
    if hasattr(estimator, "sample_weight"):
        return estimator.fit(FEATURES, LABELS, FEATURES[::2] + 0.1)
    return estimator.fit(FEATURES, np.where(LABELS < 3, LABELS, -1))


@every
def test_fit_changes_no_parameter(name):
    estimator = made(name)
    before = copy.deepcopy(estimator.get_params())
    assert fitted(estimator) is estimator
    assert estimator.get_params() == before


@every
def test_clone_has_the_parameters_and_nothing_fitted(name):
    estimator = fitted(made(name))
    copied = clone(estimator)
    assert type(copied) is type(estimator)
    assert copied.get_params() == estimator.get_params()
    assert not [attribute for attribute in vars(copied) if attribute.endswith("_")]


@every
def test_set_params_rejects_unknown_names(name):
    with pytest.raises(JustrightError, match="has no parameter 'nonsense'"):
        made(name).set_params(nonsense=1)


@dataclass(repr=False, eq=False)
class Example(Estimator):
    rate: float = setting(0.5)
    limits: tuple[int, int] | None = setting(None)
    start: object = setting(None)


def test_repr_shows_parameters_that_differ_from_their_defaults():
    assert repr(Example()) == "Example()"
    assert repr(Example(0.25, start=np.arange(2))) == "Example(rate=0.25, start=array([0, 1]))"


def test_set_params_returns_the_estimator():
    example = Example()
    assert example.set_params(limits=(1, 2)) is example
    assert example.get_params() == {"rate": 0.5, "limits": (1, 2), "start": None}
