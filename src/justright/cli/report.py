"""`justright report`: a page about one run, or a comparison of several."""

from __future__ import annotations

from pathlib import Path

import click

from justright.cli.common import EXISTING_FOLDER, OUT_FILE
from justright.cli.terminal import Terminal, with_terminal
from justright.runs.run_folder import RunFolder


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=EXISTING_FOLDER)
@click.option(
    "--out", type=OUT_FILE, help="File for the page. [default: RUN/report.html, or comparison.html for several]"
)
@with_terminal
def report(terminal: Terminal, runs: tuple[Path, ...], out: Path | None) -> None:
    """Write a page about a run, or one that compares several.

    RUN is a folder that `justright discover` wrote; the page of an unfinished run shows what is available. The page is
    one file below 10 MB that needs no network.

    \b
    Examples:
      justright report run
      justright report run --out run.html
      justright report run-none run-beta --out compare.html
      justright report runs/* --out compare.html --json
    """
    folders = [RunFolder.open(path) for path in runs]
    if len(folders) == 1:
        from justright.report.elements import optional
        from justright.report.run_report import write_report  # matplotlib is slow to import

        (run,) = folders
        page = write_report(run, out)
        scores = optional(lambda: run.scores)
        value = {name: run.about.get(name) for name in ("method", "selector", "seed", "n_categories", "k_source")}
        value["scores"], text = (None, "") if scores is None else (scores.to_dict(), str(scores))
    else:
        from justright.report.comparison import Comparison, write_comparison

        comparison, page = Comparison.of(folders), out or Path("comparison.html")
        write_comparison(comparison, page)
        against = f"points against {comparison.baseline_title}"
        lines = [
            f"{group.name}: {change.group.capitalize()} {change} {against}, {change.verdict()}"
            for group, changes in comparison.changes()
            for change in changes
        ]
        lines += [f"{' and '.join(pair.names)}: {pair}" for pair in comparison.agreement.pairs]
        value, text = comparison.to_json(), "\n".join([*lines, *comparison.warnings()])
    size = page.stat().st_size
    terminal.say(f"Written: {page} ({size / 1_000_000:.1f} MB)")
    terminal.result({"written": str(page), "bytes": size} | value, text)
