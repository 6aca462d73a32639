"""`justright plan`: time, memory and disk of a run, before it starts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from justright.cli.common import COUNT, FILE, SOURCES, TRAINING, Command, Integer, run_options
from justright.cli.terminal import Terminal, with_terminal
from justright.data import ImageSet, open_images
from justright.discovery.methods import METHODS
from justright.runs.spec import AUTO, config_of, make_spec, resolve_device, resolve_method
from justright.utils.errors import JustrightError, MissingDataError
from justright.utils.files import size_text

if TYPE_CHECKING:
    from justright.runs.costs import CostPlan

SIZES = tuple(10**power for power in range(4, 10))
HEADINGS = {"target": "Images", "backbone": "Network and training", "rates": "Output"}


@click.command(cls=Command, headings=HEADINGS, tables={"Methods": METHODS, "Images are a number, or": SOURCES})
@click.option("--target", required=True, metavar="N|SOURCE", help="The unlabeled images, or their number.")
@click.option("--labeled", default="0", metavar="N|SOURCE", help="Labeled images of the target's classes.")
@click.option("--pool", default="0", metavar="N|SOURCE", help="Labeled images of other kinds.")
@click.option("--classes", "n_classes", type=Integer(0), help="Number of classes, if --labeled is a number.")
@click.option(
    "--k",
    "n_target",
    type=Integer(2),
    help="Number of categories in the target. Default: twice the classes of --labeled, at least one per 30 images.",
)
@click.option(
    "--devices",
    "n_devices",
    type=COUNT,
    default=1,
    help="Number of processes of torchrun. They share the training; the first one does all other work.",
)
@click.option("--backbone", default=AUTO, help="As in `justright discover`; its checkpoint is not needed.")
@click.option("--img-size", type=Integer(16), help="Image size in pixels. Default: that of the backbone.")
@run_options("device", *TRAINING)
@click.option("--rates", type=FILE, help="Output of an earlier call with --json; nothing is measured then.")
@click.option("--table", "is_table", is_flag=True, help="Print a Markdown table, for ten thousand to a billion images.")
@with_terminal
def plan(
    terminal: Terminal,
    target: str,
    labeled: str,
    pool: str,
    n_classes: int | None,
    n_devices: int,
    backbone: str,
    img_size: int | None,
    device: str,
    rates: Path | None,
    is_table: bool,
    **options: Any,
) -> None:
    """Estimate the steps, time and disk of `justright discover`.

    Every stage is timed on a few images, yours or drawn ones, which takes some seconds. Time grows linearly with the
    number of images and assumes that nothing is cached; disk is an upper bound. `discover` prints the same estimate
    before a long run.

    \b
    Examples:
      justright plan --target photos/ --labeled birds/
      justright plan --target 1000000 --labeled 50000 --classes 500 --k 1000
      justright plan --target 1000000 --device cuda --devices 8 --set views=2
      justright plan --target photos/ --labeled birds/ --seeds 3 --minutes 30
      justright plan --target 10000 --json > rates.json
      justright plan --target 10000 --rates rates.json --table
    """
    from justright.features.automatic import foreseen_backbone, usable
    from justright.features.backbone import random_backbone
    from justright.runs.costs import CostPlan, Rates, Work, time_text
    from justright.runs.measured_rates import measure

    known_rates = None if rates is None else Rates.read(rates)
    device = resolve_device(device)
    spec = make_spec(device=device, **options)
    config_of(spec)  # validate the settings before any image is read
    opened = _number_or_images(target)
    images, n_target = (None, opened) if isinstance(opened, int) else (opened, len(opened))
    if not n_target:
        raise JustrightError("0 images in the target", expected="at least one")
    if backbone == AUTO:
        backbone, why = foreseen_backbone(device)
        terminal.say(f"Network: {backbone} ({why}).")
    if options["method"] == AUTO:
        spec = resolve_method(replace(spec, backbone=backbone), has_pool=pool != "0")
    work = Work.of_sizes(spec, n_target, _class_sizes(labeled, n_classes), _class_sizes(pool), n_devices)
    costs = CostPlan(work, spec, random_backbone(backbone, usable(device), img_size))
    if known_rates is None:
        terminal.say("Measuring on a few images ...")
        known_rates = measure(costs, images)
    costs = replace(costs, rates=known_rates)
    if is_table:
        works = [replace(work, n_target=n, n_seen=work.n_seen - n_target + n) for n in SIZES]
        plans = [replace(costs, work=work) for work in works]
        terminal.result([plan.to_json() for plan in plans], "\n".join(table_lines(plans)))
        return
    disk = costs.disk()
    rows = [(stage, time_text(seconds), size_text(disk[stage])) for stage, seconds in costs.seconds().items()]
    rows.append(("all", time_text(costs.total_seconds), size_text(sum(disk.values()))))
    guess = "" if work.is_k_known else " (a guess)"
    title = f"{n_target:,} images, {work.n_labeled:,} labeled, {work.n_categories:,} categories{guess}"
    terminal.table(title, ("stage", "time", "disk"), rows)
    memory = f"Up to {size_text(int(costs.memory()))} of memory; {costs.steps_text()}."
    terminal.result(costs.to_json(), "\n".join([memory, costs.advice(), f"Rates: {costs.rates.about}."]))


def table_lines(plans: list[CostPlan]) -> Iterator[str]:
    """The costs by number of images, in Markdown."""
    from justright.runs.costs import time_text

    yield f"| images | {' | '.join(plans[0].seconds())} | memory | disk |"
    yield f"|---|{'---|' * len(plans[0].seconds())}---|---|"
    for plan in plans:
        cells = [time_text(seconds) for seconds in plan.seconds().values()]
        cells += [size_text(int(plan.memory())), size_text(sum(plan.disk().values()))]
        yield f"| {plan.work.n_target:,} | {' | '.join(cells)} |"


def _class_sizes(source: str, n_classes: int | None = None) -> list[int]:
    """Number of images of each class; a number of images is split into classes of equal size."""
    import numpy as np

    from justright.runs.costs import IMAGES_PER_CATEGORY

    opened = _number_or_images(source)
    if not isinstance(opened, int):
        sizes: list[int] = np.unique(opened.labels, return_counts=True)[1].tolist()
        return sizes
    n_classes = n_classes or math.ceil(opened / IMAGES_PER_CATEGORY)
    return [(opened + number) // n_classes for number in range(n_classes)]


def _number_or_images(source: str) -> int | ImageSet:
    """The images of a source, or their number if that is given."""
    digits = source.replace("_", "").replace(",", "")
    if digits.isdecimal():
        return int(digits)
    try:
        return open_images(source)
    except MissingDataError as error:
        raise MissingDataError(error.problem, expected=f"a number such as 10000, {error.expected}") from error
