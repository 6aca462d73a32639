"""A suite with several processes, one of which is killed: told, not waited for, and what was done is kept."""

from __future__ import annotations

import json
import os
import signal

from tests.bad_day.commands import tiny_suite, wait_for
from tests.bad_day.limited import call_limited
from tests.forked_programs import Program
from tests.leases import owner_of

from justright.runs.owner import LOCK

FORKING = """
import multiprocessing
from tests.forked_workers import context
from justright.cli import main
multiprocessing.get_context = context
main()
"""


def scores(out):
    lines = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    return {(line["problem"], line["setting"], line["seed"]): line["all"] for line in lines}


def test_a_killed_process_of_a_suite_ends_it_with_a_message_and_the_next_call_runs_what_is_missing(tmp_path):
    out, home = tmp_path / "out", tmp_path / "home"
    suite = ("benchmark", "run", tiny_suite(tmp_path))
    process = Program("-c", FORKING, *suite, "--jobs", 2, "--out", out, home=home)
    folder = out / "runs" / "digits" / "own-0"
    wait_for(folder / f"{LOCK}*", process)
    os.kill(owner_of(folder), signal.SIGKILL)
    ended = process.end()
    assert ended.code == 1
    assert "digits: its process was ended by SIGKILL" in ended.err
    assert "Traceback" not in ended.err
    assert [problem for problem, _, _ in scores(out)] == ["hebrew"] * 3
    fresh = ("--engine", "processes")  # a fresh interpreter runs what is missing
    for folder, how in (("out", fresh), ("undisturbed", ())):
        done = call_limited(home, None, *suite, *how, "--out", tmp_path / folder)
        assert done.code == 0, done.err
    assert scores(out) == scores(tmp_path / "undisturbed")
