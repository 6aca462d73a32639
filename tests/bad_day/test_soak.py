"""A short soak: kills, damage and full disks in every stage; and a wrong result is detected."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.forked import Ended
from benchmarks.soak import IDENTICAL, RECOMPUTED, REFUSED, TROUBLES, WRONG, Judged, Soak, soak, tally
from benchmarks.soak_damage import DAMAGES, damage
from benchmarks.soak_stages import Stage, stages
from tests.forked_programs import Program

N_STAGES = 8


def test_eight_rounds_find_nothing_wrong():
    done = Program("-m", "benchmarks.soak", "--rounds", N_STAGES, "--seed", 1).end()
    assert done.code == 0, done.out + done.err
    rows = re.findall(r"^(\w+) +(\d+) +(\d+) +(\d+) +0$", done.out.partition("\n\n")[0], re.M)
    assert {name for name, *_ in rows} == {
        "extract", "bank", "select", "train", "predict", "suite", "review", "report"
    }  # fmt: skip
    assert sum(int(n) for _, *counts in rows for n in counts) == N_STAGES


class FakeStage(Stage):
    """Copies a number into a file, or does what a test says."""

    def __init__(self, does):
        super().__init__("fake", [], ["out.json"], r"in\.json", ["out.json"], expected={"out.json": b"[1, 2, 3]"})
        self.does = does

    def kill(self, folder, part):
        (folder / "out.json").write_bytes(b"[1")

    def finish(self, folder, limit=None):
        return self.does(folder)


def copied(folder: Path) -> Ended:
    """What silently goes on with damaged input."""
    (folder / "out.json").write_bytes((folder / "in.json").read_bytes())
    return Ended(0, "", "")


def refusing(message: str):
    return lambda folder: copied(folder) if (folder / "in.json").read_bytes() == b"[1, 2, 3]" else Ended(1, "", message)


def right(folder: Path, output: str = "") -> Ended:
    (folder / "out.json").write_bytes(b"[1, 2, 3]")
    return Ended(0, "", output)


def untidy(folder: Path) -> Ended:
    """The right result, but a temporary file stays."""
    (folder / ".out.json.0123456789abcdef.tmp").write_bytes(b"[1")
    return right(folder)


@pytest.fixture
def rounds(tmp_path):
    """The outcomes of some rounds of a fake stage, with one kind of trouble."""
    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared" / "in.json").write_bytes(b"[1, 2, 3]")
    (tmp_path / "rounds").mkdir()

    def of(does, trouble) -> tuple[Soak, set[str]]:
        made = Soak([FakeStage(does)], tmp_path / "prepared", tmp_path / "rounds", seed=0, can_mount=False)
        made.troubles = (trouble,)
        found = {made.round(number).outcome for number in range(5)}
        assert list((tmp_path / "rounds").iterdir()) == []
        return made, found

    return of


def test_silent_difference_is_wrong_and_reproducible(rounds, capsys):
    made, found = rounds(copied, "damage")
    assert found == {WRONG}
    assert soak(made, [3]) == 1
    output = capsys.readouterr().out
    assert "WRONG in round 3, fake, JSON, " in output
    assert "a different out.json without a warning" in output
    assert "python -m benchmarks.soak --seed 0 --round 3" in output
    assert soak(rounds(right, "damage")[0], [3]) == 0


@pytest.mark.parametrize(
    ("does", "trouble", "outcome"),
    [
        (right, "kill", IDENTICAL),
        (copied, "kill", IDENTICAL),
        (lambda folder: Ended(0, "", ""), "kill", WRONG),  # half a file is left
        (lambda folder: Ended(1, "", "Error: in.json"), "kill", WRONG),  # a kill is no reason to refuse
        (refusing("Error: in.json is damaged"), "damage", REFUSED),
        (refusing("Error: in.json is damaged"), "kill, then damage", REFUSED),
        (refusing("Error: something is damaged"), "damage", WRONG),
        (refusing("Traceback: in.json"), "damage", WRONG),
        (lambda folder: right(folder, "in.json is damaged; it is recomputed"), "damage", RECOMPUTED),
        (lambda folder: Ended(-11, "", ""), "damage", WRONG),
        (lambda folder: Ended(-7, "", ""), "full disk", WRONG),
        (lambda folder: Ended(1, "", "Error: no idea"), "full disk", WRONG),
        (lambda folder: Ended(1, "", "Error: out.json: File too large"), "full disk", WRONG),  # with room, too
        (right, "full disk", IDENTICAL),
        (untidy, "full disk", WRONG),
        (untidy, "damage", WRONG),
    ],
)
def test_outcome_of_a_round(rounds, does, trouble, outcome):
    assert rounds(does, trouble)[1] == {outcome}


def test_reported_full_disk_is_a_named_error(rounds):
    calls = []

    def once(folder):
        calls.append(folder)
        return Ended(1, "", "Error: out.json cannot be written: File too large") if len(calls) % 2 else right(folder)

    assert rounds(once, "full disk")[1] == {REFUSED}


def test_damage_changes_one_file(tmp_path):
    ways = set()
    for seed in range(60):
        for name in ("run/a.parquet", "run/b.parquet", "run/c.json", "other/d.parquet"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(name.encode() * 9)
        what, names = damage(tmp_path, "run/", np.random.default_rng(seed))
        ways.add(what)
        changed = {name for name in ("run/a.parquet", "run/b.parquet", "run/c.json")
                   if (tmp_path / name).read_bytes() != name.encode() * 9}  # fmt: skip
        assert changed == set(names)
        assert (tmp_path / "other/d.parquet").read_bytes() == b"other/d.parquet" * 9
    assert ways >= {f"Parquet, {way}" for way in DAMAGES}
    assert damage(tmp_path, "nothing", np.random.default_rng(0)) is None
    assert damage(tmp_path, "run/", np.random.default_rng(0), "JSON") == ("JSON, zeros", ["run/c.json"])


def test_first_rounds_damage_blocks_of_features_and_views():
    kinds = {stage.name: stage.first_damage for stage in stages(FakeStage(right))}
    assert (kinds["extract"], kinds["bank"]) == ("block of features", "block of views")


def test_tally_counts_by_stage_and_trouble():
    output = tally(
        [Judged("bank", "kill", IDENTICAL), Judged("bank", "full disk", WRONG), Judged("train", "kill", RECOMPUTED)]
    )
    assert re.search(r"^bank +1 +0 +0 +1$", output, re.M)
    assert re.search(r"^kill +1 +0 +1 +0$", output, re.M)
    assert output.endswith("1 identical, 0 refused by name, 1 recomputed, warned, 1 WRONG")
    assert len(TROUBLES) == 4
