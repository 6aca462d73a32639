"""Who reads a view bank and who builds it: locks, so that none is taken from under a run, nor computed twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import finalize

from justright.locks import has_locks, lock, unlock

IN_USE = "in-use"


def hold(bank: Path, reader: object) -> finalize[Any, Any]:
    """Read a bank from now on until what comes back is called, or the reader is gone, however its process may end.

    Where files cannot be locked so (Windows) nothing is held, and nothing is removed unasked.
    """
    while has_locks():
        bank.mkdir(parents=True, exist_ok=True)
        file = (bank / IN_USE).open("a")
        lock(file, is_shared=True)  # waits while the bank is being removed
        if (bank / IN_USE).exists():
            return finalize(reader, file.close)
        file.close()  # it was removed with the bank
    return finalize(reader, lambda: None)


@contextmanager
def alone(bank: Path) -> Iterator[bool]:
    """Whether nobody is known to read the bank; nobody begins to meanwhile. Without locks nobody is known."""
    if not has_locks():  # nor may the file be open there while the bank is removed
        yield True
        return
    with (bank / IN_USE).open("a") as file:
        yield lock(file, waits=False)


@contextmanager
def building(bank: Path) -> Iterator[None]:
    """Be the only one to build a bank: who comes second waits, and then finds what the first has built.

    Where files cannot be locked so (Windows), both build, and what they write is the same.
    """
    bank.mkdir(parents=True, exist_ok=True)
    with (bank / "in-build").open("a") as file:
        lock(file)
        try:
            yield
        finally:
            unlock(file)
