"""`justright discover`: from folders to clusters."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from justright.cli.common import (
    COUNT,
    FILE,
    OUT_FOLDER,
    SOURCES,
    STORE,
    NameOf,
    engine_option,
    max_bad_option,
    network_options,
    opened_engine,
    own_folder,
    seed_option,
    settled_backbone,
    settled_device,
)
from justright.cli.run_request import CategoryCount, as_published, run_spec, training_options
from justright.cli.run_summary import show_run
from justright.cli.selector_options import SelectorCommand, SelectorOption
from justright.cli.terminal import Terminal, with_terminal
from justright.data import open_images
from justright.discovery.methods import METHODS, is_trained
from justright.discovery.training_data import WEIGHTINGS
from justright.estimation import BEST, COUNTERS
from justright.runs.labeled_checks import label_warnings
from justright.runs.left_out import copies_left_out, left_out_by_name, summary
from justright.runs.problem import POOL_ROLES, joined, make_problem
from justright.runs.run_folder import RunFolder
from justright.runs.spec import ANSWERS, AUTO, RunSpec
from justright.utils.errors import JustrightError

ABOUT_AUTO = "tries each on hidden classes of your own; takes none unless another is clearly better"
HEADINGS = {
    "labeled": "Images",
    "n_target": "Number of categories",
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
@click.option("--max-per-class", type=COUNT, help="Use at most this many labeled images of each class.")
@max_bad_option
@click.option(
    "--drop-copies",
    is_flag=True,
    help="Leave out labeled images that are in the target too, byte for byte, as benchmarks do.",
)
@click.option(
    "--k",
    "n_target",
    type=CategoryCount(),
    help="Number of categories in the target, if you know it, or the file that `justright estimate --out` wrote.",
)
@click.option("--counter", type=NameOf(COUNTERS), default=BEST, help="How to estimate --k, or to check it if given.")
@training_options
@seed_option
@engine_option
@network_options
@click.option(
    "--features",
    multiple=True,
    type=STORE,
    help="Features of these images and this backbone that `justright extract` wrote; may be repeated.",
)
@click.option("--img-size", type=click.IntRange(16), help="Scale images to this many pixels, not the backbone's own.")
@click.option(
    "--answer",
    type=click.Choice(ANSWERS),
    default=None,
    help="joint: categories from the method together with clusters of its features; method: as its publication has "
    "them, the default with --scale paper and --preset.",
)
@click.option("--truth", type=FILE, help="True labels of the target, read only after training, to compute scores.")
@click.option("--target-has-labels", is_flag=True, help="Take the true labels from --target itself.")
@click.option(
    "--pool-role",
    type=click.Choice(POOL_ROLES),
    default=POOL_ROLES[0],
    help="guide: no image is ever put into a class of the pool. rival: they compete for images, as in the paper.",
)
@click.option(
    "--weights",
    type=FILE,
    help="Weights to learn with, in place of a selector: a file that `justright select --out` wrote, or your own table "
    "with class_name and weight.",
)
@click.option("--select-labeled", is_flag=True, help="Select among --labeled too; if not given, all of it is used.")
@click.option(
    "--weighting",
    type=click.Choice(WEIGHTINGS),
    default=RunSpec.weighting,
    help="What weights do. hard: all must be 0 or 1; soft: they scale the loss; resample: they set how often an image "
    "is drawn; auto: hard if all are 0 or 1, else soft.",
)
@click.option(
    "--stability",
    "n_resamples",
    type=click.IntRange(0),
    default=RunSpec.n_resamples,
    help="How often the selection is repeated on random samples of the images, to see which classes are always kept.",
)
@click.option("--out", type=OUT_FOLDER, required=True, help="Folder for everything the run writes.")
@click.option("--no-report", is_flag=True, help="Do not write report.html.")
@click.option("--tensorboard", is_flag=True, help="Also write the training curves for TensorBoard.")
@with_terminal
def discover(
    terminal: Terminal,
    labeled: tuple[str, ...],
    pool: tuple[str, ...],
    target: str,
    max_per_class: int | None,
    max_bad: float,
    drop_copies: bool,
    truth: Path | None,
    target_has_labels: bool,
    out: Path,
    no_report: bool,
    tensorboard: bool,
    engine: str,
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
    if int(os.environ.get("RANK", "0")):  # of the processes that torchrun starts one speaks
        terminal = Terminal(quiet=True)
    if truth is not None and target_has_labels:
        raise JustrightError("--truth together with --target-has-labels", expected="one of them")
    begun = RunFolder(out).about["spec"] if (out / "run.json").exists() else {}
    options["device"] = settled_device(terminal, options["device"], begun.get("device", ""))
    spec = run_spec(**options)
    from justright.runs.request_checks import refuse_problem, refuse_request

    refuse_request(spec, tensorboard)
    own_folder(out)
    from justright.discovery.processes import joined_processes
    from justright.features.backbone import load_backbone
    from justright.features.feature_network import usable
    from justright.runs.run import Run
    from justright.runs.run_features import expect_network

    with joined_processes(spec.device) as processes, opened_engine(engine) as elsewhere:
        opened = [open_images(source) for source in pool]
        own = joined([open_images(source) for source in labeled], terminal.track)
        unlabeled = open_images(target)
        spec = as_published(spec, unlabeled.datasets)
        before = begun.get("backbone", "")
        backbone, why = settled_backbone(terminal, spec.backbone, spec.device, spec.checkpoint, before)
        spec = replace(spec, backbone=backbone)
        problem = make_problem(opened, own, unlabeled, target_has_labels, max_per_class)
        refuse_problem(problem, spec, out, truth, max_bad)  # again when the run begins; here before all images are read
        network = load_backbone(spec.backbone, spec.checkpoint, usable(spec.device), spec.img_size)
        if spec.features:
            expect_network(spec.features, network)
        left_out = left_out_by_name(labeled, pool, target)
        if left_out:
            terminal.say(f"{summary(left_out)}.")
        all_labeled = problem.pool.images
        for images in (problem.pool.images, problem.target):
            processes.hash_together(images)
        judged_classes = unlabeled.classes.values() if target_has_labels else ()
        doubts = label_warnings(problem.pool, judged_classes, terminal.track)
        for doubt in doubts:
            terminal.say(f"Warning: {doubt}.")
        notes: list[str] = []
        if drop_copies:
            problem, n_copies = problem.without_copies(terminal.track)
            if n_copies:
                terminal.say(
                    f"{n_copies:,} labeled images are images of the target too, byte for byte. They are left out of "
                    "the labeled images."
                )
        else:
            problem, copies = problem.with_given_labels(own, terminal.track)
            n_copies, notes = copies.n_left_out, copies.notes()
            if copies.n_given:
                terminal.say(f"{copies.n_given:,} images of the target are labeled images too: they keep their label.")
            for note in notes:
                terminal.say(f"{note}.")
        left_out += copies_left_out(all_labeled, problem.pool.images)
        if spec.scale == "small" and is_trained(spec.method):
            terminal.say("Lighter settings for a CPU, not those of the publication; --scale full takes the latter.")
        asked: dict[str, Any] = {
            "pool": list(pool),
            "labeled": list(labeled),
            "target": target,
            "truth": truth and str(truth),
            "weights": spec.weights and str(spec.weights),
            "features": list(map(str, spec.features)),
            "checkpoint": spec.checkpoint and str(spec.checkpoint),
            "network": why,
            "copies left out": n_copies,
            "command": shlex.join(["justright", *sys.argv[1:]]),
        }
        how = terminal.track, tensorboard, truth, elsewhere, left_out, max_bad, [*doubts, *notes]
        run = Run(problem, spec, out, network, asked, *how, checks_k=True)
        terminal.say(str(run.disk))
        if not begun and not terminal.is_silent:
            run.say = terminal.say
        finished = run.all(is_owned=True)
        if processes.is_first:
            show_run(terminal, finished, with_report=not no_report)
        del run, network
