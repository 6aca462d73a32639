"""A table of the paper as a suite: methods, rows and targets in a few lines, data and scale from a profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from justright.utils.errors import DataError

TomlTable = Mapping[str, Any]  # what TOML calls a table

MAIN_POOL = ("cub", "cars", "aircraft", "dogs", "insects")  # the pool of Tab. 2
WIDE_POOL = (*MAIN_POOL, "nabirds", "herbarium", "imagenet100", "imagenet1k-ssb")  # that of Tab. 3
POOLS = {"all": MAIN_POOL, "wide": WIDE_POOL, "own": ()}
# the k-means row of the tables: features as they are
PLAIN_KMEANS = {"method": "kmeans", "selector": "none", "settings": {"use_labels": False, "directions": "never"}}


def grid(content: TomlTable, shared: TomlTable, profile: TomlTable) -> dict[str, Any]:
    """The suite in full, as if its file listed every problem and setting.

    Parameters:
        content: targets (the paper's), labeled (a key of `POOLS`, or "subsets" for Tab. 1), methods, rows.
        shared: what the rows mean, by name: fields of a run.
        profile: the data sets that stand for the paper's, and how runs are set.
    """
    rest = {key: value for key, value in content.items() if key not in ("targets", "labeled", "methods", "rows")}
    problems = list(_problems(content, profile))
    columns = {each["name"]: each.pop("stands_for") for each in problems}
    settings = list(_settings(content, {**shared, **profile.get("selections", {})}, profile, problems))
    for each in problems:
        each.pop("row", None)
    baseline = settings[0]["name"]
    common = {"run": profile["run"], "seeds": profile["seeds"], "baseline": baseline}
    return common | rest | {"problems": problems, "settings": settings, "columns": columns}


def _problems(content: TomlTable, profile: TomlTable) -> Iterator[dict[str, Any]]:
    sets, labeled, base = profile["sets"], content["labeled"], profile.get("problem", {})
    for target in (each for each in content["targets"] if each in sets):  # a profile may lack some
        own = sets[target]
        common = {**base, "target": own["source"], "settings": own.get("settings", {}), "stands_for": target}
        if labeled == "subsets":
            for row in content["rows"]:
                subset = profile["subsets"].get(row)
                if subset is not None and all(key in own for key in subset.get("needs", ())):
                    differs = _filled(subset, own)
                    yield {**common, **differs, "name": f"{own['name']}, {row} labels", "row": row}
        elif labeled == "own":
            yield {**common, "name": f"{own['name']}, own labels"}
        else:
            pool = {sets[key]["name"]: sets[key]["source"] for key in POOLS[labeled] if key in sets and key != target}
            name = f"{own['name']}, {'a wider' if labeled == 'wide' else 'the common'} pool"
            yield {**common, "name": name, "pool": pool, "pool_by_protocol": True}


def _settings(
    content: TomlTable, meanings: TomlTable, profile: TomlTable, problems: list[Any]
) -> Iterator[dict[str, Any]]:
    is_subsets = content["labeled"] == "subsets"
    roles = ("rival",) if content["labeled"] == "own" else ("rival", "guide")
    for method in content["methods"]:
        if method == "kmeans":
            first = [each["name"] for each in problems if each.get("row", "original") == "original"]
            yield {"name": "kmeans: none", "run": PLAIN_KMEANS, "row": "none", "problems": first}
            continue
        for role in roles:
            for row in content["rows"]:
                run = dict(meanings["none"] if is_subsets else _meaning(meanings, row))
                run["method"] = run.get("method", method)
                settings = {
                    **profile["settings"],
                    **profile.get("methods", {}).get(run["method"], {}),
                    **run.get("settings", {}),
                }
                run |= {"settings": settings, "pool_role": role, "select_labeled": role == "rival"}
                name = f"{run['method']}: {row}{', as a guide' * (role == 'guide')}"
                setting = {"name": name, "run": run, "row": row}
                if is_subsets:  # the problems with these labels; only a pool can guide
                    of_row = [each for each in problems if each["row"] == row and (role == "rival" or each.get("pool"))]
                    setting["problems"] = [each["name"] for each in of_row]
                if setting.get("problems") != []:
                    yield setting


def _meaning(meanings: TomlTable, row: str) -> TomlTable:
    if row not in meanings:
        raise DataError(f"nobody says what the row {row!r} means", expected=f"one of {', '.join(meanings)}")
    return meanings[row]


def _filled(value: Any, own: TomlTable) -> Any:
    """The value with places such as {near} filled in as the data set names them."""
    if isinstance(value, Mapping):
        return {key: _filled(each, own) for key, each in value.items() if key != "needs"}
    if isinstance(value, list):
        return [_filled(each, own) for each in value]
    return own.get(value[1:-1], value) if isinstance(value, str) and value.startswith("{") else value
