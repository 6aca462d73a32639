from __future__ import annotations

import numpy as np
import pytest

from justright.selection import ClassWeights, Remark


@pytest.mark.parametrize("measure", ["similarity", "distance", ""])
def test_classes_are_compared_by_their_similarity_or_distance(measure):
    columns = {"rank": np.arange(2)} | ({measure: np.ones(2)} if measure else {})
    assert ClassWeights(np.arange(2), np.ones(2), ["a", "b"], columns).measure == measure


def test_a_remark_advises_in_the_words_of_the_caller():
    remark = Remark("few labels count", {"domain": "affine", "weight_range": "0.1 1"})
    assert remark.for_python() == "few labels count; try domain='affine' or weight_range='0.1 1'"
    assert remark.for_command_line() == "few labels count; try --domain affine or --weight-range 0.1 1"
