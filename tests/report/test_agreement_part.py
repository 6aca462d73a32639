from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from tests.made_runs import make_run
from tests.report.html_checks import check, part, text_of

from justright.data import ImageSet
from justright.data.folder import write_tree
from justright.data.readers import FolderReader
from justright.discovery.predictions import Category, Predictions, category_names
from justright.report.compared_runs import Agreement, ComparedRun, RunPair
from justright.report.comparison import Comparison
from justright.runs.run_folder import RunFolder


def predictions_of(cluster, known=(), names=None) -> Predictions:
    n = len(cluster)
    index = pa.table(
        {"id": [str(row) for row in range(n)], "dataset": ["x"] * n, "path": [f"{row}.png" for row in range(n)]}
    )
    categories = names or category_names(known, max(cluster) + 1)
    return Predictions(
        index, np.array(cluster), np.linspace(0.5, 1, n).astype(np.float32), np.zeros(n, bool), categories
    )


def pair_of(one: Predictions, other: Predictions) -> RunPair:
    rows = np.arange(len(one))
    return RunPair(("a", "b"), (rows, rows), (one, other))


def best_share_as_loops(one, other):
    """Try every one-to-one matching of the groups of both, where a group may stay unmatched."""
    groups, mine = sorted(set(other)), sorted(set(one)) + [-1] * len(set(other))
    return max(
        sum(a == dict(zip(groups, names, strict=False))[b] for a, b in zip(one, other, strict=True)) / len(one)
        for names in set(permutations(mine, len(groups)))
    )


def rand_index_as_loops(one, other):
    pairs = list(combinations(range(len(one)), 2))
    same = [(one[i] == one[j], other[i] == other[j]) for i, j in pairs]
    both, first, second = (
        sum(each) for each in ((a and b for a, b in same), (a for a, _ in same), (b for _, b in same))
    )
    expected = first * second / len(pairs)
    return (both - expected) / ((first + second) / 2 - expected)


@pytest.mark.parametrize("seed", range(5))
def test_agreement_equals_plain_loops(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 4, 20).tolist(), rng.integers(0, 3, 20).tolist()
    pair = pair_of(predictions_of(one), predictions_of(other))
    assert pair.share == pytest.approx(best_share_as_loops(one, other))
    assert pair.rand_index == pytest.approx(rand_index_as_loops(one, other))


def test_agreement_ignores_names_and_numbers_of_new_clusters():
    one, other = [0, 0, 1, 1, 2, 2], [2, 2, 0, 0, 1, 1]
    pair = pair_of(predictions_of(one), predictions_of(other))
    assert (pair.share, pair.rand_index) == (1.0, 1.0)


def test_known_classes_match_by_name():
    """The second run puts the images of cat into a new cluster, and others into cat."""
    names = (Category("cat", "known"), Category("new-001", "discovered"))
    one, other = predictions_of([0, 0, 0, 1], names=names), predictions_of([1, 1, 1, 0], names=names)
    pair = pair_of(one, other)
    assert pair.share == 0.0
    assert pair.rand_index == 1.0
    assert pair.match_of.tolist() == [0, -1]


def made(path, n_wrong, photos=None) -> RunFolder:
    """A run over drawn images, or over files in `photos`."""
    run = make_run(path, per_class=6, n_wrong=n_wrong)
    if photos is not None:
        target = run.target
        write_tree(target, photos)
        paths = [f"{each}.png" for each in target.paths]
        files = ImageSet.of(FolderReader(photos), dataset="target", path=paths)
        files.with_ids().with_content().save(path / "target.parquet")
    return RunFolder.open(path)


def compared(*runs: RunFolder) -> Agreement:
    return Agreement(tuple(ComparedRun(run.path.name, run) for run in runs))


def test_differing_images_have_both_categories(tmp_path):
    one, other = made(tmp_path / "one", 0), made(tmp_path / "other", 30)
    agreement = compared(one, other)
    html = part("comparison", "agreement", agreement.values())
    checker = check(html)
    [pair] = agreement.pairs
    different = np.flatnonzero(~pair.is_same)
    assert 0 < len(different) <= 30
    text = text_of(html)
    assert f"{len(different)} images are not in matching categories" in text
    for row in different.tolist():
        names = [run.predictions.categories[run.predictions.cluster[row]].name for run in (one, other)]
        assert f"{names[0]} {names[1]}" in text
    assert len(checker.images) == len({(one.predictions.cluster[r], other.predictions.cluster[r]) for r in different})


def test_equal_runs_agree_on_all_images(tmp_path):
    html = part("comparison", "agreement", compared(made(tmp_path / "a", 5), made(tmp_path / "b", 5)).values())
    assert "All images are in matching categories." in html


def test_all_pairs_of_runs_are_compared(tmp_path):
    agreement = compared(*(made(tmp_path / name, n) for name, n in (("a", 0), ("b", 10), ("c", 30))))
    assert [pair.names for pair in agreement.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    values = agreement.values()
    assert values["differences"].columns == ["examples", "images", "in a", "in b", "in c"]
    assert len(values["pairs"].rows) == 3
    check(part("comparison", "agreement", values))


def test_differences_are_shown_if_the_first_run_shares_no_image(tmp_path):
    alone = make_run(tmp_path / "alone", per_class=6, scripts=("hebrew",))
    values = compared(alone, made(tmp_path / "b", 0), made(tmp_path / "c", 30)).values()
    assert values["differences"].columns == ["examples", "images", "in b", "in c"]
    assert values["n_different"] > 0


def test_images_are_matched_by_content_after_a_move(tmp_path):
    one, other = made(tmp_path / "one", 0, tmp_path / "photos"), made(tmp_path / "other", 0, tmp_path / "moved")
    keep = np.arange(len(other.target))[:0:-1]  # one image less, in another order
    other.target.take(keep).save(other.path / "target.parquet")
    found = other.predictions
    Predictions(
        found.index.take(pa.array(keep)),
        found.cluster[keep],
        found.confidence[keep],
        found.is_neither[keep],
        found.categories,
    ).save(other.path / "predictions.parquet")
    agreement = compared(one, RunFolder.open(other.path))
    [pair] = agreement.pairs
    assert len(pair.is_same) == len(keep)
    assert pair.share == 1.0
    assert agreement.has_same_images is False


def test_removed_unreadable_files_keep_the_same_target(tmp_path):
    """The fingerprint of the first run includes an unreadable file that was removed later."""
    runs = [made(tmp_path / name, n, tmp_path / "photos") for name, n in (("before", 0), ("after", 9))]
    for number, run in enumerate(runs):
        prints = {"target": {"images": len(run.target) - number, "content": str(number)}}
        run.save_about(run.about | {"fingerprints": prints})
    comparison = Comparison.of([RunFolder.open(run.path) for run in runs])
    assert comparison.warnings() == []
    assert len(comparison.agreement.pairs) == 1


def test_missing_and_replaced_images_are_counted(tmp_path):
    one, other = made(tmp_path / "one", 0, tmp_path / "photos"), made(tmp_path / "other", 30, tmp_path / "photos")
    [pair] = compared(one, other).pairs
    first, second = np.flatnonzero(~pair.is_same)[:2].tolist()
    (tmp_path / "photos" / one.target.paths[first]).unlink()
    Image.new("RGB", (9, 9)).save(tmp_path / "photos" / one.target.paths[second])
    text = text_of(part("comparison", "agreement", compared(one, other).values()))
    assert "2 of" in text
    assert "images could not be read" in text


def test_agreement_needs_predictions_and_shared_images(tmp_path):
    one, other = made(tmp_path / "one", 0), made(tmp_path / "other", 0)
    (other.path / "predictions.parquet").unlink()
    assert compared(one, RunFolder.open(other.path)).values() is None
    third = make_run(tmp_path / "third", per_class=6, scripts=("hebrew",))
    assert compared(one, third).values() is None
