"""`justright extract`: the features of images, computed once."""

from __future__ import annotations

from pathlib import Path

import click

from justright.audit.quarantine import MAX_BAD
from justright.cli.terminal import Terminal, with_terminal
from justright.data.opening import open_images
from justright.errors import DataError
from justright.features.table import FeatureTable

# what these options may be is known where torch is imported, which would make --help slow; a test keeps them equal
PRECISIONS = ("float32", "bfloat16", "float16")
POOLINGS = ("class", "average", "patches")
DEFAULT_BACKBONE = "dinov2_vitb14"
N_SHOWN = 20


@click.command()
@click.argument("source")
@click.option("--backbone", "name", default=DEFAULT_BACKBONE, show_default=True, help="Ours, or any name of timm.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory the features go to.")
@click.option("--checkpoint", type=click.Path(path_type=Path), help="File or directory instead of a download.")
@click.option("--device", default="cpu", show_default=True, help="Where the network runs: cpu, cuda, cuda:1, mps.")
@click.option("--batch-size", type=click.IntRange(1), default=16, show_default=True, help="Images a batch.")
@click.option("--workers", type=click.IntRange(0), help="Threads; one a core if not given. 0 uses no threads.")
@click.option(
    "--precision", type=click.Choice(PRECISIONS), default="float32", show_default=True, help="Of the network."
)
@click.option("--pooling", type=click.Choice(POOLINGS), default="class", show_default=True, help="What is a feature?")
@click.option("--max-bad", type=click.FloatRange(0, 1), default=MAX_BAD, show_default=True, help="Refuse above it.")
@click.option("--no-cache", is_flag=True, help="Neither look features up by image content nor keep them.")
@click.option("--overwrite", is_flag=True, help="Replace other features that --out holds.")
@with_terminal
def extract(
    terminal: Terminal,
    source: str,
    name: str,
    out: Path,
    checkpoint: Path | None,
    device: str,
    batch_size: int,
    workers: int | None,
    precision: str,
    pooling: str,
    max_bad: float,
    no_cache: bool,
    overwrite: bool,
) -> None:
    """Compute one feature for each image of SOURCE with a frozen backbone.

    SOURCE is a folder with one folder a class, a manifest (.csv or .parquet), a zip of images, or NAME:ROOT for a
    data set that `justright data --list` names. Images that cannot be decoded are listed and left out.

    Stopped, it goes on where it was when called again. Images that were seen before with the same backbone, in
    whatever source, are taken from the cache (`justright cache`). The bytes written do not depend on --workers.

    \b
    Examples:
      justright extract photos --out photos.features
      justright extract birds.zip --backbone efficientnet_lite0 --out birds.features
      justright extract cub:DATA/cub --backbone dino_vitb16 --checkpoint dino.pth --out cub.features
      justright extract photos --device cuda --precision bfloat16 --batch-size 256 --out photos.features
    """
    images = open_images(source)
    from justright.features.backbone import load_backbone
    from justright.features.cache import FeatureCache
    from justright.features.extract import extract as compute
    from justright.features.feature_network import usable

    backbone = load_backbone(name, checkpoint, usable(device))
    try:
        table = compute(
            images,
            backbone,
            out,
            batch_size=batch_size,
            n_workers=workers,
            precision=precision,  # type: ignore[arg-type]
            pooling=pooling,  # type: ignore[arg-type]
            max_bad=max_bad,
            cache=None if no_cache else FeatureCache(),
            overwrite=overwrite,
            track=terminal.track,
        )
    except OSError as error:
        raise DataError(
            f"{error.filename or out}: {error.strerror or error}",
            advice="give another --out, or --no-cache if it is the cache; what was finished is kept",
        ) from error
    _show(table, terminal, out)


def _show(table: FeatureTable, terminal: Terminal, out: Path) -> None:
    bad = table.quarantined
    if bad:
        rows = [(image.path, image.kind.value, image.reason) for image in bad[:N_SHOWN]]
        rows += [(f"… and {len(bad) - N_SHOWN:,} more, see {out / 'quarantine.json'}", "", "")] * (len(bad) > N_SHOWN)
        terminal.table(f"Set aside: {len(bad):,} bad images", ("path", "what", "why"), rows)
    value = {"out": str(out), "images": len(table), "shape": list(table.header.shape), "dtype": table.header.dtype}
    value |= {"classes": len(table.classes), "backbone": dict(table.header.backbone)}
    value |= {"quarantined": [image.to_json() for image in bad]}
    size = " x ".join(f"{n:,}" for n in table.features.shape)
    terminal.result(value, f"{table.header.backbone['name']}: {size} {table.header.dtype}, written to {out}")
