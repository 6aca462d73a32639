from __future__ import annotations

import re

from tests.report.html_checks import part, text_of

from justright.report.clusters import cluster_cards, describe_clusters, review_of, target_features
from justright.report.elements import Missing
from justright.report.page_images import PageImages
from justright.runs.run_folder import RunFolder


def shown(run, page_images) -> str:
    features, source = target_features(run)
    views, is_calibrated = describe_clusters(run.predictions, features, run.doubts), run.expected is not None
    cards = cluster_cards(run.predictions, views, page_images, is_calibrated=is_calibrated)
    return part("run", "clusters", review_of(run) | cards | {"source": source})


def test_every_cluster_has_a_card_with_its_numbers_and_sheets(finished):
    html = shown(finished, PageImages(finished.target, 10**7))
    rows = {}
    for row in re.findall(r"<tr>(<td.*?)</tr>", html, flags=re.S):
        rows[re.findall(r"<bdi>(.*?)</bdi>", row)[0]] = row
    views = describe_clusters(finished.predictions, finished.tuned)
    assert rows.keys() == {view.category.name for view in views}
    for view in views:
        row = rows[view.category.name]
        assert f">{len(view.rows) + view.n_neither}<" in row
        assert f">{100 * view.purity:.1f}<" in row
        assert f">{view.n_likely_wrong:.0f}<" in row
        (known, cosine), (cluster, other) = view.near_known, view.near_cluster
        assert f"known class <bdi>{known}</bdi> {cosine:.2f}, new cluster <bdi>{cluster}</bdi> {other:.2f}" in row
        assert f'alt="central images of {view.category.name}"' in row
        assert (f'alt="outliers of {view.category.name}"' in row) == (len(view.rows) >= 4)
    assert "Unlike all categories: 3 images" in text_of(html)
    assert "after training" in text_of(html)


def test_cards_sort_by_expected_errors(finished):
    html = shown(finished, PageImages(Missing("gone"), 0))
    table = re.search(r"<table id=discovered.*?</table>", html, flags=re.S)[0]
    predictions, wrong = finished.predictions, {}
    for cluster, confidence in zip(predictions.cluster.tolist(), predictions.confidence.tolist(), strict=True):
        name = predictions.categories[cluster].name
        wrong[name] = wrong.get(name, 0) + 1 - confidence
    names = re.findall(r"<tr><td></td><td><bdi>(.*?)</bdi>", table)
    assert len(names) > 5
    assert names == sorted(names, key=lambda name: -wrong[name])
    assert "Sorted by the expected number of wrong images" in text_of(html)


def test_without_tuned_features_the_frozen_ones_serve(own_run):
    (own_run.path / "tuned.npy").unlink()
    text = text_of(shown(own_run, PageImages(Missing("gone"), 0)))
    assert "before training" in text
    assert "No images: gone." in text
    own_run.path.joinpath("target.features").rename(own_run.path / "elsewhere")
    del own_run.__dict__["frozen"]
    assert "images are sorted by confidence" in text_of(shown(own_run, PageImages(Missing("gone"), 0)))


def test_only_two_kinds_is_shown(finished):
    html = shown(finished, PageImages(finished.target, 10**7))
    two, belongs = finished.doubts
    names = [category.name for category in finished.predictions.categories]
    assert f"may be two kinds: see {len(two.rows)} images" in text_of(html)
    assert html.count(f'alt="images that decide about {names[two.category]}"') == 1
    assert html.count("images that decide about") == 1
    assert belongs.other is not None
    assert "belong with" not in html
    assert "right in 68 of 100 cases" in text_of(html)


def test_uncalibrated_confidence_is_not_called_purity(own_run):
    own_run.save_about(own_run.about | {"expected_right": None})
    (own_run.path / "doubts.json").unlink()
    html = shown(RunFolder.open(own_run.path), PageImages(Missing("gone"), 0))
    assert "confidence %" in html
    assert "purity" not in html
    assert ">likely wrong<" not in html
    assert "right in 68" not in html
