"""`justright cache`: the features kept by image content, and the room they take."""

from __future__ import annotations

from datetime import datetime

import click

from justright.cli.terminal import Terminal, with_terminal
from justright.features.cache import UNITS, FeatureCache


@click.group()
def cache() -> None:
    """List or remove the features that are kept for later runs.

    Features are kept so that no image is computed twice. They lie in the folder JUSTRIGHT_HOME, by default
    .cache/justright in your home. When they grow larger than JUSTRIGHT_CACHE_LIMIT, by default 20GB, those that were
    not used for the longest time are removed.

    \b
    Examples:
      justright cache list
      justright cache clear
      justright cache clear --backbone dinov2_vitb14
      justright cache clear --limit 10GB
    """


@cache.command("list")
@with_terminal
def show(terminal: Terminal) -> None:
    """List kept features by backbone, with size and last use."""
    kept = FeatureCache()
    sections = kept.sections()
    columns = ("name", "backbone", "pooling", "precision", "images", "size", "last used")
    rows = []
    for each in sections:
        used = f"{datetime.fromtimestamp(each['used']):%Y-%m-%d %H:%M}"
        rows.append([*(each[name] for name in columns[:5]), _size(each["bytes"]), used])
    if rows:
        terminal.table("Kept features", columns, rows)
    total = sum(each["bytes"] for each in sections)
    value = {"place": str(kept.root), "limit": kept.limit, "bytes": total, "sections": sections}
    terminal.result(value, f"{_size(total)} of at most {_size(kept.limit)} in {kept.root}")


@cache.command()
@click.option("--backbone", help="Remove only features of this backbone, or one line of `cache list` by its name.")
@click.option("--limit", metavar="SIZE", help="Keep this much, such as 500MB or 10GB; what was used longest ago goes.")
@with_terminal
def clear(terminal: Terminal, backbone: str | None, limit: str | None) -> None:
    """Remove kept features. They are computed again when needed."""
    kept = FeatureCache()
    freed = kept.clear(backbone, limit)
    terminal.result({"place": str(kept.root), "freed": freed}, f"{_size(freed)} freed in {kept.root}")


def _size(n_bytes: int) -> str:
    unit = next((unit for unit in reversed(UNITS) if n_bytes >= UNITS[unit]), "B")
    return f"{n_bytes / UNITS[unit]:.3g} {unit}"
