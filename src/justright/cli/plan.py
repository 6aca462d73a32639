"""`justright plan`: time, memory and disk of a run, before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from justright.cli.common import COUNT, FILE, SOURCES, Command, device_option, training_options
from justright.cli.terminal import Terminal, with_terminal
from justright.data import ImageSet, open_images
from justright.discovery.methods import METHODS
from justright.runs.request import make_spec, resolve_device
from justright.runs.spec import AUTO, config_of
from justright.utils.errors import JustrightError
from justright.utils.files import size_text

if TYPE_CHECKING:
    from justright.runs.costs import CostPlan

SIZES = tuple(10**power for power in range(4, 10))
HEADINGS = {"target": "Images", "backbone": "Network and training", "rates": "Output"}


@click.command(cls=Command, headings=HEADINGS, tables={"Methods": METHODS, "Images are a number, or": SOURCES})
@click.option("--target", required=True, metavar="N|SOURCE", help="The unlabeled images, or their number.")
@click.option("--labeled", default="0", metavar="N|SOURCE", help="Labeled images of the target's classes.")
@click.option("--pool", default="0", metavar="N|SOURCE", help="Labeled images of other kinds.")
@click.option("--classes", "n_classes", type=click.IntRange(0), help="Number of classes, if --labeled is a number.")
@click.option(
    "--k",
    "n_target",
    type=click.IntRange(2),
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
@click.option("--img-size", type=click.IntRange(16), help="Image size in pixels. Default: that of the backbone.")
@device_option
@training_options
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
    from justright.features.automatic import foreseen_backbone
    from justright.features.backbone import random_backbone
    from justright.features.feature_network import usable
    from justright.runs.costs import CostPlan, Rates, time_text
    from justright.runs.measured_rates import measure
    from justright.runs.work import Work

    known_rates = None if rates is None else Rates.read(rates)
    device = resolve_device(device)
    spec = make_spec(device=device, **options)
    config_of(spec)  # validate the settings before any image is read
    own, images = _class_sizes(target, None)
    if not sum(own):
        raise JustrightError("0 images in the target", expected="at least one")
    if backbone == AUTO:
        backbone, why = foreseen_backbone(device)
        terminal.say(f"Network: {backbone} ({why}).")
    sizes = _class_sizes(labeled, n_classes)[0], _class_sizes(pool, None)[0]
    work = Work.of_sizes(spec, sum(own), *sizes, n_devices)
    network = random_backbone(backbone, usable(device), img_size)
    costs = CostPlan(work, spec, network)
    if known_rates is None:
        terminal.say("Measuring on a few images ...")
        known_rates = measure(costs, images)
    costs = replace(costs, rates=known_rates)
    if is_table:
        plans = [replace(costs, work=replace(work, n_target=n)) for n in SIZES]
        terminal.result([each.to_json() for each in plans], "\n".join(table_lines(plans)))
        return
    stages = [*costs.stages(), costs.total()]
    rows = [(each.name, time_text(each.seconds), size_text(int(each.memory)), size_text(each.disk)) for each in stages]
    title = f"{work.n_target:,} images, {work.n_labeled:,} labeled, {work.n_categories:,} categories"
    terminal.table(title + " (a guess)" * (not work.is_k_known), ("stage", "time", "memory", "disk"), rows)
    lines = [costs.steps_text() or "no training", costs.advice(), f"Rates: {costs.rates.about}."]
    terminal.result(costs.to_json(), "\n".join(lines))


def table_lines(plans: list[CostPlan]) -> Iterator[str]:
    """The costs by number of images, in Markdown."""
    from justright.runs.costs import time_text

    names = list(plans[0].seconds())
    yield f"| images | {' | '.join(names)} | memory | disk |"
    yield f"|---|{'---|' * len(names)}---|---|"
    for plan in plans:
        times, total = " | ".join(map(time_text, plan.seconds().values())), plan.total()
        yield f"| {plan.work.n_target:,} | {times} | {size_text(int(total.memory))} | {size_text(total.disk)} |"


def _class_sizes(given: str, n_classes: int | None) -> tuple[list[int], ImageSet | None]:
    """Number of images of each class, and the images; a number is split into classes of equal size."""
    import numpy as np

    from justright.runs.work import IMAGES_PER_CATEGORY

    if not given.replace("_", "").isdecimal():
        images = open_images(given)
        return np.unique(images.labels, return_counts=True)[1].tolist(), images
    n = int(given)
    n_classes = -(-n // IMAGES_PER_CATEGORY) if n_classes is None else n_classes
    return [(n + place) // n_classes for place in range(n_classes)] if n_classes else [n] * bool(n), None
