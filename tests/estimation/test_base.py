import pytest

from justright.errors import DegenerateError
from justright.estimation.base import middle_interval


def test_the_middle_of_the_estimates_rounded_outward():
    assert middle_interval(list(range(1, 101)), 0.9, holding=50) == (5, 96)
    assert middle_interval([7], 0.5, holding=7) == (7, 7)


def test_the_estimate_itself_is_always_inside():
    assert middle_interval([5, 6, 7], 0.9, holding=9) == (5, 9)
    assert middle_interval([5, 6, 7], 0.9, holding=3) == (3, 7)


@pytest.mark.parametrize(("estimates", "level"), [([], 0.9), ([1, 2], 1.0), ([1, 2], 0.0)])
def test_nothing_to_take_the_middle_of_is_refused(estimates, level):
    with pytest.raises(DegenerateError, match="An interval of level"):
        middle_interval(estimates, level, holding=1)
