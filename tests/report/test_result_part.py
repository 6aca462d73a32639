from __future__ import annotations

import re
import shlex

import click
import numpy as np
import pyarrow as pa
import pytest
from tests.report.html_checks import part, text_of

from justright.cli import main
from justright.discovery.predictions import Predictions, category_names
from justright.report.cluster_views import look_at_clusters
from justright.report.elements import Missing
from justright.report.page_images import PageImages
from justright.report.result_part import next_steps, result_part, sentence
from justright.runs.run_folder import RunFolder


def shown(run: RunFolder) -> str:
    views = look_at_clusters(run.predictions, run.tuned)
    return part("run", "result", result_part(run, views, PageImages(run.target, 10**7)))


def told(confidence, n_known, n_categories, cluster, n_neither=0) -> str:
    """The sentence for these images, of which the first are like none."""
    n = len(cluster)
    index = pa.table({name: [str(number) for number in range(n)] for name in ("id", "dataset", "path")})
    categories = category_names([f"class {number}" for number in range(n_known)], n_categories)
    confidences = np.broadcast_to(np.asarray(confidence, np.float32), n)
    found = Predictions(index, np.array(cluster), confidences, np.arange(n) < n_neither, categories)
    return "".join(sentence(found, look_at_clusters(found, None)))


def test_the_numbers_of_the_sentence_are_those_of_the_predictions(finished):
    images = finished.predictions.table().to_pylist()
    known, new = ([each for each in images if each["kind"] == kind] for kind in ("known", "discovered"))
    n_neither = len(images) - len(known) - len(new)
    n_uncertain = sum(each["confidence"] < 0.5 or each["kind"] == "neither" for each in images)
    assert min(len(known), len(new), n_neither, n_uncertain) > 0
    wrong = {}
    for each in images:
        if each["category"].startswith("new-"):
            wrong[each["category"]] = wrong.get(each["category"], 0) + 1 - each["confidence"]
    first = sorted(wrong, key=lambda name: -wrong[name])[:3]
    lead = text_of(re.search("<p class=lead>.*?</p>", shown(finished))[0])
    assert re.sub(" (?=[,.])", "", lead).strip() == (
        f"{len(images)} images: {len(known)} in {len({each['category'] for each in known})} known classes, "
        f"{len(new)} in {len({each['category'] for each in new})} new clusters, {n_neither} like none of them; "
        f"1 in {round(len(images) / n_uncertain)} images is uncertain; look first at {', '.join(first)}."
    )


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ((0.9, 2, 2, [0, 1, 1]), "3 images: 3 in 2 known classes; no image is uncertain."),
        ((0.1, 0, 1, [0]), "1 image: 1 in 1 new cluster; 100% of them are uncertain; look first at new-001."),
        (([0.9, 0.9, 0.9, 0.1], 1, 1, [0] * 4), "4 images: 4 in 1 known class; 1 in 4 images is uncertain."),
        ((0.9, 1, 1, [0, 0], 1), "2 images: 1 in 1 known class, 1 like none of them; 1 in 2 images is uncertain."),
    ],
)
def test_what_is_not_there_is_not_said(case, said):
    assert told(*case) == said


def test_what_was_labeled_before_is_counted_and_without_labels_nothing_is_said_of_certainty():
    index = pa.table({name: ["a", "b", "c"] for name in ("id", "dataset", "path")})
    sure, nothing = np.full(3, 0.1, np.float32), np.zeros(3, bool)
    given = np.array([True, False, False])
    found = Predictions(index, np.array([0, 0, 1]), sure, nothing, category_names(["cat"], 2), given)
    said = "".join(sentence(found, look_at_clusters(found, None)))
    assert said.startswith("3 images: 2 in 1 known class (1 of them labeled before), 1 in 1 new cluster; ")
    said = "".join(sentence(found, look_at_clusters(found, None), is_calibrated=False))
    assert "; how sure that is cannot be told without labels; look first at new-001." in said


def test_the_largest_new_clusters_are_shown_with_what_is_nearest(finished):
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


def test_without_truth_selection_or_new_clusters_the_rest_stays(own_run):
    for name in ("scores.json", "truth.parquet", "weights.parquet"):
        (own_run.path / name).unlink()
    known = [view for view in look_at_clusters(own_run.predictions, None) if view.category.kind == "known"]
    html = part("run", "result", result_part(own_run, known, PageImages(Missing("gone"), 0)))
    assert re.findall("<h2>(.*?)</h2>", html) == ["What to do next"]
    assert "<img" not in html
    assert "right." not in text_of(html)


def test_each_next_step_is_a_command_that_exists_with_its_options():
    commands = [shlex.split(command) for _, command in next_steps("a run")]
    assert [words[:3] for words in commands] == [
        ["justright", name, "a run"] for name in ("review", "predict", "review")
    ]
    for _, name, *rest in commands:
        options = {option for each in main.get_command(click.Context(main), name).params for option in each.opts}
        assert {word for word in rest if word.startswith("--")} <= options
