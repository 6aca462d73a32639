"""What was asked, how long it took, and how to do it again: what run.json says, in tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from justright.report.names import Markup, text
from justright.report.page_shell import facts, folded, note, table

FIRST = ("method", "selector", "seed", "n_target", "k_source", "n_categories", "n_known", "scale")
TITLES = {
    "n_target": "categories of the target (K)",
    "k_source": "source of K",
    "n_categories": "categories in all",
    "n_known": "known classes",
}
SETTINGS = ("config", "selector_params", "spec")
"""Nested settings, from the resolved to the asked for."""


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested settings as one level: {"config": {"rate": 1}} becomes {"config.rate": 1}."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        full = f"{above}.{name}" if above else str(name)
        if isinstance(value, Mapping):
            found |= flat(value, full)
        else:
            found[full] = ", ".join(map(str, value)) if isinstance(value, list) else value
    return found


def resolved(about: Mapping[str, Any]) -> dict[str, Any]:
    """What run.json says, with the spec in the place of what a run that is not finished has not resolved yet."""
    spec = {name: value for name, value in _mapping(about, "spec").items() if value is not None}
    if isinstance(spec.get("backbone"), str):
        spec["backbone"] = {"name": spec["backbone"]}
    return spec | dict(about)


def asked(about: Mapping[str, Any]) -> str:
    """The settings that matter most, then the question in full, then every setting."""
    about = resolved(about)
    first = {TITLES.get(name, name): about[name] for name in FIRST if about.get(name) is not None}
    if name := _mapping(about, "backbone").get("name"):
        first["backbone"] = name
    question = {name: value for name, value in _mapping(about, "asked").items() if name != "command"}
    first |= {name: value for name, value in flat(question).items() if name not in first}
    nested = flat({name: about[name] for name in SETTINGS if about.get(name)})
    folds = folded(f"All {len(nested):,} settings", table(("setting", "value"), _cells(nested))) if nested else ""
    return facts({name: _said(value) for name, value in first.items()}) + folds


def timings(about: Mapping[str, Any]) -> str:
    """Seconds by stage, and all of them."""
    seconds = {
        name: float(value) for name, value in _mapping(about, "seconds").items() if isinstance(value, int | float)
    }
    if not seconds:
        return note("The run does not say how long its stages took.")
    total = sum(seconds.values())
    rows = [(name, value, round(100 * value / total) if total else 0) for name, value in seconds.items()]
    return table(("stage", "seconds", "%"), [*rows, ("all", total, 100)])


def reproduction(about: Mapping[str, Any]) -> str:
    """The command, then versions, seed and fingerprints: equal ones give equal results."""
    about = resolved(about)
    command = about.get("command") or _mapping(about, "asked").get("command")
    said = f"<pre><code>{text(command)}</code></pre>" if command else note("The run does not say its command.")
    rows: list[tuple[str, object]] = [("seed", about["seed"])] if "seed" in about else []
    rows += [(f"version of {name}", value) for name, value in flat(_mapping(about, "versions")).items()]
    if isinstance(about.get("backbone"), Mapping):
        rows += [(f"backbone {name}", value) for name, value in flat(about["backbone"]).items()]
    rows += [(f"fingerprint of {name}", value) for name, value in flat(_mapping(about, "fingerprints")).items()]
    told = {*FIRST, *SETTINGS, "command", "asked", "versions", "fingerprints", "backbone", "seconds", "format"}
    rows += _cells(flat({name: value for name, value in about.items() if name not in told}))
    return (
        f"{said}\n{table(('what', 'value'), [(name, Markup(f'<code>{text(value)}</code>')) for name, value in rows])}"
    )


def _mapping(about: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = about.get(name)
    return value if isinstance(value, Mapping) else {}


def _cells(values: Mapping[str, Any]) -> list[tuple[str, object]]:
    return [(name, _said(value)) for name, value in values.items()]


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not set" if value is None else str(value)
