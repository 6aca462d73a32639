"""Randomness as a pure function: one seed and a purpose in, an independent generator out.

There is no generator state to save. The number of workers, a resume after a kill, or the order of calls
cannot change a draw, because each draw has a key of its own.
"""

from __future__ import annotations

import hashlib

import numpy as np

Key = str | int


def generator(seed: int, *purpose: Key) -> np.random.Generator:
    """A generator for one purpose, e.g. `generator(0, "view", epoch, image_id)`.

    The key is hashed into Philox, a counter-based generator, so neighbouring keys are unrelated.
    """
    # repr keeps 1 and "1" apart, and the length of each part unambiguous
    text = repr((int(seed), *(int(part) if isinstance(part, int) else part for part in purpose)))
    key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
    return np.random.Generator(np.random.Philox(key=key))
