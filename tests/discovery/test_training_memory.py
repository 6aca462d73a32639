from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 800
"""Bytes an image; so few images have their share of what is taken only once, of ten million each takes less."""


def test_training_keeps_few_bytes_of_each_image():
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "benchmarks/train_ten_million.py", "--images", "100000", "--steps", "20"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    total, features = map(int, re.search(r"(\d+) bytes an image, (\d+) of them features", done.stdout).groups())
    assert features < total < MOST, done.stdout
