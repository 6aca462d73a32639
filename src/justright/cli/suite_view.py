"""What `justright benchmark` shows of a suite: its settings compared, or a table of the paper with its claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from justright.benchmark.paper_table import paper_table
from justright.benchmark.problem_table import problem_rows, problem_tables, problems_as_csv
from justright.benchmark.suite import Suite, read_suite
from justright.benchmark.suite_line import Line
from justright.benchmark.suite_results import RESULTS, failed_runs, read_results, remarks, suite_results
from justright.benchmark.suite_table import COLUMNS, paired, suite_table
from justright.benchmark.table_csv import as_csv, records
from justright.benchmark.table_text import TextTable, claims_table, latex, markdown, notes, text_tables
from justright.benchmark.verdicts import Verdict, verdicts
from justright.cli.terminal import Terminal
from justright.errors import JustrightError
from justright.files import write_text

FORMATS = ("md", "tex", "csv", "html")
PLAIN_NOTES = [
    "The first table: means over problems, and the change against the baseline with its 95 % interval over them.",
    "The others: mean and standard deviation over seeds.",
]


def asked_suite(name: str, profile: str | None, backbone: str | None = None) -> Suite:
    """The suite, with another network where one was named."""
    return read_suite(name, profile).with_run(backbone=backbone)


def show_suite(
    terminal: Terminal,
    suite: Suite,
    lines: list[Line],
    out: Path,
    backbone: str | None,
    to: Path | None = None,
) -> None:
    """Print the suite as far as it was run, and write its tables where that is asked for.

    A table of the paper is shown with its claims, another suite as the mean over its problems, then every problem.
    """
    for line in failed_runs(suite, out):
        terminal.say(f"No answer: {line['problem']}, {line['setting']}, seed {line['seed']}: {line['failed']}")
    for remark in remarks(suite, lines):
        terminal.say(remark)
    if not lines and (n_others := len(read_results(out / RESULTS))):
        terminal.say(
            f"None of the {n_others:,} lines in {out / RESULTS} is of {suite.name} as asked for; --profile and "
            "--backbone have to be those of `benchmark run`."
        )
    said, claims, doubts = [f"Lines: {out / RESULTS}"], None, list[str]()
    table = paper_table(suite, lines) if suite.columns else None
    if table is not None:
        judged = _verdicts(suite, lines, out, backbone)
        tables, claims, footnotes, doubts = text_tables(table), claims_table(table, judged), notes(table), table.doubts
        csv, said = as_csv(table, judged), [f"{len(lines)} runs.", *footnotes, *said]
        found = {"table": records(table), "claims": [each.to_json() for each in judged]}
    else:
        rows, by_problem = suite_table(suite, lines), problem_rows(suite, lines)
        title = f"{len(lines)} runs, accuracy in percent"
        whole = TextTable(title, COLUMNS, [tuple(map(str, row.cells())) for row in rows])
        tables, footnotes, csv = [whole, *problem_tables(by_problem)], PLAIN_NOTES, problems_as_csv(by_problem)
        found = {"rows": [row.to_json() for row in rows], "problems": [row.to_json() for row in by_problem]}
    every = [*tables, *([claims] if claims else [])]
    if to is not None:
        ending = _ending(to, FORMATS[:-1] if table is None else FORMATS)
        if table is not None and ending == "html":
            from justright.report.paper_figures import write_suite_page

            write_suite_page(table, tables, claims, to)
        else:
            text = latex if ending == "tex" else markdown
            write_text(to, csv if ending == "csv" else text(every, footnotes, doubts))
    for each in every:
        terminal.table(each.title, each.columns, each.rows)
    terminal.result({"lines": lines} | found, " ".join(said))


def draw_suite_figure(suite: Suite, lines: Sequence[Line], out: Path) -> None:
    """Write the figure of a suite as SVG: for a table of the paper its own, else the change of every setting."""
    from justright.report.drawing import to_svg
    from justright.report.paper_figures import draw_paper
    from justright.report.run_figures import draw_suite  # matplotlib is slow to import

    if suite.columns:
        drawn, _ = draw_paper(paper_table(suite, lines))
        if drawn is None:
            raise JustrightError(f"--figure {out}: no run of {suite.name} that a figure could show")
    else:
        by_problem = {each.name: paired(lines, each.name, suite.baseline, "all") for each in suite.settings}
        drawn = draw_suite(suite_table(suite, lines), by_problem, suite.baseline)
    write_text(out, to_svg(drawn))


def _ending(to: Path, known: Sequence[str]) -> str:
    if (ending := to.suffix[1:].lower()) not in known:
        raise JustrightError(f"a table as {to}", expected=f"a name that ends in .{', .'.join(known)}")
    return ending


def _verdicts(suite: Suite, lines: Sequence[Line], out: Path, backbone: str | None) -> list[Verdict]:
    def others(name: str) -> tuple[Suite, Sequence[Line]]:
        other = asked_suite(name, suite.profile, backbone)
        return other, suite_results(other, out)

    found = verdicts(suite, lines, others)
    guides = {each.name for each in suite.settings if each.is_guide}
    if any(line["setting"] in guides for line in lines):
        found += verdicts(suite, lines, others, is_guide=True)
    return found
