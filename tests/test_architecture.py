"""Architecture rules: layers, public API, declared dependencies, safe readers, documented places of equations."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import click
import pytest
from tests.import_graph import SOURCE, imports, source_files

import justright
from justright.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]

LAYERS = [  # a package imports only from packages in layers above it in this list
    {"utils"},
    {"geometry", "data"},
    {"features", "clustering", "evaluation", "losses"},
    {"selection", "estimation", "discovery"},
    {"runs"},
    {"benchmark", "review"},
    {"report"},
    {"cli"},
]
NEEDS_TORCH = (
    "data/transforms.py",
    "features/",
    "losses/",
    "discovery/",
)
PUBLIC = {
    "BetaSelector",
    "BinsSelector",
    "CMS",
    "COUNT",
    "ClassSplit",
    "ClassWeights",
    "CombinedCounter",
    "CuiSelector",
    "FeatureTable",
    "GCD",
    "ImageSet",
    "JustrightError",
    "KMeansBaseline",
    "LabeledSearchCounter",
    "Learner",
    "LossParts",
    "METHODS",
    "MixtureCounter",
    "MuGCD",
    "Pool",
    "RandomSelector",
    "Result",
    "SELECTORS",
    "SHARE",
    "Scores",
    "SelEx",
    "Selector",
    "SelfContrastiveLoss",
    "SemiSupKMeans",
    "SimGCD",
    "Split",
    "SpreadCounter",
    "TrainConfig",
    "TrainedDiscovery",
    "Truth",
    "UniformSelector",
    "WeightedSupConLoss",
    "XCon",
    "discover",
    "discover_features",
    "evaluate",
    "extract",
    "from_dataset",
    "gcd_split",
    "glyph_set",
    "load_backbone",
    "main",
    "merge_pool",
    "open_images",
    "read_class_split",
    "setting",
}


def layer_of(package: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if package in layer)


def test_every_package_has_a_layer():
    assert {package for _, package in source_files()} <= set.union(*LAYERS)


def test_packages_import_only_from_lower_layers():
    offenders = []
    for file, package in source_files():
        for module in imports(file):
            if not module.startswith("justright."):
                continue
            other = module.split(".")[1]
            if other in set.union(*LAYERS) and other != package and layer_of(other) >= layer_of(package):
                offenders.append(f"{file.relative_to(SOURCE)} imports {module}")
    assert offenders == []


def test_discovery_does_not_import_selection():
    for file, package in source_files():
        if package == "discovery":
            assert not any(module.startswith("justright.selection") for module in imports(file)), file


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_imported_packages_are_declared():
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


def test_only_listed_modules_import_torch():
    for file, _ in source_files():
        name = file.relative_to(SOURCE).as_posix()
        if not name.startswith(NEEDS_TORCH):
            heavy = {m.split(".")[0] for m in imports(file)} & {"torch", "torchvision", "timm"}
            assert not heavy, f"{name} imports {heavy}"


def test_public_api_is_exactly_the_listed_names():
    assert set(justright.__all__) == PUBLIC | {"__version__"}
    for name in PUBLIC:
        assert getattr(justright, name).__doc__, name
    assert set(dir(justright)) == set(justright.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = justright.nonsense


def test_help_imports_nothing_heavy():
    code = "import sys, justright.cli as c; c.main(['--help'], standalone_mode=False); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("'torch'", "'timm'", "'sklearn'", "'matplotlib.pyplot'", "'ot'"):
        assert heavy not in out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command_has_an_example(name):
    command = main.get_command(click.Context(main), name)
    assert command is not None
    text = command.get_help(click.Context(command, info_name=name))
    assert f"justright {name}" in text, f"the help of {name} shows no example"


def equation_rows() -> list[tuple[int, str]]:
    text = (ROOT / "docs" / "understand" / "equations.md").read_text(encoding="utf-8")
    return [(int(number), home) for number, home in re.findall(r"^\| Eq\. (\d+) \|[^|]*\| (.*?) \|", text, re.M)]


def test_index_lists_every_equation_of_the_paper():
    assert [number for number, _ in equation_rows()] == list(range(1, 18))


@pytest.mark.parametrize(("number", "home"), [row for row in equation_rows() if row[1].startswith("`")])
def test_equation_is_at_its_documented_place(number, home):
    module, name = home.strip("`").rsplit(".", 1)
    doc = getattr(importlib.import_module(module), name).__doc__
    stated = {int(n) for span in re.findall(r"Eq\. ([\d, andto]+)", doc) for n in numbers(span)}
    assert number in stated, f"the docstring of {home} does not say Eq. {number}"


def test_equations_of_newer_methods_are_at_their_documented_place():
    text = (ROOT / "docs" / "understand" / "equations.md").read_text(encoding="utf-8")
    homes = re.findall(r"^\| (?!Eq\.)[^|]+\|[^|]*\| `(.*?)` \|", text, re.M)
    assert len(homes) == 7
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
TO_OWN_WORKERS = ("utils/parallel.py",)


def test_no_reader_can_execute_code():
    """Nothing that makes code of data is imported or called, and arrays and tensors are read as nothing else."""
    offenders = []
    for file, _ in source_files():
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


def test_ci_runs_the_test_command_of_the_readme():
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()[-1] == "make test"


def test_package_runs_as_a_module():
    out = subprocess.run([sys.executable, "-m", "justright", "--version"], capture_output=True, text=True, check=True)
    assert justright.__version__ in out.stdout


def test_benchmarks_import_existing_names():
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
