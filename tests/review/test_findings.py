from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from tests.review.acting import check

from justright.evaluation import estimate_accuracy
from justright.review.findings import findings
from justright.review.open_review import OpenReview
from justright.review.random_checks import n_checks_needed
from justright.utils.errors import DataError


def with_checksum(body: bytes) -> bytes:
    """A line of a log as somebody could write it by hand, with a checksum that is right."""
    return body[:-1] + b',"crc":"%08x"}\n' % zlib.crc32(body[:-1])


def new_clusters(opened, n):
    """Numbers of discovered clusters, the largest first."""
    sizes = opened.predictions.sizes
    found = [c for c, each in enumerate(opened.predictions.categories) if each.kind == "discovered"]
    return sorted(found, key=lambda c: -sizes[c])[:n]


def test_unreviewed_run_has_no_findings(run, opened):
    assert findings(run) is None
    opened.folder.mkdir()
    (opened.folder / "token").write_text("t" * 32)
    assert findings(run) is None, "the page was opened, and nothing done"
    with opened.log.writing():
        pass  # killed before the first action
    assert opened.log.path.exists()
    assert findings(run) is None


def test_names_and_verdicts_are_those_of_each_reviewer(run, opened, say):
    a, b, c, d, e = new_clusters(opened, 5)
    known = opened.known_classes[-1]
    say(opened, "name", cluster=a, name="gull")
    say(opened, "keep", by="ben", cluster=a)
    say(opened, "name", cluster=b, name="tern")
    say(opened, "name", by="ben", cluster=b, name="skua")
    say(opened, "keep", cluster=c)
    say(opened, "discard", by="ben", cluster=c)
    say(opened, "known", cluster=d, name=known)
    say(opened, "keep", cluster=0)  # a known class, under the name it has
    found = findings(run)
    assert found.reviewers == ("anna", "ben")
    assert found.by_status == {"kept": 4, "disputed": 1, "open": len(opened.predictions.categories) - 5}
    assert found.n_clusters == len(opened.predictions.categories)
    texts = [found.clusters[each] for each in (a, b, c, d, e, 0)]
    assert [each.given_name for each in texts] == ["gull", "skua", None, known, None, None]
    assert [each.status for each in texts] == ["kept", "kept", "disputed", "kept", "open", "kept"]
    assert texts[0].verdicts == {"anna": "keep", "ben": "keep"}
    assert texts[2].verdicts == {"anna": "keep", "ben": "reject"}
    assert [each.other_names for each in texts] == [{}, {"anna": "tern"}, {}, {}, {}, {}]
    assert (texts[3].kind, texts[0].kind) == ("known", "discovered")


def test_findings_follow_moved_images(run, opened, say):
    a, b, c, d = new_clusters(opened, 4)
    sizes = opened.predictions.sizes
    rows = opened.state.rows_of(c).tolist()
    say(opened, "merge", cluster=a, into=b)
    say(opened, "name", cluster=b, name="gull")
    say(opened, "move", cluster=c, rows=rows[:2], to=b)
    say(opened, "move", cluster=c, rows=rows[2:3], to=None)
    say(opened, "reject", cluster=c, rows=rows[3:4])
    say(opened, "reject", cluster=d, rows=opened.state.rows_of(d).tolist())
    found = findings(run)
    assert found.clusters[a].elsewhere == (("gull", sizes[a]),)
    assert found.clusters[a].n_images == 0
    assert found.clusters[b].n_images == sizes[a] + sizes[b] + 2
    assert found.clusters[b].elsewhere == ()
    (made,) = found.made
    assert found.clusters[c].elsewhere == (("gull", 2), (made.name, 1))
    assert (found.clusters[c].n_rejected, found.clusters[c].n_images) == (1, sizes[c] - 4)
    assert (found.clusters[d].n_rejected, found.clusters[d].n_images, found.clusters[d].elsewhere) == (sizes[d], 0, ())
    assert (made.n_images, made.given_name, made.status) == (1, None, "open")
    assert found.n_clusters == len(sizes) - 2 + 1
    assert sum(each.n_images for each in (*found.clusters.values(), *found.made)) == sizes.sum() - 1 - sizes[d]


def test_undone_actions_are_not_reported(run, opened, say):
    (a, b) = new_clusters(opened, 2)
    say(opened, "merge", cluster=a, into=b)
    say(opened, "undo")
    say(opened, "name", cluster=b, name="gull")
    say(opened, "undo")
    found = findings(run)
    assert found.by_status == {"open": found.n_clusters}
    assert all(each.given_name is None and not each.elsewhere and not each.verdicts for each in found.clusters.values())


def test_the_accuracy_is_that_of_the_random_checks(run, opened, say):
    say(opened, "keep", cluster=0)
    assert findings(run).accuracy is None
    assert findings(run).n_more_checks == n_checks_needed(opened.state, opened.predictions.confidence)
    verdicts = [n % 4 > 0 for n in range(12)]
    rows = []
    for is_right in verdicts:
        rows.append(opened.next_check("anna"))
        check(opened, is_right)
    order = np.argsort(rows)
    confidence = opened.predictions.confidence.astype(np.float64)
    expected = estimate_accuracy(
        np.array(rows)[order], np.array(verdicts)[order], len(opened.predictions), confidence=confidence
    )
    assert findings(run).accuracy == expected
    assert findings(run).n_more_checks == expected.n_more
    assert expected.low < 0.75 < expected.high


def test_a_damaged_log_is_refused_with_the_reason(run, opened, say):
    for cluster in range(3):
        say(opened, "keep", cluster=cluster)
    path = opened.log.path
    header, first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + first + third)
    with pytest.raises(DataError, match="from action 1 to 3"):
        findings(run)
    path.write_bytes(b"\x00\xff not a log")
    with pytest.raises(DataError, match="holds no review"):
        findings(run)
    path.write_bytes(header + with_checksum(b'{"seq":1,"at":[}'))
    with pytest.raises(DataError, match="cannot be read"):
        findings(run)
    path.write_bytes(header + with_checksum(b'{"seq":' + b"[" * 100_000 + b"}"))
    with pytest.raises(DataError, match="cannot be read"):
        findings(run)
    value = json.loads(second) | {"seq": 1}
    del value["crc"]
    value["action"]["cluster"] = 10**6
    path.write_bytes(header + with_checksum(json.dumps(value).encode()))
    opened.log.saved.unlink()
    with pytest.raises(DataError, match="does not fit"):
        findings(run)


def test_a_review_of_other_predictions_is_refused(run, opened, say):
    say(opened, "keep", cluster=0)
    found = run.predictions
    type(found)(found.index, found.cluster[::-1].copy(), found.confidence, found.is_neither, found.categories).save(
        run.path / "predictions.parquet"
    )
    with pytest.raises(DataError, match="other predictions"):
        findings(type(run).open(run.path))


def test_reading_findings_writes_no_file(run, opened, say):
    say(opened, "keep", cluster=0)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    findings(run)
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    assert OpenReview(run).state.seq == 1
