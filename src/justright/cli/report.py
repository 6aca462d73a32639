"""`justright report`: what did a run find, and how do several compare?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from justright.cli.common import FILE
from justright.cli.terminal import Terminal, with_terminal
from justright.runs.run_folder import RunFolder


@click.command()
@click.argument(
    "runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.option("--out", type=FILE, help="File for the page. [default: RUN/report.html, or comparison.html for several]")
@click.option(
    "--map",
    "kind",
    type=click.Choice(["pca", "tsne"]),
    default="pca",
    help="How features become a map in two dimensions. tsne keeps neighbors together better, and takes seconds longer.",
)
@with_terminal
def report(terminal: Terminal, runs: tuple[Path, ...], out: Path | None, kind: Any) -> None:
    """Write a page about a run, or one that compares several.

    RUN is a folder that `justright discover` wrote; of an unfinished run the page shows what is there. The page is one
    file below 10 MB that needs no network.

    \b
    Examples:
      justright report run
      justright report run --map tsne --out run.html
      justright report run-none run-beta --out compare.html
      justright report runs/* --out compare.html --json
    """
    folders = [RunFolder.open(path) for path in runs]
    if len(folders) == 1:
        place, value, text = _one(terminal, folders[0], out, kind)
    else:
        place, value, text = _several(folders, out or Path("comparison.html"))
    size = place.stat().st_size
    terminal.say(f"Written: {place} ({size / 1_000_000:.1f} MB)")
    terminal.result({"written": str(place), "bytes": size} | value, text)


def _one(terminal: Terminal, run: RunFolder, out: Path | None, kind: Any) -> tuple[Path, dict[str, Any], str]:
    from justright.report.reading import optional
    from justright.report.run_report import write_report  # matplotlib is slow to import

    place = write_report(run, out, kind, terminal.track)
    found = optional(lambda: run.scores)
    about = {name: run.about.get(name) for name in ("method", "selector", "seed", "n_categories", "k_source")}
    return place, about | {"scores": None if found is None else found.to_dict()}, "" if found is None else str(found)


def _several(folders: list[RunFolder], out: Path) -> tuple[Path, dict[str, Any], str]:
    from justright.report.comparison import Comparison
    from justright.report.comparison_page import write_comparison  # matplotlib is slow to import

    comparison = Comparison.of(folders)
    write_comparison(comparison, out)
    lines = [
        f"{group.name}: {each.group.capitalize()} {each} points against {comparison.baseline_title}, {each.verdict()}"
        for group, changes in comparison.changes()
        for each in changes
    ]
    return out, comparison.to_json(), "\n".join([*lines, *comparison.warnings()])
