"""`justright cache`: features and view banks that are kept for later runs, and their size."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from justright.cli.terminal import Terminal, with_terminal
from justright.features.cache import Cache, FeatureCache, KeptBanks, parse_size
from justright.utils.files import bytes_of, home, leftovers, remove_leftovers, size_text


@click.group()
def cache() -> None:
    """List or remove what is kept for later runs.

    Features are kept so that no image is computed twice, view banks so that a second training reuses the views of the
    first. They are in the folder JUSTRIGHT_HOME, by default .cache/justright in your home. When features grow larger
    than JUSTRIGHT_CACHE_LIMIT, by default 20GB, or banks larger than JUSTRIGHT_BANK_LIMIT, by default 100GB, the least
    recently used are removed, but none that a run reads.

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
    """List kept features and banks, with size and last use."""
    features, banks, half_written = FeatureCache(), KeptBanks(), leftovers(home())
    feature_sections, bank_sections = features.sections(), banks.sections()
    _show(terminal, "Kept features", features, feature_sections)
    _show(terminal, "Kept view banks", banks, bank_sections)
    n_bytes = sum(section["bytes"] for section in feature_sections)
    n_bank_bytes = sum(section["bytes"] for section in bank_sections)
    value = {
        "place": str(features.root),
        "limit": features.limit,
        "bytes": n_bytes,
        "sections": feature_sections,
        "banks": {"place": str(banks.root), "limit": banks.limit, "bytes": n_bank_bytes, "banks": bank_sections},
        "leftovers": {"files": list(map(str, half_written)), "bytes": bytes_of(*half_written)},
    }
    lines = [
        f"{size_text(n_bytes)} of at most {size_text(features.limit)} in {features.root}",
        f"{size_text(n_bank_bytes)} of at most {size_text(banks.limit)} in {banks.root}",
    ]
    if half_written:
        size = size_text(bytes_of(*half_written))
        lines.append(f"{size} half-written by processes that were killed; `cache clear` removes it")
    terminal.result(value, "\n".join(lines))


@cache.command()
@click.option("--backbone", help="Remove only the files of this backbone, or one line of `cache list` by its name.")
@click.option(
    "--limit",
    metavar="SIZE",
    help="Size to keep, such as 500MB or 10GB; the least recently used files are removed first.",
)
@with_terminal
def clear(terminal: Terminal, backbone: str | None, limit: str | None) -> None:
    """Remove kept features and banks. They are computed again when needed.

    Half-written files of killed processes are always removed. With --limit banks are removed before features, which are
    smaller and took as long to compute. Banks that a run reads are kept, and so are files that are being written, on
    this machine or on another one that shares the folder.
    """
    features, n_kept = FeatureCache(), 0 if limit is None else parse_size(limit)
    half_written = bytes_of(*leftovers(home()))
    remove_leftovers(home())
    sections = [*features.sections(), *KeptBanks().sections()]
    if backbone is not None and not any(backbone in (each["backbone"], each["name"]) for each in sections):
        terminal.say(f"Nothing is kept of {backbone}; `justright cache list` has the names.")
    chosen = [each for each in features.sections() if backbone in (None, each["backbone"], each["name"])]
    n_feature_bytes = sum(section["bytes"] for section in chosen)
    bank_bytes = KeptBanks().clear(backbone, max(0, n_kept - n_feature_bytes))
    freed = {"features": features.clear(backbone, n_kept), "banks": bank_bytes, "leftovers": half_written}
    total = sum(freed.values())
    parts = ", ".join(f"{name} {size_text(n_bytes)}" for name, n_bytes in freed.items())
    terminal.result({"place": str(home()), "freed": total, **freed}, f"{size_text(total)} freed in {home()}: {parts}")


def _show(terminal: Terminal, title: str, cache: Cache, sections: list[dict[str, Any]]) -> None:
    names = ("name", *cache.columns, cache.unit)
    rows = []
    for section in sections:
        used = f"{datetime.fromtimestamp(section['used']):%Y-%m-%d %H:%M}"
        rows.append([*(section[name] for name in names), size_text(section["bytes"]), used])
    if rows:
        terminal.table(title, (*names, "size", "last used"), rows)
