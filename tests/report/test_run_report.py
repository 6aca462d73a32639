from __future__ import annotations

import pytest
from tests.conftest import picture
from tests.report.html_checks import text_of
from tests.report.large_run import make_large_run

from justright.report.run_page import RunPage
from justright.report.run_report import MOST_BYTES, write_report


def test_the_page_goes_into_the_run_unless_another_place_is_named(finished, own_run, report, tmp_path):
    assert (finished.path / "report.html").read_text(encoding="utf-8") == report
    elsewhere = tmp_path / "new" / "page.html"
    assert write_report(own_run, elsewhere) == elsewhere
    assert elsewhere.read_text(encoding="utf-8") == report, "same run, same page"


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Images that no codec makes small."""
    root = tmp_path_factory.mktemp("noise")
    for number in range(40):
        picture(number, (64, 64)).save(root / f"{number}.png")
    return root, [f"{number}.png" for number in range(40)]


def test_thousands_of_clusters_and_classes_stay_below_the_limit(noise, tmp_path):
    run = make_large_run(tmp_path / "run", *noise, n_images=20_000, n_clusters=2000, n_classes=3200)
    html = write_report(run).read_text(encoding="utf-8")
    assert 10**6 < len(html.encode()) < MOST_BYTES
    assert html.count('alt="central images of') == 2000, "every cluster is seen"
    said = text_of(html)
    assert "1,950 discovered clusters" in said
    assert "200 classes in the middle are left out here" in said


def test_a_page_that_is_too_large_gives_up_pictures(own_run, monkeypatch):
    monkeypatch.setattr("justright.report.run_report.MOST_BYTES", 110)
    monkeypatch.setattr(RunPage, "html", lambda page: "x" * int(100 * (1 + page.picture_share)))
    assert write_report(own_run).stat().st_size == 100
