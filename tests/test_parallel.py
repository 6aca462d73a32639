from __future__ import annotations

from justright.parallel import in_order, n_cores


def test_results_keep_the_order_and_no_more_is_begun_than_allowed():
    begun, most = [], 0

    def submit(item):
        nonlocal most
        begun.append(item)
        most = max(most, len(begun))
        return item

    def result(item):
        begun.remove(item)
        return 10 * item

    assert list(in_order(submit, result, range(20), 3)) == [10 * item for item in range(20)]
    assert most == 3


def test_there_is_at_least_one_core():
    assert n_cores() >= 1
