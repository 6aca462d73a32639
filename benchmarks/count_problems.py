"""Problems with known K for `study_counts.py`: for development, for testing, and new draws of the test problems.

Drawn characters need no files. Photos are read as features from a folder, one store per data set; without the folder
they are skipped. No script or data set is in both the development and the test part.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from justright.data import glyph_set
from justright.data.catalog.glyphs import SCRIPTS
from justright.features.backbone import load_backbone
from justright.features.cache import FeatureCache
from justright.features.embedded import HELD_OUT
from justright.features.extract import extract
from justright.features.table import FeatureTable
from justright.utils.seeding import generator

PER_CLASS = 30
CHOSEN_HELD_OUT = ("hebrew", "tifinagh", "currency")
SEEN = [script for script in SCRIPTS if script not in HELD_OUT]
SCRIPTS_OF = {
    "chosen": (*SEEN[::2], *CHOSEN_HELD_OUT),
    "judged": (*SEEN[1::2], *(script for script in HELD_OUT if script not in CHOSEN_HELD_OUT)),
}

SEEDS = {"chosen": 1, "judged": 2, "judged again": 3}

# Where classes are counted, and where those of a pool come from when the target has none of its own.
PHOTOS = {
    "chosen": {
        "pets37": "plantvillage38+clothing10+cifar10",
        "plantvillage38": "pets37+clothing10+cifar10",
        "pets37+plantvillage38": "clothing10+cifar10",
        "pets37+clothing10+cifar10": "plantvillage38",
    },
    "judged": {
        "cub200": "pets37+flowers102",
        "flowers102": "cub200+plantvillage38",
        "fruits131": "cub200+flowers102",
        "cub200+flowers102": "fruits131+clothing10",
    },
}


@dataclass(frozen=True)
class Setting:
    """How a problem is drawn. An empty `pool` means that some classes of the target are labeled."""

    part: str
    source: str
    pool: str
    n_categories: int
    per_class: int
    old_share: float
    labeled_share: float
    is_uneven: bool
    seed: int


@dataclass(frozen=True)
class Drawn:
    """The input of a counter, and the true number of categories."""

    features: Any
    labels: Any
    pool: tuple[Any, Any] | None
    n_categories: int


def settings(part: str, n_own: int, n_pool: int, has_photos: bool) -> list[Setting]:
    """`n_own` problems with own labeled classes, then `n_pool` with a pool alone. The sources take turns."""
    photos = list(PHOTOS[_sources(part)].items()) if has_photos else []
    sources = [("characters", "characters"), *photos]
    drawn = []
    for place in range(n_own + n_pool):
        rng = generator(SEEDS[part], "setting", place)
        source, pool = sources[place % len(sources)]
        drawn.append(
            Setting(
                part,
                source,
                pool if place >= n_own else "",
                n_categories=int(rng.integers(20, 151 if place < n_own else 101)),
                per_class=int(rng.choice([10, 15, 20, 30])),
                old_share=float(rng.choice([0.5, 0.5, 0.5, 0.2, 0.8])),
                labeled_share=float(rng.choice([0.5, 0.5, 0.3, 0.8])),
                is_uneven=bool(rng.random() < 0.3),
                seed=place,
            )
        )
    return drawn


class Bank:
    """Features of all classes, loaded or extracted once."""

    def __init__(self, photos: Path | None):
        self.photos = photos
        self._known: dict[str, tuple[Any, Any]] = {}

    def of_scripts(self, scripts: Any) -> tuple[Any, Any]:
        """Features and labels of drawn characters."""
        for script in scripts:
            if script not in self._known:
                with TemporaryDirectory() as folder:
                    images = glyph_set(PER_CLASS, [script], dataset=script)
                    table = extract(images, load_backbone("glyph_vit"), Path(folder) / "x", cache=FeatureCache())
                    self._known[script] = np.array(table.features), np.array(table.labels)
        return _joined([self._known[script] for script in scripts])

    def of_photos(self, names: str) -> tuple[Any, Any]:
        """Features and labels of data sets, joined by a plus."""
        assert self.photos is not None
        for name in names.split("+"):
            if name not in self._known:
                table = FeatureTable.open(self.photos / f"{name}.features")
                self._known[name] = np.array(table.features), np.array(table.labels)
        return _joined([self._known[name] for name in names.split("+")])

    def draw(self, setting: Setting) -> Drawn:
        """The problem of a setting: old and new classes of one source, or a target and a pool of other kinds."""
        draw = generator(setting.seed, "problem", setting.part)
        if setting.source != "characters":
            source, pool = self.of_photos(setting.source), setting.pool and self.of_photos(setting.pool)
        elif setting.pool:
            scripts = draw.permutation(SCRIPTS_OF[_sources(setting.part)]).tolist()
            sizes = np.cumsum([len(np.unique(self.of_scripts([script])[1])) for script in scripts])
            n_target = min(int((sizes < setting.n_categories).sum()) + 1, len(scripts) - 3)
            source, pool = self.of_scripts(scripts[:n_target]), self.of_scripts(scripts[n_target:])
        else:
            source, pool = self.of_scripts(SCRIPTS_OF[_sources(setting.part)]), None
        x, y = _some(source, setting.n_categories, setting.per_class, setting.is_uneven, draw)
        n_categories = int(y.max()) + 1
        if setting.pool:
            n_pool = int(draw.integers(15, 80))
            labeled = _some(pool, n_pool, int(draw.choice([10, 20, 30])), False, draw)
            return Drawn(x, None, labeled, n_categories)
        is_old = y < max(2, round(setting.old_share * n_categories))
        labels = np.where(is_old & (draw.random(len(y)) < setting.labeled_share), y, -1)
        return Drawn(x, labels, None, n_categories)


def _sources(part: str) -> str:
    return "chosen" if part == "chosen" else "judged"


def _joined(tables: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    labels = [y + 10_000 * place for place, (_, y) in enumerate(tables)]
    return np.concatenate([x for x, _ in tables]), np.concatenate(labels)


def _some(table: Any, n_classes: int, per_class: int, is_uneven: bool, draw: np.random.Generator) -> tuple[Any, Any]:
    """Images of some classes, which are numbered anew; uneven ones keep 15 % to 100 % of theirs, at least 4."""
    x, y = table
    rows = []
    for label in draw.permutation(np.unique(y))[:n_classes]:
        of_class = draw.permutation(np.flatnonzero(y == label))[:per_class]
        kept = max(4, round(len(of_class) * draw.uniform(0.15, 1))) if is_uneven else len(of_class)
        rows.append(of_class[:kept])
    return x[np.concatenate(rows)], np.repeat(np.arange(len(rows)), [len(of_class) for of_class in rows])
