"""`justright benchmark`: many runs, compared; every table of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from justright.benchmark.claims import Verdict, verdicts
from justright.benchmark.paper import paper_table
from justright.benchmark.results import RESULTS, Line, failed_runs, missing_runs, read_results, remarks, suite_results
from justright.benchmark.runner import run_suite, suite_costs
from justright.benchmark.suite import PROFILES, Suite, read_suite, suite_names
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
from justright.cli.common import COUNT, FOLDER, OUT_FILE, OUT_FOLDER, OUT_SVG, expect_ending, opened_engine, run_options
from justright.cli.terminal import Terminal, with_terminal
from justright.runs.problem import POOL_ROLES
from justright.runs.spec import AUTO, resolve_device
from justright.utils.errors import JustrightError
from justright.utils.files import write_text

FORMATS = (".md", ".tex", ".csv", ".html")
PLAIN_NOTES = (
    "The first table: means over problems, and the change against the baseline with its 95 % interval over them.",
    "Claims: differences over problems, corrected for their number by Holm's method.",
    "Single problems: mean and standard deviation over seeds.",
)

Shown = tuple[list[TextTable], dict[str, Any], str]  # tables, their numbers for JSON, and a remark

profile_option = click.option(
    "--profile",
    type=click.Choice(PROFILES),
    help="For tables of the paper. full: its data sets and scale; real: small photo sets, on a CPU; glyphs: drawn "
    "characters, in minutes. By default `run` takes full with --data and glyphs without it, and `show` the profile of "
    "the runs.",
)
backbone_option = click.option("--backbone", help="Name of a network to use instead of the suite's.")
role_option = click.option(
    "--role",
    type=click.Choice(POOL_ROLES),
    help="For tables of the paper. rival (the default): classes of the pool are categories, and the target's own "
    "classes are selected from too, as in the paper; guide: as `justright discover` does it. Run both, one after the "
    "other, to see both in the table.",
)


@click.group()
def benchmark() -> None:
    """Run many problems, settings and seeds, and compare them.

    A suite is a TOML file that lists problems and settings. Every setting is run on every problem, with several seeds.
    The tables and figures of the paper are suites: tab1 to tab6, taba1 to taba9, fig1 and fig3.

    \b
    Examples:
      justright benchmark list
      justright benchmark run tab2 --profile glyphs --jobs 2
      justright benchmark show tab2 --profile glyphs
      justright benchmark run tab2 --data DATA --backbone dino_vitb16
      justright benchmark run selection --out study --jobs 2
    """


@benchmark.command("list")
@profile_option
@with_terminal
def list_suites(terminal: Terminal, profile: str | None) -> None:
    """List the suites that come with the package, and what each shows."""
    rows = []
    for name in suite_names():
        suite = read_suite(name)
        if profile and suite.columns:
            suite = read_suite(name, profile)
        n_runs = sum(len(list(suite.runs_of(problem))) for problem in suite.problems)
        rows.append((name, len(suite.problems), n_runs, suite.about))
    terminal.table("Suites", ("name", "problems", "runs", "what it shows"), rows)
    terminal.result([dict(zip(("name", "problems", "runs", "about"), row, strict=True)) for row in rows])


@benchmark.command()
@click.argument("suite")
@click.option("--out", type=OUT_FOLDER, help="Folder for the results and the runs; benchmark-PROFILE if not given.")
@click.option("--data", type=FOLDER, help="Folder with the data sets: {data} in the file of the suite.")
@profile_option
@role_option
@backbone_option
@click.option(
    "--device",
    multiple=True,
    help="cuda, cuda:1, mps, cpu; several take problems in turn. By default that of the suite, or the first "
    "of them that works.",
)
@click.option(
    "--jobs", type=COUNT, help="Number of problems to run at once, a process each; one per --device if not given."
)
@click.option("--only", multiple=True, metavar="PROBLEM", help="Run only this problem; may be given several times.")
@run_options("engine")
@with_terminal
def run(
    terminal: Terminal,
    suite: str,
    out: Path | None,
    data: Path | None,
    profile: str | None,
    role: str | None,
    backbone: str | None,
    device: tuple[str, ...],
    jobs: int | None,
    only: tuple[str, ...],
    engine: str,
) -> None:
    """Run what is missing of a suite.

    SUITE is a name that `justright benchmark list` shows, or a TOML file. Each finished run adds a line of JSON to
    OUT/results.jsonl. Call it again to continue after a stop: finished runs are not repeated, unless their settings, a
    default or the images have changed; a stopped run is resumed. Tables of the paper in one OUT share their common
    runs. With --engine processes or ray a problem whose worker is lost is run again.

    \b
    Examples:
      justright benchmark run tab2 --profile glyphs --jobs 2
      justright benchmark run tab2 --profile real --data DATA --role guide
      justright benchmark run tab2 --data DATA --device cuda:0 --device cuda:1
      justright benchmark run my-suite.toml --out study --data DATA --only pets
      justright benchmark run selection --out study --engine ray --jobs 4
    """
    if data is not None and read_suite(suite).columns:
        profile = profile or PROFILES[0]
    all_roles = read_suite(suite, profile).with_run(backbone=backbone)
    requested = all_roles.with_role(role or POOL_ROLES[1]) if all_roles.columns else all_roles
    out = _folder(out, all_roles)
    jobs = jobs or max(1, len(device))
    todo = [] if requested.only_counts else missing_runs(requested, out, only, data)
    if todo:
        from justright.features.automatic import usable

        device = device or (requested.run.get("device", AUTO),)
        device = tuple(usable(resolve_device(name)) for name in device)
        if not terminal.is_silent:
            terminal.say(str(suite_costs(requested.with_run(device=device[0]), todo, data, jobs)))
    with opened_engine(engine, jobs) as elsewhere:
        run_suite(requested, out, data=data, n_jobs=jobs, only=only, engine=elsewhere, devices=device)
    show_suite(terminal, all_roles, suite_results(all_roles, out), out, backbone)


@benchmark.command()
@click.argument("suite")
@click.option("--out", type=FOLDER, help="Folder that `benchmark run` wrote to; benchmark-PROFILE if not given.")
@profile_option
@backbone_option
@click.option("--part", help="Not for tables of the paper: show only problems of this part, such as choose or judge.")
@click.option("--baseline", metavar="SETTING", help="Not for tables of the paper: the setting to compare with.")
@click.option("--figure", type=OUT_SVG, help="File for a figure, as SVG: Fig. 1, Fig. 3, else what each row changes.")
@click.option(
    "--to", type=OUT_FILE, help="File for the tables: its name ends in .md, .tex, .csv or .html (of the paper only)."
)
@with_terminal
def show(
    terminal: Terminal,
    suite: str,
    out: Path | None,
    profile: str | None,
    backbone: str | None,
    part: str | None,
    baseline: str | None,
    figure: Path | None,
    to: Path | None,
) -> None:
    """Compare the finished runs of a suite.

    SUITE is a name that `justright benchmark list` shows, or a TOML file. A table of the paper is shown with mean and
    spread over seeds, the change against no selection with its 95 % interval, the paper's figures (? where they cannot
    be right as printed), and a verdict on each claim, for all methods together and for each alone. As HTML it is a page
    with a figure. As CSV it is one table: a row for every number, then one for every claim, which has the columns claim
    and verdict, the difference under change and the number of pairs under runs.

    Another suite is shown as means over its problems, and problem by problem with mean and spread over seeds and how
    many categories are in use; as CSV only the latter.

    \b
    Examples:
      justright benchmark show tab2 --profile glyphs
      justright benchmark show tab2 --profile glyphs --to tab2.tex
      justright benchmark show fig1 --profile glyphs --figure fig1.svg
      justright benchmark show selection --out study --part judge
      justright benchmark show training --out study --to training.md
      justright benchmark show selection --out study --figure changes.svg
      justright benchmark show selection --out study --baseline everything
    """
    requested = read_suite(suite, profile or _profile_of(suite, out, backbone)).with_run(backbone=backbone)
    out = _folder(out, requested)
    if requested.columns and (part or baseline):
        raise click.UsageError("--part and --baseline are not for tables of the paper.")
    if to is not None:
        expect_ending(to, FORMATS if requested.columns else FORMATS[:-1], f"--to {to}")  # only the paper has pages
    parts = {problem.part for problem in requested.problems}
    if part is not None and part not in parts:
        raise JustrightError(f"--part {part}", expected=f"one of {', '.join(sorted(filter(None, parts)))}")
    if baseline is not None:
        requested = requested.against(baseline)
    lines = [line for line in suite_results(requested, out) if part is None or line["part"] == part]
    if figure is not None:
        draw_suite_figure(requested, lines, figure)
    show_suite(terminal, requested, lines, out, backbone, to)


def _profile_of(suite: str, out: Path | None, backbone: str | None) -> str | None:
    """The first profile with finished runs, in this folder or in that of the profile."""
    if not read_suite(suite).columns:
        return None
    for profile in PROFILES:
        requested = read_suite(suite, profile).with_run(backbone=backbone)
        if suite_results(requested, _folder(out, requested)):
            return profile
    return None


def _folder(out: Path | None, suite: Suite) -> Path:
    if out is None and not suite.profile:
        raise click.UsageError("Missing option '--out'.")
    return out or Path(f"benchmark-{suite.profile}")


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
