"""`justright discover`: from folders to clusters."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from justright.cli.extract import DEFAULT_BACKBONE
from justright.cli.selector_options import AUTO, SelectorCommand, given_params
from justright.cli.terminal import Terminal, with_terminal
from justright.errors import JustrightError

if TYPE_CHECKING:
    from justright.runs.run_folder import RunFolder

# what these options may be is known where torch is imported, which would make --help slow; a test keeps them equal
METHODS = ("kmeans", "gcd", "xcon", "simgcd", "mugcd")
WEIGHTINGS = ("auto", "hard", "soft", "resample")
COUNTERS = ("combined", "labeled-search", "mixture", "spread")
POOL_ROLES = ("guide", "rival")
SCALES = ("auto", "paper", "small")
HELD_OUT = 0.1
ABOUT_AUTO = "tries each on hidden classes of your own; takes none unless another is clearly better"


@click.command(cls=SelectorCommand, default="none", more={AUTO: ABOUT_AUTO})
@click.option("--labeled", help="Labeled images of classes that target images may belong to.")
@click.option("--pool", multiple=True, help="Labeled images of other kinds, to learn from; may be given several times.")
@click.option(
    "--pool-role",
    type=click.Choice(POOL_ROLES),
    default=POOL_ROLES[0],
    show_default=True,
    help="guide: no image is called a class of the pool. rival: they are categories too, as in the paper's tables.",
)
@click.option("--target", required=True, help="The unlabeled images.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder of the run.")
@click.option("--method", type=click.Choice(METHODS), default="simgcd", show_default=True)
@click.option("--select-labeled", is_flag=True, help="Select from --labeled too; else its classes weigh 1.")
@click.option("--keep-copies", is_flag=True, help="Learn from labeled images that are images of the target too.")
@click.option("--stability", "n_resamples", type=click.IntRange(0), default=10, show_default=True, help="Resamples.")
@click.option("--weighting", type=click.Choice(WEIGHTINGS), default="auto", show_default=True, help="How weights act.")
@click.option("--k", "n_target", type=click.IntRange(2), help="Categories in the target; estimated if not given.")
@click.option("--counter", type=click.Choice(COUNTERS), default=COUNTERS[0], show_default=True, help="Estimates K.")
@click.option("--backbone", default=DEFAULT_BACKBONE, show_default=True, help="Ours, or any name of timm.")
@click.option("--checkpoint", type=click.Path(path_type=Path), help="File or directory instead of a download.")
@click.option("--img-size", type=click.IntRange(16), help="Another resolution than the backbone's own.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, mps.")
@click.option("--scale", type=click.Choice(SCALES), default="auto", show_default=True, help="auto: small on a CPU.")
@click.option("--epochs", type=click.IntRange(1), help="Of training, instead of the scale's number.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other setting of the method.")
@click.option("--held-out", type=click.FloatRange(0, 0.9), default=HELD_OUT, show_default=True, help="To calibrate.")
@click.option("--max-per-class", type=click.IntRange(1), help="Labeled images of each class at most.")
@click.option("--truth", type=click.Path(path_type=Path, dir_okay=False), help="Labels of the target, to judge by.")
@click.option("--target-has-labels", is_flag=True, help="Judge by the labels that the target itself has.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same result.")
@click.option("--tensorboard", is_flag=True, help="Write the training curves for TensorBoard too.")
@click.option("--no-report", is_flag=True, help="Leave report.html out.")
@with_terminal
def discover(
    terminal: Terminal,
    labeled: str | None,
    pool: tuple[str, ...],
    pool_role: Any,
    target: str,
    out: Path,
    method: str,
    selector: str,
    select_labeled: bool,
    keep_copies: bool,
    n_resamples: int,
    weighting: str,
    n_target: int | None,
    counter: str,
    backbone: str,
    checkpoint: Path | None,
    img_size: int | None,
    device: str,
    scale: str,
    epochs: int | None,
    settings: tuple[str, ...],
    held_out: float,
    max_per_class: int | None,
    truth: Path | None,
    target_has_labels: bool,
    seed: int,
    tensorboard: bool,
    no_report: bool,
    preset: str | None,
    **given: Any,
) -> None:
    """Put every image of a target into a known class or a new cluster, guided by labeled images.

    Sources of images are folders with one folder a class, manifests (.csv or .parquet), zips, or NAME:ROOT for a data
    set that `justright data --list` names. Labels of the target are never looked at before the judging.

    --labeled names what images may be called; --pool is of other kinds and only guides what is learned.

    {selectors}

    Stopped, or killed, it goes on where it was when called again with the same options, and ends with the same result.
    With several processes: torchrun --nproc-per-node 2 -m justright discover ...

    \b
    Examples:
      justright discover --labeled birds/ --target photos/ --out run
      justright discover --pool pets.zip --pool plants/ --labeled birds/ --target photos/ --k 40 --out run
      justright discover --labeled birds/ --target photos/ --method gcd --selector bins --out run --epochs 50
      justright discover --labeled a.parquet --target b.parquet --truth truth.parquet --held-out 0 --out run
      justright discover --labeled birds/ --target photos/ --set views=fresh --set learning_rate=0.05 --out run
      justright discover --labeled birds/ --pool pets.zip --target photos/ --preset paper --out run

    --preset paper does what the paper's tables do: classes of the pool are categories too, and selection weighs all
    labeled classes; Beta unless --selector says otherwise.
    """
    if preset == "paper":
        pool_role, select_labeled = "rival", True
        is_named = click.get_current_context().get_parameter_source("selector") is ParameterSource.COMMANDLINE
        selector = selector if is_named else "beta"
    if not pool and labeled is None:
        raise JustrightError(
            "neither --pool nor --labeled was given", expected="labeled images to learn from", advice="--labeled FOLDER"
        )
    from justright.data import open_images
    from justright.discovery.processes import Processes, join_processes, leave_processes
    from justright.evaluation.files import copy_truth
    from justright.features.backbone import load_backbone
    from justright.features.feature_network import usable
    from justright.runs.problem import make_problem
    from justright.runs.run import Run
    from justright.runs.spec import RunSpec

    has_joined = join_processes(device)
    try:
        terminal = terminal if Processes().is_first else Terminal(quiet=True)
        opened = [open_images(source) for source in pool]
        own = None if labeled is None else open_images(labeled)
        problem = make_problem(opened, own, open_images(target), target_has_labels, max_per_class)
        n_copies = 0
        if not keep_copies:
            problem, n_copies = problem.without_copies(terminal.track)
            if n_copies:
                terminal.say(
                    f"{n_copies:,} labeled images are images of the target too, byte for byte. They are left out of "
                    "the labeled side, for their labels would reach training; --keep-copies keeps them."
                )
        spec = RunSpec(
            pool_role=pool_role,
            selector=selector,
            selector_params=given_params(selector, given, preset),
            select_labeled=select_labeled,
            n_resamples=n_resamples,
            weighting=weighting,
            method=method,
            scale=chosen_scale(scale, device),
            settings={"held_out_share": held_out} | ({"n_epochs": epochs} if epochs else {}) | read_settings(settings),
            backbone=backbone,
            checkpoint=checkpoint,
            img_size=img_size,
            device=device,
            n_target=n_target if n_target is not None else given.get("n_clusters"),
            counter=counter,
            seed=seed,
        )
        if spec.scale == "small" and method != "kmeans":
            terminal.say("Lighter settings for a CPU, not those of the publication; --scale paper takes the latter.")
        asked: dict[str, Any] = {
            "pool": list(pool),
            "labeled": labeled,
            "target": target,
            "truth": truth and str(truth),
        }
        asked["copies left out"] = n_copies
        asked["command"] = shlex.join(["justright", *sys.argv[1:]])
        network = load_backbone(backbone, checkpoint, usable(device), img_size)
        run = Run(problem, spec, out, network, asked, terminal.track, tensorboard)
        if truth is not None:
            copy_truth(truth, out / "truth.parquet")
        finished = run.all()
        if Processes().is_first:
            _show(terminal, finished, None if no_report else _report(finished, terminal))
    finally:
        if has_joined:
            run = network = None  # type: ignore[assignment]
            leave_processes()


def chosen_scale(scale: str, device: str) -> Any:
    """What auto stands for."""
    return ("small" if device == "cpu" else "paper") if scale == "auto" else scale


def read_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE as a dictionary; a value is JSON where it can be read as such, else text."""
    found: dict[str, Any] = {}
    for each in settings:
        name, equals, value = each.partition("=")
        if not equals:
            raise JustrightError(f"--set {each}", expected="NAME=VALUE, such as --set views=8")
        try:
            found[name.replace("-", "_")] = json.loads(value)
        except ValueError:
            found[name.replace("-", "_")] = value
    return found


def _report(run: RunFolder, terminal: Terminal) -> Path:
    from justright.report.run_report import write_report  # matplotlib is slow to import

    return write_report(run, run.path / "report.html", track=terminal.track)


def _show(terminal: Terminal, run: RunFolder, report: Path | None) -> None:
    found, about = run.predictions, run.about
    is_known = [category.kind == "known" for category in found.categories]
    n_in = {
        kind: sum(int(n) for n, known in zip(found.sizes, is_known, strict=True) if known is (kind == "known"))
        for kind in ("known", "discovered")
    }
    used = {
        kind: sum(n > 0 and known is (kind == "known") for n, known in zip(found.sizes, is_known, strict=True))
        for kind in n_in
    }
    terminal.table(
        f"{len(found):,} images of the target",
        ("kind", "categories", "with images", "images"),
        [
            ("known classes", sum(is_known), used["known"], n_in["known"]),
            ("discovered clusters", len(is_known) - sum(is_known), used["discovered"], n_in["discovered"]),
        ],
    )
    written = [run.path / "predictions.parquet", *([report] if report else [])]
    lines = [
        f"K of the target: {about['n_target']} ({about['k_source']}). Confidence rests on {about['calibrated_on']}."
    ]
    if run.scores is not None:
        lines.append(str(run.scores))
    lines += [f"Note: {note}." for note in about["notes"]]
    lines.append("Seconds: " + ", ".join(f"{stage} {spent:.1f}" for stage, spent in about["seconds"].items()))
    lines += [f"Written: {path}" for path in written]
    lines.append(f"Look through the clusters: justright review {run.path}")
    value = {
        "run": str(run.path),
        "images": len(found),
        "n_target": about["n_target"],
        "k_source": about["k_source"],
        "categories": {"known": sum(is_known), "discovered": len(is_known) - sum(is_known)},
        "pool_role": about["pool_role"],
        "n_copies": about["asked"]["copies left out"],
        "notes": about["notes"],
        "scores": None if run.scores is None else run.scores.to_dict(),
        "seconds": about["seconds"],
        "written": [str(path) for path in written],
    }
    terminal.result(value, "\n".join(lines))
