"""`justright predict`: new images with the model of a finished run."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from justright.cli.common import EXISTING_FOLDER, OUT_FILE, SOURCES, Command, Number, Output, run_options
from justright.cli.terminal import Terminal, with_terminal
from justright.data.quarantine import printable
from justright.discovery.predictions import NEITHER_SHARE
from justright.utils.wording import count_text, first_names

N_SHOWN = 3  # names of unreadable images that are printed


@click.command(cls=Command, tables={"SOURCE may be": SOURCES})
@click.argument("run", type=EXISTING_FOLDER)
@click.argument("source")
@click.option(
    "--out",
    type=Output(".csv", ".parquet"),
    required=True,
    help="File for the answers, .csv or .parquet, with a row per image.",
)
@click.option(
    "--neither",
    type=Number(0, 0.99),
    default=NEITHER_SHARE,
    help="An image is called neither if it fits as badly as the worst of the run's target images; this is their share.",
)
@run_options("max_bad", "checkpoint", "device")
@click.option("--save-backbone", type=OUT_FILE, help="File for the network as trained by the run, to load with timm.")
@with_terminal
def predict(
    terminal: Terminal,
    run: Path,
    source: str,
    out: Path,
    save_backbone: Path | None,
    **options: Any,
) -> None:
    """Sort new images into the categories of a finished run.

    RUN is a folder that `justright discover` wrote. Each image of SOURCE gets a known class, a discovered cluster or
    neither, and a confidence. An image that was labeled in the run keeps its label: its source is given, not predicted.
    An image of the run's target keeps the category and confidence that the run found. A CSV has the columns path,
    category, kind, confidence and source, a Parquet file some more. If discover was given a --checkpoint, give the same
    one here. The last line has the expected number of right images, without those given or called neither.

    \b
    Examples:
      justright predict run photos/ --out found.csv
      justright predict run photos.zip --out found.parquet --neither 0.05
      justright predict run photos/ --out found.csv --save-backbone n.safetensors
    """
    from justright.data import open_images
    from justright.discovery.evidence import expected_right
    from justright.discovery.model_files import about_model, write_backbone
    from justright.result import predict as predict_images
    from justright.runs.source_checks import left_out_by_name, summary

    about = about_model(run)
    images = open_images(source).without_labels()
    unrecognized = left_out_by_name([], [], [source])
    if unrecognized:
        terminal.say(f"{summary(unrecognized)}.")
    if (run / "review" / "log.jsonl").exists():
        terminal.say("Names and corrections of the review are not used; a new run with the reviewed labels has them.")
    predictions, model = predict_images(run, images, **options)
    predictions.save(out)
    if save_backbone is not None:
        write_backbone(save_backbone, model.backbone_)
    kinds = Counter(predictions.table()["kind"].to_pylist())
    rows = [(kind, kinds[kind]) for kind in ("known", "discovered", "neither")]
    terminal.table(count_text(len(predictions), "image"), ("kind", "images"), rows)
    n_unreadable = len(images) - len(predictions)
    value: dict[str, Any] = {
        "out": str(out),
        "images": len(predictions),
        **kinds,
        "calibrated_on": about["calibrated_on"],
        "unreadable": n_unreadable,
        "not recognised by name": len(unrecognized),
    }
    left_out = ""
    if n_unreadable:
        paths = sorted(set(images.paths) - set(predictions.index["path"].to_pylist()))
        left_out = f", {n_unreadable:,} unreadable left out ({first_names(list(map(printable, paths)), N_SHOWN)})"
    text = f"Written to {out}{left_out}. Confidence rests on {about['calibrated_on']}."
    if model.joint_ is not None:
        is_judged = ~(predictions.is_given | predictions.is_neither)
        expected = expected_right(predictions.confidence[is_judged], model.joint_.shapes.is_checked)
        value["expected_right"] = asdict(expected)
        text = f"{text} {expected.in_words('images' if is_judged.all() else 'other images')}".strip()
    terminal.result(value, text)
