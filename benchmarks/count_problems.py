"""Problems of known K for `study_counts.py`: some to choose constants on, others to judge by.

Drawn characters need nothing. Photos come as features, one store a data set, in a folder that is named by option; they
are left out without it. The two parts share no script and no data set whose classes are counted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from justright.data import glyph_set
from justright.data.catalog.glyphs import SCRIPTS
from justright.features import extract, load_backbone
from justright.features.embedded import HELD_OUT
from justright.features.table import FeatureTable
from justright.seeding import generator

PER_CLASS = 30
HELD_OUT_TO_CHOOSE = ("hebrew", "tifinagh", "currency")
TRAINED = [script for script in SCRIPTS if script not in HELD_OUT]
SCRIPTS_OF = {
    "chosen": (*TRAINED[::2], *HELD_OUT_TO_CHOOSE),
    "judged": (*TRAINED[1::2], *(script for script in HELD_OUT if script not in HELD_OUT_TO_CHOOSE)),
}
PHOTOS_OF = {
    "chosen": (("pets37",), ("plantvillage38",), ("pets37", "plantvillage38", "clothing10", "cifar10")),
    "judged": (("cub200",), ("flowers102",), ("fruits131",)),
}
POOL_OF = {
    ("pets37",): ("plantvillage38", "clothing10", "cifar10"),
    ("plantvillage38",): ("pets37", "clothing10", "cifar10"),
    ("pets37", "plantvillage38", "clothing10", "cifar10"): ("glyph-free",),
    ("cub200",): ("pets37", "flowers102"),
    ("flowers102",): ("cub200", "plantvillage38"),
    ("fruits131",): ("cub200", "flowers102"),
}
