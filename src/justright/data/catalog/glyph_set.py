"""The embedded glyphs as an ImageSet that draws on demand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from justright.data.catalog.data_set import DataSet
from justright.data.catalog.glyphs import DEFAULT_SIZE, DRAWING_VERSION, GLYPH_CLASSES, SCRIPTS, classes_of, draw_glyph
from justright.data.image_set import ImageSet
from justright.data.readers import Reader, png
from justright.errors import BadImageError, DataError
from justright.hashing import hash_bytes

_LABELS = {glyph.name: glyph.label for glyph in GLYPH_CLASSES}


class GlyphReader(Reader):
    """Draws the image that a path names: `alphabets/latin/u0061-latin-small-letter-a/7`."""

    def __init__(self, seed: int = 0, size: int = DEFAULT_SIZE):
        self.seed, self.size = seed, size
        self.source = f"glyphs:seed={seed},size={size}"

    def image(self, path: str) -> Image.Image:
        """Draw the image that a path names."""
        name, _, index = path.rpartition("/")
        label = _LABELS.get(name.rpartition("/")[2])
        if label is None or not index.isdecimal():
            raise BadImageError(f"{path}: names no glyph", expected="family/script/class/index")
        return Image.fromarray(draw_glyph(self.seed, label, int(index), self.size))

    def encoded(self, path: str) -> bytes:
        """The same as the bytes of a PNG."""
        return png(self.image(path))

    def content_id(self, path: str) -> str:
        """Made of what determines the drawing, so nothing has to be drawn."""
        return hash_bytes(f"{self.source},version={DRAWING_VERSION},{path}".encode())

    def saved_as(self, folder: Path) -> str:
        """The recipe is all there is to save."""
        return self.source


def glyph_set(
    per_class: int = 20,
    scripts: Sequence[str] = SCRIPTS,
    seed: int = 0,
    size: int = DEFAULT_SIZE,
    dataset: str = "glyphs",
) -> ImageSet:
    """`per_class` drawn images of every character of these scripts; super-categories are family and script."""
    if per_class < 1:
        raise DataError(f"{per_class} images a class", expected="at least 1")
    glyphs = [glyph for glyph in classes_of(*scripts) for _ in range(per_class)]
    index = list(range(per_class)) * (len(glyphs) // per_class)
    return ImageSet.of(
        GlyphReader(seed, size),
        dataset=dataset,
        path=[f"{g.family}/{g.script}/{g.name}/{i}" for g, i in zip(glyphs, index, strict=True)],
        label=[glyph.label for glyph in glyphs],
        class_name=[glyph.name for glyph in glyphs],
        superclasses=[[glyph.script for glyph in glyphs], [glyph.family for glyph in glyphs]],
    )


def parse_glyphs(options: Path) -> ImageSet:
    """A glyph set from options in words: `per_class=50,seed=1,size=32,scripts=latin+greek`; none gives the default."""
    words = [] if options == Path() else str(options).split(",")
    given = dict(word.partition("=")[::2] for word in words)
    scripts = given.pop("scripts", "+".join(SCRIPTS)).split("+")
    if not (set(given) <= {"per_class", "seed", "size"} and all(value.isdecimal() for value in given.values())):
        came = f"glyphs:{options} cannot be drawn"
        raise DataError(came, expected="options such as glyphs:per_class=20,seed=0,size=64,scripts=latin+greek")
    numbers: dict[str, Any] = {name: int(value) for name, value in given.items()}
    return glyph_set(scripts=scripts, **numbers)


DATA_SET = DataSet(
    title="Glyphs, drawn by justright",
    loader=parse_glyphs,
    licence="free: drawn here from the DejaVu and STIX fonts",
    where="inside the package; justright data glyphs --out DIR writes it as files",
    layout="none, nothing is read",
)
