"""`justright audit`: what is wrong with my images?"""

from __future__ import annotations

import os
from collections import Counter
from itertools import groupby
from pathlib import Path

import click

from justright.cli.common import COUNT, OUT_FILE, SOURCES, Command, Integer, opened_engine, run_options
from justright.cli.terminal import Terminal, with_terminal
from justright.data.audit import (
    BAD_FILE,
    KINDS,
    N_WORKERS,
    PROBLEMS,
    AuditReport,
    Finding,
    ImagePlace,
    Side,
    ignored_files,
    location,
)
from justright.data.audit import audit as audit_images
from justright.data.duplicates import MAX_NEAR, NEAR
from justright.data.opening import open_images
from justright.data.quarantine import printable
from justright.utils.context import use
from justright.utils.files import write_json
from justright.utils.wording import count_text

N_SHOWN = 20  # findings of one kind that are printed; the JSON has them all
N_LINES = 4  # images of one finding that are printed


@click.command(cls=Command, tables={"LABELED, --pool and --target may be": SOURCES})
@click.argument("labeled", nargs=-1)
@click.option("--pool", multiple=True, metavar="SOURCE", help="Labeled images of other kinds; may be repeated.")
@click.option("--target", metavar="SOURCE", help="The unlabeled images, in folders or not; compared with all others.")
@click.option("--out", type=OUT_FILE, help="File for all findings, as JSON.")
@run_options("max_bad")
@click.option(
    "--near",
    type=Integer(0, MAX_NEAR),
    default=NEAR,
    help="How many of 64 bits may differ between the perceptual hashes of near copies. 2 is strict; from 6 on, "
    "different photos of the same arrangement count as copies.",
)
@run_options("engine")
@click.option(
    "--workers", type=COUNT, help=f"Number of threads ({N_WORKERS} if not given), processes or tasks (one per core)."
)
@with_terminal
def audit(
    labeled: tuple[str, ...],
    pool: tuple[str, ...],
    target: str | None,
    out: Path | None,
    max_bad: float,
    near: int,
    engine: str,
    workers: int | None,
    terminal: Terminal,
) -> None:
    """Look for bad files, copies and contradicting labels.

    LABELED, --pool and --target are as in `justright discover`: labeled images of your own classes, labeled images of
    other kinds, unlabeled images. Each is checked, and whether they share images. Files are only read: nothing is
    moved or changed.

    \b
    Problems, exit code 1:
      bad files        empty, no image, truncated, too large, unreadable
      label conflicts  one image, or near copies, under two classes
      shared images    one image in the target and a pool,
                       or near copies in the target and elsewhere

    \b
    Remarks, exit code 0 when there is nothing else:
      images of the target that are labeled, which `discover` keeps
      copies among labeled images or inside the target, under one class
      classes of one image, class names that several data sets use
      class names that differ only by case or by invisible characters
      files with the ending of another format, files that are no images

    Near copies are images that were scaled, re-encoded or slightly brightened. Blank images are not compared.

    \b
    Examples:
      justright audit birds
      justright audit --target photos
      justright audit birds --pool pets.zip --target photos --out audit.json
      justright audit birds --near 2 --max-bad 0.2
      justright audit --target photos --engine processes
      justright audit birds --json | jq .counts
    """
    if not (labeled or pool or target):
        raise click.UsageError("Name images to look at: LABELED, --pool or --target.")
    with opened_engine(engine, workers) as elsewhere, use(engine=elsewhere):
        report = audit_images(
            [open_images(source) for source in labeled],
            None if target is None else open_images(target),
            near,
            pool=[open_images(source) for source in pool],
            ignored=[*_ignored("labeled", *labeled), *_ignored("pool", *pool), *_ignored("target", target)],
            n_workers=workers or N_WORKERS,
        )
    value = report.to_json()
    if out is not None:
        write_json(out, value)
    _show(report, terminal, out)
    n_remarks = len(report.findings) - report.n_problems
    counts = f"{_count_or_no(report.n_problems, 'problem')}, {_count_or_no(n_remarks, 'remark')}"
    terminal.result(value, f"{_count_or_no(report.n_images, 'image')} read: {counts}")
    report.refuse_above(max_bad)
    if report.n_problems:
        raise click.exceptions.Exit(1)


def _count_or_no(n: int, noun: str) -> str:
    return count_text(n, noun) if n else f"no {noun}s"


def _ignored(side: Side, *sources: str | None) -> list[ImagePlace]:
    return [place for source in sources if source is not None for place in ignored_files(Path(source), side)]


def _show(report: AuditReport, terminal: Terminal, out: Path | None) -> None:
    if not report.findings:
        return
    counts = Counter(finding.kind for finding in report.findings if finding.kind != BAD_FILE)
    bad = Counter(image.kind for image in report.quarantined)
    rows = [(f"{KINDS[BAD_FILE]}: {kind}", n, "problem") for kind, n in bad.items()]
    rows += [(KINDS[kind], n, "problem" if kind in PROBLEMS else "remark") for kind, n in counts.items()]
    terminal.table("Summary", ("what", "found", "counts as"), rows)
    rest = f"see {out}" if out else "see --out or --json"
    entries: list[tuple[str, str, str]] = []
    for kind, group in groupby(report.findings, key=lambda finding: finding.kind):
        findings = list(group)
        entries += [(KINDS[kind], _where(finding), printable(finding.reason)) for finding in findings[:N_SHOWN]]
        if len(findings) > N_SHOWN:
            entries.append(("", f"… and {len(findings) - N_SHOWN:,} more, {rest}", ""))
    terminal.table("Found", ("what", "where", "why"), entries)


def _where(finding: Finding) -> str:
    """The images or classes, one per line; paths inside the current folder are relative to it."""
    here = os.path.join(os.getcwd(), "")
    lines = [location(image.source, image.path).removeprefix(here) for image in finding.images]
    lines += [f"{place.side} {place.dataset}: {place.class_name}" for place in finding.classes]
    more = [f"… and {len(lines) - N_LINES:,} more"] if len(lines) > N_LINES else []
    return "\n".join([*map(printable, lines[:N_LINES]), *more])
