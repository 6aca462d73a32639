"""One folder, one owner: whoever writes to it holds a lease that ends with its process, however that ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from justright.utils.errors import JustrightError
from justright.utils.files import explain_disk_full
from justright.utils.locks import LeaseHeldError, lease

LOCK = ".owner"  # what the file of the lease in the folder begins with; it goes when the work is done


class OwnedError(JustrightError):
    """Another process is writing to the folder."""


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Be the only one to write to a folder, which is made if it is not there; a second owner is refused.

    The lease of a killed process is taken over: at once on the same machine, otherwise when it has expired.
    """
    was_there = folder.exists()
    try:
        with explain_disk_full(folder / LOCK):
            held = lease(folder / LOCK)
    except LeaseHeldError as error:
        raise OwnedError(
            f"{folder} is being written by {error}",
            expected="one process at a time",
            advice="wait for it, stop it, or name another --out",
        ) from error
    try:
        yield
    finally:
        held.release()
        if not was_there:
            with suppress(OSError):  # stays unless it is empty
                folder.rmdir()
