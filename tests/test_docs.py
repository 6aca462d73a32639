"""Every command and every Python snippet of README and docs does what it says, on small drawn data; the site builds.

A block that is new or changed runs as it stands. What is smaller here than on the page, and what cannot be run in a
test, stands in the tables below.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import click
import pytest
from benchmarks import study_answers
from click.testing import CliRunner
from tests.doc_pages import PAGES, ROOT, blocks, calls, inline_commands, prose, set_up
from tests.made_runs import make_run
from tests.review.acting import act

import justright
from justright.benchmark.suite import suite_names
from justright.cli import COMMANDS, main
from justright.data.catalog import groceries
from justright.runs import measured_rates

# in commands: what is printed, and what is run; the printed words go through the parser of the command too
SMALLER = {
    "--backbone efficientnet_lite0": "--backbone glyph_vit",
    "--backbone dinov2_vitb14": "--backbone glyph_vit",
    "--img-size 160": "--img-size 64",
    "--per-class 30": "--per-class 2",
    "--k 200": "--k 8",  # as many kinds of birds as are drawn
    "--device cuda": "--device cpu",
    "--engine processes": "--engine local",  # tests of each command run both engines
    "--engine ray": "--engine local",
    "run selection": "run small.toml",  # 462 runs
    "--jobs 2": "--jobs 1",
    "--jobs 4": "--jobs 1",
}
ADDED = {"discover": "--set views=2 --set n_steps=1 --set batch_size=16 --stability 0"}
WHERE_NOT_SAID = {
    "discover": {"--backbone": "glyph_vit", "--epochs": "2"},
    "extract": {"--backbone": "glyph_vit"},
    "plan": {"--backbone": "glyph_vit"},
}
NO_REPORT = {"discover": "--no-report"}
WITH_REPORT = (Path("docs/reference/files.md"),)  # lists the files of a run
ELSEWHERE = {"s3://bucket/": "memory://bucket/", "/shared/": "shared/"}
# commands with these words are parsed only
PARSED = {
    "--diagnose": "hides classes, for which too few images are drawn here; tests/cli/test_select.py runs it",
    "run selection-photos": "is `run selection` on data that not everybody has",
    **{
        f"run {name}": "is `run selection` with other runs, which take hours"
        for name in ("training", "controls", "doses", "cub")
    },
    "run tab2": "a table takes minutes; tests/benchmark/test_tables_of_the_paper.py runs a tiny one of each",
}
# in Python
IN_PYTHON = {
    '"dino_vitb16"': '"glyph_vit"',
    "n_categories=200": "n_categories=8",
    'out="python-run")': 'out="python-run", method="kmeans", backbone="glyph_vit", k=8, progress=False)',
    ".small()": ".small().with_settings({'n_epochs': 1})",
    'ENGINES["processes"](4)': 'ENGINES["local"](4)',
}
# what a page takes for granted: finished runs, and stores that somebody wrote
RUNS = {
    "docs/reference/report.md": ["run", "run-own", "run-beta"],
    "docs/howto/review.md": ["run"],
    "docs/howto/labeling-tools.md": ["run"],
}
STORES = {
    "docs/start/examples.md": {"other.features": "other-labeled.zip", "photos.features": "photos"},
    "docs/howto/many-machines.md": {"birds.features": "birds", "s3://bucket/birds.features": "birds"},
}


def is_target(words: list[str]) -> bool:
    return re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M) is not None


def is_known_extra(words: list[str]) -> bool:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.search(r"\[([\w,]+)\]$", words[-1])
    return words[1] == "install" and set(extras[1].split(",") if extras else ()) <= set(
        project["optional-dependencies"]
    )


def is_a_script(words: list[str]) -> bool:
    return (ROOT / words[1]).is_file() and bool(ast.parse((ROOT / words[1]).read_text(encoding="utf-8")))


def starts_a_command(words: list[str]) -> bool:
    parse(renamed(words[words.index("justright") + 1 :]))
    return words[words.index("justright") - 1] == "-m"


# programs that a test does not start: why, and what is checked instead
NOT_STARTED = {
    "make": ("installs a whole environment", is_target),
    "pip": ("asks a registry", is_known_extra),
    "python": ("takes minutes or hours", is_a_script),
    "torchrun": ("tests/discovery/test_processes.py starts what it calls", starts_a_command),
    "srun": ("needs a SLURM cluster", starts_a_command),
    "scontrol": ("needs a SLURM cluster", lambda words: words[1] == "show"),
    "head": ("belongs to the system", lambda words: True),
    "ray": ("starts a cluster; not installed for the tests", lambda words: words[1] in ("start", "get-auth-token")),
    "git": ("asks a server", lambda words: words[1] == "clone"),
}


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words call, and the words that are left."""
    command: click.Command = main
    left = list(words)
    while isinstance(command, click.Group) and left and not left[0].startswith("-"):
        found = command.get_command(click.Context(main), left.pop(0))
        assert found is not None, f"there is no such command: justright {shlex.join(words)}"
        command = found
    return command, left


def parse(words: list[str]) -> None:
    """Read the options as the command does, without doing anything."""
    command, left = command_of(words)
    with suppress(click.exceptions.Exit, click.exceptions.NoArgsIsHelpError):
        command.make_context("justright", left)


def renamed(words: list[str]) -> list[str]:
    """Places of other machines become places of this one."""
    for there, here in ELSEWHERE.items():
        words = [word.replace(there, here, 1) if word.startswith(there) else word for word in words]
    return words


def smaller(words: list[str], has_report: bool = False) -> list[str]:
    """The command as it is run here."""
    text = "\0".join(words) + "\0"
    for printed, run in SMALLER.items():
        text = text.replace(printed.replace(" ", "\0") + "\0", run.replace(" ", "\0") + "\0")
    found = text.split("\0")[:-1]
    has_arrays = any(word.endswith(".npy") for word in words)  # no network computes them
    for option, value in WHERE_NOT_SAID.get(words[0], {}).items():
        if has_arrays and option == "--backbone":
            continue
        found += [] if option in found else [option, value]
    return found + ADDED.get(words[0], "").split() + NO_REPORT.get(words[0], "").split() * (not has_report)


def run(words: list[str]) -> str:
    done = CliRunner().invoke(main, words)
    transcript = f"justright {shlex.join(words)}\n{done.output}"
    assert done.exception is None or isinstance(done.exception, SystemExit), f"{transcript}{done.exception!r}"
    assert done.exit_code == 0, transcript
    return done.output


def keep_a_cluster(opened, host, port, reviewer, ready) -> None:
    """In place of the server: a person who keeps what was found first, and stops it."""
    act(opened, "keep", cluster=int(opened.state.group[0]))


def few_photos(every=groceries._photos, n: int = 6) -> list[tuple[bytes, str, str]]:
    """Some photos of each kind of fruit."""
    seen: dict[str, int] = defaultdict(int)
    found = []
    for photo in every():
        seen[photo[1]] += 1
        found += [photo] if seen[photo[1]] <= n else []
    return found


@pytest.fixture(scope="module")
def drawn_data(tmp_path_factory):
    set_up(folder := tmp_path_factory.mktemp("docs"))
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """One place for what commands keep: the same images have the same features on every page."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def place(drawn_data, home, tmp_path, monkeypatch):
    """A folder with everything that the pages name."""
    shutil.copytree(drawn_data, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUSTRIGHT_HOME", str(home))
    monkeypatch.setattr("justright.review.server.serve", keep_a_cluster)
    monkeypatch.setattr("click.launch", lambda address: 0)
    monkeypatch.setattr(groceries, "_photos", few_photos)
    # tests/runs/test_measured_rates.py measures
    for name, few in {"N_IMAGES": 4, "BATCH_SECONDS": 0.0, "N_STEPS": 1, "N_ROWS": 100, "N_CLASSES": 5}.items():
        monkeypatch.setattr(measured_rates, name, few)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_command_and_snippet_of_a_page_runs(page, place):
    for name in RUNS.get(str(page), []):
        make_run(place / name, per_class=8)
    for name, source in STORES.get(str(page), {}).items():
        run(smaller(renamed(["extract", source, "--out", name])))
    for language, text in blocks(page):
        if language == "python":
            run_python(text)
        elif language == "sh":
            for program, *words in calls(text, ["justright", *NOT_STARTED]):
                if program == "justright":
                    words = renamed(words)
                    parse(words)
                    assert words[:2] != ["benchmark", "run"] or words[2] in suite_names()
                    if not any(parsed in " ".join(words) for parsed in PARSED):
                        run(smaller(words, page in WITH_REPORT))
                else:
                    _, is_right = NOT_STARTED[program]
                    assert is_right([program, *words]), shlex.join([program, *words])
        elif language == "":
            check_tree(text)
        else:
            assert language in ("bibtex", "text"), f"nothing is known about blocks of {language}"


def check_tree(text: str) -> None:
    """A folder and what is in it: NAME/, then a line a file, whose meaning may name more of them."""
    first, *lines = text.splitlines()
    folder = Path(first)
    names = {name.rstrip("/") for line in lines for name in [line.split()[0], *re.findall(r"[\w.]+\.\w+/?", line)]}
    assert names == {path.name for path in folder.iterdir()}


def run_python(text: str) -> None:
    for printed, small in IN_PYTHON.items():
        text = text.replace(printed, small)
    exec(compile(text, "a page", "exec", dont_inherit=True), {"__name__": "__main__"})


@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in inline_commands(page)}))
def test_a_command_in_running_text_exists_with_its_options(line):
    command, words = command_of(line.split()[1:])
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= known | {"--help", "--version"}


# what CONTRIBUTING shows is Python, which tests/test_contributing.py sees to
@pytest.mark.parametrize("page", [*PAGES, Path("CONTRIBUTING.md")], ids=str)
def test_what_a_page_links_to_and_imports_in_its_text_exists(page):
    text = prose(page)
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)|src=\"([^\"]+)\"", text):
        place = "".join(link)
        assert place.startswith("https://") or (ROOT / page.parent / place).exists(), place
    for module, name in re.findall(r"`from (justright[\w.]*) import (\w+)`", text):
        assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("page", [*PAGES, Path("CONTRIBUTING.md")], ids=str)
def test_files_of_code_that_a_page_names_exist(page):
    every = [
        path.as_posix() for folder in ("src", "tests", "benchmarks", "examples") for path in ROOT.glob(f"{folder}/**/*")
    ]
    for name in re.findall(r"`([\w/]+\.(?:py|js))`", prose(page)):
        assert any(path.endswith(f"/{name}") for path in every), name


@pytest.mark.parametrize("page", [page for page in PAGES if "research" not in page.parts], ids=str)
def test_a_page_can_be_read_in_a_few_minutes(page):
    n_words = len((ROOT / page).read_text(encoding="utf-8").split())
    most = 900 if page == Path("README.md") else 1500
    assert n_words <= most


def test_readme_begins_with_the_demo_and_the_tests():
    first, *_ = [text for language, text in blocks(Path("README.md")) if language == "sh"]
    assert [words[:2] for words in calls(first, ["make"])] == [["make", "demo"], ["make", "test"]]


def three(scores):
    return " / ".join(f"{scores[group]:.1f}" for group in ("all", "old", "new"))


def test_the_table_of_the_readme_is_what_was_measured():
    answers = ROOT / "docs" / "results" / "answers"
    problems, trained = (
        study_answers.by_problem(map(json.loads, (answers / name).read_text(encoding="utf-8").splitlines()))
        for name in ("default.jsonl", "now.jsonl")
    )
    means, means_trained = (
        study_answers.mean_of([each["scores"] for each in lines.values()]) for lines in (problems, trained)
    )
    cells = {
        row[0].strip("* "): row[1].strip("* ")
        for line in prose(Path("README.md")).splitlines()
        if len(row := line.strip("|").split("|")) == 2
    }
    rows = {
        "justright**, which trains for the characters and not for the photos": "answer",
        "k-means in principal directions, with labels": "k-means in principal directions",
        "Ward, centered features": "Ward, centered",
        "Ward": "Ward",
        "logistic regression and Ward": "logistic regression and Ward",
        "k-means": "k-means",
    }
    for name, measured in rows.items():
        assert cells[name] == three(means[measured]), name
    assert cells["justright, trained on all"] == three(means_trained["answer"])
    assert cells["SimGCD, its own assignment"] == three(means_trained["method"])
    whole = [each["calibration"]["all"] for each in problems.values()]
    assert cells["mean confidence of justright"] == f"{study_answers.mean_of(whole)['confidence']:.1f}"
    n_close = sum(abs(each["confidence"] - each["accuracy"]) <= 5 for each in whole)
    assert cells["confidence within 5 points of accuracy"] == f"{n_close} of {len(problems)}"
    n_held = sum(each["holds"] for each in problems.values())
    assert cells["90 % interval holds the number of right images"] == f"{n_held:.0f} of {len(problems)}"
    simple = [name for name in means if name not in ("answer", "method")]
    n_better = {
        group: sum(
            max(each["scores"][name][group] for name in simple if name in each["scores"])
            > each["scores"]["answer"][group]
            for each in problems.values()
        )
        for group in ("all", "new")
    }
    assert f"On {n_better['all']} of the {len(problems)} the best of ten" in prose(Path("README.md"))
    assert f"is better in All; on {n_better['new']} in New" in prose(Path("README.md"))


def test_every_promise_names_its_tests():
    rows = [line for line in prose(Path("docs/reference/promises.md")).splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 10
    for row in rows:
        files = re.findall(r"`(tests/[^`]+)`", row)
        assert files, row
        assert all((ROOT / file).is_file() for file in files), row


def test_the_python_reference_has_every_public_name():
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: ([\w.]+)$", text, re.M)
    for path in listed:
        home, _, name = path.rpartition(".")
        assert getattr(justright, name) is getattr(importlib.import_module(home), name)
    values = set(re.findall(r"`(\w+)`", text.partition("## Registries")[2]))
    assert {path.rpartition(".")[2] for path in listed} | values == set(justright.__all__) - {"__version__"}


def test_the_site_builds_without_warnings_and_asks_no_other_site(tmp_path):
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")}
    expected = {page.relative_to("docs").with_suffix(".html") for page in PAGES[1:] if page.stem != "README"}
    assert expected <= set(pages)
    for page, text in pages.items():
        loaded = re.findall(r"<(?:script|img|iframe)[^>]* src=\"([^\"]+)\"|<link[^>]* href=\"([^\"]+)\"", text)
        assert not [each for each in loaded if "//" in "".join(each)], page
    commands = pages[Path("reference/cli.html")]
    assert all(f'id="justright-{name}"' in commands for name in COMMANDS)
    assert 'id="justright.api.discover"' in pages[Path("reference/python.html")]
