from __future__ import annotations

from html import unescape

from tests.report.html_checks import part, text_of

from justright.report.elements import Missing
from justright.report.run_parts import left_out_part, overview
from justright.runs.problem import OWN
from justright.runs.run_folder import RunFolder
from justright.runs.source_checks import LeftOut, write_left_out


def shown(run) -> str:
    return part("run", "data", overview(run) | {"map": Missing("no map"), "figure": None, "tiles": []})


def test_images_and_classes_of_each_data_set_are_counted(finished):
    html = shown(finished)
    text = text_of(html)
    pool = finished.pool
    for dataset in pool.datasets:
        rows = [n for n, name in enumerate(pool.table["dataset"].to_pylist()) if name == dataset]
        n_classes = len({int(pool.labels[row]) for row in rows})
        side = "labeled labeled" if dataset == OWN else f"pool {dataset}"
        assert f"{side} {len(rows)} {n_classes}" in text
    assert f"target target {len(finished.target)}" in text
    assert html.count("<img") == 1 + len(pool.datasets)


def test_unreadable_list_is_reported(own_run):
    (own_run.path / "pool.parquet").write_bytes(b"torn")
    assert "The list of labeled images cannot be read" in text_of(shown(own_run))


def test_skipped_files_are_counted_and_listed(own_run):
    def part_of(files):
        write_left_out(own_run.path, files)
        return left_out_part(RunFolder(own_run.path))

    assert left_out_part(own_run) == Missing("The run has no list of skipped files")
    assert part_of([]) == Missing("No files were skipped")
    some = [LeftOut(f"/photos/<{n}>.jpg", "target", "not_an_image", "no <image>") for n in range(3)]
    html = part("run", "left_out", part_of(some))
    assert "3 files were skipped: 3 unreadable (<0>.jpg, <1>.jpg, <2>.jpg)." in unescape(text_of(html))
    assert "/photos/<2>.jpg target not an image no <image>" in unescape(text_of(html))
    html = part("run", "left_out", part_of([*some * 200]))
    assert "left_out.csv lists all of them." in text_of(html)
    assert "<details>" in html
