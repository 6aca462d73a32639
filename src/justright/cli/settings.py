"""`justright settings`: the settings of a method."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

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
    records = setting_records(config_of(RunSpec(method=method, scale=resolved)))
    rows = []
    for record in records:
        default = record["default"]
        shown = f"its own {len(default)} settings" if isinstance(default, dict) else str(default)
        rows.append((record["name"], shown, record["range"], record["help"]))
    terminal.table(f"Settings of {method} at --scale {resolved}", ("name", "default", "range", "what it is"), rows)
    names = {record["name"] for record in records}
    options = [f"{option} sets {name}" for name, option in OWN_OPTIONS.items() if name in names]
    text = f"--set NAME=VALUE changes one; in `justright discover`, {', '.join(options)}."
    terminal.result({"method": method, "scale": resolved, "settings": records}, text)


def setting_records(config: Any) -> list[dict[str, Any]]:
    """Name, value, range and help of every setting of a config; a nested config is a dictionary.

    Settings without effect are left out: `justright discover` rejects them.
    """
    values = asdict(config)
    return [
        {
            "name": field.name,
            "default": values[field.name],
            "range": field.metadata.get("allowed", ANYTHING).expected,
            "help": field.metadata.get("about", ""),
        }
        for field in fields(config)
        if field.name not in config.without_effect()
    ]
