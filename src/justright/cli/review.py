"""`justright review`: look through the discovered clusters and correct them."""

from __future__ import annotations

import getpass
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from justright.cli.common import EXISTING_FOLDER, Integer, NameOf, Output, expect_ending
from justright.cli.terminal import Terminal, with_terminal
from justright.review.formats import FORMATS
from justright.review.open_review import OpenReview
from justright.review.random_checks import accuracy_in_words
from justright.runs.run_folder import RunFolder
from justright.utils.wording import count_text, first_names

if TYPE_CHECKING:
    from justright.review.security import Access

PORT = 8473
N_NAMED = 5  # new names that are printed
FORMS = ("csv", "parquet", "folders", "labeled")
EXPORT_OPTIONS = {
    "is_all": ("--all", ("folders", "labeled")),
    "is_copy": ("--copy", ("folders",)),
    "with_known": ("--with-known", ("folders", "labeled")),
    "dataset": ("--name", ("labeled",)),
}
FORM_OF_ENDING = {".csv": "csv", ".parquet": "parquet", "": "folders"}


@click.command()
@click.argument("run", type=EXISTING_FOLDER)
@click.option("--reviewer", help="Name of the person who reviews; your user name if not given. The page can change it.")
@click.option("--port", type=Integer(0, 65535), default=PORT, help="Port of the page; 0: any free one.")
@click.option("--host", default="127.0.0.1", help="Address of the page; any but the default lets other machines in.")
@click.option("--browser/--no-browser", default=False, help="Also open the page in a browser.")
@click.option(
    "--export",
    "out",
    type=Output(kind="any"),
    help="Write the labels to this file or folder instead of serving the page.",
)
@click.option("--as", "form", type=click.Choice(FORMS), help="What --export writes; if not given, its ending decides.")
@click.option("--all", "is_all", is_flag=True, help="With --as folders or labeled: also clusters that nobody judged.")
@click.option("--copy", "is_copy", is_flag=True, help="With --as folders: copies of the images instead of links.")
@click.option(
    "--with-known/--without-known",
    default=None,
    help="With --as folders or labeled: also labeled images of known classes, or not; if neither is given, labeled has "
    "them and folders has not.",
)
@click.option("--name", "dataset", help="With --as labeled: name of the data set; RUN-reviewed if not given.")
@click.option(
    "--import",
    "source",
    type=click.Path(path_type=Path, exists=True),
    help="Enter the labels of this file or folder, as another labeling tool saved it, instead of serving the page.",
)
@click.option("--from", "source_form", type=NameOf(FORMATS), help="The format of --import; detected if not given.")
@with_terminal
def review(
    terminal: Terminal,
    run: Path,
    reviewer: str | None,
    port: int,
    host: str,
    browser: bool,
    out: Path | None,
    form: str | None,
    source: Path | None,
    source_form: str | None,
    **export_options: Any,
) -> None:
    """Name and correct the clusters of a run on a page.

    RUN is a folder that `justright discover` wrote. On the page clusters are kept, named, merged, split, moved or
    rejected, and all of it can be undone. Every action is saved in RUN/review before the page confirms it, so the
    server can be stopped and restarted at any time. The printed address contains a token: only people who have it can
    open the page. Several people may review one run, together or in turn.

    --export writes the labels instead; --as labeled makes a table for the --labeled of the next run: the labeled images
    of this run, and those that were reviewed.

    --import enters labels that were corrected in another tool, after `justright export`, as one action of the reviewer,
    which the page can undo. Images that the file does not list stay as they are. A file with unknown images, with two
    labels for an image, or with corrections of what the review changed meanwhile is refused as a whole.

    \b
    Examples:
      justright review run
      justright review run --reviewer anna --browser
      justright review run --export labels.csv
      justright review run --export animals/ --as folders --copy
      justright review run --export reviewed.parquet --as labeled
      justright review run --import corrected.json --reviewer anna
    """
    if source_form is not None and source is None:
        raise click.UsageError("--from needs --import.")
    if source is not None and out is not None:
        raise click.UsageError("--import and --export exclude each other. Give one command for each.")
    if out is None and (form or export_options["with_known"] is not None or any(export_options.values())):
        raise click.UsageError("--as, --all, --copy, --with-known and --name need --export.")
    if out is not None:
        form = form or FORM_OF_ENDING.get(out.suffix.lower())
        _expect_export(out, form, export_options)
    opened = OpenReview(RunFolder.open(run))
    if source is not None:
        _import(terminal, opened, source, source_form, reviewer)
        return
    with opened.reading() as state:
        terminal.say(accuracy_in_words(state, opened.predictions.confidence))
    if out is None:
        _serve(terminal, opened, reviewer, host, port, browser)
        return
    from justright.review.export import export

    if export_options["with_known"] is None:
        export_options["with_known"] = form == "labeled"
    n_images = export(opened, out, form, **export_options)  # type: ignore[arg-type]
    terminal.result({"written": str(out), "as": form, "images": n_images}, f"{n_images:,} images as {form} in {out}")


def _expect_export(out: Path, form: str | None, options: dict[str, Any]) -> None:
    """Validate the form of an export and its options."""
    if form is None:
        raise click.UsageError(f"The form of {out} is unclear. Add --as with one of: {', '.join(FORMS)}.")
    if form == "labeled":
        expect_ending(out, (".parquet",), f"--export {out} --as labeled")
    for name, (option, forms) in EXPORT_OPTIONS.items():
        if options[name] and form not in forms:
            raise click.UsageError(f"{option} needs --as {' or '.join(forms)}, not {form}.")


def _import(
    terminal: Terminal, opened: OpenReview, source: Path, source_form: str | None, reviewer: str | None
) -> None:
    from justright.review.tools import import_from

    name = _reviewer(reviewer)
    if not name:
        raise click.UsageError("The name of the reviewer is unknown. Add --reviewer.")
    done = import_from(opened, source, name, source_form)
    result = "nothing to correct."
    if done.action is not None:
        named = f", named: {first_names(done.named, N_NAMED)}" if done.named else ""
        result = f"{count_text(done.n_moved, 'image')} moved{named}. This is action {done.action} of the review."
    value = {"imported": str(source), "from": done.format} | asdict(done)
    del value["format"]
    terminal.result(value, f"{done.n_labels:,} labels as {done.format} in {source}: {result}")


def _reviewer(given: str | None) -> str:
    """The name of the reviewer, by default that of the user; empty if the user has none."""
    from pydantic import TypeAdapter, ValidationError

    from justright.review.actions import MAX_REVIEWER, Reviewer

    try:
        return TypeAdapter(Reviewer).validate_python(given) if given else getpass.getuser()[:MAX_REVIEWER]
    except ValidationError as error:
        raise click.BadParameter(error.errors()[0]["msg"], param_hint="--reviewer") from error
    except (KeyError, OSError):
        return ""


def _serve(terminal: Terminal, opened: OpenReview, reviewer: str | None, host: str, port: int, browser: bool) -> None:
    from justright.review.server import serve

    name = _reviewer(reviewer)  # where it is empty, the page asks for one

    def ready(access: Access) -> None:
        if not access.is_loopback:
            terminal.say(
                f"Careful: {host} can be reached from other machines, and the connection is not encrypted. "
                "Anyone who has the address can change the review."
            )
        terminal.result({"url": access.url, "port": access.port}, access.url)
        terminal.say("Press Ctrl-C to stop; all actions are saved.")
        if browser:
            click.launch(access.url)

    with suppress(KeyboardInterrupt):  # the usual end
        serve(opened, host, port, name, ready)
