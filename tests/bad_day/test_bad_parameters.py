"""Bad parameters: text, NaN, infinity, negative numbers, fractions of a count, True for a number.

They raise before any work starts; the allowed values follow from the type of a parameter.
"""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import fields
from typing import Any, get_type_hints

import numpy as np
import pytest

from justright.clustering import SemiSupKMeans
from justright.discovery.methods import METHODS
from justright.estimation import COUNTERS
from justright.selection import SELECTORS, BinsSelector, CuiSelector
from justright.utils.context import use
from justright.utils.errors import DataError, JustrightError
from justright.utils.settings import check_ranges
from justright.utils.validation import check_labels

NEVER = ["three", "5", [1], math.nan, -math.inf, {}]
"""What no parameter may be; words are refused by those of text too, which have a list of words."""

NO_NUMBER = [*NEVER, True, False, math.inf, -1, -0.5]
NO_COUNT = [*NO_NUMBER, 2.5, 2.0, 10**30]
NO_WHOLE_NUMBER = [*NEVER, True, False, math.inf, 2.5, 2.0]
NO_SWITCH = [*NEVER, 0, 1, None, "no"]

OWNERS: dict[str, Any] = {name: SELECTORS[name]() for name in SELECTORS}
OWNERS |= {"SemiSupKMeans": SemiSupKMeans(3)}
OWNERS |= {name: COUNTERS[name]() for name in COUNTERS}
OWNERS |= {f"config of {name}": METHODS[name].config_class() for name in METHODS}


def wrong_values(owner: Any, name: str) -> list[Any]:
    kind = str(get_type_hints(type(owner))[name])
    if name == "seed" or (name == "n_clusters" and isinstance(owner, SemiSupKMeans)):  # below 1: with the classes
        return NO_WHOLE_NUMBER
    if "bool" in kind:
        return NO_SWITCH
    if "float" in kind and "int" not in kind.replace("float", ""):
        return [*NO_NUMBER, (0.5,), (1.0, 0.5), (math.nan, 1.0)] if "tuple" in kind else NO_NUMBER
    if "int" in kind:
        return NO_COUNT
    return NEVER


CASES = [(which, each.name) for which, owner in OWNERS.items() for each in fields(owner)]


@pytest.mark.parametrize(("which", "name"), CASES)
def test_bad_value_raises_with_its_name(which, name):
    owner = OWNERS[which]
    for value in wrong_values(owner, name):
        wrong = object.__new__(type(owner))
        wrong.__dict__.update(vars(owner) | {name: value})  # the type checker of the test run would come first
        with pytest.raises(JustrightError, match=rf"(?s){name} is .*Expected: "):
            check_ranges(wrong)


@pytest.mark.parametrize("which", [*SELECTORS, "SemiSupKMeans", *COUNTERS])
def test_ranges_are_validated_before_fit(which):
    features, labels = np.abs(np.random.default_rng(0).normal(size=(12, 3))), np.repeat([0, 1, 2], 4)
    for each in fields(OWNERS[which]):
        wrong = object.__new__(type(OWNERS[which]))
        wrong.__dict__.update(vars(OWNERS[which]) | {each.name: {}})
        with pytest.raises(JustrightError, match=f"{each.name} is"):
            wrong.fit(features, labels, features) if which in SELECTORS else wrong.fit(features, labels)


def test_numpy_integers_are_accepted():
    for owner in (SemiSupKMeans(3), BinsSelector(n_clusters=3), CuiSelector(n_clusters=3)):
        vars(owner)["n_clusters"] = np.int64(3)
        check_ranges(owner)


def test_unsigned_labels_above_2_to_the_63_raise():
    labels = np.array([1, 2**63 + 5], dtype=np.uint64)
    with pytest.raises(DataError, match="a label of 9223372036854775813"):
        check_labels(labels, 2, "pool shard 0")
    assert check_labels(labels[:1], 1).tolist() == [1]


def test_evaluation_rejects_them_too():
    # in a process of its own: the type checker of the test run would come first
    program = """
import numpy as np
from justright import evaluate
evaluate(np.array([1, 2**63 + 5], dtype=np.uint64), np.array([0, 1]), np.array([True, False]))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "DataError: classes: a label of 9223372036854775813" in ended.stderr


def test_each_halving_of_bins_shows_progress():
    rng, halvings = np.random.default_rng(0), []

    def track(steps, total, what):
        for step in steps:
            if what == "halvings of the target":
                halvings.append((step, total))
            yield step

    pool, target = rng.normal(size=(40, 4)), rng.normal(size=(60, 4))
    selector = BinsSelector(n_clusters=4, n_splits=3, discard=False)
    with use(progress=track):
        selector.fit_stream([(pool, np.repeat(np.arange(8), 5))], [target], quiet=True)
    assert halvings == [(0, 3), (1, 3), (2, 3)]
