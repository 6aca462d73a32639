from __future__ import annotations

import re

from tests.forked_programs import Program

MOST = 800
"""Bytes per image, the constant share of 200,000 images included."""

CODE = """
import runpy, sys
sys.path.insert(0, "benchmarks")
runpy.run_path("benchmarks/train_ten_million.py", run_name="__main__")
"""


def test_training_needs_little_memory_per_image():
    done = Program("-c", CODE, "--images", 200_000, "--steps", 20).end()
    assert done.code == 0, done.err
    total, features = map(int, re.search(r"(\d+) bytes per image, (\d+) of them features", done.out).groups())
    assert features < total < MOST, done.out
