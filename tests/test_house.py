"""The rules of the house: who may import whom, what is public, and that the documents say what is true."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import packages_distributions
from itertools import combinations
from pathlib import Path

import click
import pytest
from tests.house_graph import SOURCE, drawing, imports, rooms

import justright
from justright.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]

FLOORS = [
    {"types", "errors", "locks"},
    {"seeding", "progress", "files", "registry", "settings", "hashing", "parallel", "remote"},
    {"geometry", "data", "engines"},
    {"audit"},
    {"features", "clustering", "selection", "evaluation", "models", "losses"},
    {"estimation", "discovery", "diagnosis"},
    {"runs"},
    {"benchmark", "demo", "review"},
    {"report"},
    {"cli"},
]
NEEDS_TORCH = (
    "data/views.py",
    "data/recipe.py",
    "data/pixels.py",
    "data/color_jitter.py",
    "features/",
    "models/",
    "losses/",
    "discovery/",
)
PUBLIC = {
    "BetaSelector",
    "BinsSelector",
    "CMS",
    "ClassSplit",
    "CombinedCounter",
    "CuiSelector",
    "FeatureTable",
    "GCD",
    "ImageSet",
    "JustrightError",
    "KMeansBaseline",
    "LabeledSearchCounter",
    "MixtureCounter",
    "MuGCD",
    "Pool",
    "Scores",
    "SelEx",
    "SemiSupKMeans",
    "SimGCD",
    "Split",
    "SpreadCounter",
    "Truth",
    "UniformSelector",
    "XCon",
    "evaluate",
    "extract",
    "from_dataset",
    "gcd_split",
    "glyph_set",
    "load_backbone",
    "merge_pool",
    "open_images",
    "read_class_split",
}


def floor_of(room: str) -> int:
    return next(level for level, rooms in enumerate(FLOORS) if room in rooms)


def test_every_room_has_a_floor():
    assert {room for _, room in rooms()} <= set.union(*FLOORS)


def test_floors_import_only_from_floors_below_and_rooms_do_not_know_their_neighbors():
    offenders = []
    for file, room in rooms():
        for module in imports(file):
            if not module.startswith("justright."):
                continue
            other = module.split(".")[1]
            if other in set.union(*FLOORS) and other != room and floor_of(other) >= floor_of(room):
                offenders.append(f"{file.relative_to(SOURCE)} imports {module}")
    assert offenders == []


def test_contributing_shows_the_import_graph_as_it_is():
    shown = re.findall(r"```mermaid\n(.*?)\n```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.S)
    assert shown == [drawing()], "`python -m tests.house_graph` prints the graph that belongs there"


def test_no_class_name_stands_for_two_things():
    """Nor for a class and a type alias; aliases of one file, such as Rows, may be those of another."""
    classes, aliases = Counter[str](), set[str]()
    for file, _ in rooms():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                names = node.targets if isinstance(node, ast.Assign) else [node.target]
                aliases |= {ast.unparse(name) for name in names}
    assert {"Rows", "Place"} <= aliases
    assert [name for name, n in classes.items() if n > 1 or name in aliases] == []


def are_near_twins(one: str, other: str) -> bool:
    """Such as cuts and cutting: alike for three letters or more, then different endings of a few letters."""
    alike = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    word = one[:alike].rpartition("_")[2]
    endings = one[alike:], other[alike:]
    return len(word) >= 3 and max(map(len, endings)) <= 5 and not any("_" in ending for ending in endings)


def test_no_two_files_of_a_room_have_near_twin_names():
    assert are_near_twins("diagnose", "diagnosis")
    assert not are_near_twins("class_names", "class_split")
    folders = {file.parent for file, _ in rooms()}
    pairs = [(f.name, *pair) for f in folders for pair in combinations(sorted(x.stem for x in f.glob("*.py")), 2)]
    assert [pair for pair in pairs if are_near_twins(*pair[1:])] == []


def test_every_source_file_has_a_test_file_of_its_name():
    missing = []
    for file, _ in rooms():
        place = file.relative_to(SOURCE)
        if file.stem != "__init__" and not (ROOT / "tests" / place.parent / f"test_{place.name}").exists():
            missing.append(place.as_posix())
    assert missing == []


def test_discovery_and_selection_do_not_meet():
    for file, room in rooms():
        if room == "discovery":
            assert not any(module.startswith("justright.selection") for module in imports(file)), file


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_package_that_is_imported_is_declared():
    """Each by itself: a package that another one brings today may be gone tomorrow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [each for name, each in project["optional-dependencies"].items() if name != "dev"]
    required = [*project["dependencies"], *(line for extra in extras for line in extra)]
    declared = {normalized(re.match(r"[\w.-]+", line)[0]) for line in required}
    declared.add("torchvision")  # comes with timm; which build of it fits is for `scripts/install` to say
    owners = packages_distributions()
    names = {module.partition(".")[0] for file in SOURCE.rglob("*.py") for module in imports(file)}
    names -= {"justright", *sys.stdlib_module_names}
    assert [each for each in sorted(names) if not declared & {normalized(o) for o in owners.get(each, [each])}] == []


def test_torch_enters_only_where_it_is_needed():
    for file, _ in rooms():
        name = file.relative_to(SOURCE).as_posix()
        if not name.startswith(NEEDS_TORCH):
            heavy = {m.split(".")[0] for m in imports(file)} & {"torch", "torchvision", "timm"}
            assert not heavy, f"{name} imports {heavy}"


def test_the_front_door_holds_exactly_the_public_names():
    assert set(justright.__all__) == PUBLIC | {"__version__"}
    for name in PUBLIC:
        assert getattr(justright, name).__doc__, name
    assert set(dir(justright)) == set(justright.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = justright.nonsense


def test_asking_for_help_loads_nothing_heavy():
    code = "import sys, justright.cli as c; c.main(['--help'], standalone_mode=False); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("'torch'", "'timm'", "'sklearn'", "'matplotlib.pyplot'", "'ot'"):
        assert heavy not in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_helps_with_examples(name):
    command = main.get_command(click.Context(main), name)
    assert command is not None
    text = command.get_help(click.Context(command, info_name=name))
    assert f"justright {name}" in text, f"the help of {name} shows no example"


def equation_rows() -> list[tuple[int, str]]:
    text = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    return [(int(number), home) for number, home in re.findall(r"^\| Eq\. (\d+) \|[^|]*\| (.*?) \|", text, re.M)]


def test_the_index_names_every_equation_of_the_paper():
    assert [number for number, _ in equation_rows()] == list(range(1, 18))


@pytest.mark.parametrize(("number", "home"), [row for row in equation_rows() if row[1].startswith("`")])
def test_an_equation_lives_where_the_index_says(number, home):
    module, name = home.strip("`").rsplit(".", 1)
    doc = getattr(importlib.import_module(module), name).__doc__
    said = {int(n) for span in re.findall(r"Eq\. ([\d, andto]+)", doc) for n in numbers(span)}
    assert number in said, f"the docstring of {home} does not say Eq. {number}"


def test_equations_of_later_methods_live_where_the_index_says():
    text = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    homes = re.findall(r"^\| (?!Eq\.)[^|]+\|[^|]*\| `(.*?)` \|", text, re.M)
    assert len(homes) == 10
    for home in homes:
        module, name = home.rsplit(".", 1)
        assert getattr(importlib.import_module(module), name).__doc__


def numbers(span: str) -> list[int]:
    """The equations a phrase such as `7, 9 to 11` means."""
    found: list[int] = []
    for part in re.split(r",|and", span):
        ends = [int(end) for end in re.findall(r"\d+", part)]
        found += range(ends[0], ends[-1] + 1) if ends else []
    return found


RUNS_CODE = {"dill", "joblib", "marshal", "shelve", "yaml", "cloudpickle"}


# what a process hands to the workers that it has started itself, in a folder that only its user can open
TO_OWN_WORKERS = ("engines/processes.py",)


def test_nothing_that_is_read_can_run_code():
    """Nothing that makes code of data is imported or called, and arrays and tensors are read as nothing else."""
    offenders = []
    for file, _ in rooms():
        offenders += [f"{file.name} imports {name}" for name in imports(file) if name.split(".")[0] in RUNS_CODE]
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call):
                named, options = ast.unparse(call.func), {each.arg: ast.unparse(each.value) for each in call.keywords}
                is_unsafe = named in ("eval", "exec")
                is_unsafe |= named.startswith("pickle.") and not file.as_posix().endswith(TO_OWN_WORKERS)
                is_unsafe |= options.get("allow_pickle", "False") != "False"
                is_unsafe |= named == "torch.load" and options.get("weights_only") != "True"
                offenders += [f"{file.name} calls {ast.unparse(call)}"] * is_unsafe
    assert offenders == []


def promises() -> list[tuple[str, str]]:
    part = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Promises")[2].partition("## ")[0]
    assert re.findall(r"^(\d+)\. ", part, re.M) == [str(number) for number in range(1, 11)]
    assert all("](tests/" in each for each in re.split(r"^\d+\. ", part, flags=re.M)[1:]), "a promise without a test"
    return re.findall(r"\[`(\w+)`\]\(([\w/.]+)\)", part)


@pytest.mark.parametrize(("name", "file"), promises())
def test_a_promise_is_linked_to_a_test_that_there_is(name, file):
    defined = {
        node.name
        for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    assert name in defined


def test_ci_runs_the_test_command_of_the_readme():
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()[-1] == "make test"


def test_a_module_runs_as_a_program():
    out = subprocess.run([sys.executable, "-m", "justright", "--version"], capture_output=True, text=True, check=True)
    assert justright.__version__ in out.stdout


def test_benchmarks_import_only_what_there_is():
    """Nobody runs them in passing, so a name that was changed would be missed."""
    missing = []
    for file in sorted((ROOT / "benchmarks").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("justright"):
                try:
                    exec(ast.unparse(node))
                except ImportError as error:
                    missing.append(f"{file.name}: {error}")
    assert missing == []
