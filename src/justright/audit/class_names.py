"""Class names of different data sets, compared as a person would."""

from __future__ import annotations

import re
import unicodedata

NUMBER_BEFORE_NAME = re.compile(r"^\d+[\s._-]+(?=\D)")
BETWEEN_WORDS = re.compile(r"[\s_-]+")


def comparable_name(class_name: str) -> str | None:
    """The name without case, underscores, a number before it ("001.Gull") and the folders above it.

    None for a name that is only a number: 7 in one data set says nothing about 7 in another.
    """
    leaf = class_name.rstrip("/").rpartition("/")[2]
    words = BETWEEN_WORDS.sub(" ", NUMBER_BEFORE_NAME.sub("", unicodedata.normalize("NFKC", leaf))).strip()
    return None if not words or words.isdecimal() else words.casefold()
