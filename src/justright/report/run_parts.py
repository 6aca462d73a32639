"""The parts of the page of a run: result, scores, errors, data, settings, timings, reproduction."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from justright.data.pool import OWN, dataset_title
from justright.discovery.evidence import ExpectedRight
from justright.discovery.predictions import Predictions
from justright.evaluation import Counts, Errors, Scores, break_down, match_counts, matched_confusion
from justright.evaluation.files import JudgedPredictions
from justright.evaluation.scores import GROUPS
from justright.report.clusters import ClusterView, largest_clusters
from justright.report.drawing import datasets
from justright.report.elements import Missing, Name, Table, Values, attempt, optional, plain, short
from justright.report.page_images import PageImages, SheetOrder
from justright.report.run_figures import draw_confusion, draw_errors
from justright.report.selection_report import draw_selection
from justright.runs.run_folder import RunFolder
from justright.runs.source_checks import summary
from justright.utils import settings
from justright.utils.seeding import generator
from justright.utils.types import UNLABELED

N_FIRST, N_LARGEST = 3, 6  # clusters named to look at first, and clusters shown
N_IMAGES, COLUMNS, PIXELS = 9, 3, 52  # of each of them
SURE = 0.5  # an image is uncertain if its category is less likely than this to be right
OLD_PARTS = {"old_kept": "Old, labels kept", "old_dropped": "Old, labels dropped"}
TITLES = {"all": "All", "old": "Old", **OLD_PARTS, "new": "New"}
MOST_PAIRS = 25
MOST_CELLS = 25_000_000  # a larger confusion matrix is not drawn
# from transparent to blue, for light and dark pages
SHEER = LinearSegmentedColormap.from_list("sheer", [(0.18, 0.43, 0.70, 0.0), (0.18, 0.43, 0.70, 1.0)])
N_SAMPLE, SAMPLE_PIXELS, SAMPLE_COLUMNS = 16, 64, 8
MOST_SETS = 12  # data sets with a sheet; others are only counted
BUDGET = 600_000
FIRST = ("method", "selector", "seed", "n_target", "k_source", "n_categories", "n_known", "scale")
FACT_TITLES = {
    "n_target": "categories of the target (K)",
    "k_source": "source of K",
    "n_categories": "categories in all",
    "n_known": "known classes",
}
SETTINGS = ("config", "selector_params", "spec")  # nested settings, resolved ones first


def result_part(run: RunFolder, views: Sequence[ClusterView], page_images: PageImages) -> Values:
    """The first screen: summary, largest new clusters, selection, next steps."""
    saved, scores = optional(lambda: run.selection), optional(lambda: run.scores)
    return largest_clusters(views, page_images, N_LARGEST, N_IMAGES, PIXELS, COLUMNS) | {
        "headline": headline(run.predictions, views, run.expected, run.about.get("calibrated_on", "")),
        "n_wrong": None if run.expected is None else run.expected.n - run.expected.expected,
        "accuracies": {name: percent(scores, name) for name in GROUPS if math.isfinite(getattr(scores, name))}
        if scores
        else {},
        "simple": simple_texts(run) if scores else {},
        "notes": run.about.get("notes", []),
        "is_calibrated": run.expected is not None,
        "selected": "" if saved is None else saved.weighed.summary(),
        "figures": {} if saved is None else draw_selection(saved.weighed),
        "steps": next_steps(run.path.resolve().name),
    }


def headline(
    predictions: Predictions, views: Sequence[ClusterView], expected: ExpectedRight | None, based_on: str = ""
) -> tuple[str, list[str]]:
    """The number of images by kind and the expected accuracy, and the new clusters with the most expected errors.

    expected: None if the confidences are not calibrated; the sentence then names what they are based on.
    """
    counts = []
    for kind, one, many in (("known", "known class", "known classes"), ("discovered", "new cluster", "new clusters")):
        group = [view for view in views if view.category.kind == kind]
        n_images = sum(len(view.rows) for view in group)
        counts += [f"{n_images:,} in {len(group):,} {one if len(group) == 1 else many}"] if group else []
    if n_given := int(predictions.is_given.sum()):
        counts[0] += f" ({n_given:,} already labeled)"
    if n_neither := int(predictions.is_neither.sum()):
        counts.append(f"{n_neither:,} unlike all categories")
    n = len(predictions)
    text = f"{n:,} image{'' if n == 1 else 's'}: {', '.join(counts)}. "
    if expected is not None and expected.n:
        n_uncertain = int(np.sum(~predictions.is_given & (predictions.confidence < SURE)))
        how_many = f"{n_uncertain:,}" if n_uncertain else "None"
        text += f"{expected.in_words('other images' if n_given else 'images')} {how_many} of them "
        text += "is uncertain" if n_uncertain < 2 else "are uncertain"
    elif based_on:
        text += f"Confidence is based on {based_on}"
    first = [view.category.name for view in views if view.category.kind == "discovered"][:N_FIRST]
    if not first:
        return text.removesuffix(". "), first
    return text + ("Look first at " if text.endswith(". ") else "; look first at "), first


def next_steps(run: str) -> list[tuple[str, str]]:
    """What to do with a finished run, with commands for the folder that contains it."""
    run = shlex.quote(run)
    labeled = f"justright review {run} --export reviewed.parquet --as labeled"
    return [
        ("Review the clusters on a page: keep, name, merge, split", f"justright review {run}"),
        ("Predict the categories of more images", f"justright predict {run} more-images/ --out found.csv"),
        ("Export the reviewed labels for --labeled of the next run", labeled),
    ]


def percent(scores: Scores, name: str) -> str:
    """An accuracy with its interval."""
    if math.isnan(getattr(scores, name)):
        return "no images"
    return scores.percent(name).replace(", ", ",\u00a0")  # no line break inside an interval


def scores_part(run: RunFolder) -> Values:
    """All, Old and New with intervals: one row per group of images."""
    scores = run.scores
    if scores is None:
        return {"scores": None, "accuracies": None, "baselines": None}
    n_images = {"all": scores.n_images, "old": scores.n_old, "new": scores.n_new}
    rows: list[dict[str, object]] = []
    for name, title in TITLES.items():
        if name not in OLD_PARTS or math.isfinite(getattr(scores, name)):
            row = {"images of": title, "accuracy %": percent(scores, name), "images": n_images.get(name)}
            rows.append(row | ({"names count %": _share(scores.names.get(name))} if scores.names else {}))
    return {"scores": scores, "accuracies": Table.of(rows), "baselines": _baselines(run, scores)}


def simple_scores(run: RunFolder) -> dict[str, dict[str, Any]]:
    """The scores of simple methods on frozen features, by name; empty if they were not computed."""
    return (run.about.get("check") or {}).get("baselines") or {}


def simple_texts(run: RunFolder) -> dict[str, str]:
    """The share of right images of the best-known simple methods in percent, by name; the table of scores has all."""
    scores = simple_scores(run)
    return {name: f"{100 * scores[name]['all']:.1f}\u00a0%" for name in ("k-means", "Ward") if name in scores}


def _baselines(run: RunFolder, scores: Scores) -> Table | None:
    """The run compared with simple methods on frozen features, if they were scored."""
    if not (simple := simple_scores(run)):
        return None
    own = {name: getattr(scores, name) for name in GROUPS} | {"names": scores.names}
    rows = []
    methods = {f"this run ({run.about['method']})": own} | simple
    for method, each in methods.items():
        rows.append((method, *(_share(each[name]) for name in GROUPS), _share(each["names"].get("all"))))
    return Table(("method", "All %", "Old %", "New %", "names count %"), rows)


def _share(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(100 * value, 1)


def judged(run: RunFolder) -> JudgedPredictions | Missing:
    """Clusters with the true labels, if there are any."""
    truth = run.truth_file
    if truth is None:
        return Missing("Errors cannot be counted: the run has no labels of the target")
    return attempt(lambda: run.judged(truth), "Errors cannot be computed")


def errors_part(truth: JudgedPredictions | Missing, predictions: Predictions) -> Values | Missing:
    """Errors by kind and cause, as figure and table; the confusion; the classes, worst first."""
    if isinstance(truth, Missing):
        return truth
    errors = break_down(truth.y_true, truth.y_pred, truth.is_old)
    n = int(errors.n_images.sum())
    kinds = [(kind.replace("_", " "), count, 100 * count / n) for kind, count in errors.by_kind().items()]
    causes = [(f"because {cause}", count, 100 * count / n) for cause, count in errors.by_cause().items()]
    counts, confusion = Counts.of(truth.y_true, truth.y_pred), None
    if len(counts.classes) * len(counts.clusters) <= MOST_CELLS:
        names = {label: plain(name) for label, name in truth.class_names.items()}
        confusion = draw_confusion(matched_confusion(counts, errors.classes[errors.is_old]), names)
        confusion.axes[0].images[0].set_cmap(SHEER)
    return {
        "figure": draw_errors(errors),
        "kinds": Table(("error", "images", "% of all"), kinds + causes),
        "confusion": confusion,
        "pairs": _pairs(truth, counts, predictions),
        "classes": _classes(truth, errors, predictions),
    }


def _pairs(truth: JudgedPredictions, counts: Counts, predictions: Predictions) -> Table:
    """The most frequent confusions of a class with the cluster of another."""
    taken_for = match_counts(counts).to_classes(counts.cluster)
    wrong = np.flatnonzero(taken_for != counts.class_)
    rows = []
    for pair in wrong[np.argsort(-counts.n[wrong], kind="stable")][:MOST_PAIRS].tolist():
        label, other, cluster = (int(each[pair]) for each in (counts.class_, taken_for, counts.cluster))
        other_name = "no class" if other == UNLABELED else _name(truth, other)
        cluster_name = Name(predictions.categories[cluster].name)
        rows.append((_name(truth, label), other_name, cluster_name, int(counts.n[pair])))
    return Table(("class", "taken for", "in cluster", "images"), rows)


def _classes(truth: JudgedPredictions, errors: Errors, predictions: Predictions) -> Table:
    share = errors.n_right / np.maximum(errors.n_images, 1)
    parts = (errors.n_as_old, errors.n_as_new, errors.n_split, errors.n_merged, errors.n_stray)
    rows = [
        (
            _name(truth, int(errors.classes[i])),
            "Old" if errors.is_old[i] else "New",
            int(errors.n_images[i]),
            100 * float(share[i]),
            *(int(part[i]) for part in parts),
            Name(predictions.categories[int(errors.cluster[i])].name) if errors.cluster[i] >= 0 else "none",
        )
        for i in np.argsort(share, kind="stable").tolist()
    ]
    columns = ("class", "side", "images", "right %", "as old", "as new", "split", "merged", "stray", "cluster")
    return Table(columns, rows)


def _name(truth: JudgedPredictions, label: int) -> Name:
    return Name(truth.class_names.get(label, str(label)))


def overview(run: RunFolder) -> Values:
    """One row and one sheet per data set."""
    rows, sheets, missing, sources = [], [], [], []
    for part, images in (
        ("target", attempt(lambda: run.target, "The list of target images cannot be read")),
        ("pool", attempt(lambda: run.pool, "The list of labeled images cannot be read")),
    ):
        if isinstance(images, Missing):
            missing.append(images)
            continue
        page_images = PageImages(images, BUDGET // 2)
        names, of_image = datasets(images.table["dataset"])
        for number, dataset in enumerate(names):
            members = np.flatnonzero(of_image == number)
            labels = np.unique(images.labels[members])
            title = dataset_title(dataset) if part == "pool" else dataset
            side = title if part == "pool" and dataset == OWN else part
            rows.append((side, Name(title), len(members), int((labels >= 0).sum()) or None))
            if number < MOST_SETS:
                drawn = generator(0, "overview", f"{side}: ", dataset).permutation(len(members))[:N_SAMPLE]
                what = f"images of {short(title)}, drawn at random"
                picture = page_images.sheet(SheetOrder(members[np.sort(drawn)], SAMPLE_PIXELS, SAMPLE_COLUMNS, what))
                sheets += [(side, title, picture)] if picture else []
        sources.append(page_images)
    sets = Table(("part", "data set", "images", "classes"), rows)
    return {"sets": sets, "sheets": sheets, "missing": missing, "sources": sources}


def left_out_part(run: RunFolder) -> Values | Missing:
    """The skipped files: how many, why, and a list."""
    files = run.left_out
    if files is None:
        return Missing("The run has no list of skipped files")
    if not files:
        return Missing("No files were skipped")
    rows = [(Name(each.path), each.side, each.reason.replace("_", " "), Name(each.detail)) for each in files]
    return {"summary": summary(files), "files": Table(("file", "side", "reason", "detail"), rows)}


def flat_texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested settings; lists become text."""
    one_level = settings.flat(values).items()
    return {name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in one_level}


def resolved(about: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of run.json; the spec fills in what an unfinished run has not resolved yet."""
    spec = {name: value for name, value in (about.get("spec") or {}).items() if value is not None}
    if isinstance(spec.get("backbone"), str):
        spec["backbone"] = {"name": spec["backbone"]}
    return spec | dict(about)


def settings_part(about: Mapping[str, Any]) -> Values:
    """The most important settings, then the request, then all settings."""
    about = resolved(about)
    first = {FACT_TITLES.get(name, name): about[name] for name in FIRST if about.get(name) is not None}
    if name := (about.get("backbone") or {}).get("name"):
        first["backbone"] = name
    request = {name: value for name, value in (about.get("request") or {}).items() if name not in ("command", "print")}
    first |= {name: value for name, value in flat_texts(request).items() if name not in first}
    every = _in_words(flat_texts({name: about[name] for name in SETTINGS if about.get(name)}))
    return {"first": _in_words(first), "settings": Table(("setting", "value"), list(every.items()))}


def timings(about: Mapping[str, Any]) -> Values | Missing:
    """Seconds by stage, and their sum."""
    seconds = about.get("seconds")
    if not seconds:
        return Missing("The run has no timings")
    total = sum(seconds.values())
    rows = [(name, value, round(100 * value / total) if total else 0) for name, value in seconds.items()]
    return {"stages": Table(("stage", "seconds", "%"), [*rows, ("all", total, 100)])}


def reproduction(about: Mapping[str, Any]) -> Values:
    """The command, versions, seed and fingerprints: if all are equal, so are the results."""
    about = resolved(about)
    facts: dict[str, Any] = {"seed": about["seed"]} if "seed" in about else {}
    for name, title in (("versions", "version of"), ("backbone", "backbone"), ("fingerprints", "fingerprint of")):
        facts |= {f"{title} {part}": value for part, value in flat_texts(about.get(name) or {}).items()}
    elsewhere = {*FIRST, *SETTINGS, "command", "request", "versions", "fingerprints", "backbone", "seconds", "format"}
    facts |= _in_words(flat_texts({name: value for name, value in about.items() if name not in elsewhere}))
    return {"command": about.get("command") or (about.get("request") or {}).get("command"), "facts": facts}


def _in_words(values: Mapping[str, Any]) -> dict[str, str]:
    words = {True: "yes", False: "no", None: "not set"}
    return {name: words[value] if isinstance(value, bool | None) else str(value) for name, value in values.items()}
