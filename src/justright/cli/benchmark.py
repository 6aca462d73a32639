"""`justright benchmark`: many runs, compared."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from justright.benchmark.suite import Suite, read_suite, suite_names
from justright.benchmark.suite_runner import Line, failed_runs, run_suite, suite_results
from justright.benchmark.suite_table import COLUMNS, paired, suite_table
from justright.cli.common import FILE, FOLDER, engine_option
from justright.cli.terminal import Terminal, with_terminal
from justright.engines import ENGINES
from justright.files import write_text


@click.group()
def benchmark() -> None:
    """Run many problems, settings and seeds, and compare them.

    A suite is a TOML file that lists problems and settings. Every setting is run on every problem, with several seeds.

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
    """List the suites that come with the package."""
    rows = [
        (each.name, len(each.problems), sum(len(list(each.runs_of(problem))) for problem in each.problems), each.about)
        for each in map(read_suite, suite_names())
    ]
    terminal.table("Suites", ("name", "problems", "runs", "what it asks"), rows)
    terminal.result([dict(zip(("name", "problems", "runs", "about"), row, strict=True)) for row in rows])


@benchmark.command()
@click.argument("suite")
@click.option("--out", type=FOLDER, required=True, help="Folder for the results and the runs.")
@click.option("--data", type=FOLDER, help="Folder with the data sets, where the file of the suite says {data}.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="How many problems to run at once, a process each.")
@click.option("--only", multiple=True, metavar="PROBLEM", help="Run only this problem; may be given several times.")
@engine_option
@with_terminal
def run(
    terminal: Terminal, suite: str, out: Path, data: Path | None, jobs: int, only: tuple[str, ...], engine: str
) -> None:
    """Run what is missing of a suite.

    SUITE is a name that `justright benchmark list` shows, or a TOML file. Each finished run adds a line of JSON to
    OUT/results.jsonl. Call it again to continue after a stop: runs that have a line are not repeated, unless their
    settings have changed. With --engine processes or ray a problem whose worker is lost is run again.

    \b
    Examples:
      justright benchmark run selection --out study --jobs 2
      justright benchmark run my-suite.toml --out study --data DATA --only pets
      justright benchmark run selection --out study --engine ray --jobs 4
    """
    asked = read_suite(suite)
    with nullcontext() if engine == "local" else ENGINES[engine](jobs) as elsewhere:
        lines = run_suite(asked, out, data=data, n_jobs=jobs, only=only, engine=elsewhere, track=terminal.track)
    _show(terminal, asked, lines, out)


@benchmark.command()
@click.argument("suite")
@click.option("--out", type=FOLDER, required=True, help="Folder that `benchmark run` wrote to.")
@click.option("--part", help="Show only problems of this part, such as choose or judge.")
@click.option("--baseline", metavar="SETTING", help="Compare with this setting instead of the suite's own baseline.")
@click.option("--figure", type=FILE, help="File for a figure of the differences, as SVG.")
@with_terminal
def show(
    terminal: Terminal, suite: str, out: Path, part: str | None, baseline: str | None, figure: Path | None
) -> None:
    """Compare the settings of a suite, as far as it was run.

    SUITE is a name that `justright benchmark list` shows, or a TOML file.

    \b
    Examples:
      justright benchmark show selection --out study
      justright benchmark show selection --out study --part judge
      justright benchmark show selection --out study --figure changes.svg
      justright benchmark show selection --out study --baseline everything
    """
    asked = read_suite(suite)
    if baseline is not None:
        asked = asked.against(baseline)
    lines = [line for line in suite_results(asked, out) if part is None or line["part"] == part]
    if figure is not None:
        from justright.report.drawing import to_svg
        from justright.report.run_figures import draw_suite  # matplotlib is slow to import

        by_problem = {each.name: paired(lines, each.name, asked.baseline, "all") for each in asked.settings}
        write_text(figure, to_svg(draw_suite(suite_table(asked, lines), by_problem, asked.baseline)))
    _show(terminal, asked, lines, out)


def _show(terminal: Terminal, suite: Suite, lines: list[Line], out: Path) -> None:
    for line in failed_runs(suite, out):
        terminal.say(f"No answer: {line['problem']}, {line['setting']}, seed {line['seed']}: {line['failed']}")
    rows = suite_table(suite, lines)
    terminal.table(f"{len(lines)} runs, accuracy in percent", COLUMNS, [row.cells() for row in rows])
    terminal.result({"lines": lines, "rows": [row.to_json() for row in rows]}, f"Lines: {out / 'results.jsonl'}")
