from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.features.tiny_extraction import run

from justright.data import ImageSet, open_images
from justright.data.columns import with_columns
from justright.evaluation.files import read_judged
from justright.features.table import FeatureTable
from justright.runs.problem import OWN, given_in_words, make_problem
from justright.utils.errors import DataError, DegenerateError


def test_target_has_no_labels_and_own_part_keeps_class_names(make_tree):
    pool = open_images(make_tree({"oak": 2, "elm": 2}, "trees"))
    labeled = open_images(make_tree({"cat": 3}, "labeled", 10))
    target = open_images(make_tree({"cat": 2, "dog": 4}, "photos", 20))
    problem = make_problem([pool], labeled, target, has_labels=True)
    assert set(problem.target.labels.tolist()) == {-1}
    assert [problem.pool.origins[label].class_name for label in problem.own_classes] == ["cat"]
    assert {origin.dataset for origin in problem.pool.origins} == {OWN, "trees"}
    assert problem.n_target_classes == 2
    _, is_old = problem.truth.open_for_evaluation()
    assert is_old.sum() == 2, "cats are old, dogs are new"


def test_own_classes_keep_names_and_pool_classes_get_a_prefix(make_tree):
    pool, labeled = open_images(make_tree({"cat": 1}, "trees")), open_images(make_tree({"cat": 3}, "labeled", 10))
    problem = make_problem([pool], labeled, open_images(make_tree({"dog": 2}, "photos", 20)))
    assert list(problem.pool.images.classes.values()) == ["cat", "trees/cat"]


def test_target_labels_are_dropped_by_default(make_tree):
    target = open_images(make_tree({"cat": 2, "dog": 4}))
    problem = make_problem([open_images(make_tree({"oak": 2}, "trees", 9))], None, target)
    assert problem.truth is None
    assert problem.n_target_classes is None
    assert problem.own_classes == ()
    assert problem.split().unlabeled.classes == {}


def test_unlabeled_target_as_truth_raises(make_tree):
    target = open_images(make_tree({"cat": 2, "dog": 4})).without_labels()
    with pytest.raises(DataError, match="have no label"):
        make_problem([open_images(make_tree({"oak": 2}, "trees", 9))], None, target, has_labels=True)


def test_labeled_copies_of_target_images_are_counted(make_tree):
    target = open_images(make_tree({"cat": 3, "dog": 4}))
    more = open_images(make_tree({"cat": 2}, "more", 7))
    labeled = ImageSet.concat([target.take([0, 1]), more])
    problem, copies = make_problem([open_images(make_tree({"oak": 2}, "trees", 9))], labeled, target).without_copies()
    assert copies.n_left_out == 2
    assert len(problem.own_rows) == 2
    assert len(problem.other_rows) == 2
    assert len(problem.target) == 7
    again, copies = problem.without_copies()
    assert (copies.n_left_out, copies.notes) == (0, [])
    assert again.pool.images.ids == problem.pool.images.ids


def test_only_copies_as_labels_raise(make_tree):
    target = open_images(make_tree({"cat": 3, "dog": 4}))
    with pytest.raises(DegenerateError, match="all 2 labeled images"):
        make_problem([], target.take([0, 1]), target).without_copies()


def test_unreadable_image_is_no_copy(make_tree):
    folder = make_tree({"cat": 3, "dog": 4})
    target = open_images(folder)
    next((folder / "cat").iterdir()).unlink()
    _, copies = make_problem([open_images(make_tree({"oak": 2}, "trees", 9))], None, target).without_copies()
    assert copies.n_left_out == 0


def test_pool_classes_guide_and_own_classes_do_not(make_tree):
    problem = make_problem(
        [open_images(make_tree({"oak": 2, "elm": 2}, "trees", 9))],
        open_images(make_tree({"cat": 2}, "cats", 3)),
        open_images(make_tree({"cat": 3, "dog": 4})),
    )
    guided = problem.split("guide")
    assert {guided.labeled.classes[label] for label in guided.guide_classes} == {"trees/oak", "trees/elm"}
    assert problem.split("rival").guide_classes == ()


def test_truth_must_match_the_target(make_tree):
    target = open_images(make_tree({"cat": 2, "dog": 4}))
    problem = make_problem([open_images(make_tree({"oak": 2}, "trees", 9))], None, target, has_labels=True)
    with pytest.raises(DataError, match="cannot be read"):
        problem.with_ids_of(table_of(problem.pool.images), table_of(problem.target.take(range(5))))


def table_of(images) -> FeatureTable:
    ids = [f"id {row}" for row in range(len(images))]
    columns = {name: images.table[name] for name in ("dataset", "path")}
    return FeatureTable.of(np.zeros((len(images), 2), np.float32), id=ids, **columns)


def test_images_reuse_ids_of_their_features(make_tree, monkeypatch):
    problem = make_problem(
        [open_images(make_tree({"oak": 2}, "trees"))], None, open_images(make_tree({"cat": 3}, "photos", 9))
    )
    monkeypatch.setattr(ImageSet, "computed_id", None)
    result = problem.with_ids_of(table_of(problem.pool.images), table_of(problem.target))
    assert result.pool.images.with_ids().ids == ["id 0", "id 1"]
    assert result.target.with_ids().ids == ["id 0", "id 1", "id 2"]
    assert result.target.paths == problem.target.paths


def test_truth_and_predictions_share_ids_for_equal_paths(make_tree, tmp_path):
    target = open_images(make_tree({"cat": 2, "dog": 2}))
    same = ImageSet(with_columns(target.table, {"path": pa.array(["0.png"] * 4)}), target.readers)  # of four archives
    problem = make_problem([open_images(make_tree({"oak": 2}, "trees", 9))], None, same, has_labels=True)
    result = problem.with_ids_of(table_of(problem.pool.images), table_of(problem.target))
    result.truth.save(tmp_path / "truth.parquet")
    predictions = pa.table({"id": result.target.ids[::-1], "path": result.target.paths, "cluster": [1, 1, 0, 0]})
    pq.write_table(predictions, tmp_path / "predictions.parquet")
    judged = read_judged(tmp_path / "predictions.parquet", tmp_path / "truth.parquet")
    assert judged.y_true.tolist() == [1, 1, 0, 0]


def test_images_without_features_are_left_out_by_row(make_tree):
    problem = make_problem(
        [open_images(make_tree({"oak": 3}, "trees"))], None, open_images(make_tree({"cat": 2}, "photos", 9))
    )
    table = table_of(problem.pool.images.take([0, 2]))
    table.__dict__["bad_rows"] = {1: ("truncated", "torn")}
    result = problem.with_ids_of(table, table_of(problem.target))
    assert result.pool.images.paths == problem.pool.images.take([0, 2]).paths
    table.__dict__["bad_rows"] = {}
    with pytest.raises(DataError, match="2 features for 3 readable images"):
        problem.with_ids_of(table, table_of(problem.target))


def test_only_the_unreadable_of_two_equal_paths_is_skipped(make_tree, tmp_path):
    roots = [make_tree({"": 30}, name, first) for name, first in (("morning", 0), ("evening", 50))]
    (roots[0] / "7.png").write_bytes(b"no picture")
    sets = [open_images(root).named("photos") for root in roots]
    labeled = open_images(make_tree({"oak": 2}, "trees", 90))
    problem = make_problem([], labeled, ImageSet.concat(sets))
    tables = [run(images, tmp_path / name) for images, name in ((problem.pool.images, "p"), (problem.target, "t"))]
    result = problem.with_ids_of(*tables)
    assert len(result.target) == 59
    left = set(zip(result.target.table["source"].to_pylist(), result.target.paths, strict=True))
    assert (f"folder:{roots[1]}", "7.png") in left
    assert (f"folder:{roots[0]}", "7.png") not in left
    assert result.target.ids == result.target.content_ids()


def test_old_classes_match_in_any_unicode_form(make_tree):
    mac, other = "mu\u0308we", "m\u00fcwe"
    for own, truth in ((mac, other), (other, mac)):
        labeled, target = (
            open_images(make_tree({name: 2, "emu": 1}, f"{part} {name}", first))
            for part, name, first in (("own", own, 0), ("photos", truth, 9))
        )
        _, is_old = make_problem([], labeled, target, has_labels=True).truth.open_for_evaluation()
        assert is_old.all()


def test_one_given_label_is_in_the_singular():
    assert given_in_words(1) == "1 image of the target was labeled before, and keeps that label"
    assert given_in_words(1200) == "1,200 images of the target were labeled before, and keep that label"
