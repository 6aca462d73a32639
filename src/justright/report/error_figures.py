"""The errors as a figure: how many, taken for what, why, and the matched confusion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Float
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from justright.evaluation.confusions import Confusion, Errors
from justright.report.drawing import INK, name_rows, write_above
from justright.report.elements import short
from justright.utils.types import Array

TAKEN_FOR = {"n_as_old": ("an Old class", "#d1603d"), "n_as_new": ("a New class or none", "#2f6db3")}
CAUSE = {
    "n_split": ("split off from its class", "#7a5195"),
    "n_merged": ("merged into another", "#2a9d8f"),
    "n_stray": ("stray", "#b4b4b4"),
}

MOST_CELLS = 256  # a larger confusion is drawn in blocks: finer than this no screen shows it
MOST_NAMES = 40  # with more classes their names would overlap
LONGEST_NAME = 30  # longer names are cut: they would push the picture aside


def draw_errors(errors: Errors | Mapping[str, Errors]) -> Figure:
    """Share of New and of Old images that are wrong, by what they were taken for and by cause; one pair of bars a run.

    Left is Fig. 3 of the paper, given one entry per labeled set.
    """
    runs = {"": errors} if isinstance(errors, Errors) else dict(errors)
    rows = [(name, run, side) for name, run in runs.items() for side in ("New", "Old")]
    # the two bars of a run stand closer together than those of different runs
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
    name_rows(taken_for, heights, [f"{short(name, LONGEST_NAME)}  {side}".strip() for name, _, side in rows])
    # room for the sum that stands behind the longest bar
    taken_for.set_xlim(0, min(1.0, max(0.05, shares.sum(axis=1).max())) * 1.18)
    return figure


def draw_confusion(confusion: Confusion, class_names: Mapping[int, str] | None = None) -> Figure:
    """The share of each class that lies in each cluster; what is right lies on the diagonal.

    Old classes come first; clusters without a class stand at the right.
    """
    n_classes, n_clusters = confusion.n.shape
    block = -(-max(n_classes, n_clusters) // MOST_CELLS)
    n = np.add.reduceat(confusion.n, np.arange(0, n_classes, block), axis=0)
    n = np.add.reduceat(n, np.arange(0, n_clusters, block), axis=1)
    share = n / np.maximum(n.sum(axis=1, keepdims=True), 1)

    # as wide as the matrix needs, but neither a strip nor a banner
    width = float(np.clip(6.4 * n_clusters / n_classes, 4.6, 12.0))
    figure = Figure(figsize=(width + 1.2, 6.4), layout="constrained")
    axes = figure.subplots()
    # the square root keeps small confusions visible beside a dark diagonal
    image = axes.imshow(
        share, cmap="Blues", norm=PowerNorm(0.5, 0, 1), interpolation="nearest", aspect="auto",
        extent=(0, n.shape[1] * block, n.shape[0] * block, 0),
    )  # fmt: skip
    axes.set(xlim=(0, n_clusters), ylim=(n_classes, 0))  # the last block may reach beyond
    for spine in axes.spines.values():
        spine.set_color("#999999")
    sides = {"Old": (0, confusion.n_old), "New": (confusion.n_old, n_classes), "no class": (n_classes, n_clusters)}
    for name, (start, stop) in sides.items():
        if stop > start:
            write_above(axes, (start + stop) / 2, name, fontsize=10.0)
            if start > 0:
                axes.axvline(start, color="#d1603d", linewidth=1)
            if 0 < start < n_classes:
                axes.axhline(start, color="#d1603d", linewidth=1)
    axes.set_ylabel("class", labelpad=8)
    axes.set_xlabel("cluster, in the order of the classes" + (f"; blocks of {block}" if block > 1 else ""))
    if class_names is not None and n_classes <= MOST_NAMES:
        names = [short(class_names.get(int(label), label), LONGEST_NAME) for label in confusion.classes]
        name_rows(axes, [row + 0.5 for row in range(n_classes)], names)
        axes.set_ylabel("")
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02, ticks=[0, 0.05, 0.25, 0.5, 1], format=_percent)
    bar.outline.set_visible(False)
    bar.set_label("share of the class")
    return figure


def _shares(errors: Errors, is_old: bool, parts: Iterable[str]) -> Float[Array, " parts"]:
    """What share of the images of old or of new classes each part makes up; 0 where there are no such images."""
    side = errors.is_old == is_old
    wrong = np.array([getattr(errors, part)[side].sum() for part in parts], dtype=float)
    return wrong / max(int(errors.n_images[side].sum()), 1)


def _percent(value: float, _: object = None) -> str:
    return f"{100 * value:.0f} %"
