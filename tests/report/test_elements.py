from __future__ import annotations

import math
import re

import pytest
from jinja2 import UndefinedError
from markupsafe import escape
from matplotlib.figure import Figure
from tests.report.html_checks import check

from justright.report.elements import (
    MOST_ROWS,
    REPLACEMENT,
    Missing,
    Name,
    PagePart,
    Picture,
    Table,
    attempt,
    cell,
    environment,
    optional,
    plain,
    read_parts,
    render,
    short,
)
from justright.utils.errors import DataError


def shown(columns, rows) -> str:
    return str(environment().get_template("macros.html").module.table(Table(columns, rows)))


def test_columns_have_enough_decimals_to_distinguish_numbers():
    rows = [("a", 2.0, 0.99301, 1200), ("b", 1.825, 0.99222, 7)]
    assert Table(["name", "far", "close", "count"], rows).decimals == [None, 2, 5, 0]
    html = shown(["name", "far", "close", "count"], rows)
    for text in (">2.00<", ">1.82<", ">0.99301<", ">1,200<"):
        assert text in html


def test_columns_of_numbers_may_have_empty_cells():
    assert Table(["n"], [(None,), (0.0,)]).decimals == [0]
    assert Table(["n"], [(None,), (None,)]).decimals == [None]
    assert Table(["n"], [("no images",), (0.5,)]).decimals == [None]
    assert Table(["n"], [(True,)]).decimals == [None]
    assert Table(["n"], []).decimals == [None]


def test_infinite_and_nan_numbers_are_shown():
    assert ">nan<" in shown(["n"], [(math.nan,), (2.0,)])
    assert ">inf<" in shown(["n"], [(math.inf,)])


def test_a_long_table_is_cut_with_a_note():
    html = shown(["n"], [(n,) for n in range(MOST_ROWS + 2)])
    assert html.count("<tr><td") == MOST_ROWS
    assert "2 more are not shown, to keep this page small." in html


@pytest.mark.parametrize("invisible", ["\x00", "\x1b", "\x85", "\u202e", "\u2066", "\ud800"])
def test_invisible_characters_are_replaced(invisible):
    assert plain(f"a{invisible}b") == f"a{REPLACEMENT}b"
    plain(invisible).encode()  # half a character could not be written


@pytest.mark.parametrize("name", ["Möwe", "طائر", "鳥", "a\tb", "🐦"])
def test_visible_characters_of_any_script_are_unchanged(name):
    assert plain(name) == Name(name) == name


def test_long_names_are_cut():
    assert len(short("x" * 10_000)) == 120
    assert Name("x" * 10_000) == short("x" * 10_000)
    assert short("abcdef", 4) == "abc…"


BAD = "<img src=x onerror=alert(1)>"


@pytest.fixture
def macros():
    return environment().get_template("macros.html").module


def test_all_values_are_escaped(macros):
    cells = (BAD, Name(BAD), escape(BAD), Picture(BAD, 1, 1, BAD))
    table = Table([BAD, "b", "c", "d"], [cells])
    figure = Figure()
    figure.subplots().set_title(BAD)
    shown = [
        macros.table(table, search=BAD),
        macros.cards(table, "list", BAD),
        macros.facts({BAD: BAD}),
        macros.note(BAD),
        macros.why(Missing(BAD)),
        macros.named(BAD),
        macros.folded(BAD, caller=lambda: BAD),
        macros.figure(figure, "one", BAD),
        macros.sections([PagePart("here", BAD, Missing(BAD))], {}),
    ]
    for html in map(str, shown):
        check(html)
        assert "alert" in html
        assert "<img src=x" not in html
        assert not re.search(r"<img(?! src=\"&lt;)", html)
    page = render("comparison.html", names=[BAD], warnings=[BAD], verdict=Missing(BAD), parts=[])
    assert "<img" not in page
    check(page)


def test_missing_template_value_is_an_error():
    with pytest.raises(UndefinedError, match="names"):
        render("comparison.html", warnings=[], parts=[])


def test_no_invisible_character_reaches_a_page(macros):
    message = str(macros.note("a\u202eb\x00")) + str(macros.table(Table(["n\x1b"], [("\u2066",)])))
    assert not {"\u202e", "\x00", "\x1b", "\u2066"} & set(message)
    assert message.count(REPLACEMENT) == 4


def test_links_of_the_contents_lead_to_sections(macros):
    parts = [PagePart("a", "One", Missing("it is not there")), PagePart("note", "Two", {"text": "here it is"})]
    html = str(macros.sections(parts, macros))
    assert re.findall(r'href="#(\w+)"', html) == re.findall(r'<section id="(\w+)">', html) == ["a", "note"]
    assert "<p class=soft>it is not there.</p>" in html
    assert "<p class=soft>here it is</p>" in html


def test_cards_label_their_values(macros):
    picture = Picture("data:,", 3, 2, "a")
    html = str(
        macros.cards(Table(("picture", "name", "weight"), [(picture, "x", 1.5), (None, "y", None)]), "list", "S")
    )
    assert '#list td:nth-child(3)::before{content:"weight"}' in html
    assert html.count("<th scope=col") == 3
    assert '<td><img src="data:," width=3 height=2 alt="a"></td>' in html
    assert '<td class=n data-value="1.5">1.50</td>' in html
    assert "<tr><td></td><td>y</td><td></td></tr>" in html


def test_sentence_stays_together_in_one_cell(macros):
    reviewed = {"given_name": None, "other_names": {"<anna>": "gull"}}
    html = str(macros.table(Table(["name"], [(cell("given_names", reviewed),)])))
    assert "<td><span><bdi>gull</bdi> by <bdi>&lt;anna&gt;</bdi></span></td>" in html


def test_empty_sentence_is_an_empty_cell():
    assert cell("given_names", {"given_name": None, "other_names": {}}) is None


def test_only_tables_with_a_placeholder_can_be_searched(macros):
    table = Table(["n"], [(1,)])
    assert "<table>" in str(macros.table(table))
    assert '<table class=sortable data-search="Search me">' in str(macros.table(table, search="Search me"))


def test_attempt_returns_the_value():
    assert attempt(lambda: 3, "no") == 3


def test_attempt_returns_missing_with_a_reason():
    def fail():
        raise DataError("torn", expected="whole")

    assert attempt(lambda: None, "not reached yet") == Missing("not reached yet")
    assert attempt(fail, "no scores") == Missing("no scores: torn")
    assert attempt(fail, "") == Missing("torn")
    assert optional(fail) is None
    assert optional(lambda: None) is None
    assert optional(lambda: 3) == 3


def test_failed_part_shows_its_reason_beside_other_parts():
    def fail():
        raise DataError("the <file> is torn")

    first, second, third = read_parts(
        {"a": ("One", fail), "b": ("Two", lambda: {"n": 3}), "c": ("Three", lambda: Missing("not reached yet"))}
    )
    assert first == PagePart("a", "One", Missing("This part cannot be shown: the <file> is torn"))
    assert second.values == {"n": 3}
    assert third.values == Missing("not reached yet")


def test_empty_parts_are_omitted():
    assert read_parts({"a": ("One", lambda: None), "b": ("Two", dict)}) == [PagePart("b", "Two", {})]
