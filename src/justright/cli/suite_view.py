"""What `justright benchmark` shows of a suite: its settings compared, or a table of the paper with its claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from justright.benchmark.paper_table import paper_table
from justright.benchmark.suite import Suite, read_suite
from justright.benchmark.suite_line import Line
from justright.benchmark.suite_runner import failed_runs, suite_results
from justright.benchmark.suite_table import COLUMNS, suite_table
from justright.benchmark.table_text import as_csv, latex, markdown, text_tables
from justright.benchmark.verdicts import Verdict, verdicts
from justright.cli.terminal import Terminal
from justright.errors import JustrightError
from justright.files import write_text

FORMATS = ("md", "tex", "csv", "html")


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
    """Print the suite as far as it was run, and write its table where that is asked for."""
    for line in failed_runs(suite, out):
        terminal.say(f"No answer: {line['problem']}, {line['setting']}, seed {line['seed']}: {line['failed']}")
    said = f"Lines: {out / 'results.jsonl'}"
    if not suite.columns:
        if to is not None:
            raise JustrightError(f"--to {to} for {suite.name}", expected="a table of the paper; --json gives this one")
        rows = suite_table(suite, lines)
        terminal.table(f"{len(lines)} runs, accuracy in percent", COLUMNS, [row.cells() for row in rows])
        terminal.result({"lines": lines, "rows": [row.to_json() for row in rows]}, said)
        return
    judged = _verdicts(suite, lines, out, backbone)
    table = paper_table(suite, lines)
    tables = text_tables(table, judged)
    if to is not None:
        ending = to.suffix[1:].lower()
        if ending not in FORMATS:
            raise JustrightError(f"a table as {to}", expected=f"a name that ends in .{', .'.join(FORMATS)}")
        if ending == "html":
            from justright.report.suite_page import write_suite_page

            write_suite_page(table, tables, to)
        else:
            write_text(to, {"md": markdown, "tex": latex}[ending](tables) if ending != "csv" else as_csv(table))
    for each in tables:
        terminal.table(each.title, each.columns, each.rows)
    terminal.result({"lines": lines, "claims": [each.cells() for each in judged]}, f"{len(lines)} runs. {said}")


def _verdicts(suite: Suite, lines: Sequence[Line], out: Path, backbone: str | None) -> list[Verdict]:
    def others(name: str) -> tuple[Suite, Sequence[Line]]:
        other = asked_suite(name, suite.profile, backbone)
        return other, suite_results(other, out)

    found = verdicts(suite, lines, others)
    guides = {each.name for each in suite.settings if each.is_guide}
    if any(line["setting"] in guides for line in lines):
        found += verdicts(suite, lines, others, is_guide=True)
    return found
