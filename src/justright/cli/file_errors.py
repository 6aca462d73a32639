"""What is said of a file that cannot be written or read: which one, why, and what to do about it."""

from __future__ import annotations

import errno

from justright.files import IS_FULL

AGAIN = "then give the same command again: what was finished is kept"
ADVICE = {
    errno.ENOSPC: f"free some room (`justright cache list` shows what is kept for later runs), {AGAIN}",
    errno.EDQUOT: f"free some room (`justright cache list` shows what is kept for later runs), {AGAIN}",
    errno.EFBIG: f"allow larger files (`ulimit -f unlimited`), or name another place, {AGAIN}",
}


def message_of(error: OSError) -> str:
    """One message for a person; only a full disk or a limit says for sure that it was writing that failed."""
    what = "cannot be written" if error.errno in IS_FULL else "cannot be written or read"
    place = error.filename or ("a file" if error.errno in IS_FULL else "")
    why = error.strerror or str(error) or type(error).__name__
    said = f"{place} {what}: {why}" if place else why
    return f"{said}\nTry: {ADVICE.get(error.errno or 0, 'name another place')}"
