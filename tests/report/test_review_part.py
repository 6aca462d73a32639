from __future__ import annotations

import re

import pytest
from tests.report import html_checks
from tests.report.html_checks import check, text_of
from tests.review import acting

from justright.evaluation import CheckedAccuracy
from justright.report import clusters
from justright.report.clusters import made_table, review_cells, review_of
from justright.report.run_report import RunPage
from justright.review.findings import Review, ReviewedCluster
from justright.review.open_review import OpenReview
from justright.runs.run_folder import RunFolder

BAD = "<script>alert(1)</script>"


def reviewed(**changes) -> ReviewedCluster:
    """A cluster of ten images without verdicts, except for these fields."""
    plain = {"name": "new-001", "kind": "discovered", "given_name": None, "n_images": 10, "status": "open"}
    return ReviewedCluster(**(plain | {"verdicts": {}, "other_names": {}} | changes))


def cells(cluster: ReviewedCluster, n_predicted: int = 10) -> list[str | None]:
    values = review_cells(cluster, n_predicted).values()
    return [None if value is None else re.sub("</?bdi>", "", str(value)) for value in values]


def page(run) -> str:
    return RunPage(run, picture_share=0.0).html()


def part(html: str) -> str:
    """The section about clusters."""
    return re.search(r'<section id="clusters">.*?</section>', html, flags=re.S)[0]


def card_of(html: str, name: str) -> dict[str, str]:
    """The text of each column on the card of a cluster."""
    for table in re.findall(r"<table id=\w+ .*?</table>", part(html), flags=re.S):
        columns = [text_of(each).strip() for each in re.findall(r"<th .*?</th>", table, flags=re.S)]
        for row in re.findall(r"<tr>(<td.*?)</tr>", table, flags=re.S):
            cells = [text_of(each).strip() for each in re.findall(r"<td.*?</td>", row, flags=re.S)]
            if cells[1] == name:
                return {column: cell for column, cell in zip(columns, cells, strict=True) if cell}
    raise KeyError(name)


def test_verdicts_in_words():
    assert cells(reviewed()) == [None, None, None, None]
    assert cells(reviewed(verdicts={"anna": "keep", "ben": "keep"}, status="kept"))[1] == "kept by anna and ben"
    assert cells(reviewed(verdicts={"ben": "reject"}, status="rejected"))[1] == "rejected by ben"
    mixed = {"anna": "reject", "ben": "keep", "cleo": "reject"}
    assert cells(reviewed(verdicts=mixed, status="disputed"))[1] == "disputed: kept by ben, rejected by anna and cleo"
    many = {f"reviewer {n}": "keep" for n in range(9)}
    assert cells(reviewed(verdicts=many, status="kept"))[1] == "kept by 9 reviewers"


def test_names_in_words():
    assert cells(reviewed(given_name="gull"))[0] == "gull"
    assert cells(reviewed(given_name="gull", kind="known"))[0] == "gull (known class)"
    assert cells(reviewed(given_name="gull", other_names={"anna": "tern", "ben": "tern", "cleo": "skua"}))[0] == (
        "gull; tern by anna and ben; skua by cleo"
    )


def test_moved_images_in_words():
    assert cells(reviewed(n_images=0, elsewhere=(("gull", 10),), verdicts={"anna": "keep"}, status="kept")) == [
        None, "merged into gull", "0", None,
    ]  # fmt: skip
    assert cells(reviewed(n_images=0, elsewhere=(("gull", 6), ("tern", 3)), n_rejected=1))[1:] == [
        "no images left", "0", "6 in gull, 3 in tern, 1 rejected",
    ]  # fmt: skip
    assert cells(reviewed(n_images=14))[2:] == ["14", None]
    places = tuple((f"cluster {n}", 9 - n) for n in range(6))
    assert cells(reviewed(n_images=1, elsewhere=places))[3] == (
        "9 in cluster 0, 8 in cluster 1, 7 in cluster 2, 15 in other clusters"
    )


def test_clusters_created_in_the_review_are_listed_by_size():
    made = tuple(reviewed(name=f"made {n}", n_images=n + 1) for n in range(9))
    html = html_checks.part("run", "made_in_review", {"made": made_table(made)})
    names = re.findall(r"<bdi>(made \d+)</bdi>", html)
    assert names == [f"made {n}" for n in range(8, -1, -1)]
    assert not html_checks.part("run", "made_in_review", {"made": made_table(())}).strip()


def summary(run) -> str:
    values = review_of(run)
    return text_of(html_checks.part("run", "review_summary", {name: values[name] for name in ("review", "command")}))


def test_review_summary_has_counts_and_interval(finished, monkeypatch):
    checked = CheckedAccuracy(0.8125, 0.71, 0.889, 0.95, 30, 240, 30.0, 0.64, 0.91, 210)
    review = Review(("anna", "ben"), 24, {"open": 18, "kept": 4, "disputed": 2}, checked, {}, (), 210)
    monkeypatch.setattr(clusters, "findings", lambda run: review)
    assert review_of(finished)["review"] is review
    assert "2 reviewers looked at 6 of 24 clusters: 4 kept, 2 disputed." in summary(finished)
    assert "About 81.2 % of the images were in the right cluster, [71.0, 88.9] at 95%: 30 of 240" in summary(finished)
    assert "with the confidences it is 0.66 times as long. 210 more checks narrow it to ±4 points." in summary(finished)
    monkeypatch.setattr(clusters, "findings", lambda run: Review(("anna",), 24, {"open": 24}, None, {}, (), 195))
    assert "1 reviewer looked at 0 of 24 clusters. No random checks" in summary(finished)
    assert "about 195 checks give it within ±4 points" in summary(finished)


def test_page_shows_the_verdicts_of_reviewers(bare_run):
    opened = OpenReview(bare_run)
    new = [n for n, each in enumerate(opened.predictions.categories) if each.kind == "discovered"]
    names = [opened.predictions.categories[n].name for n in new]
    acting.act(opened, "name", cluster=new[0], name="alpha")
    acting.act(opened, "keep", by="ben", cluster=new[0])
    acting.act(opened, "discard", cluster=new[1])
    acting.act(opened, "merge", cluster=new[2], into=new[0])
    acting.act(opened, "move", cluster=new[3], rows=opened.state.rows_of(new[3])[:2].tolist(), to=None)
    acting.act(opened, "keep", cluster=0)
    for n in range(10):
        acting.check(opened, n > 1)
    html = page(bare_run)
    check(html)
    n_clusters = len(opened.predictions.categories)  # one is merged, one is made
    assert f"2 reviewers looked at 3 of {n_clusters} clusters: 2 kept, 1 rejected. About 80.0 %" in text_of(part(html))
    sizes = opened.predictions.sizes
    first = card_of(html, names[0])
    assert (first["name by reviewers"], first["verdict"]) == ("alpha", "kept by anna and ben")
    assert (first["images"], first["images after review"]) == (str(sizes[new[0]]), str(sizes[new[0]] + sizes[new[2]]))
    assert card_of(html, names[1])["verdict"] == "rejected by anna"
    assert card_of(html, names[2])["verdict"] == "merged into alpha"
    assert card_of(html, names[3])["images moved away"] == f"2 in cluster-{n_clusters}"
    assert card_of(html, opened.predictions.categories[0].name)["verdict"] == "kept by anna"
    assert "verdict" not in card_of(html, names[4])
    assert "Clusters created in the review: 1" in text_of(part(html))
    assert "Nobody has reviewed" not in html


def test_page_without_review_shows_the_review_command(bare_run, report):
    renamed = RunFolder.open(bare_run.path.rename(bare_run.path.with_name("my <run>")))
    html = page(renamed)
    check(html)
    assert "<code>justright review &#39;my &lt;run&gt;&#39;</code>" in part(html)
    assert "name by reviewers" not in html
    assert "These clusters have not been reviewed yet" in text_of(part(report))


@pytest.mark.parametrize("damage", ["lost line", "noise", "folder"])
def test_damaged_log_is_reported_and_clusters_are_shown(bare_run, damage):
    opened = OpenReview(bare_run)
    for cluster in range(3):
        acting.act(opened, "name", cluster=cluster, name="a name that must not be shown")
    log = opened.log.path
    lines = log.read_bytes().splitlines(keepends=True)
    if damage == "lost line":
        log.write_bytes(b"".join([*lines[:2], lines[3]]))
    elif damage == "noise":
        log.write_bytes(b"<script>alert(1)</script>\n" * 5)
    else:
        log.unlink()
        log.mkdir()
    html = page(bare_run)
    check(html)
    texts = text_of(part(html))
    reason = {"lost line": "jumps from action 1 to 3", "noise": "holds no review", "folder": "Is a directory"}
    assert "The review of this run cannot be shown: " in texts
    assert reason[damage] in texts
    assert "a name that must not be shown" not in html
    assert "<script>alert" not in html
    assert card_of(html, opened.predictions.categories[0].name)["images"] == str(opened.predictions.sizes[0])


def test_reviewer_input_is_shown_as_text(own_run, chromium, tmp_path):
    opened = OpenReview(own_run)
    acting.act(opened, "name", by=BAD[:40], cluster=0, name=BAD)
    acting.act(opened, "name", by='"><img src=x onerror=alert(2)>', cluster=0, name="'--></style><b>")
    acting.act(opened, "move", cluster=1, rows=opened.state.rows_of(1)[:1].tolist(), to=None)
    acting.act(opened, "name", cluster=len(opened.predictions.categories), name=BAD + "2")
    acting.act(opened, "move", cluster=2, rows=opened.state.rows_of(2)[:1].tolist(), to=0)
    html = page(own_run)
    check(html)
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert "</style><b>" not in html
    shown = card_of(html, opened.predictions.categories[0].name)["name by reviewers"]
    assert shown.startswith("&#39;--&gt;&lt;/style&gt;&lt;b&gt; ; &lt;script&gt;alert(1)&lt;/script&gt; by")
    seen = html_checks.opened(chromium, html, tmp_path, width=400)
    assert seen.problems == []
    opened = seen.page
    pieces = opened.locator(".cards td").evaluate_all("cells => cells.map(cell => cell.childNodes.length)")
    assert max(pieces) == 1, "a card sets the pieces of a cell apart, so words stay together in one"
    assert opened.get_by_text(BAD, exact=True).count() >= 1, "a person reads it as it was written"
    for fold in opened.locator("details").all():
        fold.evaluate("element => { element.open = true; }")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 400
