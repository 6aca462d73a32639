"""Print a suite: its settings compared, or a table of the paper with its claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from justright.benchmark.claims import Verdict, verdicts
from justright.benchmark.paper import PaperTable, paper_table
from justright.benchmark.results import RESULTS, Line, failed_runs, read_results, remarks, suite_results
from justright.benchmark.suite import Suite, read_suite
from justright.benchmark.summary import COLUMNS, paired, problem_rows, suite_table
from justright.benchmark.tables import (
    TextTable,
    as_csv,
    claims_table,
    latex,
    markdown,
    notes,
    problem_tables,
    problems_as_csv,
    records,
    text_tables,
)
from justright.cli.common import expect_ending
from justright.cli.terminal import Terminal
from justright.utils.errors import JustrightError
from justright.utils.files import write_text

FORMATS = (".md", ".tex", ".csv", ".html")
PLAIN_NOTES = (
    "The first table: means over problems, and the change against the baseline with its 95 % interval over them.",
    "Claims: differences over problems, corrected for their number by Holm's method.",
    "Single problems: mean and standard deviation over seeds.",
)


def requested_suite(name: str, profile: str | None, backbone: str | None = None) -> Suite:
    """The suite, with another network if one is given."""
    return read_suite(name, profile).with_run(backbone=backbone)


def show_suite(
    terminal: Terminal,
    suite: Suite,
    lines: list[Line],
    out: Path,
    backbone: str | None,
    to: Path | None = None,
) -> None:
    """Print the finished runs of the suite, and write its table to `to` if given."""
    for line in failed_runs(suite, out):
        terminal.say(f"No result: {line['problem']}, {line['setting']}, seed {line['seed']}: {line['failed']}")
    for remark in remarks(suite, lines):
        terminal.say(remark)
    source = f"Lines: {out / RESULTS}"
    if not lines and (n_others := len(read_results(out / RESULTS))):
        terminal.say(
            f"None of the {n_others:,} lines in {out / RESULTS} belongs to {suite.name} as requested; --profile and "
            "--backbone must be those of `benchmark run`."
        )
    if not suite.columns:
        _show_plain(terminal, suite, lines, source, to)
        return
    judged = _verdicts(suite, lines, out, backbone)
    table = paper_table(suite, lines)
    tables, claims = text_tables(table), claims_table(suite.name, judged)
    if to is not None:
        _write(to, suite, table, tables, claims, judged)
    for each in (*tables, *([claims] if claims else [])):
        terminal.table(each.title, each.columns, each.rows)
    text = " ".join([f"{len(lines)} runs.", *notes(table), source])
    result = {"lines": lines, "table": records(table), "claims": [asdict(each) for each in judged]}
    terminal.result(result, text)


def _show_plain(terminal: Terminal, suite: Suite, lines: list[Line], source: str, to: Path | None) -> None:
    """A suite that is no table of the paper: the mean over its problems, then every problem."""
    rows, by_problem = suite_table(suite, lines), problem_rows(suite, lines)
    title = f"{len(lines)} runs, accuracy in percent"
    whole = TextTable(title, COLUMNS, [tuple(map(str, row.cells())) for row in rows])
    judged = verdicts(suite, lines, lambda name: (suite, lines)) if suite.claims else []
    claims = claims_table(suite.name, judged)
    tables = [whole, *([claims] if claims else []), *problem_tables(by_problem)]
    if to is not None:
        ending = _ending(to, suite)
        text = latex if ending == "tex" else markdown
        write_text(to, problems_as_csv(by_problem) if ending == "csv" else text(tables, PLAIN_NOTES))
    for each in tables:
        terminal.table(each.title, each.columns, each.rows)
    result = {"lines": lines, "rows": [row.to_json() for row in rows], "problems": by_problem}
    terminal.result(result | {"claims": [asdict(each) for each in judged]}, source)


def draw_suite_figure(suite: Suite, lines: Sequence[Line], out: Path) -> None:
    """Write the figure of a suite as SVG: for a table of the paper its own, else the change of every setting."""
    from justright.report.drawing import to_svg
    from justright.report.paper_figures import draw_paper
    from justright.report.run_figures import draw_suite  # matplotlib is slow to import

    if suite.columns:
        drawn, _ = draw_paper(paper_table(suite, lines))
        if drawn is None:
            raise JustrightError(f"--figure {out}: no run of {suite.name} to draw")
    else:
        by_problem = {each.name: paired(lines, each.name, suite.baseline, "all") for each in suite.settings}
        drawn = draw_suite(suite_table(suite, lines), by_problem, suite.baseline)
    write_text(out, to_svg(drawn))


def _write(
    to: Path,
    suite: Suite,
    table: PaperTable,
    tables: list[TextTable],
    claims: TextTable | None,
    judged: Sequence[Verdict],
) -> None:
    """Write the table in the format of the file name's ending."""
    every = [*tables, *([claims] if claims else [])]
    ending = _ending(to, suite)
    if ending == "html":
        from justright.report.paper_figures import write_suite_page

        write_suite_page(table, tables, claims, to)
    elif ending == "csv":
        write_text(to, as_csv(table, judged))
    else:
        write_text(to, (latex if ending == "tex" else markdown)(every, notes(table), table.doubts))


def table_endings(suite: Suite) -> tuple[str, ...]:
    """The allowed endings of a file for the tables of a suite; only a table of the paper has an HTML page."""
    return FORMATS if suite.columns else FORMATS[:-1]


def _ending(to: Path, suite: Suite) -> str:
    expect_ending(to, table_endings(suite), f"a table as {to}")
    return to.suffix[1:].lower()


def _verdicts(suite: Suite, lines: Sequence[Line], out: Path, backbone: str | None) -> list[Verdict]:
    def others(name: str) -> tuple[Suite, Sequence[Line]]:
        other = requested_suite(name, suite.profile, backbone)
        return other, suite_results(other, out)

    found = verdicts(suite, lines, others)
    guides = {each.name for each in suite.settings if each.is_guide}
    if any(line["setting"] in guides for line in lines):
        found += verdicts(suite, lines, others, is_guide=True)
    return found
