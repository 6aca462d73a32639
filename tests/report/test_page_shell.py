from __future__ import annotations

import math

from tests.report.html_checks import check

from justright.errors import DataError
from justright.report.names import Markup
from justright.report.page_shell import cards, contents, facts, folded, page, section, shown, table


def test_everything_from_outside_is_escaped():
    bad = "<img src=x onerror=alert(1)>"
    html = page(
        bad,
        "".join(
            [
                table([bad], [(bad,)], is_sortable=True, search=bad),
                facts({bad: bad}),
                section(bad, "", "here"),
                contents({"here": bad}),
                folded(bad, ""),
            ]
        ),
    )
    assert "<img" not in html
    check(html)


def test_links_of_the_contents_lead_to_sections():
    assert 'href="#a"' in contents({"a": "One"})
    assert 'id="a"' in section("One", "", "a")
    assert "id=" not in section("One", "")


def test_cards_are_a_table_that_names_its_values():
    html = cards(
        "list", ("picture", "name", "weight"), [(Markup("<img alt=a>"), "x", 1.5), (None, "y", None)], "Search"
    )
    assert '#list td:nth-child(3)::before{content:"weight"}' in html
    assert html.count("<th scope=col") == 3
    assert "<td><img alt=a></td>" in html
    assert 'data-value="1.5"' in html


def test_numbers_that_are_not_finite_are_written():
    assert ">nan<" in table(["n"], [(math.nan,), (2.0,)])
    assert ">inf<" in table(["n"], [(math.inf,)])


def test_a_part_that_fails_says_why():
    def fail():
        raise DataError("the <file> is torn")

    assert shown(fail) == "<p class=soft>This part cannot be shown: the &lt;file&gt; is torn.</p>"
    assert shown(lambda: "fine") == "fine"
