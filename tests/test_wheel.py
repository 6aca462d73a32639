"""What `python -m build` puts into the wheel, which needs no repository once it is made."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import justright

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


def test_the_wheel_says_what_it_is_and_how_it_is_called(wheel):
    about = {Path(name).name: wheel.read(name).decode() for name in wheel.namelist() if ".dist-info/" in name}
    assert "justright = justright.cli:main" in about["entry_points.txt"]
    assert f"Version: {justright.__version__}\n" in about["METADATA"]
    assert "MIT" in about["LICENSE"]
