"""Invalid requests are rejected before any image is read."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from justright.data import ImageSet, glyph_set, merge_pool
from justright.runs.problem import OWN, Problem, make_problem
from justright.runs.request_checks import check_problem, check_request, own_names
from justright.runs.spec import RunSpec
from justright.utils.context import use
from justright.utils.errors import DataError, DegenerateError, JustrightError

SPEC = RunSpec(method="kmeans")


@pytest.fixture
def problem(monkeypatch):
    """Eleven own classes, a pool and a target; reading an image of them fails the test."""

    def reached(*_, **__):
        raise AssertionError("an image is read")

    own = glyph_set(3, ["hebrew"], dataset=OWN)
    own = own.of_classes(sorted(own.classes)[:11])
    pool = merge_pool([own, glyph_set(2, ["old-italic"], dataset="italic")])
    monkeypatch.setattr(ImageSet, "content_ids", reached)
    monkeypatch.setattr(ImageSet, "encoded", reached)
    return Problem(pool, glyph_set(4, ["old-italic"]).without_labels())


def test_k_counts_known_and_new_categories(problem, tmp_path):
    n = len(problem.target)
    with pytest.raises(DegenerateError, match=r"--k counts known and new categories: at least 12 here"):
        check_problem(problem, replace(SPEC, n_target=10), tmp_path)
    with pytest.raises(DegenerateError, match=f"--k {n + 12} for {n} images of the target and 11 known classes"):
        check_problem(problem, replace(SPEC, n_target=n + 12), tmp_path)
    for k in (11, 12, n + 11, None):  # 11: nothing new is expected
        check_problem(problem, replace(SPEC, n_target=k), tmp_path)
    unlabeled = replace(SPEC, settings={"use_labels": False})
    check_problem(problem, replace(unlabeled, n_target=5), tmp_path)
    with pytest.raises(DegenerateError, match=f"--k 5,000 for {n} images of the target\n"):
        check_problem(problem, replace(unlabeled, n_target=5000), tmp_path)


def test_one_image_without_labels_raises(problem, tmp_path):
    one = replace(problem, target=problem.target.take([0]))
    with pytest.raises(DegenerateError, match="the target has 1 image, and nothing is labeled"):
        check_problem(make_problem([], None, one.target), SPEC, tmp_path)
    check_problem(one, SPEC, tmp_path)


def test_more_clusters_than_images_raise(problem, tmp_path):
    n = len(problem.target)
    for params in ({"selector": "bins"}, {"selector": "beta", "selector_params": {"domain": "target"}}):
        request = replace(SPEC, n_target=None, **params)
        given = {**request.selector_params, "n_clusters": n + 1}
        with pytest.raises(DegenerateError, match=f"{n} target images for {n + 1} clusters"):
            check_problem(problem, replace(request, selector_params=given), tmp_path)
        check_problem(problem, request, tmp_path)


def test_labeled_search_needs_labeled_images(problem, tmp_path):
    request = replace(SPEC, counter="labeled-search")
    check_problem(problem, request, tmp_path)
    alone = replace(problem, pool=merge_pool([glyph_set(2, ["greek"])]))
    with pytest.raises(JustrightError, match="--counter labeled-search without labeled images"):
        check_problem(alone, request, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"n_epochs": 2}}, "kmeans does not train, so --epochs does not apply"),
        ({"settings": {"minutes": 2.0}}, "kmeans does not train, so --minutes does not apply"),
        ({"settings": {"views": 2}}, "kmeans does not train, so --set views does not apply"),
        ({"settings": {"nonsense": 2}}, "kmeans has no setting 'nonsense'"),
        ({"settings": {"n_init": 0}}, "n_init is 0"),
        ({"selector": "beta", "weighting": "hard"}, "--weighting hard with --selector beta"),
        ({"selector": "beta", "selector_params": {"threshold": 1.0, "normalize": "max"}}, "threshold=1 together with"),
        ({"selector": "beta", "selector_params": {"alpha": -1.0}}, "alpha is -1.0"),
    ],
)
def test_errors_name_options_of_the_command_line(changes, message):
    with pytest.raises(JustrightError) as error:
        check_request(replace(SPEC, **changes))
    assert message in str(error.value)
    assert "Config" not in str(error.value)


def test_tensorboard_needs_its_package_and_a_trained_method(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with use(tensorboard=True):
        with pytest.raises(JustrightError, match="TensorBoard is not installed"):
            check_request(RunSpec())
        with pytest.raises(JustrightError, match="kmeans does not train, so --tensorboard does not apply"):
            check_request(SPEC)
    check_request(RunSpec())


def test_hard_weighting_accepts_weights_of_0_or_1():
    for params in ({"threshold": 1.0}, {"alpha": 1.0, "beta": 1.0}):
        check_request(replace(SPEC, selector="beta", weighting="hard", selector_params=params))


def test_the_name_of_a_counter_is_accepted_as_number_of_clusters():
    check_request(replace(SPEC, selector="bins", selector_params={"n_clusters": "mixture"}))


def test_truth_may_lack_unreadable_images_only(problem, tmp_path):
    truth, paths = tmp_path / "truth.csv", problem.target.paths
    assert len(own_names(problem)) == 11

    def write(rows):
        truth.write_text("path,class_name\n" + "".join(f"{path},x\n" for path in rows), encoding="utf-8")

    for rows in (paths, paths[1:], [*paths, "more.png"]):
        write(rows)
        check_problem(problem, SPEC, tmp_path, truth)
    write(paths[len(paths) // 2 :])
    with pytest.raises(DataError, match=f"{len(paths) // 2} of {len(paths)} images in the target are not in"):
        check_problem(problem, SPEC, tmp_path, truth)
    truth.write_text("path,label\na.png,1\n")
    with pytest.raises(DataError, match="neither class names nor a column is_old"):
        check_problem(problem, SPEC, tmp_path, truth)


def test_weights_are_compared_with_the_pool(problem, tmp_path):
    weights = tmp_path / "w.csv"
    weights.write_text("class_name,weight\nnobody,1\n")
    with pytest.raises(DataError, match="classes that this run does not have: nobody"):
        check_problem(problem, replace(SPEC, selector="given", weights=weights), tmp_path)
    assert np.unique(problem.pool.images.labels[problem.own_rows]).size == 11
