"""The first screen of a run: one sentence to act on, the largest new clusters, what selection did, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from justright.discovery.predictions import Predictions
from justright.discovery.probability import ExpectedRight
from justright.evaluation.scores import GROUPS
from justright.report.cluster_views import ClusterView
from justright.report.clusters import LONGEST_ALT, nearest_words
from justright.report.elements import Name, Values, Words, join, optional, short
from justright.report.page_images import PageImages, SheetOrder
from justright.report.score_parts import percent
from justright.report.selection_figures import draw_selection
from justright.runs.run_folder import RunFolder

N_FIRST, N_LARGEST = 3, 6  # clusters that are named to look at first, and those that are shown
N_IMAGES, COLUMNS, PIXELS = 9, 3, 52  # of each of them
SURE = 0.5  # an image is uncertain where its category is less likely than this to be right


def result_part(run: RunFolder, views: Sequence[ClusterView], page_images: PageImages) -> Values:
    """What the first screen shows, in its order."""
    saved, scores = optional(lambda: run.selection), optional(lambda: run.scores)
    new = [view for view in views if view.category.kind == "discovered"]
    largest = sorted(new, key=lambda view: -view.n_images)[:N_LARGEST]
    alts = [f"typical images of {short(view.category.name, LONGEST_ALT)}" for view in largest]
    orders = [SheetOrder(view.rows[:N_IMAGES], PIXELS, COLUMNS, alt) for view, alt in zip(largest, alts, strict=True)]
    return {
        "sentence": sentence(run.predictions, views, run.expected, run.about.get("calibrated_on", "")),
        "n_wrong": None if run.expected is None else run.expected.n - run.expected.expected,
        "accuracies": {name: percent(scores, name) for name in GROUPS} if scores else {},
        "notes": run.about.get("notes", []),
        "largest": [
            (picture, Name(view.category.name), view.n_images, nearest_words(view))
            for view, picture in zip(largest, page_images.sheets(orders), strict=True)
        ],
        "n_new": len(new),
        "selected": "" if saved is None else saved.weighed.summary(),
        "figures": {} if saved is None else draw_selection(saved.weighed),
        "steps": next_steps(run.path.resolve().name),
    }


def sentence(
    predictions: Predictions, views: Sequence[ClusterView], expected: ExpectedRight | None, rests_on: str = ""
) -> Words:
    """How many images are where, how many are expected to be right, and the new clusters where most are likely wrong.

    expected: None if the confidences are not calibrated; the sentence then says what they rest on.
    """
    counts = []
    for kind, one, many in (("known", "known class", "known classes"), ("discovered", "new cluster", "new clusters")):
        group = [view for view in views if view.category.kind == kind]
        n_images = sum(len(view.rows) for view in group)
        counts += [f"{n_images:,} in {len(group):,} {one if len(group) == 1 else many}"] if group else []
    if n_given := int(predictions.is_given.sum()):
        counts[0] += f" ({n_given:,} of them labeled before)"
    if n_neither := int(predictions.is_neither.sum()):
        counts.append(f"{n_neither:,} like none of them")
    n = len(predictions)
    said = f"{n:,} image{'' if n == 1 else 's'}: {', '.join(counts)}. "
    if expected is not None and expected.n:
        n_uncertain = int(np.sum(~predictions.is_given & (predictions.confidence < SURE)))
        how_many = f"{n_uncertain:,}" if n_uncertain else "None"
        said += f"{expected.in_words('other images' if n_given else 'images')} {how_many} of them "
        said += "is uncertain" if n_uncertain < 2 else "are uncertain"
    elif rests_on:
        said += f"Confidence rests on {rests_on}"
    first = [view for view in views if view.category.kind == "discovered"][:N_FIRST]
    names = join(", ", [(Name(view.category.name),) for view in first])
    look = "; look first at " if not said.endswith(". ") else "Look first at "
    return (said, look, *names, ".") if names else (said.removesuffix(". "), ".")


def next_steps(run: str) -> list[tuple[str, str]]:
    """What a person does with a finished run, and the command for it, called where the folder of the run lies."""
    run = shlex.quote(run)
    labeled = f"justright review {run} --export reviewed.parquet --as labeled"
    return [
        ("Go through the clusters on a page: keep, name, merge, split", f"justright review {run}"),
        ("Give more images a category", f"justright predict {run} more-images/ --out found.csv"),
        ("Take the reviewed labels along, for --labeled of the next run", labeled),
    ]
