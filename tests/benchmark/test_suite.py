from __future__ import annotations

from pathlib import Path

import pytest

from justright.benchmark.suite import read_suite, suite_names
from justright.utils.errors import DataError, MissingDataError

TINY = """
about = "tiny"
seeds = [0, 1]
baseline = "own"

[run]
backbone = "glyph_vit"
method = "kmeans"
settings = { n_init = 2 }

[[problems]]
name = "hebrew"
target = "glyphs:per_class=4,scripts=hebrew"
pool = { italic = "glyphs:per_class=3,scripts=old-italic" }

[[problems]]
name = "digits"
target = "glyphs:per_class=4,scripts=digits"

[[settings]]
name = "own"
run = { selector = "own" }

[[settings]]
name = "rivals"
run = { selector = "none", pool_role = "rival", settings = { use_labels = true } }
seeds = [1]
problems = ["hebrew"]
"""


@pytest.fixture
def written(tmp_path):
    def write(text=TINY):
        path = tmp_path / "tiny.toml"
        path.write_text(text)
        return path

    return write


def test_every_suite_of_the_package_makes_valid_specs():
    assert "selection" in suite_names()
    for name in suite_names():
        suite = read_suite(name)
        assert suite.about
        assert suite.baseline in {setting.name for setting in suite.settings}
        for problem in suite.problems:
            for setting, seed in suite.runs_of(problem):
                is_estimated = setting.run.get("n_target") == 0
                expected = None if is_estimated else round(7 * setting.k_factor)
                assert suite.spec(setting, seed, n_target=7).n_target == expected


def test_runs_of_a_problem_are_ordered_by_seed(written):
    suite = read_suite(written())
    hebrew, digits = suite.problems
    assert [(s.name, seed) for s, seed in suite.runs_of(hebrew)] == [("own", 0), ("own", 1), ("rivals", 1)]
    assert [(s.name, seed) for s, seed in suite.runs_of(digits)] == [("own", 0), ("own", 1)]


def test_run_settings_override_those_of_the_suite(written):
    suite = read_suite(written())
    spec = suite.spec(suite.settings[1], seed=1, n_target=22)
    assert (spec.method, spec.selector, spec.pool_role, spec.seed, spec.n_target) == ("kmeans", "none", "rival", 1, 22)
    assert spec.settings == {"n_init": 2, "use_labels": True}
    assert spec.n_resamples == 0


def test_checkpoint_in_toml_becomes_a_path(written):
    suite = read_suite(written(TINY.replace("[run]\n", '[run]\ncheckpoint = "vit.safetensors"\n')))
    assert suite.spec(suite.settings[0], seed=0, n_target=None).checkpoint == Path("vit.safetensors")


def test_0_categories_stand_for_an_estimate(written):
    suite = read_suite(written(TINY.replace('method = "kmeans"', 'method = "kmeans"\nn_target = 0')))
    assert suite.spec(suite.settings[0], seed=0, n_target=22).n_target is None


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('target = "glyphs:per_class=4,scripts=digits"', 'tarket = "x"', "tarket"),
        ('name = "digits"', 'name = "hebrew"', "2 problems"),
        ('selector = "own"', 'selektor = "own"', "selektor"),
        ("[[settings]]", "[[settings", "cannot be read"),
    ],
)
def test_invalid_suite_raises(written, before, after, message):
    path = written(TINY.replace(before, after))
    with pytest.raises(DataError, match=message):
        read_suite(path)


def test_unknown_suite_raises_with_the_known_ones():
    with pytest.raises(MissingDataError, match="selection"):
        read_suite("tab99")


def test_role_without_a_pool_is_rejected():
    both = read_suite("tab1", "glyphs")
    assert [each.name for each in both.with_role("guide").settings] == [
        "kmeans: none",
        "simgcd: out of domain, as a guide",
    ]
    assert not any(each.is_guide for each in both.with_role("rival").settings)
    with pytest.raises(DataError, match="no pool that could be a guide"):
        read_suite("tab4", "glyphs").with_role("guide")
