from __future__ import annotations

from pathlib import Path

import pytest
from tests.report.fake_runs import fake_run

from justright.report.comparison import Comparison
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DataError

PRINTS = {"fingerprints": {"target": {"content": "a"}}}


def compared():
    runs = [
        fake_run(f"{s}-{n}", selector=s, seed=n, accuracy=0.6 + 0.1 * (s == "beta") + 0.01 * n, **PRINTS)
        for s in ("beta", "none")
        for n in range(3)
    ]
    return Comparison(tuple(runs))


def test_differing_and_shared_settings_are_separate():
    assert list(compared().differing()) == ["selector", "seed"]
    assert compared().shared() == {"method": "gcd", "k_source": "given"}


def test_runs_that_differ_by_seed_are_grouped():
    comparison = compared()
    assert [len(group.runs) for group in comparison.groups()] == [3, 3]
    ((group, changes),) = comparison.changes()
    assert group.name == "beta-0 and 2 more"
    assert [each.group for each in changes] == ["all", "old", "new"]
    assert changes[0].points == pytest.approx(10.0)
    assert comparison.to_json()["changes"][group.name][0]["verdict"] == changes[0].verdict()
    assert comparison.warnings() == []


def test_own_labels_are_the_preferred_baseline():
    runs = (
        fake_run("own", selector="own", accuracy=0.5),
        fake_run("all", selector="none", accuracy=0.6),
        fake_run("rivals", selector="none", pool_role="rival", accuracy=0.3),
    )
    comparison = Comparison(runs)
    assert (comparison.baseline, comparison.baseline_title) == ("own", "own labels alone")
    changes = {group.name: each[0].points for group, each in comparison.changes()}
    assert changes == pytest.approx({"all": 10.0, "rivals": -20.0})
    assert Comparison(runs[1:]).baseline == "none"


def test_incomparable_runs_cause_warnings():
    runs = (fake_run("a", **PRINTS), fake_run("b", accuracy=None, fingerprints={"target": {"content": "b"}}))
    text = " ".join(Comparison(runs).warnings())
    assert "have different target images" in text
    assert "Without scores: b." in text
    assert Comparison(runs).changes() == []


def test_runs_get_short_names_that_differ():
    def names(*paths):
        return [run.name for run in Comparison.of([RunFolder(Path(path)) for path in paths]).runs]

    assert names("/x/one", "/x/two") == ["one", "two"]
    assert names("/x/one/run", "/x/two/run") == ["one/run", "two/run"]
    assert names("/x/one", "/x/one") == ["one (1)", "one (2)"]
    with pytest.raises(DataError, match="1 run to compare"):
        names("/x/one")
