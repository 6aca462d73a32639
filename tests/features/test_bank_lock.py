from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from justright.features.bank_lock import alone, building, hold

pytest.importorskip("fcntl", reason="files cannot be locked so on this system")

READER = """
import sys, time
from pathlib import Path
from justright.features.bank_lock import hold
held = hold(Path(sys.argv[1]), sys)
print("reading", flush=True)
time.sleep(60)
"""

BUILDER = """
import sys
from pathlib import Path
from justright.features.bank_lock import building
bank = Path(sys.argv[1])
print("waiting", flush=True)
with building(bank):
    print((bank / "view").read_text(), flush=True)
"""


def is_free(bank):
    with alone(bank) as answer:
        return answer


def test_a_bank_is_free_unless_somebody_reads_it_and_readers_do_not_hinder_each_other(tmp_path):
    bank = tmp_path / "bank"
    bank.mkdir()
    assert is_free(bank)
    one, two = hold(bank, is_free), hold(bank, is_free)
    one()
    assert not is_free(bank)
    two()
    assert is_free(bank)


def test_a_killed_reader_reads_no_more(tmp_path):
    bank = tmp_path / "bank"
    bank.mkdir()
    with subprocess.Popen([sys.executable, "-c", READER, bank], stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout.readline() == "reading\n"
        assert not is_free(bank)
        reader.kill()
        reader.wait()
    assert is_free(bank)


def test_with_a_bank_its_lock_goes_and_comes_again_with_the_next_reader(tmp_path):
    bank = tmp_path / "bank"
    bank.mkdir()
    with alone(bank) as answer:
        assert answer
        shutil.rmtree(bank)
    held = hold(bank, is_free)
    assert not is_free(bank)
    held()


def test_who_comes_second_waits_and_finds_what_the_first_has_built(tmp_path):
    bank = tmp_path / "bank"
    with building(bank):
        second = subprocess.Popen([sys.executable, "-c", BUILDER, bank], stdout=subprocess.PIPE, text=True)
        assert second.stdout.readline() == "waiting\n"
        (bank / "view").write_text("built")
    with second:
        assert second.stdout.readline() == "built\n"
    assert second.returncode == 0
