"""Files that people and GitHub expect: citation, workflows, templates, pre-commit. Nothing here needs a network."""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml  # comes with timm

import justright

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
YAML_FILES = [ROOT / "CITATION.cff", ROOT / ".pre-commit-config.yaml", *sorted(GITHUB.rglob("*.yml"))]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
INSTALLED_BY_RELEASE = {"build", "twine"}  # modules that only the release workflow has
# what the Citation File Format 1.2.0 requires and allows at its top
CFF_REQUIRED = {"authors", "cff-version", "message", "title"}
CFF_ALLOWED = CFF_REQUIRED | {
    "abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords", "license", "license-url",
    "preferred-citation", "references", "repository", "repository-artifact", "repository-code", "type", "url",
    "version",
}  # fmt: skip


def parsed(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", YAML_FILES, ids=relative)
def test_yaml_file_parses_to_names_and_values(path):
    assert all(isinstance(name, str | bool) for name in parsed(path))  # YAML reads the key `on` as true


def test_citation_names_software_and_paper():
    cited = parsed(ROOT / "CITATION.cff")
    assert cited.keys() >= CFF_REQUIRED
    assert cited.keys() <= CFF_ALLOWED
    assert cited["cff-version"] == "1.2.0"
    assert cited["type"] == "software"
    assert cited["version"] == justright.__version__
    assert all(each.keys() <= {"name", "family-names", "given-names"} for each in cited["authors"])
    paper = cited["preferred-citation"]
    assert paper.keys() >= {"type", "title", "authors"}
    assert paper["type"] == "conference-paper"
    assert paper["title"] in (ROOT / "README.md").read_text(encoding="utf-8")
    assert [each["family-names"] for each in paper["authors"]] == ["Zhao", "Lang", "Belongie", "Mac Aodha"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=relative)
def test_workflow_has_jobs_with_steps_and_few_rights(path):
    workflow = parsed(path)
    assert workflow[True], "no event starts it"
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"], name
        assert all(("uses" in step) != ("run" in step) for step in job["steps"]), name
        assert all("@" in step["uses"] for step in job["steps"] if "uses" in step), name


def workflow_commands() -> list[tuple[str, list[str]]]:
    """Each command that a workflow runs: the file's name, and the command's words."""
    steps = [(path.name, step) for path in WORKFLOWS for job in parsed(path)["jobs"].values() for step in job["steps"]]
    return [(name, shlex.split(line)) for name, step in steps for line in step.get("run", "").splitlines()]


@pytest.mark.parametrize(("name", "words"), workflow_commands(), ids=lambda each: str(each)[:60])
def test_workflow_calls_commands_that_exist(name, words):
    program, *rest = words
    if program == "make":
        assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    elif program == "python":
        assert rest[0] == "-m"
        assert rest[1] in INSTALLED_BY_RELEASE or find_spec(rest[1])
    else:
        assert program == "test"
    if "--constraint" in words:
        assert (ROOT / words[words.index("--constraint") + 1]).is_file()
    for extra in re.findall(r"\.\[(.+)\]", " ".join(words)):
        assert set(extra.split(",")) <= set(EXTRAS)


def test_workflows_test_three_systems_and_three_pythons():
    matrix = parsed(GITHUB / "workflows" / "test.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert [each.partition("-")[0] for each in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert matrix["python"] == ["3.11", "3.12", "3.13"]  # as text: 3.10 would be the number 3.1


def test_only_the_publishing_job_may_prove_who_it_is():
    jobs = parsed(GITHUB / "workflows" / "release.yml")["jobs"]
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "build": None,
        "publish": {"id-token": "write"},
    }


@pytest.mark.parametrize("path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("*_*.yml")), ids=relative)
def test_issue_form_has_what_github_requires(path):
    form = parsed(path)
    assert form.keys() >= {"name", "description", "body"}
    ids = [each["id"] for each in form["body"]]
    assert len(ids) == len(set(ids))
    assert all(each["attributes"]["label"] for each in form["body"])


def test_pre_commit_runs_what_lint_runs():
    (repository,) = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    modules = [shlex.split(hook["entry"])[2] for hook in repository["hooks"]]
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)[1]
    assert modules == re.findall(r"\$\(BIN\)/(\w+)", lint)


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_page_links_to_files_that_exist(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert len(text.split()) < 300
    for place in re.findall(r"\]\(([^)]+)\)", text):
        assert place.startswith("https://") or (ROOT / place).exists()
