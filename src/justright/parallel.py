"""Work that is done side by side and comes back in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
Pending = TypeVar("Pending")
Result = TypeVar("Result")


def in_order(
    submit: Callable[[Item], Pending], result: Callable[[Pending], Result], items: Iterable[Item], n_ahead: int
) -> Iterator[Result]:
    """Results in the order of the items, with at most `n_ahead` items submitted and not yet given back."""
    pending: deque[Pending] = deque()
    for item in items:
        if len(pending) == n_ahead:
            yield result(pending.popleft())
        pending.append(submit(item))
    while pending:
        yield result(pending.popleft())


def n_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
