from __future__ import annotations

import re
import shlex

import click
import numpy as np
import pyarrow as pa
import pytest
from tests.report.html_checks import part, text_of

from justright.cli import main
from justright.discovery.evidence import expected_right
from justright.discovery.predictions import Predictions, category_names
from justright.report.clusters import describe_clusters
from justright.report.elements import Missing
from justright.report.page_images import PageImages
from justright.report.run_parts import headline, next_steps, result_part
from justright.runs.run_folder import RunFolder


def shown(run: RunFolder) -> str:
    views = describe_clusters(run.predictions, run.tuned)
    return part("run", "result", result_part(run, views, PageImages(run.target, 10**7)))


def headline_text(confidence, n_known, n_categories, cluster, n_neither=0, n_given=0) -> str:
    """The headline for these images; the first ones are unlike all categories, or labeled."""
    n = len(cluster)
    index = pa.table({name: [str(number) for number in range(n)] for name in ("id", "dataset", "path")})
    categories = category_names([f"class {number}" for number in range(n_known)], n_categories)
    confidences = np.broadcast_to(np.asarray(confidence, np.float32), n)
    is_neither, is_given = np.arange(n) < n_neither, np.arange(n) < n_given
    found = Predictions(index, np.array(cluster), confidences, is_neither, categories, is_given)
    text, first = headline(found, describe_clusters(found, None), expected_right(confidences[~is_given]))
    return f"{text}{', '.join(first)}."


def test_headline_counts_the_predictions(finished):
    images = finished.predictions.table().to_pylist()
    known, new = ([each for each in images if each["kind"] == kind] for kind in ("known", "discovered"))
    n_neither = len(images) - len(known) - len(new)
    n_uncertain = sum(each["confidence"] < 0.5 for each in images)
    assert min(len(known), len(new), n_neither, n_uncertain) > 0
    wrong = {}
    for each in images:
        if each["category"].startswith("new-"):
            wrong[each["category"]] = wrong.get(each["category"], 0) + 1 - each["confidence"]
    first = sorted(wrong, key=lambda name: -wrong[name])[:3]
    expected = finished.about["expected_right"]
    lead = text_of(re.search("<p class=lead>.*?</p>", shown(finished))[0])
    assert re.sub(" (?=[,.])", "", lead).strip() == (
        f"{len(images)} images: {len(known)} in {len({each['category'] for each in known})} known classes, "
        f"{len(new)} in {len({each['category'] for each in new})} new clusters, {n_neither} unlike all categories. "
        f"We expect {expected['low']} to {expected['high']} of {len(images)} images to be right (90 % interval). "
        f"{n_uncertain} of them are uncertain; look first at {', '.join(first)}."
    )
    n_wrong = round(sum(1 - each["confidence"] for each in images))
    assert f"About {n_wrong} images are expected to be wrong" in text_of(shown(finished))


def test_the_largest_clusters_have_their_expected_purity(finished, own_run):
    views = [view for view in describe_clusters(finished.predictions, None) if view.category.kind == "discovered"]
    largest = max(views, key=lambda view: view.n_images)
    message = text_of(shown(finished)).replace("\u00a0", " ")
    assert f"{largest.category.name} {largest.n_images} images expected purity {100 * largest.purity:.0f} %" in message
    own_run.save_about(own_run.about | {"expected_right": None})
    assert "expected purity" not in text_of(shown(RunFolder.open(own_run.path)))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            (0.9, 2, 2, [0, 1, 1]),
            "3 images: 3 in 2 known classes. We expect 1 to 3 of 3 images to be right (90 % interval). "
            "None of them is uncertain.",
        ),
        (
            (0.1, 0, 1, [0] * 2),
            "2 images: 2 in 1 new cluster. We expect 0 to 1 of 2 images to be right (90 % interval). "
            "2 of them are uncertain; look first at new-001.",
        ),
        (
            ([0.9, 0.9, 0.1], 1, 1, [0] * 3, 1),
            "3 images: 2 in 1 known class, 1 unlike all categories. We expect 1 to 3 of 3 images to be right "
            "(90 % interval). 1 of them is uncertain.",
        ),
        (
            ([1.0, 0.9, 0.1], 1, 1, [0] * 3, 0, 1),
            "3 images: 3 in 1 known class (1 already labeled). We expect 0 to 2 of 2 other images to be right "
            "(90 % interval). 1 of them is uncertain.",
        ),
        ((1.0, 1, 1, [0], 0, 1), "1 image: 1 in 1 known class (1 already labeled)."),
    ],
)
def test_sentence_omits_empty_counts(case, message):
    assert headline_text(*case) == message


def test_published_assignment_states_basis_of_confidence(own_run):
    about = own_run.about | {"answer": "method", "expected_right": None, "calibrated_on": "held-out labeled images"}
    own_run.save_about(about)
    message = text_of(shown(RunFolder.open(own_run.path)))
    assert "Confidence is based on held-out labeled images; look first at" in message
    assert "expect" not in message
    assert "uncertain" not in message


def test_stopped_run_shows_no_expectation(own_run):
    about = {name: each for name, each in own_run.about.items() if name not in ("expected_right", "calibrated_on")}
    own_run.save_about(about)
    message = text_of(shown(RunFolder.open(own_run.path)))
    assert "unlike all categories. Look first at" in message
    assert "expect" not in message


def test_largest_new_clusters_have_their_nearest(finished):
    html = shown(finished)
    names = re.findall(r"<b><bdi>(.*?)</bdi></b> (\d+) images", html)
    sizes = {
        c.name: n for c, n in zip(finished.predictions.categories, finished.predictions.sizes.tolist(), strict=True)
    }
    new = sorted((n for name, n in sizes.items() if name.startswith("new-")), reverse=True)
    assert [int(n) for _, n in names] == new[:6]
    assert all(sizes[name] == int(n) for name, n in names)
    assert re.findall('alt="typical images of (.*?)"', html) == [name for name, _ in names]
    assert len(re.findall(r"nearest: known class <bdi>", html)) == 6


def test_accuracy_is_beside_that_of_simple_methods(own_run):
    own_run.save_about(own_run.about | {"check": {"baselines": {"k-means": {"all": 0.293}, "Ward": {"all": 0.327}}}})
    run = RunFolder.open(own_run.path)
    message = text_of(shown(run)).replace("\u00a0", " ")
    assert f"Accuracy by the true labels: {run.scores.percent('all')} % of all images," in message
    assert "Simple methods on the features before training: k-means 29.3 %, Ward 32.7 %." in message


def test_result_without_truth_selection_or_new_clusters(own_run):
    for name in ("scores.json", "truth.parquet", "weights.parquet"):
        (own_run.path / name).unlink()
    known = [view for view in describe_clusters(own_run.predictions, None) if view.category.kind == "known"]
    html = part("run", "result", result_part(own_run, known, PageImages(Missing("gone"), 0)))
    assert re.findall("<h2>(.*?)</h2>", html) == ["What to do next"]
    assert "<img" not in html
    assert "true labels" not in text_of(html)


def test_next_steps_are_valid_commands():
    commands = [shlex.split(command) for _, command in next_steps("a run")]
    assert [words[:3] for words in commands] == [
        ["justright", name, "a run"] for name in ("review", "predict", "review")
    ]
    for _, name, *rest in commands:
        options = {option for each in main.get_command(click.Context(main), name).params for option in each.opts}
        assert {word for word in rest if word.startswith("--")} <= options
