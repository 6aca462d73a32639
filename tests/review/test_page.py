"""The page in a real browser, against a real server."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.accessibility import faults
from tests.review.live import LiveReview

from justright.data import merge_pool, open_images
from justright.review.open_review import OpenReview
from justright.review.random_checks import accuracy
from justright.review.state import REJECTED
from justright.runs.run_folder import RunFolder

# Until the page is loaded anew. Routes of the browser's driver let a request through now and then on a busy machine.
LOSE_ACTIONS = """() => {
    const send = window.fetch;
    window.fetch = (path, options) => path === "act" ? Promise.reject(new TypeError("lost")) : send(path, options);
}"""


@pytest.fixture
def live(run):
    review = LiveReview(run.path)
    review.start()
    yield review
    review.stop()


@pytest.fixture(scope="module")
def standing(finished_run, tmp_path_factory):
    """A server for tests that change nothing."""
    review = LiveReview(Path(shutil.copytree(finished_run, tmp_path_factory.mktemp("standing") / "run")))
    review.start()
    yield review
    review.stop()


@pytest.fixture
def page(chromium, live):
    context = chromium.new_context(viewport={"width": 1200, "height": 800})
    opened = context.new_page()
    opened.errors = []
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    show(opened, live)
    yield opened
    assert opened.errors == []
    assert not re.search(r"\bundefined\b|\bNaN\b|\bnull\b", opened.inner_text("body"))
    context.close()


def show(page, live):
    page.goto(live.url)
    page.wait_for_selector("body[data-ready]")


def state(live) -> OpenReview:
    return OpenReview(RunFolder.open(live.run))


def saved(page, n):
    """Wait until the page shows the result of `n` actions."""
    page.wait_for_function(
        "n => Number(document.body.dataset.seq) >= n "
        "&& (document.querySelector('dialog') !== null || !('busy' in document.body.dataset))",
        arg=n,
    )


def current(page) -> int:
    """The open cluster, also where its row is not on the screen."""
    return int(page.get_attribute("#cluster-pane", "data-cluster"))


def wait_for_another(page, cluster):
    page.wait_for_selector(f"#cluster-pane:not([data-cluster='{cluster}'])")


def choose(page, n):
    """Select the first `n` images by keyboard and return their rows."""
    page.keyboard.press("g")
    page.keyboard.press("Home")
    for place in range(n):
        if place:
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Space")
    page.wait_for_function("n => document.querySelectorAll('.tile[aria-selected=true]').length === n", arg=n)
    return [int(tile.get_attribute("data-row")) for tile in page.query_selector_all(".tile[aria-selected=true]")]


def pick(page, text):
    page.wait_for_selector("dialog[open] #choices li[role=option]")
    if text:
        page.keyboard.type(text)
        page.wait_for_function(
            "text => [...document.querySelectorAll('#choices .label')].every((x) => x.textContent.includes(text))",
            arg=text,
        )
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")


def test_keyboard_actions_survive_kill_and_restart(page, live):
    named = current(page)
    page.keyboard.press("n")
    page.fill("#new-name", "aleph")
    page.keyboard.press("Enter")
    saved(page, 1)

    page.keyboard.press("g")
    page.keyboard.press(".")
    wait_for_another(page, named)
    merged = current(page)
    size = len(state(live).state.rows_of(merged))
    page.keyboard.press("m")
    pick(page, "aleph")
    saved(page, 2)
    assert current(page) == named

    page.keyboard.press("s")
    page.fill("#n-parts", "3")
    page.keyboard.press("Enter")
    saved(page, 3)

    to = next(n for n, label in state(live).state.labels.items() if label.name == "new-003")
    moved = choose(page, 2)
    page.keyboard.press("v")
    pick(page, "new-003")
    saved(page, 4)
    rejected = choose(page, 1)
    page.keyboard.press("x")
    saved(page, 5)
    to_new = choose(page, 1)
    page.keyboard.press("Shift+V")
    saved(page, 6)
    page.keyboard.press("u")
    saved(page, 7)

    found = state(live).state
    assert found.labels[named].name == "aleph"
    assert not len(found.rows_of(merged))
    assert size
    assert [line.line.action.do for line in found.entries] == [
        "name",
        "merge",
        "part",
        "move",
        "reject",
        "move",
        "undo",
    ]
    assert len(found.entries[2].line.action.parts) == 2
    assert found.group[moved].tolist() == [to, to]
    assert found.group[rejected].tolist() == [REJECTED]
    assert found.group[to_new].tolist() == [named]

    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.text_content("#bin").startswith("Rejected images: 1")
    live.kill()
    live.start()
    page.reload()
    page.wait_for_selector("body[data-ready]")
    page.keyboard.press("Shift+U")
    saved(page, 8)
    again = state(live).state
    assert again.group[to_new].tolist() != [named]
    assert (again.group == found.group).sum() == len(found.group) - 1


def test_click_is_retried_until_the_server_is_back(page, live):
    kept = current(page)
    live.kill()
    page.keyboard.press("k")
    page.wait_for_selector("body.waiting")
    page.keyboard.press("k")  # comes after the first, on the cluster that is next then
    live.start()
    page.wait_for_selector("body:not(.waiting)")
    saved(page, 2)
    first, second = (entry.line.action for entry in state(live).state.entries)
    assert (first.do, first.cluster, second.do) == ("keep", kept, "keep")
    assert second.cluster != kept


def test_pending_action_survives_a_page_reload(page, live):
    kept = current(page)
    page.evaluate(LOSE_ACTIONS)
    page.keyboard.press("k")
    page.wait_for_selector("body.waiting")
    assert state(live).state.seq == 0
    page.reload()
    page.wait_for_selector("body[data-ready]")
    found = state(live).state
    assert [line.line.action.do for line in found.entries] == ["keep"]
    assert found.status(kept) == "kept"


def test_two_tabs_never_overwrite_each_other(page, live):
    other = page.context.new_page()
    show(other, live)
    both = current(page)
    assert current(other) == both
    page.keyboard.press("n")
    page.fill("#new-name", "first")
    other.bring_to_front()
    other.keyboard.press("n")
    other.fill("#new-name", "second")
    page.keyboard.press("Enter")
    saved(page, 1)
    other.keyboard.press("Enter")  # looks at what it was before the first tab named it
    other.wait_for_selector("#notes .bad")
    assert "changed since you saw it" in other.text_content("#notes")
    assert state(live).state.labels[both].name == "first"
    other.wait_for_function("() => document.getElementById('name').textContent === 'first'")


def test_undo_restores_the_name_of_the_open_cluster(page):
    before = page.text_content("#name")
    page.keyboard.press("n")
    page.fill("#new-name", "goose")
    page.keyboard.press("Enter")
    saved(page, 1)
    assert page.text_content("#name") == "goose"
    page.keyboard.press("u")
    saved(page, 2)
    assert page.text_content("#name") == before


def test_random_checks_estimate_the_accuracy(page, live):
    assert re.search(
        r"Not checked yet: about \d+ random checks give the accuracy within ±4 points", page.text_content("#accuracy")
    )
    page.keyboard.press("c")
    for n, key in enumerate("rrw", start=1):
        page.wait_for_function("() => Boolean(document.querySelector('dialog')?.dataset.row)")
        row = page.get_attribute("dialog", "data-row")
        page.keyboard.press(key)
        saved(page, n)
        page.wait_for_function("row => !['', row].includes(document.querySelector('dialog').dataset.row)", arg=row)
    assert "Round 1. Accuracy 67 %" in page.text_content("dialog")
    page.keyboard.press("Escape")
    opened = state(live)
    n_more = accuracy(opened.state, opened.predictions.confidence).n_more
    assert f"3 random checks; about {n_more} more give it within ±4 points" in page.text_content("#accuracy")
    page.keyboard.press("w")
    page.fill("#who", "ben")
    page.keyboard.press("Enter")
    page.keyboard.press("c")
    page.wait_for_function("() => Boolean(document.querySelector('dialog')?.dataset.row)")
    page.keyboard.press("w")
    saved(page, 4)
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    page.wait_for_selector("dialog table")
    assert not re.search("undefined|NaN", page.inner_text("dialog"))
    text = page.text_content("dialog")
    assert "anna and ben" in text
    assert "anna: right, ben: wrong" in text
    page.keyboard.press("Escape")


def test_check_dialog_closes_with_a_message_if_no_image_arrives(page):
    page.evaluate(
        """() => {
            const send = window.fetch;
            window.fetch = (path) => path.startsWith("check") ? Promise.reject(new TypeError("lost")) : send(path);
        }"""
    )
    page.click("[data-command=check]")
    page.wait_for_selector("#notes .bad >> text=lost")
    page.wait_for_selector("dialog", state="detached")


def test_known_class_reject_keep_and_export_from_the_page(page, live):
    first = current(page)
    page.keyboard.press("o")
    pick(page, "beta")
    saved(page, 1)
    page.keyboard.press(".")
    wait_for_another(page, first)
    second = current(page)
    page.keyboard.press("Shift+X")
    saved(page, 2)
    third = current(page)
    page.keyboard.press("k")
    saved(page, 3)
    found = state(live).state
    assert found.labels[first].kind == "known"
    assert [found.status(c) for c in (first, second, third)] == ["kept", "rejected", "kept"]

    page.keyboard.press("e")
    for form in ("csv", "parquet", "folders", "labeled"):
        page.check(f"dialog input[value={form}]")
        page.click("dialog button.main")
        page.wait_for_function("() => document.querySelector('.written').textContent.includes('written to')")
        page.evaluate("document.querySelector('.written').textContent = ''")
    folder = live.run / "review" / "export"
    table = pq.read_table(folder / "labels.parquet")
    assert table.num_rows == len(found.group)
    labeled = open_images(folder / "labeled.parquet")
    n_kept = len(found.rows_of(first)) + len(found.rows_of(third))
    reviewed = labeled.of_split("reviewed")
    names = {found.labels[first].name, found.labels[third].name}
    assert len(reviewed) == n_kept
    assert set(reviewed.classes.values()) == names
    assert len(labeled) > n_kept, "with the labeled images of the run"
    assert len(open_images(folder / "classes-1")) == n_kept
    assert merge_pool([reviewed]).images.labels.max() == 1


def test_dialog_buttons_act_like_their_keys(page, live):
    page.click("[data-command=check]")
    for n, button in enumerate(("Right", "Wrong", "Undo", "New round"), start=1):
        page.wait_for_function("() => Boolean(document.querySelector('dialog')?.dataset.row)")
        page.click(f"dialog button:has-text('{button}')")
        saved(page, n)
    page.wait_for_function("() => document.querySelector('dialog').textContent.includes('Round 2.')")
    page.click("dialog .close")
    page.wait_for_selector("dialog", state="detached")
    page.click("[data-command=history]")
    page.click("dialog [aria-label='Undo action 4']")
    saved(page, 5)
    page.wait_for_selector("dialog .undone")
    page.click("dialog .close")
    page.wait_for_selector("dialog", state="detached")
    found = state(live).state
    assert found.round == 1
    assert list(found.checks[1].values()) == [True]

    page.dblclick(".tile >> nth=0")
    for button in ("Next image", "Select or not"):
        page.click(f"dialog [aria-label='{button}']")
    assert "2 of " in page.text_content("dialog")
    page.click("dialog .close")
    assert page.get_attribute(".tile >> nth=1", "aria-selected") == "true"

    def call_it_goose(n):
        page.click("[data-command=name]")
        page.fill("#new-name", "goose")
        page.click("dialog button.main")
        saved(page, n)

    first = current(page)
    call_it_goose(6)
    page.click("[data-command=next]")
    wait_for_another(page, first)
    call_it_goose(7)
    second = current(page)
    page.click("dialog button:has-text('Merge')")
    saved(page, 8)
    assert not state(live).state.has(second)
    assert current(page) == first


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_a_phone_without_horizontal_scrolling(chromium, standing, scheme):
    context = chromium.new_context(viewport={"width": 400, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    show(page, standing)
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    page.click("#clusters .row")
    page.wait_for_selector("#grid .tile")
    assert page.is_visible("#back")
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    page.click("#back")
    assert page.is_visible("#clusters")
    context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_no_serious_accessibility_fault(chromium, standing, width, scheme):
    page = chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme).new_page()
    show(page, standing)
    page.wait_for_selector("#clusters .row")
    assert faults(page) == []
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    assert faults(page) == []
    page.keyboard.press("Escape")
    page.locator("#clusters .row").first.click()
    page.wait_for_selector("#grid .tile")
    assert faults(page) == []
    page.context.close()


def test_the_expected_accuracy_is_on_the_first_screen(chromium, standing):
    page = chromium.new_context().new_page()
    show(page, standing)
    expected = RunFolder.open(standing.run).expected
    assert page.inner_text("#expected") == expected.in_words()
    assert re.search(r"\d+ images? · expected purity \d+ %", page.inner_text("#clusters"))
    page.context.close()


def test_help_lists_every_key(chromium, standing):
    page = chromium.new_page()
    show(page, standing)
    page.keyboard.press("?")
    texts = set(page.locator("dialog kbd").all_text_contents())
    page.keyboard.press("Escape")
    source = page.evaluate("fetch('static/review.js').then((r) => r.text())")
    block = source[source.index("const KEYS = [") :].split("];\n")[0]
    command_of = dict(re.findall(r'^  \["([^"]+)", "(\w+)"', block, flags=re.MULTILINE))
    assert len(command_of) > 25
    assert set(command_of) - texts == {"Escape"}, "which the help calls Esc"
    assert {"arrows", "Space", "Enter", "Esc"} <= texts
    commands = set(re.findall(r"^  (\w+): (?:async )?\(", source, flags=re.MULTILINE))
    assert set(command_of.values()) <= commands
    for button in page.locator("[data-command]:has(kbd)").all():
        assert command_of[button.locator("kbd").text_content()] == button.get_attribute("data-command")
    page.close()


def test_list_keeps_its_scroll_position_when_others_act(page, live, say):
    for _ in range(3):
        page.keyboard.press(".")
    page.wait_for_function("() => !('busy' in document.body.dataset)")
    page.set_viewport_size({"width": 1200, "height": 400})
    page.evaluate("() => { document.getElementById('clusters').scrollTop = 600; }")
    opened = state(live)
    say(opened, "keep", by="ben", cluster=current(page))
    page.wait_for_function("() => Number(document.body.dataset.seq) >= 1 && !('busy' in document.body.dataset)")
    assert page.evaluate("() => document.getElementById('clusters').scrollTop") == 600
    assert "ben: keep" in page.text_content("#facts")


def test_next_cluster_has_the_most_corrections_per_click(page, live):
    first, second, third, *_ = state(live).lists.clusters()
    assert current(page) == first
    page.keyboard.press("n")
    page.fill("#new-name", "goose")
    page.keyboard.press("Enter")
    saved(page, 1)
    assert current(page) == first, "it stays open, and is last in the list"
    page.keyboard.press(".")
    wait_for_another(page, first)
    assert current(page) == second
    page.keyboard.press("k")
    saved(page, 2)
    assert current(page) == third
    page.keyboard.press("u")
    saved(page, 3)
    page.keyboard.press(",")
    wait_for_another(page, third)
    assert current(page) == second


def test_replaced_image_is_not_shown(chromium, run, photos):
    opened = OpenReview(RunFolder.open(run.path))
    first, second = opened.lists.clusters()[:2]
    row, other = (int(opened.lists.images(cluster, "uncertain")[0]) for cluster in (first, second))
    paths = opened.run.target.paths
    (photos / paths[row]).write_bytes((photos / paths[other]).read_bytes())
    live = LiveReview(run.path)
    live.start()
    page = chromium.new_page(viewport={"width": 1200, "height": 800})
    show(page, live)
    assert current(page) == first
    image = page.locator(f".tile[data-row='{row}'] img")
    page.wait_for_function("image => image.alt", arg=image.element_handle())
    assert "changed or replaced since the run" in image.get_attribute("alt")
    assert image.evaluate("image => image.naturalWidth") == 0
    page.close()
    live.stop()
