"""Why an image is set aside, and how many are too many."""

from __future__ import annotations

import pytest
from tests.audit.drawn_files import put

from justright.audit.audit import audit
from justright.audit.quarantine import TooManyBadError, reason_of
from justright.data.opening import open_images
from justright.utils.errors import BadImageError, BadKind, JustrightError


def test_a_word_in_a_path_does_not_decide_the_kind():
    error = BadImageError("truncated/x.jpg: the file is empty", BadKind.EMPTY)
    assert reason_of(error, "truncated/x.jpg")[0] is BadKind.EMPTY


def test_the_kind_is_the_code_of_the_error_and_not_read_from_its_sentence():
    for kind in BadKind:
        assert reason_of(BadImageError("x.jpg: kaputt", kind), "x.jpg") == (kind, "kaputt")
    assert reason_of(BadImageError("x.jpg: truncated"), "x.jpg")[0] is BadKind.UNREADABLE


def test_a_source_of_bad_images_alone_is_refused_whatever_the_limit(photos):
    for file in photos.rglob("*.png"):
        file.write_bytes(b"")
    report = audit([open_images(photos)])
    with pytest.raises(TooManyBadError, match="no image of photos can be read, 6 of 6 are bad") as refusal:
        report.refuse_above(1.0)
    assert "the file is empty" in str(refusal.value)
    assert "--max-bad" not in str(refusal.value)


def test_a_share_above_the_limit_is_refused_with_share_limit_and_examples(photos):
    for number in range(4):
        put(photos / "cat" / f"empty{number}.jpg", b"")
    report = audit([open_images(photos)])
    with pytest.raises(TooManyBadError) as refusal:
        report.refuse_above(0.25)
    for part in ("4 of 10", "photos", "40.0%", "25.0%", "cat/empty0.jpg: the file is empty", "1 more", "--max-bad"):
        assert part in str(refusal.value)
    assert isinstance(refusal.value, JustrightError)
    report.refuse_above(0.4)  # the limit itself is allowed
    with pytest.raises(TooManyBadError):
        report.refuse_above(0.39)
