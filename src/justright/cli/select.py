"""`justright select`: which labeled classes to learn from?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from justright.cli.common import COUNT, OUT_FILE, OUT_FOLDER, STORE, Integer, Output, run_options
from justright.cli.selector_options import SelectorCommand, make_selector
from justright.cli.terminal import Terminal, with_terminal
from justright.features.table import FeatureTable
from justright.runs.selection import Selection, merge_tables, require_flat, save_selection, stability_of
from justright.selection import DEFAULT_SELECTOR
from justright.selection.diagnosis import N_DRAWS, diagnose
from justright.utils.errors import JustrightError
from justright.utils.file_rows import row_shards
from justright.utils.parallel import ENGINES
from justright.utils.remote import Place


@click.command(cls=SelectorCommand)
@click.argument("pool", nargs=-1, required=True, type=STORE)
@click.option("--target", required=True, type=STORE, help="Features of the unlabeled images.")
@click.option(
    "--out", type=Output(".parquet"), help="File for the weights, as Parquet; without it they are only shown."
)
@click.option("--figures", type=OUT_FOLDER, help="Folder for figures, as SVG.")
@click.option("--html", type=OUT_FILE, help="File for one page with the result and its figures.")
@click.option(
    "--stability",
    "n_resamples",
    type=COUNT,
    help="Number of resamples of the target on which the selection is repeated, to show how much it depends on chance.",
)
@click.option(
    "--diagnose",
    "labeled",
    type=STORE,
    help="Features of labeled images of the target's own classes, to test whether the pool helps.",
)
@click.option("--draws", "n_draws", type=Integer(2), default=N_DRAWS, help="Number of problems of --diagnose.")
@run_options("engine")
@click.option("--workers", type=COUNT, help="Number of threads, processes or tasks; one per core if not given.")
@run_options("seed")
@with_terminal
def select(
    terminal: Terminal,
    pool: tuple[Place, ...],
    target: Place,
    out: Path | None,
    figures: Path | None,
    html: Path | None,
    n_resamples: int | None,
    labeled: Place | None,
    n_draws: int,
    engine: str,
    workers: int | None,
    seed: int,
    selector: str | None,
    preset: str | None,
    selector_params: Mapping[str, Any] | None = None,
) -> None:
    """Weigh labeled classes by how well they guide discovery.

    POOL is the labeled images to choose from, --target the images to discover in; both are features that `justright
    extract` wrote. Labels of the target are not read. Without --selector the whole pool weighs 1, as in `justright
    discover`.

    \b
    --out weights.parquet writes two files:
      weights.parquet          a row per image: its weight, and why
      weights.classes.parquet  a row per class: weight, reason, similarity, ...

    Features may be larger than memory, and may be at any address that fsspec supports, such as s3://bucket/birds.features
    (install s3fs for that). The weights do not depend on --engine.

    --diagnose hides some of the target's own labeled classes, discovers them with and without the pool, and recommends
    to use the pool or not, with the difference and its interval.

    \b
    Examples:
      justright select birds.features --target photos.features \\
          --selector beta --out w.parquet
      justright select birds.features pets.features --target photos.features \\
          --selector beta --out w.parquet --html w.html
      justright select birds.features --target photos.features \\
          --selector bins --n-clusters 40 --stability 50
      justright select pets.features --target photos.features \\
          --diagnose birds.features --n-clusters 40 --json
    """
    name = selector or ("beta" if preset else DEFAULT_SELECTOR)
    params = selector_params or {}
    fitted = make_selector(name, params, seed, preset)
    n_clusters: Any = params.get("n_clusters")
    if labeled is not None and n_clusters is None:
        raise JustrightError("--diagnose without --n-clusters", expected="the number of categories in the target")
    fitted.check()
    unlabeled = FeatureTable.open(target).without_labels()
    merged = merge_tables([FeatureTable.open(path) for path in pool])
    own = None if labeled is None else FeatureTable.open(labeled)
    for table in (merged.tables[0], own) if own is not None else merged.tables[:1]:
        table.header.require_comparable(unlabeled.header)
    require_flat(unlabeled)
    if n_clusters is not None and n_clusters > len(unlabeled):
        raise JustrightError(
            f"{len(unlabeled):,} target images for {n_clusters:,} clusters",
            expected=f"--n-clusters of at most {len(unlabeled):,}",
        )
    with ENGINES[engine](workers) as run:
        fitted.fit_stream(merged, row_shards(unlabeled.features), engine=run, quiet=True)
    if not terminal.quiet:  # with --json too: this is standard error
        for warning in fitted.weights_.warnings:
            click.echo(f"Note: {warning}.", err=True)
    stability = stability_of(fitted, merged, unlabeled, n_resamples, seed)
    result = Selection.of(name, fitted, merged, stability)
    diagnosis = None
    if own is not None:
        diagnosis = diagnose(
            (np.asarray(own.features), own.labels),
            (merged.features, merged.labels),
            np.asarray(unlabeled.features),
            n_clusters,
            n_draws,
            seed,
        )
    request: dict[str, object] = {
        "pool": ", ".join(map(str, pool)),
        "target": f"{target}, {len(unlabeled):,} images",
        "selector": repr(fitted),
        "seed": seed,
    }
    if backbone := merged.tables[0].header.backbone.get("name"):
        request["backbone"] = backbone
    written = [] if out is None else [out, save_selection(out, result, unlabeled)]
    if figures or html:
        from justright.report.selection_report import write_selection_report  # matplotlib is slow to import

        files, problem = write_selection_report(result, request, diagnosis, figures, html)
        written += files
        if problem:
            terminal.say(f"Without some images: {problem}")
    for file in written:
        terminal.say(f"Written: {file}")
    terminal.table(f"Kept by {result.name}", result.source_columns(), result.source_cells())
    if stability is not None:
        share = stability.kept_share
        n_always, n_never = int((share == 1).sum()), int((share == 0).sum())
        columns = ("always kept", "sometimes kept", "never kept", "std of a weight")
        row = (n_always, len(share) - n_always - n_never, n_never, float(stability.weight_std.mean()))
        terminal.table(f"Classes over {stability.n_resamples} resamples", columns, [row])
    value = {"request": request} | result.to_json() | {"diagnosis": None if diagnosis is None else diagnosis.to_json()}
    lines = [f"{result.summary()}."]
    if diagnosis is not None:
        lines += [diagnosis.verdict, diagnosis.how, diagnosis.caveat]
    terminal.result(value | {"written": [str(file) for file in written]}, "\n".join(lines))
