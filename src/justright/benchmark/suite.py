"""A suite: problems and settings, every pair of which is run with several seeds. Written as TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from justright.benchmark.claim import Claim
from justright.benchmark.suite_grid import grid
from justright.discovery.methods import METHODS
from justright.evaluation.scores import GROUPS
from justright.runs.spec import RunSpec
from justright.utils.errors import DataError, MissingDataError

SUITES = Path(__file__).parent / "suites"  # those that come with the package, `NAME.toml` each
PROFILES = ("full", "real", "glyphs")  # the paper's data and scale; small photo sets on a CPU; drawn characters

T = TypeVar("T")


@dataclass(frozen=True)
class SuiteProblem:
    """A target, drawn by the GCD protocol from a labeled source, and labeled sets of other kinds.

    Sources are what `open_images` takes; `{data}` in them stands for the folder of the data.
    """

    name: str  # in results and in `--only`
    target: str  # a source of labeled images
    pool: Mapping[str, str] = field(default_factory=dict)  # sources of other ones, by the name of the data set
    part: str = ""  # what the problem is for, such as "choose" or "judge"
    classes: int = 0  # how many classes of the target's source to draw at random; 0 takes all
    other_classes_in_pool: bool = False  # whether classes of that source which were not drawn join the pool
    per_class: int | None = None  # the most images of a class in the target's source
    uneven: tuple[int, ...] = ()  # images of its largest and of its smallest class, those between in equal ratios
    pool_per_class: int | None = None  # the most images of a class in the pool
    old_share: float = 0.5  # the share of the target's classes that have labeled images
    labeled_share: float = 0.5  # the share of the images of old classes that are labeled
    wrong_labels: float = 0.0  # the share of the pool's images with the label of another class of their data set
    split_seed: int = 0  # the seed of everything that is drawn
    pool_by_protocol: bool = False  # whether a set of the pool gives only what would be labeled if it were the target
    roles: str = ""  # "published": old classes as publications have them; or as for the data set of this name
    # where old classes come from, if not from the target's source: other sources, "rest" for its classes that were not
    # drawn, or a difficulty group of it, whose classes then change places with the old ones
    labels: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)  # other ones of the methods that have them


@dataclass(frozen=True)
class SuiteSetting:
    """One way to run: what differs from `Suite.run`."""

    name: str  # in tables
    run: Mapping[str, Any] = field(default_factory=dict)  # fields of `RunSpec` that differ from those of the suite
    seeds: tuple[int, ...] | None = None  # instead of the seeds of the suite
    problems: tuple[str, ...] | None = None  # the only problems to run this setting on; None for all
    k_factor: float = 1.0  # K that a run is told, as a multiple of the true one
    row: str = ""  # in a table of the paper: the selection, or the labeled data

    @property
    def method(self) -> str:
        """What is learned with."""
        return str(self.run.get("method", ""))

    @property
    def role(self) -> str:
        """The role of the pool; empty where the setting does not say it, as k-means has no use for a pool."""
        return str(self.run.get("pool_role", ""))

    @property
    def is_guide(self) -> bool:
        """Whether classes of the pool only guide, as by our defaults."""
        return self.role == "guide"


@dataclass(frozen=True)
class Suite:
    """Problems, settings, and what all runs share: the fields of `RunSpec` under `run`."""

    name: str
    about: str
    run: Mapping[str, Any]
    problems: tuple[SuiteProblem, ...]
    settings: tuple[SuiteSetting, ...]
    seeds: tuple[int, ...] = (0,)
    baseline: str = ""
    profile: str = ""  # of a table of the paper: full, real or glyphs
    columns: Mapping[str, str] = field(default_factory=dict)  # the paper's target that a problem stands for
    groups: tuple[str, ...] = GROUPS  # what is shown of each run
    printed_as: Mapping[str, str] = field(default_factory=dict)  # rows that the paper calls otherwise
    claims: tuple[Claim, ...] = ()
    printed: Mapping[str, Any] = field(default_factory=dict)  # figures of the paper that are no accuracies
    doubted: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # why some of those cannot be right
    only_counts: bool = False  # images and classes are counted, and nothing is run
    is_probed: bool = False  # whether a line tells how well a linear classifier knows the target's classes afterwards

    def with_role(self, role: str) -> Suite:
        """Only the settings in which the pool has this role, and those that learn from no labels."""
        kept = [each for each in self.settings if each.role in (role, "")]
        if role == "guide" and not any(each.is_guide for each in kept):
            raise DataError(f"{self.name} has no pool that could be a {role}", expected="--role rival")
        return replace(self, settings=tuple(kept))

    def with_run(self, **changes: Any) -> Suite:
        """The same suite with other values for all its runs; None leaves a value as it is."""
        return replace(self, run={**self.run, **{name: value for name, value in changes.items() if value is not None}})

    def against(self, baseline: str) -> Suite:
        """The same suite, its settings compared with another one of them."""
        if baseline not in (names := [setting.name for setting in self.settings]):
            raise DataError(f"no setting {baseline!r} to compare with", expected=f"one of {', '.join(names)}")
        return replace(self, baseline=baseline)

    def runs_of(self, problem: SuiteProblem) -> Iterator[tuple[SuiteSetting, int]]:
        """The runs of one problem, the first seed of all settings first."""
        wanted = [each for each in self.settings if each.problems is None or problem.name in each.problems]
        seeds = sorted({seed for each in wanted for seed in (each.seeds or self.seeds)})
        for seed in seeds:
            yield from ((each, seed) for each in wanted if seed in (each.seeds or self.seeds))

    def spec(
        self, setting: SuiteSetting, seed: int, n_target: int | None, problem: SuiteProblem | None = None
    ) -> RunSpec:
        """What a run is set to: `n_target` is the true K, as in the paper's tables, unless the suite says otherwise."""
        given = {"n_resamples": 0, "n_target": n_target} | dict(self.run) | dict(setting.run) | {"seed": seed}
        for name in ("settings", "selector_params"):
            given[name] = {**self.run.get(name, {}), **setting.run.get(name, {})}
        if problem is not None and problem.settings:  # those that the method has: GCD, say, has no entropy
            known = {item.name for item in fields(METHODS[given.get("method", RunSpec.method)].config_class)}
            given["settings"] |= {name: value for name, value in problem.settings.items() if name in known}
        if n_target is not None and setting.k_factor != 1:
            given["n_target"] = round(setting.k_factor * n_target)
        if given["n_target"] == 0:  # TOML has no null: 0 asks for an estimate
            given["n_target"] = None
        return _make(RunSpec, given, f"setting {setting.name!r}")


def read_suite(name: str | Path, profile: str | None = None) -> Suite:
    """A suite of the package by its name, or any file. Tables of the paper have profiles, `PROFILES`."""
    path = Path(name) if Path(name).suffix == ".toml" else SUITES / f"{name}.toml"
    if not path.is_file():
        raise MissingDataError(
            f"no suite {str(name)!r}", expected=f"one of {', '.join(suite_names())}, or a file that ends in .toml"
        )
    content = _content(path)
    if "targets" in content:
        profile = profile or PROFILES[-1]
        content = grid(content, _shared("selections"), _shared(profile)) | {"profile": profile}
    elif profile is not None:
        raise DataError(f"{name} has no profiles", expected="no --profile: it is no table of the paper")
    problems = tuple(_make(SuiteProblem, each, "a problem") for each in content.pop("problems", []))
    settings = tuple(_make(SuiteSetting, each, "a setting") for each in content.pop("settings", []))
    claims = tuple(_make(Claim, each, "a claim") for each in content.pop("claims", []))
    for what, names in (("problems", [p.name for p in problems]), ("settings", [s.name for s in settings])):
        if not names or len(set(names)) < len(names):
            raise DataError(f"{path} has {len(names)} {what}", expected="at least one, each under a name of its own")
    parts = {"problems": problems, "settings": settings, "claims": claims}
    suite = _make(Suite, {"name": path.stem, "about": "", "run": {}} | content | parts, str(path))
    for setting in suite.settings:  # what a run cannot be set to is refused before the first one starts
        suite.spec(setting, seed=0, n_target=None)
    return suite


def _shared(name: str) -> dict[str, Any]:
    if name not in (*PROFILES, "selections"):
        raise DataError(f"no profile {name!r}", expected=f"one of {', '.join(PROFILES)}")
    return _content(SUITES / "shared" / f"{name}.toml")


def _content(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {error}", expected="TOML") from error


def suite_names() -> list[str]:
    """The suites that come with the package."""
    return sorted(path.stem for path in SUITES.glob("*.toml"))


def _make(kind: type[T], values: Mapping[str, Any], what: str) -> T:
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(values) - known):
        raise DataError(f"{what} has {unknown[0]!r}", expected=f"one of {', '.join(sorted(known))}")
    made = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    try:
        return kind(**made)
    except TypeError as error:
        raise DataError(f"{what}: {error}", expected="all fields that have no default") from error
