"""What several tests need: drawn images, small trees, and the real data where it is there."""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

# Processes that run tests side by side share the cores: threads beyond that only wait for each other. This is read
# when numpy is loaded.
if n_processes := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // n_processes)))

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")  # as the command line does, see justright.cli

import hypothesis
import numpy as np
import pytest
from PIL import Image
from tests import shape_checks
from tests.forked_workers import context as forked_workers_context

# Where the environment forbids to keep what is compiled, each process would compile and rewrite all tests anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Waiting for the disk takes long and shows nothing, because no test cuts the power. The fixture `flushed` lists the
# files that would have been flushed.
FLUSHED: list[str] = []
os.fsync = lambda number: FLUSHED.append(os.readlink(f"/proc/self/fd/{number}") if os.name == "posix" else "")

# By default an example that takes long fails, which says something about the machine and nothing about the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

shape_checks.install()

gc.disable()  # what is imported stays: looking through it again and again finds nothing


LONGEST = (
    "test_soak.py", "test_killed.py", "test_processes.py", "test_training_memory.py", "test_full_disk.py",
    "test_demo.py", "test_killed_worker.py", "test_wheel.py", "test_docs.py", "test_suite_runner.py",
    "test_batch_work.py", "test_threads.py",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """What justright is the first to import, the hook of jaxtyping compiles once more; a process that only deals tests
    out to others does without it, and starts the server from which all of them fork.
    """
    if config.getoption("dist", "no") == "no" or hasattr(config, "workerinput"):
        import torch._dynamo  # noqa: F401
    else:
        forked_workers_context("spawn")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no process waits in the end for a long test of another."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_collection_finish() -> None:
    """From here on there is something to find, among what the tests make."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before fixtures, which may open the engine
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check the calls of each test, whichever ran before it in the same process; tests with Ray share one cluster."""
    shape_checks.start_anew()
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    if any(isinstance(value, str) and value == "ray" for value in parameters):
        start_ray()


@cache
def start_ray() -> None:
    """Start a cluster of this process; `open_ray` uses a running one."""
    from justright.utils.parallel import connect_ray, import_ray

    connect_ray(import_ray(), 2)


def pytest_sessionfinish() -> None:
    """Stop the cluster."""
    if start_ray.cache_info().currsize:
        sys.modules["ray"].shutdown()


SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture
def real_data() -> Path:
    """Small copies of public data sets; on most machines they are absent."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not on this machine")
    return folder


def picture(seed: int, size: tuple[int, int] = (16, 12)) -> Image.Image:
    """An image of noise; another seed gives another image."""
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.fixture
def make_tree(tmp_path: Path) -> Callable[..., Path]:
    """Write a class-per-folder tree: `make_tree({"cats": 3, "dogs": 2})` gives its root."""

    def make(counts: dict[str, int], name: str = "photos", first_seed: int = 0) -> Path:
        root, seed = tmp_path / name, first_seed
        for folder, count in counts.items():
            (root / folder).mkdir(parents=True, exist_ok=True)
            for number in range(count):
                picture(seed).save(root / folder / f"{number}.png")
                seed += 1
        return root

    return make


@pytest.fixture
def flushed() -> list[str]:
    """The files that `os.fsync` was called for in this test."""
    FLUSHED.clear()
    return FLUSHED


@pytest.fixture
def forked_workers(monkeypatch) -> None:
    """Let engines and suites fork their workers from one that has imported torch; see tests/forked_workers.py."""
    monkeypatch.setattr(multiprocessing, "get_context", forked_workers_context)


@pytest.fixture(scope="session")
def chromium():
    """A real headless browser from the system's packages."""
    sync_api = pytest.importorskip("playwright.sync_api")
    names = "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"  # the first costs least
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium on this machine; install the package chromium-headless-shell")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield browser
        browser.close()
