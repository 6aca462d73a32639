"""The import graph of the house, as CONTRIBUTING shows it: `python -m tests.house_graph` prints it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "justright"
BASE = "base"
"""All single modules of the lowest floors, which everyone may use, are one box of the drawing."""


@cache
def imports(file: Path) -> set[str]:
    """Every module a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms() -> list[tuple[Path, str]]:
    """Every source file with the room it belongs to; a module at the top is a room of its own."""
    files = [file for file in SOURCE.rglob("*.py") if file.parent != SOURCE or not file.stem.startswith("__")]
    return [(file, file.relative_to(SOURCE).parts[0].removesuffix(".py")) for file in files]


def room_imports() -> dict[str, set[str]]:
    """Which rooms a room imports from; the modules of the lowest floors count as `BASE`."""
    names = {room for _, room in rooms()}
    found: dict[str, set[str]] = {_box(name): set() for name in names}
    for file, room in rooms():
        used = {parts[1] for module in imports(file) if (parts := module.split("."))[0] == "justright" and parts[1:]}
        found[_box(room)] |= {_box(each) for each in used & names} - {_box(room)}
    return found


def _box(room: str) -> str:
    return room if (SOURCE / room).is_dir() else BASE


def without_shortcuts(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The same graph without edges that a longer way says already."""

    def reachable(room: str) -> set[str]:
        return {other for each in graph[room] for other in (each, *reachable(each))}

    return {room: used - {far for near in used for far in reachable(near)} for room, used in graph.items()}


def drawing() -> str:
    """The graph for Mermaid, which GitHub draws."""
    edges = [f"  {room} --> {used}" for room, others in without_shortcuts(room_imports()).items() for used in others]
    return "\n".join(["graph TD", *sorted(edges)])


if __name__ == "__main__":
    print(drawing())  # noqa: T201
