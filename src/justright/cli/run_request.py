"""The options of training, which `discover`, `plan` and `settings` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from justright.cli.common import COUNT, NameOf
from justright.discovery.methods import METHODS
from justright.runs.request import HELD_OUT
from justright.runs.spec import AUTO, SCALES, RunSpec
from justright.utils.errors import JustrightError
from justright.utils.files import parsed_json

method_option = click.option(
    "--method", type=NameOf(METHODS), default=RunSpec.method, help="How the categories are learned; see below."
)
scale_option = click.option(
    "--scale",
    type=click.Choice([AUTO, *SCALES]),
    default=AUTO,
    help="Settings of the method. paper: exactly as published, with new views at every step; full: the same with views "
    "that are stored, which is quicker; small: fewer epochs and smaller heads; auto: small on a CPU, else full.",
)
epochs_option = click.option("--epochs", type=COUNT, help="Number of epochs; without it as many as --scale says.")
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change any other setting; may be repeated. `justright settings METHOD` lists them.",
)
WORDS = {"None": None, "True": True, "False": False}  # as help texts and defaults have them; JSON writes them otherwise


minutes_option = click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="Minutes that training may take, roughly; --seeds share them.",
)
held_out_option = click.option(
    "--held-out",
    type=click.FloatRange(0, 0.9),
    help="Share of the --labeled images that is kept out of training, to calibrate confidences on. "
    f"[default: {HELD_OUT}; with --scale paper 0]",
)
seeds_option = click.option(
    "--seeds", "n_seeds", type=COUNT, default=1, help="Train with so many seeds, which give one answer together."
)


def training_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --method, --scale, --epochs, --set, --minutes, --held-out and --seeds."""
    length = minutes_option(held_out_option(seeds_option(command)))
    return method_option(scale_option(epochs_option(set_option(length))))


def read_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE as a dictionary; a value is JSON or None, True, False where it can be read as such, else text."""
    found: dict[str, Any] = {}
    for each in settings:
        name, equals, value = each.partition("=")
        if not equals:
            raise JustrightError(f"--set {each}", expected="NAME=VALUE, such as --set views=8")
        try:
            found[name.replace("-", "_")] = parsed_json(value)
        except ValueError:
            found[name.replace("-", "_")] = WORDS.get(value, value)
    return found
