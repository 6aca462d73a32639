"""A suite with several processes, one of which is killed: its work is retried, and the scores are the same."""

from __future__ import annotations

import json
import os
import signal

from tests.bad_day.commands import tiny_suite, wait_for
from tests.bad_day.limited import call_limited
from tests.forked_programs import Program
from tests.leases import owner_of

from justright.runs.run_folder import LOCK

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


def test_suite_retries_a_problem_whose_process_is_killed(tmp_path):
    out, home = tmp_path / "out", tmp_path / "home"
    suite = ("benchmark", "run", tiny_suite(tmp_path))
    process = Program("-c", FORKING, *suite, "--jobs", 2, "--out", out, home=home)
    folder = out / "runs" / "digits" / "own-0"
    wait_for(folder / f"{LOCK}*", process)
    killed = owner_of(folder)
    assert killed != process.pid
    os.kill(killed, signal.SIGKILL)
    ended = process.end()
    assert ended.code == 0, ended.err
    done = call_limited(home, None, *suite, "--out", tmp_path / "undisturbed")
    assert done.code == 0, done.err
    assert scores(out) == scores(tmp_path / "undisturbed")
