"""What was asked, how long it took, and how to do it again: what run.json says, in tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from justright.report.elements import Missing, Table, Values
from justright.utils import settings

FIRST = ("method", "selector", "seed", "n_target", "k_source", "n_categories", "n_known", "scale")
TITLES = {
    "n_target": "categories of the target (K)",
    "k_source": "source of K",
    "n_categories": "categories in all",
    "n_known": "known classes",
}
SETTINGS = ("config", "selector_params", "spec")  # nested settings, from the resolved to the asked for


def flat_texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings as one level, lists as text."""
    one_level = settings.flat(values).items()
    return {name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in one_level}


def resolved(about: Mapping[str, Any]) -> dict[str, Any]:
    """What run.json says, with the spec in the place of what a run that is not finished has not resolved yet."""
    spec = {name: value for name, value in (about.get("spec") or {}).items() if value is not None}
    if isinstance(spec.get("backbone"), str):
        spec["backbone"] = {"name": spec["backbone"]}
    return spec | dict(about)


def asked(about: Mapping[str, Any]) -> Values:
    """The settings that matter most, then the question in full, then every setting."""
    about = resolved(about)
    first = {TITLES.get(name, name): about[name] for name in FIRST if about.get(name) is not None}
    if name := (about.get("backbone") or {}).get("name"):
        first["backbone"] = name
    question = {name: value for name, value in (about.get("asked") or {}).items() if name != "command"}
    first |= {name: value for name, value in flat_texts(question).items() if name not in first}
    every = _in_words(flat_texts({name: about[name] for name in SETTINGS if about.get(name)}))
    return {"first": _in_words(first), "settings": Table(("setting", "value"), list(every.items()))}


def timings(about: Mapping[str, Any]) -> Values | Missing:
    """Seconds by stage, and all of them."""
    seconds = about.get("seconds")
    if not seconds:
        return Missing("The run does not say how long its stages took")
    total = sum(seconds.values())
    rows = [(name, value, round(100 * value / total) if total else 0) for name, value in seconds.items()]
    return {"stages": Table(("stage", "seconds", "%"), [*rows, ("all", total, 100)])}


def reproduction(about: Mapping[str, Any]) -> Values:
    """The command, then versions, seed and fingerprints: equal ones give equal results."""
    about = resolved(about)
    facts: dict[str, Any] = {"seed": about["seed"]} if "seed" in about else {}
    for name, title in (("versions", "version of"), ("backbone", "backbone"), ("fingerprints", "fingerprint of")):
        facts |= {f"{title} {part}": value for part, value in flat_texts(about.get(name) or {}).items()}
    told = {*FIRST, *SETTINGS, "command", "asked", "versions", "fingerprints", "backbone", "seconds", "format"}
    facts |= _in_words(flat_texts({name: value for name, value in about.items() if name not in told}))
    return {"command": about.get("command") or (about.get("asked") or {}).get("command"), "facts": facts}


def _in_words(values: Mapping[str, Any]) -> dict[str, str]:
    words = {True: "yes", False: "no", None: "not set"}
    return {name: words[value] if isinstance(value, bool | None) else str(value) for name, value in values.items()}
