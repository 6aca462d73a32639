"""What the report says."""

from __future__ import annotations

import json

from tests.audit.drawn_files import of_kind, put

from justright.audit.audit import audit, ignored_files
from justright.audit.findings import location
from justright.data.opening import open_images


def test_files_that_are_no_images_by_name_are_listed(photos):
    put(photos / "cat" / "notes.txt", b"hello")
    put(photos / ".hidden", b"")
    ignored = ignored_files(photos, "labeled")
    assert [(place.dataset, place.path) for place in ignored] == [("photos", "cat/notes.txt")]
    report = audit([open_images(photos)], ignored=ignored)
    assert location(ignored[0].source, ignored[0].path) == str(photos / "cat" / "notes.txt")
    assert (len(of_kind(report, "ignored_file")), report.n_problems) == (1, 0)


def test_the_report_is_plain_json_with_every_bad_image(photos):
    put(photos / "cat" / "empty.jpg", b"")
    value = json.loads(json.dumps(audit([open_images(photos)]).to_json()))
    assert (value["n_images"], value["n_problems"], value["counts"]["bad_file"]) == (7, 1, 1)
    (bad,) = value["sources"][0]["quarantined"]
    assert bad == {
        "dataset": "photos",
        "source": f"folder:{photos}",
        "path": "cat/empty.jpg",
        "kind": "empty",
        "reason": "the file is empty",
    }
