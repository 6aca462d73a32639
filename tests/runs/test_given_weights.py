from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from justright.data import open_images
from justright.features.table import FeatureTable
from justright.runs.problem import make_problem
from justright.runs.run_selection import GivenWeights, check_weights
from justright.runs.selection import Selection, merge_tables, save_selection
from justright.selection import RandomSelector, row_shards
from justright.utils.errors import DataError


@pytest.fixture
def sources(make_tree):
    return make_tree({"cat": 3, "owl": 2}, "labeled"), make_tree({"oak": 2, "elm": 3}, "trees", 10)


@pytest.fixture
def pool(sources, make_tree):
    labeled, trees = map(open_images, sources)
    return make_problem([trees], labeled, open_images(make_tree({"x": 1}, "photos", 30))).pool


def features_of(source) -> FeatureTable:
    """A store of a source in memory, as `extract` names its images and classes."""
    images = open_images(source).with_ids()
    columns = {name: images.table[name].to_pylist() for name in ("id", "dataset", "path", "class_name")}
    return FeatureTable.of(np.random.default_rng(0).normal(size=(len(images), 4)), label=images.labels, **columns)


def selected(path, *sources):
    """Write the file of `select --out` and return the weights by class."""
    merged, target = merge_tables([features_of(source) for source in sources]), FeatureTable.of(np.ones((2, 4)))
    selector = RandomSelector(share=0.5).fit_stream(merged, row_shards(target.features))
    save_selection(path, Selection.of("random", selector, merged), target)
    return dict(zip(merged.class_names, selector.class_weight_.tolist(), strict=True))


def by_class(pool, given) -> dict[str, set[float]]:
    result: dict[str, set[float]] = {}
    for label, weight in zip(pool.images.labels.tolist(), given.weight.tolist(), strict=True):
        result.setdefault(pool.origins[label].name, set()).add(weight)
    return result


def test_own_classes_missing_in_the_file_weigh_1(pool, sources, tmp_path):
    weights = selected(tmp_path / "w.parquet", sources[1])
    given = GivenWeights.read(tmp_path / "w.parquet", pool)
    assert set(weights.values()) == {0.0, 1.0}
    assert by_class(pool, given) == {"cat": {1.0}, "owl": {1.0}} | {name: {each} for name, each in weights.items()}
    assert given.is_named.tolist() == [False] * 5 + [True] * 5


def test_file_may_weigh_own_classes_too(pool, sources, tmp_path):
    weights = selected(tmp_path / "w.parquet", *sources)
    given = GivenWeights.read(tmp_path / "w.parquet", pool)
    assert given.is_named.all()
    assert by_class(pool, given) == {name.removeprefix("labeled/"): {each} for name, each in weights.items()}
    for file in ("w.parquet", "w.classes.parquet"):
        np.testing.assert_array_equal(GivenWeights.read(tmp_path / file, pool).weight, given.weight)


def test_classes_are_matched_by_name(pool, tmp_path):
    (tmp_path / "w.csv").write_text("class_name,weight,reason\ntrees/oak,0.5,\nelm,0,too far\n")
    given = GivenWeights.read(tmp_path / "w.csv", pool)
    assert by_class(pool, given) == {"cat": {1.0}, "owl": {1.0}, "trees/oak": {0.5}, "trees/elm": {0.0}}
    assert set(given.reason) == {"kept: not in the file of weights", "given: w.csv", "too far"}


def test_weights_by_image_id(pool, tmp_path):
    images = pool.images.with_ids()
    weight = np.linspace(0, 1, 10)
    names = [images.classes[label] for label in images.labels]
    pq.write_table(pa.table({"id": images.ids, "class_name": names, "weight": weight}), tmp_path / "w.parquet")
    given = GivenWeights.read(tmp_path / "w.parquet", pool)
    np.testing.assert_array_equal(given.weight, weight)
    columns = {name: images.table[name].to_pylist() for name in ("id", "dataset", "path", "class_name")}
    merged = merge_tables([FeatureTable.of(np.ones((10, 4)), label=images.labels, **columns).from_row(5)])
    weights = given.of_rows(5, merged.labels)
    np.testing.assert_array_equal(weights.images.weight, weight[5:])
    np.testing.assert_allclose(weights.weight, [weight[5:8].mean(), weight[8:].mean()])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("class_name,weight\ntrees/oak,1\n", "has no weight for 3 of the 10 labeled images, such as elm/"),
        ("class_name,weight\ntrees/oak,1\nelm,1\nash,1\n", "1 classes that this run does not have: ash"),
        ("class_name,weight\n", "0 classes"),
        ("class_name,weight\noak,-1\nelm,1\n", "weight -1.0 in row 2"),
        ("class_name,weight\noak,\nelm,1\n", "weight None in row 2"),
        ("class_name,weight\noak,much\nelm,1\n", "numbers in the column weight"),
        ("class_name,weight\noak,1\nelm,1\noak,0\n", "has two weights for trees/oak"),
        ("class_name,weight\noak,0\nelm,0\ncat,0\nowl,0\n", "are 0"),
        ("name,weight\noak,1\n", "has no column class_name"),
        ("id,class_name,weight\nx,oak,1\ny,elm,1\n", "has no weight for 5 of the 10"),
        ("", "cannot be read"),
    ],
)
def test_file_that_does_not_fit_raises(pool, tmp_path, text, problem):
    (tmp_path / "w.csv").write_text(text)
    with pytest.raises(DataError, match=problem):
        GivenWeights.read(tmp_path / "w.csv", pool)


def test_classes_are_checked_before_images_are_read(pool, sources, tmp_path):
    selected(tmp_path / "w.parquet", sources[1])
    (sources[1] / "oak" / "0.png").write_bytes(b"no picture")  # extraction will skip it
    check_weights(tmp_path / "w.parquet", pool)
    (tmp_path / "w.csv").write_text("class_name,weight\noak,1\n")
    with pytest.raises(DataError, match="has no weight for 1 classes of --pool: trees/elm"):
        check_weights(tmp_path / "w.csv", pool)


def test_moved_image_raises(pool, sources, tmp_path):
    selected(tmp_path / "w.parquet", sources[1])
    (sources[1] / "oak" / "0.png").rename(sources[1] / "elm" / "9.png")
    again = make_problem([open_images(sources[1])], None, open_images(sources[0])).pool
    with pytest.raises(DataError, match=r"1 of the 5 labeled images, such as elm/9.png of trees/elm"):
        GivenWeights.read(tmp_path / "w.parquet", again)


def test_names_are_matched_in_any_unicode_form(make_tree, tmp_path):
    mac, other = "mu\u0308we", "m\u00fcwe"
    trees, photos = (
        open_images(make_tree({mac: 2}, f"vo\u0308gel {mac}")),
        open_images(make_tree({"": 1}, "photos", 30)),
    )
    pool = make_problem([trees], None, photos).pool
    for name in (mac, other, f"v\u00f6gel {other}/{mac}"):
        (tmp_path / "w.csv").write_text(f"class_name,weight\n{name},0.5\n", encoding="utf-8")
        assert GivenWeights.read(tmp_path / "w.csv", pool).weight.tolist() == [0.5, 0.5]
