"""`justright audit`: what is wrong with my images?"""

from __future__ import annotations

import os
from collections import Counter
from itertools import groupby
from pathlib import Path

import click

from justright.audit.audit import audit as audit_images
from justright.audit.audit import ignored_files
from justright.audit.duplicates import MAX_NEAR, NEAR
from justright.audit.findings import BAD_FILE, KINDS, AuditReport, Finding, Place, Side, location
from justright.audit.quarantine import MAX_BAD, printable
from justright.cli.terminal import Terminal, with_terminal
from justright.data.opening import open_images
from justright.errors import DataError
from justright.files import write_json

N_SHOWN = 20
"""Findings of a kind that the screen shows; the JSON has them all."""

N_LINES = 4
"""Images of a finding that the screen shows."""


@click.command()
@click.argument("pool", nargs=-1, required=True)
@click.option("--target", help="The images to be understood; opened like POOL.")
@click.option("--out", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Write all of it as JSON.")
@click.option(
    "--max-bad",
    type=click.FloatRange(0, 1),
    default=MAX_BAD,
    show_default=True,
    help="Refuse a source with a larger share of bad files.",
)
@click.option(
    "--near",
    type=click.IntRange(0, MAX_NEAR),
    default=NEAR,
    show_default=True,
    help="How many of 64 bits the perceptual hashes of near copies may differ in. 2 is strict; from 6 on, different "
    "photos of one composition begin to meet.",
)
@with_terminal
def audit(
    pool: tuple[str, ...], target: str | None, out: Path | None, max_bad: float, near: int, terminal: Terminal
) -> None:
    """Say what is wrong with the images of POOL, and of a target.

    Each POOL is a folder with one folder a class, a manifest (.csv, .parquet), a zip, or a data set that
    `justright data --list` names. Files are only read: nothing is moved or changed.

    \b
    Problems, exit code 1:
      bad files         empty, no image, truncated, too large, missing, unreadable
      label conflicts   one image, or near copies, under two classes
      shared images     one image, or near copies, in both pool and target

    \b
    Remarks, exit code 0 when there is nothing else:
      copies inside the pool or inside the target, under one class
      classes of one image, class names that several data sets use
      files with the ending of another format, files in a folder that are no images

    Near copies are images that were scaled, re-encoded or slightly brightened. Flat (blank) images are not compared.

    \b
    Examples:
      justright audit photos
      justright audit birds.zip pets.zip --target photos --out audit.json
      justright audit photos --near 2 --max-bad 0.2
      justright audit photos --json | jq .counts
    """
    report = audit_images(
        [open_images(source) for source in pool],
        None if target is None else open_images(target),
        near,
        ignored=[place for source in pool for place in _ignored(source, "pool")] + _ignored(target, "target"),
        track=terminal.track,
    )
    value = report.to_json()
    if out is not None:
        _write(out, value)
    _show(report, terminal, out)
    terminal.result(value, _last_line(report))
    report.refuse_above(max_bad)
    if report.n_problems:
        raise click.exceptions.Exit(1)


def _ignored(source: str | None, side: Side) -> list[Place]:
    return ignored_files(Path(source), side) if source is not None and Path(source).is_dir() else []


def _write(out: Path, value: object) -> None:
    try:
        write_json(out, value)
    except OSError as error:
        raise DataError(f"{out} cannot be written: {error.strerror}", advice="name another file with --out") from error


def _show(report: AuditReport, terminal: Terminal, out: Path | None) -> None:
    if not report.findings:
        return
    counts = Counter(finding.kind for finding in report.findings if finding.kind != BAD_FILE)
    bad = Counter(image.kind for image in report.quarantined)
    rows = [(f"{KINDS[BAD_FILE].title}: {kind}", n, "problem") for kind, n in bad.items()]
    rows += [(KINDS[kind].title, n, "problem" if KINDS[kind].is_problem else "remark") for kind, n in counts.items()]
    terminal.table("Summary", ("what", "found", "counts as"), rows)
    rest = f"see {out}" if out else "see --out or --json"
    entries: list[tuple[str, str, str]] = []
    for kind, group in groupby(report.findings, key=lambda finding: finding.kind):
        found = list(group)
        entries += [(KINDS[kind].title, _where(finding), printable(finding.reason)) for finding in found[:N_SHOWN]]
        if len(found) > N_SHOWN:
            entries.append(("", f"… and {len(found) - N_SHOWN:,} more, {rest}", ""))
    terminal.table("Found", ("what", "where", "why"), entries)


def _where(finding: Finding) -> str:
    """The images or classes, one a line."""
    lines = [_nearby(location(image.source, image.path)) for image in finding.images]
    lines += [f"{each.side} {each.dataset}: {each.class_name}" for each in finding.classes]
    more = [f"… and {len(lines) - N_LINES:,} more"] if len(lines) > N_LINES else []
    return "\n".join([*map(printable, lines[:N_LINES]), *more])


def _nearby(place: str) -> str:
    """The place as seen from the working folder where it lies below it."""
    here = os.path.join(os.getcwd(), "")
    return place.removeprefix(here)


def _last_line(report: AuditReport) -> str:
    n_remarks = len(report.findings) - report.n_problems
    counts = f"{_counted(report.n_problems, 'problem')}, {_counted(n_remarks, 'remark')}"
    return f"{_counted(report.n_images, 'image')} read: {counts}"


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}" if n else f"no {what}s"
