"""Damage one random file; every kind of file is equally likely."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

KINDS = {
    "block of views": r"home/banks/.*\.block$",
    "key of views": r"home/banks/.*\.json$",
    "block of features": r"home/features/.*\.block$",
    "cache key": r"home/features/.*\.json$",
    "checkpoint": r"checkpoint/.*\.safetensors$",
    "model file": r"model\.(json|safetensors)$",
    "review log": r"review/(log\.jsonl|saved\.json)$",
    "thumbnail": r"review/thumbnails/.*\.jpg$",
    "store file": r"\.features/",
    "suite results": r"results\.jsonl$",
    "Parquet": r"\.parquet$",
    "JSON": r"\.jsonl?$",
    "array": r"\.npy$",
}
DAMAGES = ("one bit", "zeros", "cut off", "swapped")


def kind_of(name: str) -> str | None:
    """The kind of a file, by its name relative to the folder of a round."""
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, name)), None)


def damage(
    folder: Path, readable: str, rng: np.random.Generator, kind: str | None = None
) -> tuple[str, list[str]] | None:
    """Damage a file that matches `readable`; returns what was done and the names of the changed files.

    Returns None if there is no such file. With `kind` it is a file of this kind, part of which becomes zeros. Temporary
    files of killed processes, whose names begin with a dot, are left alone.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    by_kind: dict[str, list[str]] = {}
    for name in names:
        own = kind_of(name)
        if own and re.match(readable, name) and not Path(name).name.startswith(".") and (folder / name).stat().st_size:
            by_kind.setdefault(own, []).append(name)
    if not by_kind:
        return None
    how = "zeros" if kind else str(rng.choice(DAMAGES))
    kind = kind or str(rng.choice(sorted(by_kind)))
    name = str(rng.choice(by_kind[kind]))
    data = (folder / name).read_bytes()
    others = [other for other in by_kind[kind] if other != name and (folder / other).suffix == (folder / name).suffix]
    if name.startswith("split/"):  # the command line says which file is which, so a swap cannot be noticed
        others = []
    others = [other for other in others if (folder / other).read_bytes() != data]
    if how == "swapped" and others:
        other = str(rng.choice(others))
        (folder / name).write_bytes((folder / other).read_bytes())
        (folder / other).write_bytes(data)
        return f"{kind}, swapped", [name, other]
    (folder / name).write_bytes(_spoiled(data, "one bit" if how == "swapped" else how, rng))
    return f"{kind}, {'one bit' if how == 'swapped' else how}", [name]


def _spoiled(data: bytes, how: str, rng: np.random.Generator) -> bytes:
    place = int(rng.integers(len(data)))
    if how == "cut off":
        return data[:place]
    if how == "zeros":
        n = min(int(rng.integers(1, 4097)), len(data) - place)
        return data[:place] + bytes(n) + data[place + n :]
    return data[:place] + bytes([data[place] ^ 1 << int(rng.integers(8))]) + data[place + 1 :]
