"""The report of a run, written as one file."""

from __future__ import annotations

from pathlib import Path

from justright.files import write_text
from justright.progress import Track, silent
from justright.report.feature_map import MapKind
from justright.report.run_page import RunPage
from justright.runs.run_folder import RunFolder

NAME = "report.html"

MOST_BYTES = 10_000_000
"""A page that can be sent by mail."""


def write_report(
    run: RunFolder,
    out: Path | None = None,
    kind: MapKind = "pca",
    track: Track = silent,
) -> Path:
    """Write the page, into the run itself unless another place is named, and say where it is."""
    out = run.path / NAME if out is None else out
    for share in (1.0, 0.3, 0.0):  # only thousands of very long names come to the second
        html = RunPage(run, kind, track, share).html()
        if len(html.encode()) < MOST_BYTES:
            break
    write_text(out, html)
    return out
