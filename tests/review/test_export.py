from __future__ import annotations

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from PIL import Image

from justright.data import ImageSet, merge_pool, open_images
from justright.data.columns import COLUMNS, CONTENT, column, with_columns
from justright.review.export import export, label_table, labeled_set
from justright.review.open_review import OpenReview
from justright.review.state import REJECTED
from justright.runs.problem import make_problem
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DataError, DegenerateError


@pytest.fixture
def reviewed(opened, say):
    """Two new clusters of one name, one known, one disputed, one rejected, and an image rejected from the first."""
    say(opened, "name", cluster=14, name="Sigma, the letter")
    say(opened, "name", cluster=15, name="Sigma, the letter")
    say(opened, "known", cluster=16, name=opened.known_classes[0])
    say(opened, "keep", cluster=17)
    say(opened, "discard", by="ben", cluster=17)
    say(opened, "discard", cluster=18)
    say(opened, "reject", cluster=14, rows=opened.state.rows_of(14)[:1].tolist())
    return opened


def test_label_table_has_the_reviewed_state_of_every_image(reviewed):
    rows = label_table(reviewed).to_pylist()
    state = reviewed.state
    assert [row["id"] for row in rows] == reviewed.predictions.ids
    for place, row in enumerate(rows):
        cluster = int(state.group[place])
        assert row["cluster"] == cluster
        assert row["predicted"] == reviewed.predictions.categories[reviewed.predictions.cluster[place]].name
        if cluster == REJECTED:
            assert (row["class_name"], row["kind"], row["status"]) == (None, None, "rejected")
        else:
            label = state.labels[cluster]
            assert (row["class_name"], row["kind"], row["status"]) == (label.name, label.kind, state.status(cluster))
    assert {row["reviewers"] for row in rows if row["cluster"] == 17} == {"anna, ben"}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_are_written_and_read_back(reviewed, tmp_path, form):
    path = tmp_path / f"labels.{form}"
    assert export(reviewed, path, form) == len(reviewed.predictions)
    table = pyarrow.csv.read_csv(path) if form == "csv" else pq.read_table(path)
    expected = label_table(reviewed)
    assert table["cluster"].to_pylist() == expected["cluster"].to_pylist()
    assert [name or "" for name in table["class_name"].to_pylist()] == [
        name or "" for name in expected["class_name"].to_pylist()
    ]


def test_kept_clusters_of_one_name_become_one_class(reviewed):
    images = labeled_set(reviewed, "again")
    state = reviewed.state
    rows = np.flatnonzero(np.isin(state.group, [14, 15, 16]))
    assert images.ids == [reviewed.predictions.ids[row] for row in rows]
    assert list(images.classes.values()) == sorted(["Sigma, the letter", reviewed.known_classes[0]])
    assert images.datasets == ["again"]


def test_the_labeled_set_joins_the_pool_of_the_next_run(reviewed, tmp_path):
    path = tmp_path / "elsewhere" / "labeled.parquet"
    n = export(reviewed, path, "labeled")
    again = open_images(path)
    pool = merge_pool([again, reviewed.run.pool.of_classes([0])])
    assert len(pool.images) > n
    assert {origin.class_name for origin in pool.origins if origin.dataset == "run-reviewed"} == set(
        again.classes.values()
    )
    assert again.image(0).size == reviewed.run.target.image(0).size


def test_second_run_keeps_names_of_known_classes(reviewed):
    again = make_problem([], labeled_set(reviewed, "again", with_known=True), reviewed.run.target)
    known = {c.name for c in reviewed.predictions.categories if c.kind == "known"}
    assert set(again.pool.images.classes.values()) == known | {"Sigma, the letter"}


def test_export_with_known_classes_replaces_the_labeled_set(reviewed):
    reviewed_only, full = labeled_set(reviewed, "again"), labeled_set(reviewed, "again", with_known=True)
    pool = reviewed.run.pool
    known = {c.name for c in reviewed.predictions.categories if c.kind == "known"}
    n_known = sum(name in known for name in pool.table["class_name"].to_pylist())
    assert len(full) == len(reviewed_only) + n_known
    assert set(full.classes.values()) == known | {"Sigma, the letter"}


def test_all_includes_open_clusters_but_not_rejected_ones(reviewed):
    images = labeled_set(reviewed, "again", is_all=True)
    state = reviewed.state
    assert len(images) == int((~np.isin(state.group, [17, 18, REJECTED])).sum())


def test_class_folders_of_a_review_are_read_back(reviewed, tmp_path):
    n = export(reviewed, tmp_path / "folders", "folders")
    assert len(open_images(tmp_path / "folders")) == n


def test_export_without_kept_clusters_raises(opened, tmp_path):
    with pytest.raises(DegenerateError, match="no cluster has been kept"):
        export(opened, tmp_path / "out.parquet", "labeled")
    assert list(tmp_path.glob("out*")) == []


def test_labeled_set_needs_a_parquet_name(reviewed, tmp_path):
    with pytest.raises(DataError, match=r"\.parquet"):
        export(reviewed, tmp_path / "out.csv", "labeled")


def spoil(file, how, tmp_path):
    """Ways in which a photo may change after the run."""
    file.unlink()
    if how == "link to a text":
        secret = tmp_path / "secret.txt"
        secret.write_text("password")
        file.symlink_to(secret)
    elif how == "other image":
        Image.new("RGB", (20, 20), "red").save(file)
    return "missing or unreadable" if how == "gone" else "the file was changed or replaced since the run"


@pytest.mark.parametrize("how", ["link to a text", "other image", "gone"])
@pytest.mark.parametrize(("form", "is_copy"), [("folders", True), ("folders", False), ("labeled", False)])
def test_export_rejects_changed_files_by_name(run, photos, say, tmp_path, how, form, is_copy):
    opened = OpenReview(RunFolder.open(run.path))
    say(opened, "keep", cluster=14)
    first, second = opened.state.rows_of(14)[:2].tolist()
    path = tmp_path / ("out" if form == "folders" else "out.parquet")
    n_images = export(opened, path, form, is_copy)
    assert len(open_images(path)) == n_images
    paths = opened.run.target.paths
    for row in (first, second):
        reason = spoil(photos / paths[row], how, tmp_path)
    again = path.with_name(f"again-{path.name}")
    with pytest.raises(DataError, match=f"2 of {n_images} images") as refused:
        export(opened, again, form, is_copy)
    assert f"{paths[first]}: {reason}" in str(refused.value)
    assert not again.exists()
    assert not list(tmp_path.glob(".again*"))
    assert export(opened, tmp_path / "labels.csv", "csv") == len(opened.predictions)
    say(opened, "reject", cluster=14, rows=[first, second])
    assert export(opened, again, form, is_copy) == n_images - 2


def test_many_changed_files_are_counted_and_the_first_are_named(run, photos, say, tmp_path):
    opened = OpenReview(RunFolder.open(run.path))
    rows = np.flatnonzero(np.isin(opened.state.group, [14, 15])).tolist()[:8]
    say(opened, "keep", cluster=14)
    say(opened, "keep", cluster=15)
    for row in rows:
        spoil(photos / opened.run.target.paths[row], "gone", tmp_path)
    with pytest.raises(DataError, match="and 3 more"):
        export(opened, tmp_path / "out", "folders")


def test_review_overrides_the_earlier_label(reviewed):
    run, state = reviewed.run, reviewed.state
    kept, moved, stays = (int(state.rows_of(cluster)[1]) for cluster in (14, 18, 2))
    before = [reviewed.known_classes[1], reviewed.known_classes[1], state.labels[2].name]
    copies = run.target.take([kept, moved, stays])
    table = with_columns(
        copies.table.select([*COLUMNS, CONTENT]),
        {"class_name": column("class_name", before, 3), "label": column("label", [1, 1, 2], 3)},
    )
    run.__dict__["pool"] = ImageSet.concat([run.pool, ImageSet(table, copies.readers)])
    images = labeled_set(reviewed, "again", with_known=True)
    found = dict(zip(images.ids, images.table["class_name"].to_pylist(), strict=True))
    ids = reviewed.predictions.ids
    assert len(found) == len(images), "each image once"
    assert found[ids[kept]] == "Sigma, the letter"
    assert ids[moved] not in found, "it lies elsewhere by now, and nobody confirmed that"
    assert found[ids[stays]] == before[2]


def test_reviewed_images_are_marked(reviewed):
    images = labeled_set(reviewed, "again", with_known=True)
    assert images.of_split("reviewed").ids == labeled_set(reviewed, "again").ids
