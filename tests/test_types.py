from __future__ import annotations

import numpy as np

from justright import types
from justright.types import UNLABELED


def test_the_mark_of_an_unlabeled_image_can_be_no_class():
    assert UNLABELED < 0
    assert np.full(3, UNLABELED).dtype.kind == "i"


def test_every_alias_says_what_it_is():
    assert types.__doc__
    assert np.ndarray in (types.Array, getattr(types.Array, "__origin__", types.Array))
