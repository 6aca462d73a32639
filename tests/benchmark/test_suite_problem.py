from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from justright.benchmark import problems as suite_problem
from justright.benchmark.problems import REST, problem_of
from justright.benchmark.suite import SuiteProblem
from justright.data import ImageSet
from justright.data.readers import FolderReader
from justright.data.splits import published_split
from justright.runs.problem import OWN
from justright.utils.errors import DataError

HEBREW = SuiteProblem(
    name="hebrew",
    target="glyphs:per_class=8,scripts=hebrew",
    pool={"italic": "glyphs:per_class=6,scripts=old-italic", "digits": "glyphs:per_class=6,scripts=digits"},
)


def test_half_of_the_old_images_are_labeled():
    problem = problem_of(HEBREW)
    assert len(problem.own_classes) == 11
    assert len(problem.own_rows) == 11 * 4
    assert len(problem.target) == 22 * 8 - 11 * 4
    assert {origin.dataset for origin in problem.pool.origins} == {OWN, "italic", "digits"}
    assert problem.n_target_classes == 22
    _, is_old = problem.truth.open_for_evaluation()
    assert is_old.sum() == 11 * 4


def test_problem_depends_on_description_and_seed_only():
    one, again, other = problem_of(HEBREW), problem_of(HEBREW), problem_of(replace(HEBREW, split_seed=1))
    assert one.pool.images.paths == again.pool.images.paths
    assert one.pool.images.paths != other.pool.images.paths


def test_caps_and_shares_are_applied():
    problem = problem_of(replace(HEBREW, classes=10, per_class=6, pool_per_class=2, old_share=0.2, labeled_share=0.25))
    assert problem.n_target_classes == 10
    assert len(problem.own_classes) == 2
    assert len(problem.own_rows) == 3
    assert len(problem.other_rows) == 2 * (9 + 10)


def test_other_classes_may_join_the_pool():
    problem = problem_of(replace(HEBREW, classes=10, other_classes_in_pool=True))
    of_rest = [origin.label for origin in problem.pool.origins if origin.dataset == REST]
    labels, _ = problem.truth.open_for_evaluation()
    assert len(of_rest) == 12
    assert not set(of_rest) & set(labels.tolist())


def test_without_old_classes_only_the_pool_is_labeled():
    problem = problem_of(replace(HEBREW, old_share=0.0))
    assert problem.own_classes == ()
    assert len(problem.target) == 22 * 8
    assert set(problem.target.labels.tolist()) == {-1}


def test_wrong_labels_are_counted_and_never_own():
    right, spoiled = problem_of(HEBREW), problem_of(replace(HEBREW, wrong_labels=0.25))
    assert right.pool.images.paths == spoiled.pool.images.paths
    differs = right.pool.images.labels != spoiled.pool.images.labels
    assert differs.sum() == round(0.25 * 54) + round(0.25 * 60)
    assert not differs[right.own_rows].any()
    images, origins = spoiled.pool.images, spoiled.pool.origins
    assert images.table["class_name"].to_pylist() == [images.classes[label] for label in images.labels.tolist()]
    assert images.table["dataset"].to_pylist() == [origins[label].dataset for label in images.labels.tolist()]
    assert right.pool.images.table["label"].to_pylist() != images.table["label"].to_pylist()


def test_source_in_data_needs_the_folder():
    with pytest.raises(DataError, match="needs the folder with the data"):
        problem_of(replace(HEBREW, target="{data}/pets.zip"))


def test_uneven_classes_have_the_given_sizes():
    problem = problem_of(replace(HEBREW, pool={}, uneven=(8, 2)))
    names = [
        *problem.pool.images.table["class_name"].to_pylist(),
        *problem.truth._images.table["class_name"].to_pylist(),
    ]
    result = sorted(Counter(names).values())
    assert (result[0], result[-1]) == (2, 8)
    assert result == sorted(np.geomspace(8, 2, num=22).round().astype(int).tolist())


def paths_of(problem, rows):
    return {problem.pool.images.paths[row] for row in rows}


def test_protocol_pool_is_the_labeled_part_of_each_set():
    digits = SuiteProblem("digits", "glyphs:per_class=6,scripts=digits", classes=6)
    hebrew = replace(HEBREW, pool={"digits": digits.target}, pool_by_protocol=True, classes=6)
    as_target, as_pool = problem_of(digits), problem_of(hebrew)
    assert paths_of(as_pool, as_pool.other_rows) == paths_of(as_target, as_target.own_rows)
    assert len(as_pool.other_rows) == 3 * 6 // 2


def test_old_classes_can_come_from_another_set():
    places = {"rest": "hebrew", "glyphs:per_class=8,scripts=nko": "nko"}
    news = []
    for place, script in places.items():
        problem = problem_of(replace(HEBREW, pool={}, classes=5, labels=(place,)))
        _, is_old = problem.truth.open_for_evaluation()
        assert len(problem.own_classes) == 5
        assert problem.n_target_classes == 10
        assert all(f"/{script}/" in problem.pool.images.paths[row] for row in problem.own_rows)
        assert len(problem.own_rows) == is_old.sum() == 5 * 4, "half of their images are in the target"
        news.append({path for path, old in zip(problem.target.paths, is_old.tolist(), strict=True) if not old})
    assert news[0] == news[1]
    both = problem_of(replace(HEBREW, pool={}, classes=5, labels=tuple(places)))
    assert len(both.own_classes) == 5


def test_old_classes_can_be_grades_of_the_same_set():
    source = suite_problem.open_images(HEBREW.target)
    drawn = set(problem_of(replace(HEBREW, classes=5, old_share=0.0)).truth.open_for_evaluation()[0].tolist())
    rest = sorted(set(source.classes) - drawn)
    grades = {"near": rest[:3], "far": rest[3:7]}
    for labels, n in ((("near",), 3), (("near", "far"), 7)):
        result = problem_of(replace(HEBREW, pool={}, classes=5, labels=labels, grades=grades))
        truth, is_old = result.truth.open_for_evaluation()
        assert {result.pool.origins[label].label for label in result.own_classes} == set(rest[:n])
        assert set(truth[~is_old].tolist()) == drawn
    with pytest.raises(DataError, match="in the split twice"):
        problem_of(replace(HEBREW, pool={}, classes=5, labels=("near",), grades={"near": sorted(drawn)}))


@pytest.fixture
def birds(tmp_path, monkeypatch):
    """A set with the name and the number of classes of a catalog set, without image files."""
    labels = [label for label in range(200) for _ in range(6)]
    paths = [f"{label}/{row}.jpg" for row, label in enumerate(labels)]
    names = [f"bird {label}" for label in labels]
    images = ImageSet.of(FolderReader(tmp_path), dataset="cub", path=paths, label=labels, class_name=names)
    monkeypatch.setattr("justright.benchmark.problems.open_images", lambda place: images)
    return SuiteProblem("cub", "cub:there", roles="published")


def test_published_classes_are_old_unless_graded(birds):
    split, _ = published_split(suite_problem.open_images(birds.target))
    for problem, old, new in (
        (birds, split.old, split.new),
        (replace(birds, labels=("Medium",)), split.groups["Medium"], split.old),
    ):
        result = problem_of(problem)
        labels, is_old = result.truth.open_for_evaluation()
        assert {result.pool.origins[label].label for label in result.own_classes} <= set(old)
        assert (set(labels[is_old].tolist()), set(labels[~is_old].tolist())) == (set(old), set(new))
    few = problem_of(replace(birds, labels=("Medium",), classes=10, roles="cub"))
    assert few.n_target_classes == 20
