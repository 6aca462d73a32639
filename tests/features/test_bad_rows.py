"""Bad images: quarantined with a reason; too many raise."""

from __future__ import annotations

import pytest
from tests.features.tiny_extraction import BAD, run

from justright.data.quarantine import TooManyBadError
from justright.features.extract import unreadable_rows


def test_bad_images_are_quarantined_with_a_reason(with_bad, tmp_path):
    table = run(with_bad, tmp_path / "t", max_bad=0.1)
    assert [image.path for image in table.quarantined] == BAD
    assert [str(image.kind) for image in table.quarantined] == ["not an image", "empty", "truncated", "missing"]
    assert table.paths == [path for path in with_bad.paths if path not in BAD]


def test_too_many_bad_images_raise(with_bad, tmp_path):
    with pytest.raises(TooManyBadError, match="4 of 70 images"):
        run(with_bad, tmp_path / "t")


def test_copies_of_a_bad_image_are_bad(with_bad, tmp_path):
    rows = [*range(10), with_bad.paths.index("class0/003.png")]
    table = run(with_bad.take(rows), tmp_path / "t", max_bad=1.0)
    assert [image.path for image in table.quarantined] == ["class0/003.png"] * 2


def test_image_without_content_id_has_a_reason(with_bad):
    content_ids = with_bad.content_ids(is_strict=False)
    assert content_ids.count("") == 1
    ((row, bad),) = unreadable_rows(with_bad, content_ids).items()
    assert (row, bad.kind) == (content_ids.index(""), "missing")
