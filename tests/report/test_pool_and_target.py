from __future__ import annotations

from tests.report.html_checks import part, text_of

from justright.report.elements import Missing
from justright.report.pool_and_target import overview
from justright.runs.problem import OWN


def shown(run) -> str:
    return part("run", "data", overview(run) | {"map": Missing("no map"), "figure": None, "tiles": []})


def test_images_and_classes_of_each_data_set_are_counted(finished):
    html = shown(finished)
    said = text_of(html)
    pool = finished.pool
    for dataset in pool.datasets:
        rows = [n for n, name in enumerate(pool.table["dataset"].to_pylist()) if name == dataset]
        n_classes = len({int(pool.labels[row]) for row in rows})
        side = "own classes" if dataset == OWN else "pool"
        assert f"{side}, labeled {dataset} {len(rows)} {n_classes}" in said
    assert f"target, unlabeled target {len(finished.target)}" in said
    assert html.count("<img") == 1 + len(pool.datasets)


def test_a_list_that_is_gone_is_said(own_run):
    (own_run.path / "pool.parquet").write_bytes(b"torn")
    assert "The list of labeled images cannot be read" in text_of(shown(own_run))
