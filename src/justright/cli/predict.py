"""`justright predict`: new images with the model of a finished run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from justright.cli.terminal import Terminal, with_terminal


@click.command()
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@click.argument("source")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="A .csv or .parquet file.")
@click.option(
    "--neither",
    type=click.FloatRange(0, 0.99),
    default=0.01,
    show_default=True,
    help="An image that fits worse than all but this share of the run's target fits no category.",
)
@click.option("--checkpoint", type=click.Path(path_type=Path), help="Of the backbone, as it was given to discover.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, mps.")
@click.option("--save-backbone", type=click.Path(path_type=Path, dir_okay=False), help="The tuned network, for timm.")
@with_terminal
def predict(
    terminal: Terminal,
    run: Path,
    source: str,
    out: Path,
    neither: float,
    checkpoint: Path | None,
    device: str,
    save_backbone: Path | None,
) -> None:
    """Say of each image of SOURCE which known class or discovered cluster of RUN it belongs to, and how sure that is.

    \b
    Examples:
      justright predict run photos/ --out found.csv
      justright predict run photos.zip --out found.parquet --neither 0.05
      justright predict run photos/ --out found.csv --save-backbone tuned.safetensors
    """
    from justright.data import open_images
    from justright.discovery.methods import METHODS
    from justright.discovery.model_files import about_model, write_backbone
    from justright.features.backbone import load_backbone
    from justright.features.feature_network import usable

    images = open_images(source).without_labels()
    about = about_model(run)
    of = about["backbone"]
    backbone = load_backbone(of["name"], checkpoint, usable(device), of["resolution"])
    model = METHODS[about["method"]].load(run, backbone)
    found = model.predict(images, neither=neither, track=terminal.track)
    found.save(out)
    if save_backbone is not None:
        write_backbone(save_backbone, model.backbone_)
    kinds = Counter(found.table()["kind"].to_pylist())
    rows = [(kind, kinds[kind]) for kind in ("known", "discovered", "neither")]
    terminal.table(f"{len(found):,} images", ("kind", "images"), rows)
    value = {"out": str(out), "images": len(found), **dict(kinds), "calibrated_on": about["calibrated_on"]}
    left_out = len(images) - len(found)
    tail = f", {left_out:,} that cannot be read left out" if left_out else ""
    terminal.result(value, f"Written to {out}{tail}. Confidence rests on {about['calibrated_on']}.")
