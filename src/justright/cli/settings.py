"""`justright settings`: the settings of a method."""

from __future__ import annotations

from dataclasses import asdict, fields

import click

from justright.cli.common import Command, NameOf, run_options
from justright.cli.terminal import Terminal, with_terminal
from justright.discovery.methods import METHODS
from justright.runs.spec import AUTO, OWN_OPTIONS, RunSpec, config_of, resolve_device, resolve_scale
from justright.utils.settings import ANYTHING


@click.command(cls=Command, tables={"Methods": METHODS})
@click.argument("method", metavar="METHOD", type=NameOf(METHODS))
@run_options("scale", "device")
@with_terminal
def settings(terminal: Terminal, method: str, scale: str, device: str) -> None:
    """List the settings of a method, with defaults.

    Each is changed with --set NAME=VALUE of `justright discover` and `justright plan`. Defaults are those of the scale.
    None stands for a value that depends on the number of images and categories.

    \b
    Examples:
      justright settings simgcd
      justright settings mugcd --scale paper
      justright settings gcd --json
    """
    resolved = resolve_scale(scale, resolve_device(device) if scale == AUTO else device)
    config = config_of(RunSpec(method=method, scale=resolved))
    defaults, records, rows = asdict(config), [], []
    for field in fields(config):
        if field.name in config.without_effect:  # `justright discover` rejects it
            continue
        default, about = defaults[field.name], field.metadata.get("about", "")
        expected = field.metadata.get("allowed", ANYTHING).expected
        records.append({"name": field.name, "default": default, "range": expected, "help": about})
        shown = f"its own {len(default)} settings" if isinstance(default, dict) else str(default)
        rows.append((field.name, shown, expected, about))
    terminal.table(f"Settings of {method} at --scale {resolved}", ("name", "default", "range", "what it is"), rows)
    names = {record["name"] for record in records}
    options = [f"{option} sets {name}" for name, option in OWN_OPTIONS.items() if name in names]
    text = f"--set NAME=VALUE changes one; in `justright discover`, {', '.join(options)}."
    terminal.result({"method": method, "scale": resolved, "settings": records}, text)
