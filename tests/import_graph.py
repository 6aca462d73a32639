"""The import graph of the package: `python -m tests.import_graph` prints it for Mermaid."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "justright"


@cache
def imports(file: Path) -> set[str]:
    """All modules that a file imports, at the top or inside functions."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            modules |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return modules


def source_files() -> list[tuple[Path, str]]:
    """Every source file with its package, the first folder below `src/justright`; the top modules have none."""
    return [(file, file.relative_to(SOURCE).parts[0]) for file in SOURCE.rglob("*.py") if file.parent != SOURCE]


def package_imports() -> dict[str, set[str]]:
    """The packages that each package imports from, without `utils`, which all of them use."""
    packages = {package for _, package in source_files()}
    graph: dict[str, set[str]] = {package: set() for package in packages}
    for file, package in source_files():
        used = {parts[1] for module in imports(file) if (parts := module.split("."))[0] == "justright" and parts[1:]}
        graph[package] |= used & packages - {package, "utils"}
    return graph


def transitive_reduction(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The same graph without the edges that a longer path implies."""

    def reachable(package: str) -> set[str]:
        return {other for each in graph[package] for other in (each, *reachable(each))}

    return {package: used - {far for near in used for far in reachable(near)} for package, used in graph.items()}


def mermaid() -> str:
    """The graph in the language of Mermaid, which GitHub draws."""
    reduced = transitive_reduction(package_imports())
    return "\n".join(
        ["graph TD", *sorted(f"  {package} --> {used}" for package in reduced for used in reduced[package])]
    )


if __name__ == "__main__":
    print(mermaid())  # noqa: T201
