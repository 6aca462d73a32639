from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.accessibility import faults
from tests.conftest import picture
from tests.report.html_checks import check, opened, text_of
from tests.report.large_run import make_large_run

from justright.data.readers import FolderReader
from justright.discovery.predictions import Category, Predictions
from justright.report import feature_map, run_report
from justright.report.drawing import for_page, to_svg
from justright.report.elements import environment
from justright.report.run_report import MOST_BYTES, RunPage, write_report
from justright.report.selection_report import draw_selection
from justright.runs.run_folder import RunFolder
from justright.runs.selection import Selection, merge_tables, save_selection
from justright.selection import BinsSelector, row_shards

FIRST = ["The largest of 15 new clusters", "What to do next", "What selection did"]
PARTS = [
    "Clusters",
    "Scores",
    "Errors",
    "Selection",
    "Labeled images and target",
    "Skipped files",
    "Number of categories",
    "Training",
    "Settings",
    "Timings",
    "How to reproduce",
]
BAD = [
    "<script>alert(1)</script>",
    '"><img src=http://x.test/a>',
    "\u202eabc\x00\x1b",
    "x" * 5000,
    "طائر",
    "$\\frac{",
    "'--></style>",
]


def test_report_links_every_part_in_order(report):
    checker = check(report)
    assert re.findall(r"<h2>(.*?)</h2>", report) == FIRST + PARTS
    anchors = re.findall(r'<li><a href="#(\w+)">', report)
    assert len(anchors) == len(PARTS)
    assert all(f'<section id="{name}">' in report for name in anchors)
    assert checker.levels[0] == 1
    assert all(b - a <= 1 for a, b in zip(checker.levels, checker.levels[1:], strict=False)), "no heading is skipped"


def test_page_makes_no_network_requests(report):
    checker = check(report)
    assert all(address.startswith(("#", "data:")) for address in checker.addresses)
    assert not re.search(r"https?://", report)
    assert "default-src 'none'" in report


def test_all_pictures_have_alternative_text(report):
    checker = check(report)
    assert checker.images
    assert all(image.get("alt") for image in checker.images)
    assert report.count("<svg") == report.count('role="img"') == 6
    assert report.count("<th ") == report.count("<th scope=col")


def test_outcome_precedes_all_parts(report, finished):
    top = text_of(report.partition("<nav")[0])
    assert f"{len(finished.predictions):,} images: " in top
    assert f"by the true labels: {100 * finished.scores.all:.1f} [" in top
    n_categories = len(finished.predictions.categories)  # K is that of the run, not the estimate
    assert f"Method: simgcd. Selection: beta. {n_categories} categories; K: given. Network: " in top


def test_notes_precede_the_pictures(bare_run):
    bare_run.save_about(dict(bare_run.about) | {"notes": ["a vote of seeds 0, 1, 2: all <b>agree</b>"]})
    top = RunPage(RunFolder.open(bare_run.path), picture_share=0.0).html().partition("<h2>")[0]
    assert "<p>A vote of seeds 0, 1, 2: all &lt;b&gt;agree&lt;/b&gt;.</p>" in top


def test_hovering_a_mark_shows_its_image(chromium, report, tmp_path):
    page = opened(chromium, report, tmp_path).page
    page.locator("figure.map").scroll_into_view_if_needed()
    tile = page.locator(".tile")
    assert tile.is_hidden()
    sheet = page.locator("figure.map img").last
    x, y = map(int, sheet.get_attribute("data-spots").split(" ")[-1].split(","))
    drawn = page.locator("figure.map svg")
    box = drawn.bounding_box()
    drawn.hover(position={"x": x / 1000 * box["width"], "y": y / 1000 * box["height"]})
    assert tile.is_visible()
    assert tile.locator("img").get_attribute("src") == sheet.get_attribute("src")
    page.mouse.move(1, 1)
    assert tile.is_hidden()
    drawn.focus()
    shown = []
    for _ in range(2):
        page.keyboard.press("ArrowRight")
        assert tile.is_visible()
        shown.append(tile.bounding_box()["x"])
    assert shown == sorted(shown), "from left to right"
    page.keyboard.press("Tab")
    assert tile.is_hidden()


def test_curves_and_k_are_those_of_the_files(report, finished):
    text = text_of(report)
    records = finished.metrics
    assert f"{len(records)} epochs. The loss went from {records[0]['loss']:.4g} to {records[-1]['loss']:.4g}." in text
    assert "labeled-search 24 22 to 27" in text
    assert "The K used is outside the interval of labeled-search" in text


def test_curves_of_all_seeds_and_of_their_heads_are_shown(bare_run):
    for seed in (2, 10):
        for part, n_epochs in (("", 3), ("heads", 2)):
            folder = bare_run.path / f"seed-{seed}" / part
            folder.mkdir(parents=True, exist_ok=True)
            lines = [{"epoch": epoch, "loss": 10.0 * seed - epoch, "seconds": 1.0} for epoch in range(n_epochs)]
            (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = RunFolder.open(bare_run.path)
    assert {part: list(runs) for part, runs in run.curves.items()} == {
        "heads": ["seed 2", "seed 10"],
        "": ["seed 2", "seed 10"],
    }
    html = RunPage(run, picture_share=0.0).html()
    check(html)
    text = text_of(html)
    assert "No training records" not in text
    assert "seed 2: 3 of 12 epochs. The loss went from 20 to 18. seed 10: 3 of 12 epochs. The loss" in text
    assert "Heads alone, before the network was tuned seed 2: 2 of 50 epochs. The loss went from 20 to 19." in text
    assert text.index("Heads alone") < text.index("3 of 12 epochs")


@pytest.mark.parametrize("estimate", [{}, {"n_categories": 3, "curve": [[1]], "axes": ["a", "b"]}])
def test_unreadable_estimate_hides_no_other_part(bare_run, estimate):
    bare_run.save_json("count.json", {"estimates": {"a counter": estimate}})
    html = RunPage(bare_run, picture_share=0.0).html()
    assert "This part cannot be shown: an estimate of K cannot be read: " in html
    assert re.findall(r"<h2>(.*?)</h2>", html)[-len(PARTS) :] == PARTS


def test_bins_threshold_is_drawn_from_the_saved_selection(own_run):
    pool, target = own_run.frozen
    merged = merge_tables([pool])
    selector = BinsSelector(n_clusters=12, select=False).fit_stream(merged, row_shards(target.features))
    result = Selection.of("bins", selector, merged)
    save_selection(own_run.path / "weights.parquet", result, target)
    html = RunPage(RunFolder.open(own_run.path), picture_share=0.0).html()
    caption = environment().get_template("macros.html").module.selection_captions["ranked"]
    assert for_page(to_svg(draw_selection(result)["ranked"]), "ranked", caption) in html
    assert f"threshold {selector.threshold_:.3g}<" in html


def test_missing_parts_give_their_reason(own_run):
    for name in ("weights.parquet", "metrics.jsonl", "count.json", "scores.json", "truth.parquet"):
        (own_run.path / name).unlink()
    html = RunPage(own_run, picture_share=0.0).html()
    check(html)
    text = text_of(html)
    assert re.findall(r"<h2>(.*?)</h2>", html) == FIRST[:2] + PARTS
    for words in (
        "all labeled images have the same weight",
        "No training records",
        "K was not estimated",
        "justright review",
        "sheets of images are omitted",
    ):
        assert words in text
    assert 'alt="central' not in html
    assert "new-001" in text


def test_unfinished_run_has_a_page(tmp_path):
    run = RunFolder(tmp_path)
    run.save_about({"spec": {"method": "gcd", "selector": "bins", "seed": 4}, "request": {}, "is_finished": False})
    html = RunPage(run).html()
    check(html)
    text = text_of(html)
    assert "Method: gcd. Selection: bins. Seed: 4." in text
    assert "This run is not finished" in text
    assert "K is not known yet" in text


def test_damaged_files_do_not_break_the_page(own_run):
    for name in ("scores.json", "count.json", "predictions.parquet", "weights.parquet", "target.parquet", "tuned.npy"):
        (own_run.path / name).write_bytes(b"torn")
    html = RunPage(RunFolder.open(own_run.path)).html()
    check(html)
    assert text_of(html).count("cannot be") >= 4
    assert "No the run has no labels of the target" not in html, "there are labels; only the scores are torn"


def with_names(run, names):
    """The run with other names for its classes."""
    for file, column in (("weights.classes.parquet", "class_name"), ("truth.parquet", "class_name")):
        table = pq.read_table(run.path / file)
        old = list(dict.fromkeys(table[column].to_pylist()))
        new = {name: names[n % len(names)] + str(n) for n, name in enumerate(old)}
        values = pa.array([new[name] for name in table[column].to_pylist()])
        table = table.set_column(table.schema.get_field_index(column), column, values)
        pq.write_table(table, run.path / file)
    found = run.predictions
    categories = tuple(Category(names[n % len(names)] + str(n), c.kind) for n, c in enumerate(found.categories))
    Predictions(found.index, found.cluster, found.confidence, found.is_neither, categories).save(
        run.path / "predictions.parquet"
    )
    run.save_about(dict(run.about) | {"request": {name: name for name in names}, "command": BAD[0], "method": BAD[1]})
    return RunFolder.open(run.path)


def test_names_cannot_break_the_page(own_run, chromium, tmp_path):
    run = with_names(own_run, BAD)
    html = RunPage(run).html()
    check(html)
    assert "<script>alert" not in html
    assert "<img src=http" not in html
    assert not {"\u202e", "\x00", "\x1b"} & set(html)
    assert "x" * 200 not in html.replace("x" * 5000, "")
    seen = opened(chromium, html, tmp_path, width=400)
    assert seen.problems == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 400


def visible_names(page):
    return page.locator("#discovered tbody tr:visible td:nth-child(2)").all_text_contents()


def test_page_opens_from_disk_without_errors_or_requests(chromium, report, tmp_path):
    for scheme in ("light", "dark"):
        seen = opened(chromium, report, tmp_path, color_scheme=scheme)
        assert seen.problems == []
        light = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (light == "rgb(255, 255, 255)") == (scheme == "light")
        assert seen.page.evaluate("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")


def test_cards_can_be_searched_and_sorted(chromium, report, finished, tmp_path):
    page = opened(chromium, report, tmp_path).page
    names = visible_names(page)
    assert len(names) > 5
    page.get_by_label("Search clusters").fill(names[3])
    assert visible_names(page) == [names[3]]
    page.get_by_label("Search clusters").fill("")
    page.locator("#discovered th button", has_text="purity").click()
    values = page.locator("#discovered tbody tr td:nth-child(4)").evaluate_all(
        "cells => cells.map(c => +c.dataset.value)"
    )
    assert values == sorted(values, reverse=True)
    page.locator("#discovered th button", has_text="purity").click()
    again = page.locator("#discovered tbody tr td:nth-child(4)").evaluate_all(
        "cells => cells.map(c => +c.dataset.value)"
    )
    assert again == values[::-1]
    page.locator("#selection summary").click()
    page.get_by_label("Search classes and reasons").fill("braille")
    shown = page.locator("#classes tbody tr:visible td:nth-child(2)").all_text_contents()
    assert len(shown) == sum("braille" in name for name in finished.selection.classes["class_name"].to_pylist())


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_report_has_no_serious_accessibility_fault(chromium, report, tmp_path, width, scheme):
    page = opened(chromium, report, tmp_path, width=width, color_scheme=scheme).page
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert faults(page) == []


def test_wide_tables_can_be_scrolled_by_keyboard(chromium, report, tmp_path):
    page = opened(chromium, report, tmp_path, width=390).page
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")  # as a reader would
    wider = "[...document.querySelectorAll('.wide')].filter((each) => each.scrollWidth > each.clientWidth)"
    page.wait_for_function(f"() => {wider}.length && {wider}.every((each) => each.tabIndex === 0)")
    page.evaluate(f"{wider}[0].focus()")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => {wider}[0].scrollLeft > 0")


def test_page_fits_a_phone_without_horizontal_scrolling(chromium, report, tmp_path):
    page = opened(chromium, report, tmp_path, width=400).page
    for fold in page.locator("details").all():
        fold.evaluate("element => { element.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    outside = page.evaluate(
        """[...document.querySelectorAll("main *")].filter((e) => !e.closest(".wide") && !e.closest("svg")
           && e.getBoundingClientRect().right > 400.5).length"""
    )
    assert outside == 0


def test_page_works_without_scripts_and_on_paper(chromium, report, tmp_path):
    page = opened(chromium, report, tmp_path, java_script_enabled=False).page
    page.locator("#selection summary").click()
    assert page.locator("#classes tbody tr").first.is_visible()
    assert page.locator("#discovered tbody tr").last.is_visible()
    assert page.locator("#classes thead").is_hidden(), "buttons that do nothing are not shown"
    assert page.locator("input").count() == 0
    page = opened(chromium, report, tmp_path).page
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator("input").first.is_hidden()
    assert page.evaluate("getComputedStyle(document.querySelector('.wide')).overflow") == "visible"
    assert len(page.pdf()) > 10_000


def test_text_has_enough_contrast_in_both_schemes(chromium, report, tmp_path):
    for scheme in ("light", "dark"):
        page = opened(chromium, report, tmp_path, color_scheme=scheme).page
        colors = page.evaluate(
            """["--ink", "--soft", "--accent", "--paper"].map(
                 (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim())"""
        )
        *letters, paper = (luminance(color) for color in colors)
        for letter in letters:
            low, high = sorted((letter, paper))
            assert (high + 0.05) / (low + 0.05) > 4.5


def luminance(color):
    """Relative luminance as the accessibility guidelines define it."""
    c = np.array([int(color[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_page_is_written_into_the_run_by_default(finished, own_run, report, tmp_path):
    assert (finished.path / "report.html").read_text(encoding="utf-8") == report
    elsewhere = tmp_path / "new" / "page.html"
    assert write_report(own_run, elsewhere) == elsewhere
    assert elsewhere.read_text(encoding="utf-8") == report, "same run, same page"


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Images of noise, which do not compress."""
    root = tmp_path_factory.mktemp("noise")
    for number in range(40):
        picture(number, (64, 64)).save(root / f"{number}.png")
    return root, [f"{number}.png" for number in range(40)]


def test_thousands_of_clusters_and_classes_stay_below_the_limit(noise, tmp_path, monkeypatch):
    # as many marks on the map, and as many bytes, wherever they lie and however often a file is read
    monkeypatch.setattr(feature_map, "_tsne", lambda x, seed: x[:, :2])
    monkeypatch.setattr(FolderReader, "image", cache(FolderReader.image))
    run = make_large_run(tmp_path / "run", *noise, n_images=20_000, n_clusters=2000, n_classes=3200)
    html = write_report(run).read_text(encoding="utf-8")
    assert 10**6 < len(html.encode()) < MOST_BYTES
    assert html.count('alt="central images of') == 2000, "every cluster is seen"
    text = text_of(html)
    assert "in 1,950 new clusters" in text
    assert "200 more are not shown" in text


@pytest.fixture
def clusters_only(noise, tmp_path, monkeypatch):
    """The run has pictures of clusters and no figures, and the budget is just large enough for all pictures."""
    run = make_large_run(tmp_path / "run", *noise, n_images=120, n_clusters=60, n_classes=4)
    for name in ("weights.parquet", "scores.json", "truth.parquet"):
        (run.path / name).unlink()
    (run.path / "pool.features").rename(run.path / "elsewhere")
    monkeypatch.setattr(run_report, "CLUSTER_BUDGET", 600_000)
    return RunFolder.open(run.path)


def test_oversized_page_drops_pictures_until_it_fits(clusters_only, monkeypatch):
    pages = [RunPage(clusters_only, picture_share=share).html() for share in (1.0, 0.3, 0.0)]
    full, fewer, none = (len(page.encode()) for page in pages)
    assert full > 1.2 * fewer > 1.4 * none, "the three pages differ"
    assert ['alt="central images of' in page for page in pages] == [True, True, False]
    for limit, expected in ((full, 1), (fewer, 2)):
        monkeypatch.setattr(run_report, "MOST_BYTES", limit)
        assert write_report(clusters_only).read_text(encoding="utf-8") == pages[expected]
