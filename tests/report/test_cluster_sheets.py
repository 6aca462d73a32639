from __future__ import annotations

import re

from tests.report.html_checks import text_of

from justright.report.cluster_sheets import cluster_sheets
from justright.report.clusters import look_at_clusters
from justright.report.page_images import PageImages
from justright.report.reading import Missing


def test_every_cluster_has_a_card_with_its_numbers_and_sheets(finished):
    html = cluster_sheets(finished, finished.predictions, PageImages(finished.target, 10**7))
    rows = {}
    for row in re.findall(r"<tr>(<td.*?)</tr>", html, flags=re.S):
        rows[re.findall(r"<bdi>(.*?)</bdi>", row)[0]] = row
    views = look_at_clusters(finished.predictions, finished.tuned)
    assert rows.keys() == {view.category.name for view in views}
    for view in views:
        row = rows[view.category.name]
        assert f">{len(view.rows) + view.n_neither}<" in row
        assert f">{100 * view.confidence:.1f}<" in row
        assert f"<bdi>{view.nearest}</bdi>" in row
        assert f'alt="central images of {view.category.name}"' in row
        assert (f'alt="outliers of {view.category.name}"' in row) == (len(view.rows) >= 4)
    assert "3 images look like none of them" in text_of(html)
    assert "after training" in text_of(html)


def test_without_tuned_features_the_frozen_ones_serve(own_run):
    (own_run.path / "tuned.npy").unlink()
    said = text_of(cluster_sheets(own_run, own_run.predictions, PageImages(Missing("gone"), 0)))
    assert "before training" in said
    assert "No images to show: gone." in said
    own_run.path.joinpath("target.features").rename(own_run.path / "elsewhere")
    del own_run.__dict__["frozen"]
    assert "images go by confidence" in text_of(
        cluster_sheets(own_run, own_run.predictions, PageImages(Missing("gone"), 0))
    )
