from __future__ import annotations

import math

import pytest

from justright.report.elements import REPLACEMENT, Name, Table, cut_in_the_middle, join, plain, short
from justright.report.rendering import environment


def shown(columns, rows) -> str:
    return str(environment().get_template("macros.html").module.table(Table(columns, rows)))


def test_numbers_of_a_column_have_the_decimals_that_tell_them_apart():
    rows = [("a", 2.0, 0.99301, 1200), ("b", 1.825, 0.99222, 7)]
    assert Table(["name", "far", "close", "count"], rows).decimals == [None, 2, 5, 0]
    html = shown(["name", "far", "close", "count"], rows)
    for text in (">2.00<", ">1.82<", ">0.99301<", ">1,200<"):
        assert text in html


def test_empty_cells_do_not_make_a_column_text_but_words_do():
    assert Table(["n"], [(None,), (0.0,)]).decimals == [0]
    assert Table(["n"], [(None,), (None,)]).decimals == [None]
    assert Table(["n"], [("no such images",), (0.5,)]).decimals == [None]
    assert Table(["n"], [(True,)]).decimals == [None]
    assert Table(["n"], []).decimals == [None]


def test_numbers_that_are_not_finite_are_written():
    assert ">nan<" in shown(["n"], [(math.nan,), (2.0,)])
    assert ">inf<" in shown(["n"], [(math.inf,)])


def test_a_long_list_keeps_both_ends():
    assert cut_in_the_middle([1, 2, 3], 3) == ([1, 2, 3], 0)
    assert cut_in_the_middle(list(range(10)), 4) == ([0, 1, 8, 9], 6)
    assert cut_in_the_middle(list(range(10)), 3) == ([0, 1, 9], 7)


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
