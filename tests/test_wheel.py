"""What `python -m build` puts into the wheel, which needs no repository once it is made."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import justright
from justright.data.catalog.glyphs import classes_of

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src"


def package_files() -> set[str]:
    """Every file of the package that is not made by running it."""
    every = (path for path in (PACKAGE / "justright").rglob("*") if path.is_file())
    return {path.relative_to(PACKAGE).as_posix() for path in every if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    (made,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    with zipfile.ZipFile(made) as opened:
        yield opened


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == package_files()
    for ending in (".toml", ".safetensors", ".csv", ".html", ".css", ".js", ".svg", "py.typed"):
        assert any(name.endswith(ending) for name in names), f"no file that ends in {ending}"


def test_the_wheel_is_small(wheel):
    assert Path(wheel.filename).stat().st_size < 10_000_000


def test_the_wheel_says_what_it_is_and_how_it_is_called(wheel):
    about = {Path(name).name: wheel.read(name).decode() for name in wheel.namelist() if ".dist-info/" in name}
    assert "justright = justright.cli:main" in about["entry_points.txt"]
    assert f"Version: {justright.__version__}\n" in about["METADATA"]
    assert "MIT" in about["LICENSE"]


@pytest.fixture
def installed(wheel, tmp_path):
    """A function that runs Python with the wheel alone, from a folder that has nothing to do with the repository."""
    wheel.extractall(tmp_path / "site")  # all that installing it does, but for the script `justright`
    (tmp_path / "elsewhere").mkdir()
    path = {"PYTHONPATH": str(tmp_path / "site"), "JUSTRIGHT_HOME": str(tmp_path / "home")}

    def run(*words: object) -> str:
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(
            command, cwd=tmp_path / "elsewhere", env=os.environ | path, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    where = Path(run("-c", "import justright; print(justright.__file__)").strip())
    assert where.is_relative_to(tmp_path / "site")
    return run


def test_wheel_runs_without_the_repository(installed, tmp_path):
    assert justright.__version__ in installed("-m", "justright", "--version")
    assert "--photos" in installed("-m", "justright", "demo", "--help")
    installed(
        "-m", "justright", "data", "glyphs", "--scripts", "digits", "--per-class", 2, "--seed", 1, "--out", "photos"
    )
    images = ("--labeled", "glyphs:per_class=2,scripts=digits", "--target", "photos")
    how = ("--backbone", "glyph_vit", "--method", "kmeans", "--k", 10, "--out", "run")
    output = installed("-m", "justright", "discover", *images, *how)
    run = tmp_path / "elsewhere" / "run"
    assert "report.html" in output
    assert "<html" in (run / "report.html").read_text(encoding="utf-8")
    with (run / "predictions.csv").open(encoding="utf-8") as file:
        n_found = len(list(csv.DictReader(file)))
    assert n_found == 2 * len(classes_of("digits"))
