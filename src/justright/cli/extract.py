"""`justright extract`: the features of images, computed once."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from justright.cli.common import COUNT, SOURCES, STORE, Command, Integer, opened_engine, run_options
from justright.cli.terminal import Terminal, with_terminal
from justright.data.opening import open_images
from justright.features.choices import BACKBONES, BATCH_SIZE, POOLINGS, PRECISIONS
from justright.runs.spec import resolve_backbone, resolve_device
from justright.utils.files import expect_writable
from justright.utils.remote import Place

NETWORKS = {name: BACKBONES.about(name) for name in BACKBONES} | {
    "any name of timm": "weights from the Hugging Face hub, or --checkpoint",
}
N_SHOWN = 20


@click.command(cls=Command, tables={"Backbones": NETWORKS, "SOURCE may be": SOURCES})
@click.argument("source")
@click.option("--out", type=STORE, required=True, help="Folder for the features, or an address, as s3://bucket/name.")
@run_options("backbone", "checkpoint", "device")
@click.option(
    "--batch-size", type=COUNT, default=BATCH_SIZE, help="Number of images that the network computes at once."
)
@run_options("engine")
@click.option(
    "--workers",
    type=Integer(0),
    help="Number of threads, processes or tasks; one per core if not given. 0: no additional thread.",
)
@click.option("--precision", type=click.Choice(PRECISIONS), default="float32", help="Number format of the computation.")
@click.option(
    "--pooling",
    type=click.Choice(POOLINGS),
    default="class",
    help="What becomes the feature. class: the class token, or what the network itself reads out; average: the mean "
    "over patches; patches: one feature per patch.",
)
@run_options("max_bad")
@click.option("--no-cache", is_flag=True, help="Compute every image again, and keep nothing for later runs.")
@click.option("--overwrite", is_flag=True, help="Replace features of other images or settings in --out.")
@with_terminal
def extract(
    terminal: Terminal,
    source: str,
    out: Place,
    backbone: str,
    checkpoint: Path | None,
    device: str,
    no_cache: bool,
    engine: str,
    workers: int | None,
    **how: Any,
) -> None:
    """Compute the features of images with a frozen network.

    Images of SOURCE that cannot be read are listed and left out. Call it again to continue after a stop. Images that
    were seen before with the same backbone, in whatever source, are taken from the cache (`justright cache`). The
    bytes written depend neither on --workers nor on --engine.

    \b
    Examples:
      justright extract photos --out photos.features
      justright extract birds.zip --backbone efficientnet_lite0 --out b.features
      justright extract cub:DATA/cub --backbone dino_vitb16 --out cub.features \\
          --checkpoint dino.pth
      justright extract photos --out photos.features \\
          --device cuda --precision bfloat16 --batch-size 256
      justright extract photos --out photos.features --engine processes
    """
    if isinstance(out, Path):
        expect_writable(out)
    images = open_images(source)
    from justright.features.automatic import usable
    from justright.features.backbone import load_backbone
    from justright.features.cache import FeatureCache
    from justright.features.extract import extract as compute
    from justright.features.store import HEADER, read_header

    device = usable(resolve_device(device))
    previous = ""
    if (out / HEADER).exists() and not how["overwrite"]:
        previous = read_header(out)[0].backbone.get("name", "")  # own features have no backbone
    backbone, _ = resolve_backbone(backbone, device, checkpoint, previous)
    network = load_backbone(backbone, checkpoint, device)
    how |= {"cache": None if no_cache else FeatureCache(), "n_workers": workers}
    with opened_engine(engine, workers) as elsewhere:
        table = compute(images, network, out, engine=elsewhere, **how)
    bad = table.quarantined
    if bad:
        rows = [(image.path, image.kind.value, image.reason) for image in bad[:N_SHOWN]]
        if len(bad) > N_SHOWN:
            rows.append((f"… and {len(bad) - N_SHOWN:,} more, see {out / 'quarantine.json'}", "", ""))
        terminal.table(f"Skipped: {len(bad):,} unreadable images", ("path", "what", "why"), rows)
    header = table.header
    value = {
        "out": str(out),
        "images": len(table),
        "shape": list(header.shape),
        "dtype": header.dtype,
        "classes": len(table.classes),
        "backbone": dict(header.backbone),
        "quarantined": [asdict(image) for image in bad],
    }
    size = " x ".join(f"{n:,}" for n in table.features.shape)
    terminal.result(value, f"{header.backbone['name']}: {size} {header.dtype}, written to {out}")
