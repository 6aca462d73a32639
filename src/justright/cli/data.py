"""`justright data`: the data sets the package knows, and what a source of images holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from justright.cli.voice import Voice, voiced
from justright.data.catalog import CATALOG
from justright.data.catalog.glyph_set import glyph_set
from justright.data.catalog.glyphs import SCRIPTS
from justright.data.export import write_tree
from justright.data.image_set import ImageSet, superclass_column
from justright.data.opening import open_images
from justright.types import UNLABELED

FIELDS = ("name", "title", "licence", "where")


@click.group(invoke_without_command=True)
@click.option("--list", "is_list", is_flag=True, help="Every data set with its licence and where to get it.")
@voiced
@click.pass_context
def data(ctx: click.Context, voice: Voice, is_list: bool) -> None:
    """The data sets the package knows, and what a source of images holds.

    \b
    Examples:
      justright data --list                the data sets, their terms, where to get them
      justright data --list --json         the same with the layout each is expected in
      justright data show cub:DATA/cub     how many images and classes are there?
      justright data show photos/          the same for a folder of your own
      justright data glyphs --out letters  draw the embedded data set as files
    """
    if ctx.invoked_subcommand:
        if is_list or voice != Voice():
            raise click.UsageError(f"options go behind the command: justright data {ctx.invoked_subcommand} ...")
    elif is_list:
        voice.table("Data sets", FIELDS, ([getattr(entry, field) for field in FIELDS] for entry in CATALOG.values()))
        voice.result([{field: getattr(entry, field) for field in (*FIELDS, "layout")} for entry in CATALOG.values()])
    else:
        click.echo(ctx.get_help())


@data.command()
@click.argument("source")
@voiced
def show(voice: Voice, source: str) -> None:
    """Count what SOURCE holds.

    SOURCE is a folder with one folder a class, a manifest (.csv or .parquet), a zip of images, or NAME:ROOT for a
    data set that `justright data --list` names.

    \b
    Examples:
      justright data show photos/
      justright data show labels.csv --json
      justright data show cub:DATA/cub
    """
    counts = summary(open_images(source))
    rows: list[tuple[str, int]] = [(name, counts[name]) for name in ("images", "classes", "unlabeled")]
    for kind, title in (("datasets", "images of {}"), ("splits", "images in {}"), ("hierarchy", "groups in {}")):
        rows += [(title.format(name), number) for name, number in counts[kind].items()]
    voice.table(source, ("what", "number"), rows)
    voice.result({"source": source, **counts})


@data.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to write to.")
@click.option("--per-class", default=20, show_default=True, help="Images of each character.")
@click.option("--scripts", default="", help="Only these, such as latin,greek; all by default.")
@click.option("--seed", default=0, show_default=True)
@click.option("--size", default=64, show_default=True, help="Width and height in pixels.")
@voiced
def glyphs(voice: Voice, out: Path, per_class: int, scripts: str, seed: int, size: int) -> None:
    """Draw the embedded data set as files: one folder a character, inside its script, inside its family.

    Files that are there already stay; a stopped run goes on where it was.

    \b
    Examples:
      justright data glyphs --out letters
      justright data glyphs --out small --scripts hebrew,arrows --per-class 5
    """
    images = glyph_set(per_class, scripts.split(",") if scripts else SCRIPTS, seed, size)
    n_written = write_tree(images, out, track=voice.track)
    counts = {"images": len(images), "classes": len(images.classes), "written": n_written, "folder": str(out)}
    voice.result(
        counts, f"{len(images):,} images of {len(images.classes)} characters in {out}, {n_written:,} drawn now"
    )


def summary(images: ImageSet) -> dict[str, Any]:
    """Numbers of images, classes, unlabeled images, images by data set and split, groups by level, coarse to fine."""
    return {
        "images": len(images),
        "classes": len(images.classes),
        "unlabeled": int((images.labels == UNLABELED).sum()),
        "datasets": _counts(images, "dataset"),
        "splits": _counts(images, "split"),
        "hierarchy": {name: len(_counts(images, name)) for name in _levels(images)},
    }


def _levels(images: ImageSet) -> list[str]:
    depth = 1
    while superclass_column(depth) in images.table.column_names:
        depth += 1
    return [superclass_column(level) for level in range(depth - 1, 0, -1)]


def _counts(images: ImageSet, column: str) -> dict[str, int]:
    """How often each name stands in a column; rows without a name do not count."""
    pairs = images.table[column].drop_null().value_counts().to_pylist()
    return {pair["values"]: pair["counts"] for pair in pairs}
