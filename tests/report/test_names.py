from __future__ import annotations

import pytest

from justright.report.names import REPLACEMENT, Name, join, plain, short


@pytest.mark.parametrize("invisible", ["\x00", "\x1b", "\x85", "\u202e", "\u2066", "\ud800"])
def test_what_would_not_be_seen_is_marked(invisible):
    assert plain(f"a{invisible}b") == f"a{REPLACEMENT}b"
    plain(invisible).encode()  # half a character could not be written


@pytest.mark.parametrize("name", ["Möwe", "طائر", "鳥", "a\tb", "🐦"])
def test_letters_of_every_script_stay(name):
    assert plain(name) == Name(name) == name


def test_long_names_are_cut():
    assert len(short("x" * 10_000)) == 120
    assert Name("x" * 10_000) == short("x" * 10_000)
    assert short("abcdef", 4) == "abc…"


def test_sentences_are_joined_with_their_names_apart():
    joined = join("; ", [(Name("a"), " by ", Name("b")), ("c",)])
    assert "".join(joined) == "a by b; c"
    assert [piece for piece in joined if isinstance(piece, Name)] == ["a", "b"]
    assert join("; ", []) == ()
