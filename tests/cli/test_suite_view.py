from __future__ import annotations

import pytest
from click.testing import CliRunner

from justright.cli import main


@pytest.fixture
def counted(tmp_path):
    """Results of Tab. A9, which needs no run."""
    words = ["benchmark", "run", "taba9", "--profile", "glyphs", "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return tmp_path


@pytest.mark.parametrize(
    ("ending", "part"), [("md", "| 60 |"), ("tex", "& 60 &"), ("csv", ",60.00,"), ("html", "<td>60")]
)
def test_a_table_of_the_paper_is_written_in_every_format(counted, ending, part):
    to = counted / f"table.{ending}"
    words = ["benchmark", "show", "taba9", "--profile", "glyphs", "--out", str(counted / "out"), "--to", str(to)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "taba9, cub (here: armenian)" in done.stdout
    assert part in to.read_text()


def test_other_formats_and_profiles_of_other_suites_are_refused(counted):
    for words, said in (
        (["show", "taba9", "--to", str(counted / "table.pdf")], "ends in .md"),
        (["show", "selection", "--profile", "glyphs"], "has no profiles"),
        (["show", "selection", "--to", str(counted / "table.md")], "a table of the paper"),
        (["run", "tab4", "--role", "guide"], "no pool that could be a guide"),
        (["show", "selection"], "--out"),
    ):
        out = [] if words == ["show", "selection"] else ["--out", str(counted / "out")]
        done = CliRunner().invoke(main, ["benchmark", *words, *out])
        assert done.exit_code != 0
        assert said in done.output
