from __future__ import annotations

import pytest

from justright.report.names import UNSEEN, Markup, named, plain, short, text


@pytest.mark.parametrize("unseen", ["\x00", "\x1b", "\x85", "\u202e", "\u2066", "\ud800"])
def test_what_would_not_be_seen_is_marked(unseen):
    assert plain(f"a{unseen}b") == f"a{UNSEEN}b"
    plain(unseen).encode()  # half a character could not be written


@pytest.mark.parametrize("name", ["Möwe", "طائر", "鳥", "a\tb", "🐦"])
def test_letters_of_every_script_stay(name):
    assert plain(name) == name


def test_long_names_are_cut_and_markup_is_escaped():
    assert len(short("x" * 10_000)) == 120
    assert named("<script>") == "<bdi>&lt;script&gt;</bdi>"
    assert text("a & b") == "a &amp; b"
    assert text(Markup("<b>")) == "<b>"
