"""`justright discover`: from folders to clusters."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from justright import api
from justright.cli.common import OUT_FOLDER, SOURCES, STORE, TRAINING, run_options
from justright.cli.selector_options import SelectorCommand, SelectorOption
from justright.cli.terminal import Terminal, with_terminal
from justright.discovery.methods import METHODS
from justright.estimation import COUNTERS
from justright.result import Result
from justright.runs.cluster_table import CLUSTERS
from justright.runs.source_checks import LEFT_OUT
from justright.runs.spec import AUTO
from justright.utils.context import use
from justright.utils.wording import count_text

ABOUT_AUTO = "tries each on hidden classes of your own; takes none unless another is clearly better"
HEADINGS = {
    "labeled": "Images",
    "k": "Number of categories",
    "method": "Training",
    "backbone": "Network",
    "truth": "Judging",
    "pool_role": SelectorOption.heading,
    "out": "Output",
}
TABLES = {"Methods": METHODS, "Counters": COUNTERS, "Images may be": SOURCES}


@click.command(cls=SelectorCommand, more={AUTO: ABOUT_AUTO}, headings=HEADINGS, tables=TABLES)
@click.option(
    "--labeled",
    multiple=True,
    metavar="SOURCE",
    help="Labeled images of classes that images of the target may show; may be repeated. One that is also an image of "
    "the target keeps its label there.",
)
@click.option("--pool", multiple=True, metavar="SOURCE", help="Labeled images of other kinds; may be repeated.")
@click.option("--target", required=True, metavar="SOURCE", help="The unlabeled images; labels it has are ignored.")
@run_options("max_per_class", "max_bad", "drop_copies", "k", "counter", *TRAINING)
@run_options("seed", "engine", "backbone", "checkpoint", "device")
@click.option(
    "--features",
    multiple=True,
    type=STORE,
    help="Features of these images and this backbone that `justright extract` wrote; may be repeated.",
)
@run_options("img_size", "answer", "truth", "target_has_labels")
@run_options("pool_role", "weights", "select_labeled", "weighting", "n_resamples")
@click.option("--out", type=OUT_FOLDER, required=True, help="Folder for everything the run writes.")
@click.option("--no-report", is_flag=True, help="Do not write report.html.")
@run_options("tensorboard")
@with_terminal
def discover(
    terminal: Terminal,
    labeled: tuple[str, ...],
    pool: tuple[str, ...],
    target: str,
    out: Path,
    no_report: bool,
    **options: Any,
) -> None:
    """Sort unlabeled images into known classes and new clusters.

    --target are the unlabeled images. --labeled are images of classes that may occur among them, --pool are labeled
    images of other kinds, which only guide what is learned. Both may be left out: then all categories are new. The
    result is a category and a confidence for every image of the target, and a report.

    Call it again with the same options to continue after a stop; the result is the same. To use several processes:
    torchrun --nproc-per-node 2 -m justright discover ...

    --preset paper does what the tables of the paper do: --pool-role rival --select-labeled, and --selector beta if no
    other is given. --preset official weighs as the paper's public code does: --selector beta image by image,
    --select-labeled, and with simgcd and mugcd in the cross-entropy alone.

    \b
    Examples:
      justright discover --labeled birds/ --target photos/ --out run
      justright discover --target photos/ --out run
      justright discover --labeled reviewed.parquet --target photos/ --out next
      justright discover --labeled birds/ --target photos/ --out run --k 40 \\
          --pool pets.zip --pool plants/ --selector bins
      justright discover --labeled birds/ --target photos/ --out run \\
          --method gcd --epochs 50 --set views=fresh --set learning_rate=0.05
      justright discover --labeled labeled.parquet --target target.parquet \\
          --truth truth.parquet --held-out 0 --out run
      justright discover --labeled birds/ --pool pets.zip --target photos/ \\
          --preset paper --out run
      justright discover --labeled birds/ --target photos/ --out run --k k.json \\
          --features birds.features --features photos.features
    """
    with use(command=shlex.join(["justright", *sys.argv[1:]])):
        result = api.discover(target, list(labeled), list(pool), out, **options)
    if int(os.environ.get("RANK", "0")) == 0:  # of the processes that torchrun starts only one prints
        show_result(terminal, result, with_report=not no_report)


def show_result(terminal: Terminal, result: Result, with_report: bool = True) -> None:
    """Print the result of a finished run and where its files are, and write its report."""
    run = result.run
    predictions, about = run.predictions, run.about
    sizes: dict[str, list[int]] = {"known": [], "discovered": []}
    for category, size in zip(predictions.categories, predictions.sizes, strict=True):
        sizes[category.kind].append(int(size))
    rows = []
    for kind, title in (("known", "known classes"), ("discovered", "discovered clusters")):
        n_used = sum(1 for size in sizes[kind] if size)
        rows.append((title, len(sizes[kind]), n_used, sum(sizes[kind])))
    columns = ("kind", "categories", "with images", "images")
    terminal.table(f"{count_text(len(predictions), 'image')} of the target", columns, rows)
    written = [run.path / name for name in ("predictions.csv", "predictions.parquet", CLUSTERS)]
    if run.left_out:
        written.append(run.path / LEFT_OUT)
    if with_report:
        written.append(result.report())
    others = "images without a label" if predictions.is_given.any() else "images"
    lines = []
    if run.expected and run.expected.n:
        lines.append(run.expected.in_words(others))
    lines.append(
        f"K of the target: {about['n_target']} ({about['k_source']}). Backbone: {about['backbone']['name']}. "
        f"Seed: {about['seed']}. Confidence rests on {about['calibrated_on']}."
    )
    if run.scores is not None:
        lines.append(str(run.scores))
    lines += [f"Note: {note}." for note in about["notes"]]
    if terminal.verbose:
        lines.append("Seconds: " + ", ".join(f"{stage} {spent:.1f}" for stage, spent in about["seconds"].items()))
    lines += [f"Written: {path}" for path in written]
    lines.append(f"Look through the clusters: {shlex.join(['justright', 'review', str(run.path)])}")
    names = ("n_target", "k_source", "backbone", "seed", "pool_role", "notes", "left_out", "expected_right", "seconds")
    value = {name: about.get(name) for name in names} | {
        "run": str(run.path),
        "images": len(predictions),
        "categories": {kind: len(sizes[kind]) for kind in sizes},
        "n_categories": len(predictions.categories),
        "n_used": int((predictions.sizes > 0).sum()),
        "n_copies": about["request"]["copies left out"],
        "n_given": int(predictions.is_given.sum()),
        "scores": None if run.scores is None else run.scores.to_dict(),
        "written": [str(path) for path in written],
    }
    terminal.result(value, "\n".join(lines))
