"""Checks of a page with axe-core, the engine behind the accessibility audits of browsers."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe

GRAVE = ("serious", "critical")


def faults(page) -> list[str]:
    """Serious and critical faults of an open page, each with the rule, the element and what to change."""
    return [
        f"{found['id']}: {node['html'][:200]} {node['failureSummary']}"
        for found in Axe().run(page).response["violations"]
        if found["impact"] in GRAVE
        for node in found["nodes"]
    ]
