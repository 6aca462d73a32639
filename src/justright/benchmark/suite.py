"""A suite: problems and settings, every pair of which is run with several seeds. Written as TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from justright.discovery.methods import METHODS
from justright.evaluation.scores import GROUPS
from justright.runs.spec import RunSpec
from justright.utils.errors import DataError, MissingDataError

SUITES = Path(__file__).parent / "suites"  # the suites of the package, `NAME.toml` each
PROFILES = ("full", "real", "glyphs")  # the paper's data and scale; small photo sets on a CPU; drawn characters
NO_LABELS = "kmeans"  # uses no labels, so it counts for a claim about labels only if the claim names it
MAIN_POOL = ("cub", "cars", "aircraft", "dogs", "insects")  # the pool of Tab. 2
WIDE_POOL = (*MAIN_POOL, "nabirds", "herbarium", "imagenet100", "imagenet1k-ssb")  # the pool of Tab. 3
POOLS = {"all": MAIN_POOL, "wide": WIDE_POOL, "own": ()}
# the k-means row of the tables: features as they are
PLAIN_KMEANS = {"method": "kmeans", "selector": "none", "settings": {"use_labels": False, "directions": "never"}}

T = TypeVar("T")
TomlTable = Mapping[str, Any]
GridProblem = tuple[str, str, dict[str, Any]]  # the paper's target, the row of its labels if it has one, the problem


@dataclass(frozen=True)
class SuiteProblem:
    """A target, drawn by the GCD protocol from a labeled source, and labeled sets of other kinds.

    Sources are those of `open_images`; `{data}` in them is the folder of the data.
    """

    name: str  # in results and in `--only`
    target: str  # a source of labeled images
    pool: Mapping[str, str] = field(default_factory=dict)  # sources of other ones, by the name of the data set
    part: str = ""  # the purpose of the problem, such as "choose" or "judge"
    classes: int = 0  # how many classes of the target's source to draw at random; 0 takes all
    other_classes_in_pool: bool = False  # whether the classes of that source that were not drawn join the pool
    per_class: int | None = None  # maximum number of images per class in the target's source
    uneven: tuple[int, ...] = ()  # images of its largest and of its smallest class, the others in equal ratios
    pool_per_class: int | None = None  # maximum number of images per class in the pool
    pool_classes: int = 0  # how many classes of each set of the pool to take, evenly spaced; 0 takes all
    old_share: float = 0.5  # share of the target's classes that have labeled images
    labeled_share: float = 0.5  # share of the images of old classes that are labeled
    wrong_labels: float = 0.0  # share of the pool's images with the label of another class of their data set
    split_seed: int = 0  # the seed of everything that is drawn
    pool_by_protocol: bool = False  # take only the images of each set that would be labeled if it were the target
    # which classes are old: "published", as published for the data set; as for the data set of this name; "half", a
    # random half as for Herbarium-19; by default a random `old_share`
    roles: str = ""
    # where old classes come from, if they are not half of the drawn ones: other sources, "rest" for the classes of the
    # target's source that were not drawn, names of `grades`, or a difficulty group of SSB, whose classes are then
    # exchanged with the old ones
    labels: tuple[str, ...] = ()
    grades: Mapping[str, Sequence[int]] = field(default_factory=dict)  # groups of the classes that were not drawn
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings of methods on this problem


@dataclass(frozen=True)
class SuiteSetting:
    """One way to run: what differs from `Suite.run`."""

    name: str  # in tables
    run: Mapping[str, Any] = field(default_factory=dict)  # fields of `RunSpec` that differ from those of the suite
    seeds: tuple[int, ...] | None = None  # instead of the seeds of the suite
    problems: tuple[str, ...] | None = None  # the only problems to run this setting on; None for all
    parts: tuple[str, ...] | None = None  # the same for the problems of these parts
    k_factor: float = 1.0  # K of the runs, as a multiple of the true one
    row: str = ""  # in a table of the paper: the selection, or the labeled data

    @property
    def method(self) -> str:
        """The name of the method; empty if it is that of the suite."""
        return str(self.run.get("method", ""))

    @property
    def role(self) -> str:
        """The role of the pool; empty if the setting has none, as for k-means."""
        return str(self.run.get("pool_role", ""))

    @property
    def is_guide(self) -> bool:
        """Whether classes of the pool only guide, as by default."""
        return self.role == "guide"


@dataclass(frozen=True)
class Claim:
    """A claim about a suite, of the paper or of a study: some rows are better than others, or as good.

    The mean over rows is compared, paired by method, problem and seed. In a suite that is no table of
    the paper, rows are settings.
    """

    text: str  # the claim in our words
    better: tuple[str, ...]  # rows
    than: tuple[str, ...]  # rows
    group: str = "new"  # what is compared: all, old, new, new_as_old, new_as_new, probe
    than_group: str = ""  # the group of `than`, if it differs
    than_suite: str = ""  # the suite of `than`, if it differs; its results must be in the same folder
    method: str = ""  # the method of `better` if methods are compared; k-means if only that of `than` is named
    than_method: str = ""  # the method of `than`; if only `method` is named, every other one
    targets: tuple[str, ...] = ()  # only these of the paper's targets; all if empty
    within: float | None = None  # points of difference that still count as equal, if the claim is equality
    role: str = ""  # judge it only with the pool in this role, guide or rival; empty for both
    behind: float = 0.0  # points that `better` may be behind, if the claim is only "as good"

    @property
    def method_of_better(self) -> str:
        """The one method that is compared with others; empty if every method is compared with itself."""
        return self.method or (NO_LABELS if self.than_method else "")


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
    columns: Mapping[str, str] = field(default_factory=dict)  # the paper's target, by the problem in its place
    groups: tuple[str, ...] = GROUPS  # the scores to show
    printed_as: Mapping[str, str] = field(default_factory=dict)  # the paper's names of rows, if they differ
    claims: tuple[Claim, ...] = ()
    printed: Mapping[str, Any] = field(default_factory=dict)  # figures of the paper that are no accuracies
    doubted: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # why some of those cannot be right
    only_counts: bool = False  # count images and classes, and run nothing
    is_probed: bool = False  # whether a line has the accuracy of a linear classifier on the features after training
    keeps_files: bool = False  # whether finished runs keep features, checkpoints and model

    def with_role(self, role: str) -> Suite:
        """Only the settings with the pool in this role, and those that use no labels."""
        kept = [setting for setting in self.settings if setting.role in (role, "")]
        if role == "guide" and not any(setting.is_guide for setting in kept):
            raise DataError(f"{self.name} has no pool that could be a {role}", expected="--role rival")
        return replace(self, settings=tuple(kept))

    def with_run(self, **changes: Any) -> Suite:
        """The same suite with other values for all its runs; None keeps a value."""
        return replace(self, run={**self.run, **{name: value for name, value in changes.items() if value is not None}})

    def against(self, baseline: str) -> Suite:
        """The same suite with another setting as the baseline."""
        if baseline not in (names := [setting.name for setting in self.settings]):
            raise DataError(f"no setting {baseline!r} to compare with", expected=f"one of {', '.join(names)}")
        return replace(self, baseline=baseline)

    def runs_of(self, problem: SuiteProblem) -> Iterator[tuple[SuiteSetting, int]]:
        """The runs of one problem, the first seed of all settings first."""
        settings = [each for each in self.settings if each.problems is None or problem.name in each.problems]
        settings = [each for each in settings if each.parts is None or problem.part in each.parts]
        for seed in sorted({seed for setting in settings for seed in (setting.seeds or self.seeds)}):
            yield from ((setting, seed) for setting in settings if seed in (setting.seeds or self.seeds))

    def spec(
        self, setting: SuiteSetting, seed: int, n_target: int | None, problem: SuiteProblem | None = None
    ) -> RunSpec:
        """The spec of a run: `n_target` is the true K, as in the paper's tables, unless the suite sets another one."""
        values = {"n_resamples": 0, "n_target": n_target} | dict(self.run) | dict(setting.run) | {"seed": seed}
        shared, own = self.run.get("settings", {}), setting.run.get("settings", {})
        # of shared settings only those of the method: GCD, say, has no entropy, and k-means no steps
        known = {item.name for item in fields(METHODS[values.get("method", RunSpec.method)].config_class)}
        if setting.method not in ("", self.run.get("method", "")):
            shared = {name: value for name, value in shared.items() if name in known or name in own}
        of_problem = {} if problem is None else problem.settings
        of_problem = {name: value for name, value in of_problem.items() if name in known}
        values["settings"] = {**shared, **own, **of_problem}
        values["selector_params"] = {**self.run.get("selector_params", {}), **setting.run.get("selector_params", {})}
        if n_target is not None and setting.k_factor != 1:
            values["n_target"] = round(setting.k_factor * n_target)
        if values["n_target"] == 0:  # TOML has no null: 0 means that K is estimated
            values["n_target"] = None
        for name in ("checkpoint", "weights"):  # TOML has no paths
            if isinstance(values.get(name), str):
                values[name] = Path(values[name])
        return _make(RunSpec, values, f"setting {setting.name!r}")


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
        selections, substitutes = (_content(SUITES / "shared" / f"{each}.toml") for each in ("selections", profile))
        content = grid(content, selections, substitutes) | {"profile": profile}
    elif profile is not None:
        raise DataError(f"{name} has no profiles", expected="no --profile: it is no table of the paper")
    else:
        if methods := content.pop("methods", []):
            content["settings"] = list(_with_each_method(methods, content.get("settings", [])))
        common, splits = content.pop("problem", {}), content.pop("split_seeds", [])
        content["problems"] = list(_with_each_split(splits, [common | each for each in content.get("problems", [])]))
    for key, kind in (("problems", SuiteProblem), ("settings", SuiteSetting), ("claims", Claim)):
        content[key] = tuple(_make(kind, values, f"one of the {key}") for values in content.get(key, []))
        names = [entry.name for entry in content[key]] if key != "claims" else [""]
        if not names or len(set(names)) < len(names):
            raise DataError(f"{path} has {len(names)} {key}", expected="at least one, each with its own name")
    suite = _make(Suite, {"name": path.stem, "about": "", "run": {}} | content, str(path))
    for setting in suite.settings:  # an invalid spec is rejected before the first run starts
        suite.spec(setting, seed=0, n_target=None)
    return suite


def _with_each_method(methods: Sequence[str], settings: Sequence[TomlTable]) -> Iterator[TomlTable]:
    """Every setting with every method; a setting that has a method stays as it is."""
    yield from (
        {**setting, "name": f"{method}: {setting['name']}", "run": {**setting.get("run", {}), "method": method}}
        for method in methods
        for setting in settings
        if "method" not in setting.get("run", {})
    )
    yield from (setting for setting in settings if "method" in setting.get("run", {}))


def _with_each_split(splits: Sequence[int], problems: Sequence[TomlTable]) -> Iterator[TomlTable]:
    """Every problem with every split of its classes; all problems with the first split come first."""
    if not splits:
        yield from problems
    for seed in splits:
        yield from ({**problem, "name": f"{problem['name']}, split {seed}", "split_seed": seed} for problem in problems)


def suite_names() -> list[str]:
    """The suites of the package."""
    return sorted(path.stem for path in SUITES.glob("*.toml"))


def _content(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {error}", expected="TOML") from error


def _make(kind: type[T], values: Mapping[str, Any], what: str) -> T:
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(values) - known):
        raise DataError(f"{what} has {unknown[0]!r}", expected=f"one of {', '.join(sorted(known))}")
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
    except TypeError as error:
        raise DataError(f"{what}: {error}", expected="all fields that have no default") from error


def grid(content: TomlTable, shared: TomlTable, profile: TomlTable) -> dict[str, Any]:
    """A table of the paper as a full suite, as if its file listed every problem and setting.

    Parameters:
        content: targets (the paper's), labeled (a key of `POOLS`, or "subsets" for Tab. 1), methods, rows.
        shared: the fields of a run for each row, by its name.
        profile: the data sets in place of the paper's, and the settings of the runs.
    """
    rest = {key: value for key, value in content.items() if key not in ("targets", "labeled", "methods", "rows")}
    entries = list(_grid_problems(content, profile))
    settings = list(_grid_settings(content, {**shared, **profile.get("selections", {})}, profile, entries))
    common = {"run": profile["run"], "seeds": profile["seeds"], "baseline": settings[0]["name"]}
    problems = [problem for _, _, problem in entries]
    columns = {problem["name"]: target for target, _, problem in entries}
    return common | rest | {"problems": problems, "settings": settings, "columns": columns}


def _grid_problems(content: TomlTable, profile: TomlTable) -> Iterator[GridProblem]:
    sets, labeled, base = profile["sets"], content["labeled"], profile.get("problem", {})
    for target in (target for target in content["targets"] if target in sets):  # a profile may lack some
        own = sets[target]
        common = {**base, "target": own["source"], "settings": own.get("settings", {})}
        if labeled == "subsets":
            for row in content["rows"]:
                subset = profile["subsets"].get(row)
                if subset is not None and all(key in own for key in subset.get("needs", ())):
                    differs = _filled(subset, own)
                    yield target, row, {**common, **differs, "name": f"{own['name']}, {row} labels"}
        elif labeled == "own":
            yield target, "", {**common, "name": f"{own['name']}, own labels"}
        else:
            # a set with classes of the target would label its new ones
            same = {target, *own.get("shares_classes_with", ())}
            pool = {sets[key]["name"]: sets[key]["source"] for key in POOLS[labeled] if key in sets and key not in same}
            name = f"{own['name']}, {'a wider' if labeled == 'wide' else 'the common'} pool"
            yield target, "", {**common, "name": name, "pool": pool, "pool_by_protocol": True}


def _grid_settings(
    content: TomlTable, meanings: TomlTable, profile: TomlTable, entries: list[GridProblem]
) -> Iterator[dict[str, Any]]:
    is_subsets = content["labeled"] == "subsets"
    roles = ("rival",) if content["labeled"] == "own" else ("rival", "guide")
    for method in content["methods"]:
        if method == "kmeans":
            first = [problem["name"] for _, labels, problem in entries if labels in ("", "original")]
            yield {"name": "kmeans: none", "run": PLAIN_KMEANS, "row": "none", "problems": first}
            continue
        for role in roles:
            for row in content["rows"]:
                if not is_subsets and row not in meanings:
                    raise DataError(f"the row {row!r} is not defined", expected=f"one of {', '.join(meanings)}")
                run = dict(meanings["none" if is_subsets else row])
                run["method"] = run.get("method", method)
                of_method = profile.get("methods", {}).get(run["method"], {})
                run["settings"] = {**profile["settings"], **of_method, **run.get("settings", {})}
                run |= {"pool_role": role, "select_labeled": role == "rival"}
                name = f"{run['method']}: {row}{', as a guide' * (role == 'guide')}"
                setting = {"name": name, "run": run, "row": row}
                if is_subsets:  # the problems with these labels; only a pool can guide
                    own = [problem for _, labels, problem in entries if labels == row]
                    setting["problems"] = [each["name"] for each in own if role == "rival" or each.get("pool")]
                if setting.get("problems") != []:
                    yield setting


def _filled(value: Any, own: TomlTable) -> Any:
    """The value with places such as {near} replaced by the entry of the data set."""
    if isinstance(value, Mapping):
        return {key: _filled(entry, own) for key, entry in value.items() if key != "needs"}
    if isinstance(value, list):
        return [_filled(entry, own) for entry in value]
    return own.get(value[1:-1], value) if isinstance(value, str) and value.startswith("{") else value
