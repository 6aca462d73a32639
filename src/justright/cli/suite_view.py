"""Print a suite: its settings compared, or a table of the paper with its claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from justright.benchmark.claims import Verdict, verdicts
from justright.benchmark.paper import paper_table
from justright.benchmark.results import RESULTS, Line, failed_runs, read_results, remarks, suite_results
from justright.benchmark.suite import Suite, read_suite
from justright.benchmark.summary import paired, problem_rows, suite_table
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
    settings_table,
    text_tables,
)
from justright.cli.terminal import Terminal
from justright.utils.errors import JustrightError
from justright.utils.files import write_text

FORMATS = (".md", ".tex", ".csv", ".html")
PLAIN_NOTES = (
    "The first table: means over problems, and the change against the baseline with its 95 % interval over them.",
    "Claims: differences over problems, corrected for their number by Holm's method.",
    "Single problems: mean and standard deviation over seeds.",
)

Shown = tuple[list[TextTable], dict[str, Any], str]  # tables, their numbers for JSON, and a remark


def show_suite(
    terminal: Terminal, suite: Suite, lines: list[Line], out: Path, backbone: str | None, to: Path | None = None
) -> None:
    """Print the finished runs of the suite, and write its tables to `to` if given."""
    path = out / RESULTS
    for line in failed_runs(suite, out):
        terminal.say(f"No result: {line['problem']}, {line['setting']}, seed {line['seed']}: {line['failed']}")
    for remark in remarks(suite, lines):
        terminal.say(remark)
    if not lines and (n_others := len(read_results(path))):
        terminal.say(
            f"None of the {n_others:,} lines in {path} belongs to {suite.name} as requested; --profile and "
            "--backbone must be those of `benchmark run`."
        )
    if suite.columns:
        tables, value, text = _paper_tables(suite, lines, _paper_verdicts(suite, lines, out, backbone), to)
    else:
        tables, value, text = _plain_tables(suite, lines, to)
    for each in tables:
        terminal.table(each.title, each.columns, each.rows)
    terminal.result({"lines": lines} | value, f"{text}Lines: {path}")


def _paper_tables(suite: Suite, lines: list[Line], judged: list[Verdict], to: Path | None) -> Shown:
    """A table of the paper for each target, then the claims."""
    table = paper_table(suite, lines)
    tables, claims = text_tables(table), claims_table(suite.name, judged)
    shown = [*tables, claims] if claims else tables
    if to is not None and to.suffix.lower() == ".html":
        from justright.report.paper_figures import write_suite_page  # matplotlib is slow to import

        write_suite_page(table, tables, claims, to)
    elif to is not None:
        _write(to, shown, as_csv(table, judged), notes(table), table.doubts)
    value = {"table": records(table), "claims": [asdict(each) for each in judged]}
    return shown, value, " ".join([f"{len(lines)} runs.", *notes(table), ""])


def _plain_tables(suite: Suite, lines: list[Line], to: Path | None) -> Shown:
    """Means over the problems of a suite that is no table of the paper, its claims, then every problem."""
    rows, by_problem = suite_table(suite, lines), problem_rows(suite, lines)
    judged = verdicts(suite, lines, lambda name: (suite, lines))
    claims = claims_table(suite.name, judged)
    means = settings_table(f"{len(lines)} runs, accuracy in percent", rows)
    tables = [means, *([claims] if claims else []), *problem_tables(by_problem)]
    if to is not None:
        _write(to, tables, problems_as_csv(by_problem), PLAIN_NOTES)
    value = {"rows": [asdict(row) for row in rows], "problems": by_problem}
    return tables, value | {"claims": [asdict(each) for each in judged]}, ""


def _write(
    to: Path, tables: Sequence[TextTable], as_csv: str, notes: Sequence[str], doubts: Sequence[str] = ()
) -> None:
    """Write the tables in the format of the file name's ending."""
    ending = to.suffix.lower()
    as_text = latex if ending == ".tex" else markdown
    write_text(to, as_csv if ending == ".csv" else as_text(tables, notes, doubts))


def _paper_verdicts(suite: Suite, lines: Sequence[Line], out: Path, backbone: str | None) -> list[Verdict]:
    """Verdicts with the pool as rivals, then with the pool as a guide if such runs exist."""

    def others(name: str) -> tuple[Suite, Sequence[Line]]:
        other = read_suite(name, suite.profile).with_run(backbone=backbone)
        return other, suite_results(other, out)

    judged = verdicts(suite, lines, others)
    guides = {each.name for each in suite.settings if each.is_guide}
    if any(line["setting"] in guides for line in lines):
        judged += verdicts(suite, lines, others, is_guide=True)
    return judged


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
