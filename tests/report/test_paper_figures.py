from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.benchmark.test_table_text import CLAIMS, TABLE, TABLES

from justright.benchmark.paper import Cell, PaperTable, PaperTableRow
from justright.report.drawing import to_svg
from justright.report.paper_figures import DISCOVERY, TRANSFER, draw_paper, write_suite_page


def table(rows, groups):
    return PaperTable("fig", "", "glyphs", ("cub",), groups, {"cub": "armenian"}, tuple(rows))


def row(name, is_guide=False, **values):
    cells = {("cub", group): Cell(float(value), math.nan, 1) for group, value in values.items()}
    return PaperTableRow("simgcd", name, is_guide, cells=cells)


def test_fig_1_has_lines_for_discovery_and_transfer():
    parts = [row("part 1 of 2", new=10, probe=50), row("part 2 of 2", new=20, probe=60)]
    learned = [row("transfer, part 1 of 2", new=1, probe=90), row("transfer, part 2 of 2", new=2, probe=80)]
    figure, caption = draw_paper(table([*parts, *learned], ("new", "probe")))
    (axes,) = figure.axes
    lines = {line.get_color(): (line.get_xdata().tolist(), line.get_ydata().tolist()) for line in axes.lines}
    assert lines[DISCOVERY] == ([0, 1], [20, 10])
    assert lines[TRANSFER] == ([0, 1], [80, 90])
    assert "Fig. 1" in caption
    assert "armenian" in to_svg(figure)


def test_fig_1_shows_a_guide_beside_a_rival():
    parts = [row("part 1 of 2", new=10), row("part 1 of 2", is_guide=True, new=30)]
    figure, _ = draw_paper(table(parts, ("new", "probe")))
    _, names = figure.axes[0].get_legend_handles_labels()
    assert names == ["discovery: New", "discovery: New, pool as a guide"]


def test_fig_3_stacks_errors_of_new_images():
    rows = [row("similar", new=50, new_as_old=30, new_as_new=20), row("out of domain", new=40)]
    figure, caption = draw_paper(table(rows, ("new", "new_as_old", "new_as_new")))
    bars = [(bar.get_x(), bar.get_width()) for bar in figure.axes[0].patches]
    assert bars == [(0, 30), (0, 0), (30, 20), (0, 0)]
    assert "Fig. 3" in caption


def test_other_tables_show_changes_beside_those_of_the_paper():
    figure, caption = draw_paper(replace(TABLE, targets=("cub",)))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["simgcd, bins"]
    marks = [line.get_xdata()[0] for line in axes.lines[1:] if len(line.get_xdata()) == 1]
    assert marks == [pytest.approx(5.5), 4.4]
    assert caption.startswith("cub: ")


@pytest.mark.parametrize("empty", [replace(TABLE, rows=()), replace(TABLE, is_count=True)])
def test_table_without_results_has_no_figure(empty):
    assert draw_paper(empty) == (None, "")


def page_of(table, tables, claims, folder):
    write_suite_page(table, tables, claims, folder / "page.html")
    return (folder / "page.html").read_text()


def test_paper_page_shows_tables_claims_and_figure(tmp_path):
    odd = [TABLES[0]._replace(title="<b>tab2</b>"), *TABLES[1:-1]]
    page = page_of(TABLE, odd, CLAIMS, tmp_path)
    assert "56.5 ±0.7" in page
    assert "<td>undecided</td>" in page
    assert "<b>tab2</b>" not in page
    assert "http://" not in page
    assert "Change: against none" in page
    assert "<svg" in page


def test_a_page_of_counts_has_no_figure_and_no_claims(tmp_path):
    page = page_of(replace(TABLE, is_count=True), TABLES[:1], None, tmp_path)
    assert "<svg" not in page
    assert "Claims" not in page
