"""`justright evaluate`: how good are these clusters?"""

from __future__ import annotations

from pathlib import Path

import click

from justright.cli.common import FILE, OUT_FILE, OUT_SVG, PATH, Command
from justright.cli.terminal import Terminal, with_terminal
from justright.evaluation import PROTOCOLS, Counts, Errors, Protocol, break_down, estimate_accuracy, matched_confusion
from justright.evaluation.files import JudgedPredictions, read_checked, read_judged
from justright.runs.run_folder import RunFolder
from justright.utils.files import write_text

PROTOCOL_MEANINGS = {
    "v2": "match clusters with classes once, over all images, and count images",
    "v2b": "the same, but average over classes, so that rare classes count as much",
    "v1": "match old and new images separately, as early papers did; never lower than v2",
}


@click.command(cls=Command, tables={"Protocols": PROTOCOL_MEANINGS})
@click.argument("predictions", metavar="RUN|PREDICTIONS", type=PATH)
@click.option(
    "--truth",
    type=FILE,
    help="Table of true labels: id or path, label or class_name; for PREDICTIONS also is_old.",
)
@click.option("--checked", type=FILE, help="Table of a random sample that a person checked: id or path, is_right.")
@click.option("--by-cluster", is_flag=True, help="With --checked: the sample was drawn from each cluster separately.")
@click.option("--protocol", type=click.Choice(PROTOCOLS), default="v2", help="How accuracy is counted; see below.")
@click.option("--out", type=OUT_FILE, help="File for the scores, as JSON.")
@click.option("--errors", type=OUT_SVG, help="File for a figure of the kinds of errors, as SVG.")
@click.option("--confusion", type=OUT_SVG, help="File for a figure of classes against matched clusters, as SVG.")
@with_terminal
def evaluate(
    terminal: Terminal,
    predictions: Path,
    truth: Path | None,
    checked: Path | None,
    by_cluster: bool,
    protocol: Protocol,
    out: Path | None,
    errors: Path | None,
    confusion: Path | None,
) -> None:
    """Score clusters against the truth or a checked sample.

    RUN is a folder that `justright discover` wrote. Its truth needs only paths and class names: old are the classes
    that were labeled. PREDICTIONS is a table with the columns id or path, and cluster; its truth needs a column is_old
    too. All tables are CSV or Parquet files.

    Against the truth it prints the accuracy on all images (All) and on images of old and new classes (Old, New), with
    intervals, and where the errors come from. If the tables have names, *names count* is the second score: an image
    called known must have that very name, and only new clusters are matched with new classes. Without truth, a small
    random sample that a person checked gives an estimate of All.

    \b
    Examples:
      justright evaluate run --truth truth.csv
      justright evaluate predictions.parquet --truth truth.parquet
      justright evaluate predictions.csv --truth truth.csv --errors errors.svg
      justright evaluate predictions.csv --checked looked_at.csv --json
    """
    if (truth is None) == (checked is None):
        raise click.UsageError("Give either --truth or --checked, to evaluate the clusters.")
    if truth is None and (out or errors or confusion):
        raise click.UsageError("--out, --errors and --confusion need --truth.")
    if checked is None and by_cluster:
        raise click.UsageError("--by-cluster needs --checked.")
    run = RunFolder.open(predictions) if predictions.is_dir() else None
    if checked is not None:
        _estimate(terminal, predictions if run is None else run.path / "predictions.parquet", checked, by_cluster)
        return
    assert truth is not None
    judged = read_judged(predictions, truth) if run is None else run.judged(truth)
    if judged.n_more:
        terminal.say(f"{judged.n_more:,} images of the truth are not in the run and are not scored.")
    if n_given := int(judged.is_given.sum()):
        terminal.say(f"{n_given:,} images were labeled before the run, which are not scored.")
    if run is not None and run.own_classes and not judged.is_old.any():
        terminal.say(
            f"No image is of the {len(run.own_classes):,} labeled classes of the run: compare the class names."
        )
    scores = judged.scores(protocol)
    breakdown = break_down(judged.y_true, judged.y_pred, judged.is_old)
    if out:
        scores.save(out)
        terminal.say(f"Scores written to {out}")
    if errors or confusion:
        _draw(terminal, judged, breakdown, errors, confusion)
    terminal.result({"scores": scores.to_dict(), "errors": breakdown.to_dict()}, str(scores))
    rows = [(kind.replace("_", " "), n, f"{n / scores.n_images:.1%}") for kind, n in breakdown.by_kind().items()]
    rows += [(f"because {cause}", n, f"{n / scores.n_images:.1%}") for cause, n in breakdown.by_cause().items()]
    terminal.table("Errors", ["kind", "images", "of all"], rows)


def _estimate(terminal: Terminal, predictions: Path, checked: Path, by_cluster: bool) -> None:
    """Print the accuracy that a checked sample suggests."""
    sample = read_checked(predictions, checked)
    estimate = estimate_accuracy(
        sample.checked,
        sample.is_right,
        len(sample.clusters),
        clusters=sample.clusters if by_cluster else None,
        confidence=sample.confidence,
    )
    terminal.result(estimate.to_dict(), str(estimate))


def _draw(
    terminal: Terminal, judged: JudgedPredictions, breakdown: Errors, errors: Path | None, confusion: Path | None
) -> None:
    """Write the figures of errors and of the confusion."""
    from justright.report.drawing import to_svg  # matplotlib is slow to import
    from justright.report.run_figures import draw_confusion, draw_errors

    if errors:
        write_text(errors, to_svg(draw_errors(breakdown)))
        terminal.say(f"Errors drawn in {errors}")
    if confusion:
        matched = matched_confusion(Counts.of(judged.y_true, judged.y_pred), breakdown.classes[breakdown.is_old])
        write_text(confusion, to_svg(draw_confusion(matched, judged.class_names)))
        terminal.say(f"Confusion drawn in {confusion}")
