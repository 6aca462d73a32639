"""`justright plan`: time, memory and disk of a run, before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from justright.cli.common import COUNT, FILE, SOURCES, Command, device_option, settled_device
from justright.cli.run_request import chosen_scale, read_settings, training_options
from justright.cli.terminal import Terminal, with_terminal
from justright.data import ImageSet, open_images
from justright.discovery.methods import METHODS
from justright.errors import JustrightError
from justright.files import size_text
from justright.runs.costs import CostPlan, Rates, Work, time_text
from justright.runs.spec import AUTO, RunSpec, config_of

SIZES = tuple(10**power for power in range(4, 10))
HEADINGS = {"target": "Images", "backbone": "Network and training", "rates": "Output"}


@click.command(cls=Command, headings=HEADINGS, tables={"Methods": METHODS, "Images are a number, or": SOURCES})
@click.option("--target", required=True, metavar="N|SOURCE", help="The unlabeled images, or their number.")
@click.option("--labeled", default="0", metavar="N|SOURCE", help="Labeled images of all kinds, or their number.")
@click.option("--classes", "n_classes", type=click.IntRange(0), help="Number of classes, if --labeled is a number.")
@click.option("--k", "n_categories", type=click.IntRange(2), default=200, help="Number of categories in the target.")
@click.option("--devices", "n_devices", type=COUNT, default=1, help="Number of machines or GPUs in use.")
@click.option("--backbone", default=AUTO, help="As in `justright discover`; its checkpoint is not needed here.")
@click.option("--img-size", type=click.IntRange(16), help="Scale images to this many pixels, not the backbone's own.")
@device_option
@training_options
@click.option("--rates", type=FILE, help="File with what an earlier call printed with --json, in place of measuring.")
@click.option("--table", "is_table", is_flag=True, help="Print a Markdown table, for ten thousand to a billion images.")
@with_terminal
def plan(
    terminal: Terminal,
    target: str,
    labeled: str,
    n_classes: int | None,
    n_categories: int,
    n_devices: int,
    backbone: str,
    img_size: int | None,
    device: str,
    method: str,
    scale: str,
    epochs: int | None,
    settings: tuple[str, ...],
    rates: Path | None,
    is_table: bool,
) -> None:
    """Tell what a run would cost: time, memory and disk.

    Each stage of the run is tried on a few images, your own where they are given and drawn ones else, which takes some
    seconds. The rest is multiplication: disk is exact, time assumes that twice the images take twice as long.

    \b
    Examples:
      justright plan --target photos/ --labeled birds/
      justright plan --target 1000000 --labeled 50000 --classes 500 --k 1000
      justright plan --target 1000000 --device cuda --devices 8 --set views=2
      justright plan --target 10000 --json > rates.json
      justright plan --target 10000 --rates rates.json --table
    """
    from justright.features.automatic import foreseen_backbone
    from justright.features.backbone import random_backbone
    from justright.features.feature_network import usable
    from justright.runs.measured_rates import measure

    known = None if rates is None else Rates.read(rates)
    device = settled_device(terminal, device)
    asked = ({"n_epochs": epochs} if epochs else {}) | read_settings(settings)  # as in discover
    config = config_of(RunSpec(method=method, scale=chosen_scale(scale, device), settings=asked))
    own, n_target, _ = _counted(target)
    _, n_labeled, n_found = _counted(labeled)
    if not n_target:
        raise JustrightError("0 images in the target", expected="at least one")
    if backbone == AUTO:
        backbone, why = foreseen_backbone(device)
        terminal.say(f"Network: {backbone} ({why}).")
    network = random_backbone(backbone, usable(device), img_size)
    if known is None:
        terminal.say("Measuring on a few images ...")
        known = measure(network, method, config, own, track=terminal.track)
    work = Work(n_target, n_labeled, n_found if n_classes is None else n_classes, n_categories, n_devices)
    costs = CostPlan(work, known, method, config, network)
    if is_table:
        plans = [replace(costs, work=replace(work, n_target=n)) for n in SIZES]
        terminal.result([each.to_json() for each in plans], "\n".join(table_lines(plans)))
        return
    stages = [*costs.stages(), costs.total()]
    rows = [(each.name, time_text(each.seconds), size_text(int(each.memory)), size_text(each.disk)) for each in stages]
    terminal.table(f"{n_target:,} images, {n_labeled:,} labeled", ("stage", "time", "memory", "disk"), rows)
    terminal.result(costs.to_json(), "\n".join([*costs.advice(), f"Rates: {known.about}."]))


def table_lines(plans: list[CostPlan]) -> Iterator[str]:
    """The costs by number of images, in Markdown."""
    names = list(plans[0].seconds())
    yield f"| images | {' | '.join(names)} | memory | disk |"
    yield f"|---|{'---|' * len(names)}---|---|"
    for plan in plans:
        times, total = " | ".join(map(time_text, plan.seconds().values())), plan.total()
        yield f"| {plan.work.n_target:,} | {times} | {size_text(int(total.memory))} | {size_text(total.disk)} |"


def _counted(given: str) -> tuple[ImageSet | None, int, int]:
    """The images of a source, how many they are, and how many classes they have; or the number that was given."""
    if given.replace("_", "").isdecimal():
        return None, int(given), 0
    images = open_images(given)
    return images, len(images), len(images.classes)
