"""Figures of one or several runs: estimates of K, training curves, suites, errors and confusion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from justright.benchmark.summary import SettingRow
from justright.evaluation.confusions import Confusion, Errors
from justright.report.drawing import (
    COLORS,
    INK,
    add_legend,
    color_of,
    draw_changes,
    figure_with_axes,
    label_rows,
    panel_grid,
    text_above,
)
from justright.report.elements import short
from justright.utils.types import Array

COLOR, CHOSEN = COLORS[:2]
N_COLUMNS, MOST_PANELS = 3, 12  # of the figure of training
LONGEST_NAME = 30

Record = Mapping[str, Any]
TAKEN_FOR = {"n_as_old": ("an Old class", "#d1603d"), "n_as_new": ("a New class or none", "#2f6db3")}
CAUSE = {
    "n_split": ("split off from its class", "#7a5195"),
    "n_merged": ("merged into another", "#2a9d8f"),
    "n_stray": ("stray", "#b4b4b4"),
}
MOST_CELLS = 256  # a larger confusion is drawn in blocks, because screens show no finer detail
MOST_NAMES = 40  # with more classes their names would overlap


def draw_counts(estimates: Mapping[str, Record]) -> Figure:
    """The curve of each counter, its K and its interval.

    estimates: by name of the counter, as `justright estimate --out` writes them.
    """
    figure, panels = figure_with_axes(5.0 * len(estimates), 3.4, (1, len(estimates)))
    for axes, (name, estimate) in zip(panels, estimates.items(), strict=True):
        (x_name, y_name), k = estimate["axes"], estimate["n_categories"]
        x, y = np.asarray(estimate["curve"], dtype=np.float64).reshape(-1, 2).T
        axes.plot(x, y, "o-", color=COLOR, markersize=4, linewidth=1.2)
        is_k_across = x_name == "K"
        draw_line, draw_band = (axes.axvline, axes.axvspan) if is_k_across else (axes.axhline, axes.axhspan)
        draw_line(k, color=CHOSEN, linewidth=1.5)
        if interval := estimate.get("interval"):
            draw_band(*interval, color=CHOSEN, alpha=0.15, linewidth=0)
        axes.set_title(f"{name}: K = {k}", loc="left", fontsize=10.5, fontweight="bold")
        axes.set_xlabel(x_name, fontsize=9.5)
        axes.set_ylabel(y_name, fontsize=9.5)
        for axis in (axes.xaxis, axes.yaxis)[: 1 if is_k_across else 2]:  # K and rounds are integers
            axis.set_major_locator(MaxNLocator(integer=True))
    return figure


def reported(records: Sequence[Record]) -> list[str]:
    """Names of the numbers in the records, the loss first, without the epoch."""
    names = dict.fromkeys(
        name
        for record in records
        for name, value in record.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    )
    return sorted((name for name in names if name != "epoch"), key=lambda name: name != "loss")


def draw_training(runs: Mapping[str, Sequence[Record]]) -> Figure:
    """One panel per number, one line per run."""
    names = list(dict.fromkeys(name for records in runs.values() for name in reported(records)))
    names = [name for name in names if name != "seconds"][:MOST_PANELS] or ["loss"]
    figure, panels = panel_grid(len(names), N_COLUMNS, 8.4, 1.9)
    for axes, name in zip(panels, names, strict=True):
        for number, (run, records) in enumerate(runs.items()):
            points = [(each.get("epoch", place), each[name]) for place, each in enumerate(records) if name in each]
            x, y = [epoch for epoch, _ in points], [value for _, value in points]
            marker = "o" if len(points) < 2 else ""  # a line of one point is invisible
            axes.plot(x, y, color=color_of(number), linewidth=1.4, marker=marker, label=short(run, LONGEST_NAME))
        axes.set_title(name.replace("_", " "), loc="left", fontsize=9.5, color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in panels[-N_COLUMNS:]:
        axes.set_xlabel("epoch", fontsize=8.5)
    if len(runs) > 1:
        add_legend(figure, *panels[0].get_legend_handles_labels(), ncols=3)
    return figure


def draw_suite(rows: Sequence[SettingRow], by_problem: Mapping[str, Sequence[float]], baseline: str) -> Figure:
    """One row per setting: the mean change of All with its interval over problems, and a dot per problem."""
    shown = [row for row in rows if row.all_difference is not None]
    names = [short(row.setting, 40) for row in shown]
    changes = [[100 * value for value in row.all_difference or ()] for row in shown]
    figure, axes = draw_changes(names, changes, [COLORS[0]] * len(shown))
    for place, row in enumerate(shown):
        dots = [100 * value for value in by_problem[row.setting]]
        axes.plot(dots, [place] * len(dots), ".", color=INK, markersize=4, alpha=0.55)
    label = f"points of All against {baseline}; dots are problems, lines 95 % intervals over them"
    axes.set_xlabel(label, fontsize=8.5)
    return figure


def draw_errors(errors: Errors | Mapping[str, Errors]) -> Figure:
    """Share of wrong images among New and Old, by predicted side and by cause; one pair of bars per run.

    The left panel is Fig. 3 of the paper, with one entry per labeled set.
    """
    runs = {"": errors} if isinstance(errors, Errors) else dict(errors)
    rows = [(name, run, side) for name, run in runs.items() for side in ("New", "Old")]
    # less space within a run than between runs
    heights = [place + 0.35 * (place // 2) for place in range(len(rows))]
    figure = Figure(figsize=(9.5, 1.75 + 0.42 * len(rows) + 0.15 * len(runs)), layout="constrained")
    taken_for, cause = figure.subplots(1, 2, sharey=True, sharex=True, gridspec_kw={"wspace": 0.09})
    for axes, title, parts in ((taken_for, "Taken for", TAKEN_FOR), (cause, "Why", CAUSE)):
        shares = np.stack([_shares(run, side == "Old", parts) for _, run, side in rows])
        left = np.cumsum(shares, axis=1) - shares
        for column, (name, color) in enumerate(parts.values()):
            axes.barh(heights, shares[:, column], 0.78, left[:, column], color=color, label=name, edgecolor="white")
        for height, total in zip(heights, shares.sum(axis=1), strict=True):
            axes.text(total, height, f" {100 * total:.1f} %", va="center", fontsize=9, color=INK)
        axes.xaxis.set_major_formatter(_percent)
        axes.set_xlabel("wrong images, as a share of all New or all Old ones")
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=26)
        axes.legend(
            loc="lower left", bbox_to_anchor=(-0.015, 0.99), ncols=3, frameon=False, fontsize=9,
            handlelength=0.9, handleheight=0.9, columnspacing=1.2, handletextpad=0.4, borderpad=0.2,
        )  # fmt: skip
    label_rows(taken_for, heights, [f"{short(name, LONGEST_NAME)}  {side}".strip() for name, _, side in rows])
    # space for the sum after the longest bar
    taken_for.set_xlim(0, min(1.0, max(0.05, shares.sum(axis=1).max())) * 1.18)
    return figure


def draw_confusion(confusion: Confusion, class_names: Mapping[int, str] | None = None) -> Figure:
    """The share of each class in each cluster; correct images are on the diagonal.

    Old classes come first, clusters without a class last.
    """
    n_classes, n_clusters = confusion.n.shape
    block = -(-max(n_classes, n_clusters) // MOST_CELLS)
    n = np.add.reduceat(confusion.n, np.arange(0, n_classes, block), axis=0)
    n = np.add.reduceat(n, np.arange(0, n_clusters, block), axis=1)
    share = n / np.maximum(n.sum(axis=1, keepdims=True), 1)

    # proportional to the matrix, within limits
    width = float(np.clip(6.4 * n_clusters / n_classes, 4.6, 12.0))
    figure = Figure(figsize=(width + 1.2, 6.4), layout="constrained")
    axes = figure.subplots()
    # the square root keeps small confusions visible beside a dark diagonal
    image = axes.imshow(
        share, cmap="Blues", norm=PowerNorm(0.5, 0, 1), interpolation="nearest", aspect="auto",
        extent=(0, n.shape[1] * block, n.shape[0] * block, 0),
    )  # fmt: skip
    axes.set(xlim=(0, n_clusters), ylim=(n_classes, 0))  # the last block may be larger than the rest
    for spine in axes.spines.values():
        spine.set_color("#999999")
    sides = {"Old": (0, confusion.n_old), "New": (confusion.n_old, n_classes), "no class": (n_classes, n_clusters)}
    for name, (start, stop) in sides.items():
        if stop > start:
            text_above(axes, (start + stop) / 2, name, fontsize=10.0)
            if start > 0:
                axes.axvline(start, color="#d1603d", linewidth=1)
            if 0 < start < n_classes:
                axes.axhline(start, color="#d1603d", linewidth=1)
    axes.set_ylabel("class", labelpad=8)
    axes.set_xlabel("cluster, in the order of the classes" + (f"; blocks of {block}" if block > 1 else ""))
    if class_names is not None and n_classes <= MOST_NAMES:
        names = [short(class_names.get(int(label), label), LONGEST_NAME) for label in confusion.classes]
        label_rows(axes, [row + 0.5 for row in range(n_classes)], names)
        axes.set_ylabel("")
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02, ticks=[0, 0.05, 0.25, 0.5, 1], format=_percent)
    bar.outline.set_visible(False)
    bar.set_label("share of the class")
    return figure


def _shares(errors: Errors, is_old: bool, parts: Iterable[str]) -> Float[Array, " parts"]:
    """Share of each kind of error among the images of old or new classes; 0 without such images."""
    side = errors.is_old == is_old
    wrong = np.array([getattr(errors, part)[side].sum() for part in parts], dtype=float)
    return wrong / max(int(errors.n_images[side].sum()), 1)


def _percent(value: float, _: object = None) -> str:
    return f"{100 * value:.0f} %"
