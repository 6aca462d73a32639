from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.torch import load_file
from tests.discovery.tiny import Stopped, learned, newest, records, stop_after

from justright.discovery import loop
from justright.discovery.checkpoints import ASSIGNED
from justright.discovery.loop import COMPARED_SHARE, FEW_CHANGES, MIN_COMPARED, Training, is_plateau

N_EPOCHS = MIN_COMPARED


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], False),
        ([0.3] * (2 * N_EPOCHS - 1), False),  # too few
        ([0.3] * 2 * N_EPOCHS, True),
        ([0.3] * N_EPOCHS + [0.2] * N_EPOCHS, False),
        ([0.9] * N_EPOCHS + [0.3] * N_EPOCHS + [0.295] * N_EPOCHS, True),
        ([FEW_CHANGES] * N_EPOCHS + [FEW_CHANGES / 2] * N_EPOCHS, True),  # still falls, but is small
    ],
)
def test_plateau_is_where_changes_stop_falling(changes, expected):
    assert is_plateau(changes, 20) is expected


def test_long_training_compares_more_epochs():
    n = round(COMPARED_SHARE * 200)
    assert not is_plateau([0.3] * (2 * n - 1), 200)
    assert is_plateau([0.3] * 2 * n, 200)


@pytest.fixture
def early_plateau(monkeypatch):
    """Two epochs are enough for a plateau."""
    monkeypatch.setattr(loop, "MIN_COMPARED", 1)
    monkeypatch.setattr(loop, "COMPARED_SHARE", 0.0)
    monkeypatch.setattr(loop, "PLATEAU_RATIO", 0.0)


LONG = {"n_epochs": 12, "n_steps": 2, "steady_share": 0.5, "n_warmup": 2}


@pytest.mark.parametrize("name", ["simgcd", "mugcd"])
def test_training_stops_at_a_plateau_with_a_note(name, split, backbone, bank, tmp_path, early_plateau):
    more = {"stage1": {"n_epochs": 1, "n_steps": 2, "steady_share": 0.0}} if name == "mugcd" else {}
    method = learned(name, split, backbone, bank, tmp_path, **LONG, **more)
    found = records(tmp_path)
    assert len(found) == 8, "two of warm-up, two to compare, and as many again in which the rate falls"
    rates = [record["learning_rate"] for record in found]
    assert rates[:4] == [rates[0]] * 4
    assert rates[4:] == sorted(rates[4:], reverse=True)
    assert rates[-1] < rates[4]
    assert [("changed" in record) for record in found] == [True] * 4 + [False] * 4
    assert found[0]["changed"] == 1.0, "the first assignment"
    assert method.notes_ == [
        "8 epochs of training where 12 were planned: the categories of the target's images had settled"
    ]


def test_improving_training_runs_all_epochs(split, backbone, bank, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "MIN_COMPARED", 100)
    method = learned("simgcd", split, backbone, bank, tmp_path, **LONG)
    assert len(records(tmp_path)) == 12
    assert method.notes_ == []


def test_methods_with_final_clustering_never_stop_early(split, backbone, bank, tmp_path, early_plateau, monkeypatch):
    monkeypatch.setattr(loop, "features_of", None)  # must not be called
    learned("gcd", split, backbone, bank, tmp_path, n_epochs=6, steady_share=0.5)
    assert ["changed" in record for record in records(tmp_path)] == [False] * 6


@pytest.mark.parametrize("n_steps", [2, 5])  # after an epoch, and within one
def test_resumed_training_stops_early_at_the_same_epoch(
    n_steps, split, backbone, bank, tmp_path, early_plateau, saved_often
):
    learned("simgcd", split, backbone, bank, tmp_path / "whole", **LONG)
    with pytest.raises(Stopped):
        learned("simgcd", split, backbone, bank, tmp_path / "cut", progress=stop_after(n_steps), **LONG)
    assert ASSIGNED in load_file(newest(tmp_path / "cut"))
    learned("simgcd", split, backbone, bank, tmp_path / "cut", **LONG)
    found, expected = (load_file(newest(tmp_path / name)) for name in ("cut", "whole"))
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


@pytest.fixture
def clock(monkeypatch):
    """A clock by which each step takes a second, and everything else no time."""
    now, step = 0.0, Training._step

    def slow(*args):
        nonlocal now
        now += 1
        return step(*args)

    monkeypatch.setattr(Training, "_step", slow)
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: now))


def test_minutes_include_time_before_a_kill(split, backbone, bank, tmp_path, saved_often, clock):
    in_time = LONG | {"n_steps": 4, "minutes": 24 / 60}  # of which half at the first rate
    learned("simgcd", split, backbone, bank, tmp_path / "whole", **in_time)
    with pytest.raises(Stopped):
        learned("simgcd", split, backbone, bank, tmp_path / "cut", progress=stop_after(7), **in_time)
    learned("simgcd", split, backbone, bank, tmp_path / "cut", **in_time)
    assert len(records(tmp_path / "cut")) == len(records(tmp_path / "whole")) == 6


def test_both_trainings_of_mugcd_share_the_minutes(split, backbone, bank, tmp_path, clock):
    in_time = {"n_epochs": 30, "steady_share": 0.5, "n_steps": 1, "minutes": 16 / 60}
    learned("mugcd", split, backbone, bank, tmp_path, **in_time)
    assert [len(records(folder)) for folder in (tmp_path / "stage1", tmp_path)] == [8, 8]


def test_note_has_the_reason_for_the_early_end(split, backbone, bank, tmp_path, early_plateau, clock):
    long_enough = LONG | {"n_steps": 2, "minutes": 20 / 60}  # a plateau after 8 s, before the steady part ends at 10 s
    method = learned("simgcd", split, backbone, bank, tmp_path, **long_enough)
    assert method.notes_ == [
        "8 epochs of training where 12 were planned: the categories of the target's images had settled"
    ]


def test_training_ends_within_its_minutes(split, backbone, bank, tmp_path):
    method = learned("simgcd", split, backbone, bank, tmp_path, minutes=1e-9, **LONG)
    assert len(records(tmp_path)) == 2, "one at the first rate, one in which it falls"
    assert method.notes_ == ["2 epochs of training where 12 were planned: time was up"]


def test_note_names_heads_training(split, backbone, bank, tmp_path):
    method = learned("simgcd", split, backbone, bank, tmp_path, minutes=1e-9, heads_first=24, **LONG)
    heads, whole = method.notes_
    assert "epochs of training the heads where" in heads
    assert "epochs of training where 12" in whole
