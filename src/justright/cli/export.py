"""`justright export`: the labels of a run for other labeling tools."""

from __future__ import annotations

from pathlib import Path

import click

from justright.cli.common import EXISTING_FOLDER, Command, NameOf, Output
from justright.cli.terminal import Terminal, with_terminal
from justright.review.formats import FORMATS


@click.command(cls=Command, tables={"Formats": FORMATS})
@click.argument("run", type=EXISTING_FOLDER)
@click.option("--to", "form", type=NameOf(FORMATS), required=True, help="The format; see below.")
@click.option("--out", type=Output(kind="any"), required=True, help="New folder to write; for csv a file.")
@click.option(
    "--copy", "is_copy", is_flag=True, help="Copy the images into the folder, so that it can be carried elsewhere."
)
@with_terminal
def export(terminal: Terminal, run: Path, form: str, out: Path, is_copy: bool) -> None:
    """Write the labels of a run for another labeling tool.

    RUN is a folder that `justright discover` wrote. Every image is written with its category, as it is named in the
    review, and with its confidence. Rejected images have no label. Images stay where they are; how the tool finds them
    is printed at the end. Images that are no files, such as those in a zip, are written into the folder.

    `justright review RUN --import FILE` enters corrections that were made in the tool into the review of the run.

    \b
    Examples:
      justright export run --to label-studio --out tasks
      justright export run --to fiftyone --out fiftyone --copy
      justright export run --to csv --out labels.csv
    """
    from justright.review.open_review import OpenReview
    from justright.review.tools import export_to
    from justright.runs.run_folder import RunFolder

    if FORMATS[form].is_file and out.suffix.lower() != ".csv":
        raise click.BadParameter(f"{out} does not end in .csv.", param_hint="--out")
    done = export_to(OpenReview(RunFolder.open(run)), form, out, is_copy=is_copy)
    value = {"out": str(out), "to": form, "images": done.n_images, "labeled": done.n_labeled, "usage": done.usage}
    text = f"{done.n_images:,} images, {done.n_labeled:,} with a label, as {form} in {out}\n{done.usage}"
    terminal.result(value, text)
