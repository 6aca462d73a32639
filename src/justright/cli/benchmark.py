"""`justright benchmark`: many runs, compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from justright.cli.terminal import Terminal, with_terminal
from justright.files import write_text

if TYPE_CHECKING:
    from justright.benchmark.suite import Suite
    from justright.benchmark.suite_runner import Line

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group()
def benchmark() -> None:
    """Run a suite of problems and settings with several seeds, and compare.

    \b
    Examples:
      justright benchmark list
      justright benchmark run selection --out study --jobs 2
      justright benchmark show selection --out study
      justright benchmark run my-suite.toml --out mine --data DATA
    """


@benchmark.command("list")
@with_terminal
def list_suites(terminal: Terminal) -> None:
    """Show the suites that come with the package."""
    from justright.benchmark.suite import read_suite, suite_names

    suites = [read_suite(name) for name in suite_names()]
    rows = [
        (each.name, len(each.problems), sum(len(list(each.runs_of(problem))) for problem in each.problems), each.about)
        for each in suites
    ]
    terminal.table("Suites", ("name", "problems", "runs", "what it asks"), rows)
    terminal.result([dict(zip(("name", "problems", "runs", "about"), row, strict=True)) for row in rows])


@benchmark.command()
@click.argument("suite")
@click.option("--out", type=FOLDER, required=True, help="Folder of results.jsonl and of the runs.")
@click.option("--data", type=FOLDER, help="Folder of the data sets that the suite names.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Problems at once, a process each.")
@click.option("--only", multiple=True, help="Name of a problem; may be given several times.")
@with_terminal
def run(terminal: Terminal, suite: str, out: Path, data: Path | None, jobs: int, only: tuple[str, ...]) -> None:
    """Run what is missing of SUITE, the name of one or a file; a line of JSON a run goes to OUT/results.jsonl.

    Stopped, it goes on where it was: runs that have a line are not repeated, unless their settings have changed.

    \b
    Examples:
      justright benchmark run selection --out study --jobs 2
      justright benchmark run selection-photos --out study --data DATA --only pets
    """
    from justright.benchmark.suite import read_suite
    from justright.benchmark.suite_runner import run_suite

    asked = read_suite(suite)
    lines = run_suite(asked, out, data=data, n_jobs=jobs, only=only, track=terminal.track)
    _show(terminal, asked, lines, out)


@benchmark.command()
@click.argument("suite")
@click.option("--out", type=FOLDER, required=True, help="Folder of results.jsonl.")
@click.option("--part", help="Problems of this part only, such as judge.")
@click.option("--baseline", help="Compare with this setting instead of the one that the suite names.")
@click.option("--figure", type=click.Path(path_type=Path, dir_okay=False), help="Where a picture of it goes, as SVG.")
@with_terminal
def show(
    terminal: Terminal, suite: str, out: Path, part: str | None, baseline: str | None, figure: Path | None
) -> None:
    """Compare what is there of SUITE.

    \b
    Examples:
      justright benchmark show selection --out study
      justright benchmark show selection --out study --part judge --figure judged.svg
      justright benchmark show selection --out study --baseline everything
    """
    from justright.benchmark.suite import read_suite
    from justright.benchmark.suite_runner import suite_results

    asked = read_suite(suite)
    if baseline is not None:
        asked = asked.against(baseline)
    lines = [line for line in suite_results(asked, out) if part is None or line["part"] == part]
    if figure is not None:
        _draw(asked, lines, figure)
    _show(terminal, asked, lines, out)


def _draw(suite: Suite, lines: list[Line], path: Path) -> None:
    from justright.benchmark.suite_table import paired, suite_table
    from justright.evaluation.figures import to_svg
    from justright.report.score_figures import draw_suite  # matplotlib is slow to import

    by_problem = {each.name: paired(lines, each.name, suite.baseline, "all") for each in suite.settings}
    write_text(path, to_svg(draw_suite(suite_table(suite, lines), by_problem, suite.baseline)))


def _show(terminal: Terminal, suite: Suite, lines: list[Line], out: Path) -> None:
    from justright.benchmark.suite_runner import failed_runs
    from justright.benchmark.suite_table import COLUMNS, suite_table

    for line in failed_runs(suite, out):
        terminal.say(f"No answer: {line['problem']}, {line['setting']}, seed {line['seed']}: {line['failed']}")
    rows = suite_table(suite, lines)
    terminal.table(f"{len(lines)} runs, accuracy in percent", COLUMNS, [row.cells() for row in rows])
    terminal.result({"lines": lines, "rows": [row.to_json() for row in rows]}, f"Lines: {out / 'results.jsonl'}")
