"""Write a contact sheet of the embedded glyphs: a row per script, random characters of it.

python scripts/glyph_sheet.py docs/images/glyphs.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from justright.data.catalog.glyphs import SCRIPTS, classes_of, draw_glyph
from justright.report.page_images import contact_sheet
from justright.utils.seeding import generator

COLUMNS = 13
TILE = 44  # pixels on the sheet; drawn larger and reduced, which calms the grain
GAP = 2
MARGIN = 108  # room for the names, left of the rows
N_COLORS = 256  # a palette keeps the file small


def row_of(script: str, seed: int = 0) -> list[Image.Image]:
    """Random images of a script, of different classes as far as there are enough."""
    rng = generator(seed, "sheet", script)
    classes = classes_of(script)
    order = [pick for _ in range(-(-COLUMNS // len(classes))) for pick in rng.permutation(len(classes))]
    drawn = [draw_glyph(seed, classes[pick].label, index) for index, pick in enumerate(order[:COLUMNS])]
    return [Image.fromarray(image).resize((TILE, TILE), Image.Resampling.LANCZOS) for image in drawn]


def with_names(sheet: Image.Image) -> Image.Image:
    """The sheet with the name of each script before its row."""
    page = Image.new("RGB", (MARGIN + sheet.width, sheet.height), "white")
    page.paste(sheet, (MARGIN, 0))
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(11)
    for row, script in enumerate(SCRIPTS):
        middle = row * (TILE + GAP) + TILE / 2
        pen.text((MARGIN - 8, middle), script.replace("-", " "), fill=(60, 60, 60), font=font, anchor="rm")
    return page


def main(out: Path) -> None:
    """Draw the sheet and write it as PNG."""
    tiles = [tile for script in SCRIPTS for tile in row_of(script)]
    page = with_names(contact_sheet(tiles, columns=COLUMNS, gap=GAP))
    out.parent.mkdir(parents=True, exist_ok=True)
    # MAXCOVERAGE keeps the rare strong colors that a median cut would merge into gray
    page.quantize(N_COLORS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(out, optimize=True)
    print(f"{len(SCRIPTS)} scripts, {COLUMNS} images each: {out}, {out.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("glyphs.png"))
