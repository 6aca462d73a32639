"""Helpers of benchmarks: time, memory, load, options and test images."""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from PIL import Image


class Timing(NamedTuple):
    """Wall-clock seconds, CPU seconds and the result of a call. Other load on the machine affects only the first."""

    wall: float
    cpu: float
    value: Any


def timed(call: Callable[[], Any], n_times: int = 1) -> Timing:
    """The total seconds of all calls, and the result of the last one."""
    wall, cpu, value = time.perf_counter(), time.process_time(), None
    for _ in range(n_times):
        value = call()
    return Timing(time.perf_counter() - wall, time.process_time() - cpu, value)


def in_turns(
    calls: Mapping[str, Callable[[], Any]], n_rounds: int, n_warmup: int = 0, n_times: int = 1
) -> dict[str, list[Timing]]:
    """Time each call once per round, so that other load affects all of them; warm-up rounds do not count."""
    rounds = [{name: timed(call, n_times) for name, call in calls.items()} for _ in range(n_warmup + n_rounds)]
    return {name: [each[name] for each in rounds[n_warmup:]] for name in calls}


def peak_mb() -> float:
    """Peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load() -> str:
    """The load of the machine in the last minute."""
    return f"load {os.getloadavg()[0]:.1f}"


def options(about: str | None, **defaults: Any) -> argparse.Namespace:
    """Parse the command line: one option for each default, of the same type."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default, help=" ")
    return parser.parse_args()


def blurred_noise(rng: np.random.Generator, cells: tuple[int, int], size: tuple[int, int]) -> Image.Image:
    """Smooth colors as in photos: `cells` rows and columns of noise, resized to this width and height."""
    return Image.fromarray(rng.integers(0, 256, (*cells, 3), dtype=np.uint8)).resize(size, Image.Resampling.BICUBIC)
