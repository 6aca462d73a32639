"""Scores of several runs beside each other: with intervals, over seeds, against the baseline, and the errors."""

from __future__ import annotations

from justright.evaluation import break_down
from justright.evaluation.figures import draw_errors
from justright.report.change import LEVEL
from justright.report.comparison import GROUPS, Comparison
from justright.report.comparison_figures import draw_scores
from justright.report.drawing import in_page
from justright.report.names import named, plain, text
from justright.report.page_shell import note, table
from justright.report.reading import Missing
from justright.report.score_parts import NO_TRUTH, judged, percent

MOST_RUNS = 12
"""Whose errors are drawn."""


def compared_scores(comparison: Comparison) -> str:
    """All, Old and New of each run, as table and figure."""
    runs = comparison.runs
    if all(run.scores is None for run in runs):
        return note(NO_TRUTH)
    rows = [
        (named(run.name), *(percent(run.scores, group) for group in GROUPS), run.scores.nmi, run.scores.ari)
        for run in runs
        if run.scores is not None
    ]
    caption = (
        "Accuracy with the interval from resampling images; orange is a run without selection. How "
        "training varies from seed to seed is not in the intervals."
    )
    columns = ("run", "All %", "Old %", "New %", "NMI", "ARI")
    return table(columns, rows) + in_page(draw_scores(comparison), "scores", caption, is_broad=True)


def over_seeds(comparison: Comparison) -> str:
    """Mean and spread of runs that differ by seed only."""
    groups = [group for group in comparison.groups() if len(group.runs) > 1]
    if not groups:
        return note("No two runs differ by their seed alone: how much chance there is in training cannot be told.")
    rows = []
    for group in groups:
        cells = [_mean_and_spread(group.mean(name), group.spread(name)) for name in GROUPS]
        rows.append((named(group.name), str(group.runs[0].settings.get("selector", "")), len(group.runs), *cells))
    said = note("Mean and standard deviation over seeds, in percent.")
    return table(("runs", "selector", "seeds", "All", "Old", "New"), rows) + said


def against_baseline(comparison: Comparison) -> str:
    """What the pool or a selection from it changed, with an honest word about each."""
    changes = comparison.changes()
    if not changes:
        return note(
            'No run with own labels alone ("own") or without selection ("none") shares all other settings with another '
            "one: what the pool or a selection changed cannot be told from these runs."
        )
    rows = [
        (
            named(group.name),
            str(group.runs[0].settings.get("selector", "")),
            each.group.capitalize(),
            str(each),
            f"{each.n_seeds} / {each.n_baseline_seeds}",
            each.verdict(),
        )
        for group, found in changes
        for each in found
    ]
    if not rows:
        return note(NO_TRUTH)
    every = [each for _, found in changes for each in found if each.group == "new"]
    n_better, n_worse = (sum(each.low > 0 for each in every), sum(each.high < 0 for each in every))
    n_noise = len(every) - n_better - n_worse
    lead = f"New: better in {n_better}, worse in {n_worse}, within the noise in {n_noise} of {len(every)} settings."
    how = (
        f"Points against {comparison.baseline_title}, with {LEVEL:.0%} intervals from seeds and images. An interval "
        "that holds 0 is noise."
    )
    columns = ("runs", "selector", "images of", "change", "seeds / without", "verdict")
    return f"<p>{text(lead)}</p>" + table(columns, rows) + note(how)


def compared_errors(comparison: Comparison) -> str:
    """Kinds and causes of errors, one pair of bars a run."""
    found = {}
    for run in comparison.runs[:MOST_RUNS]:
        pair = judged(run.run)
        if not isinstance(pair, Missing):
            found[plain(run.name)] = break_down(pair.y_true, pair.y_pred, pair.is_old)
    if not found:
        return note("Errors can be told only where labels of the target were given.")
    kinds = next(iter(found.values())).by_kind()
    causes = next(iter(found.values())).by_cause()
    rows = [(named(name), *errors.by_kind().values(), *errors.by_cause().values()) for name, errors in found.items()]
    columns = ("run", *(kind.replace("_", " ") for kind in kinds), *causes)
    caption = "Wrong images of each run by what they were taken for, and why."
    return in_page(draw_errors(found), "errors", caption, is_broad=True) + table(columns, rows)


def _mean_and_spread(mean: float | None, spread: float | None) -> str:
    if mean is None:
        return ""
    return f"{100 * mean:.1f}" + ("" if spread is None else f" ± {100 * spread:.1f}")
