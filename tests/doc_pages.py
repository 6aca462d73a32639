"""What README and docs show as commands and Python, and small drawn data under the names that they use."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

from justright.data import ImageSet, glyph_set

ROOT = Path(__file__).parents[1]
PAGES = [
    Path("README.md"),
    *sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md") if "results" not in path.parts),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)


def blocks(page: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a page, in order: language and text."""
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def prose(page: Path) -> str:
    """A page without its blocks."""
    return BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))


def inline_commands(page: Path) -> list[str]:
    """What stands in running text as `justright ...`."""
    return [" ".join(each.split()) for each in re.findall(r"`(justright [^`]+)`", prose(page))]


def calls(block: str, programs: list[str]) -> list[list[str]]:
    """The programs that a shell calls for a block, each as its words: a real shell that only writes them down.

    There is nothing on its path, so a program that is not listed ends it.
    """
    # one write a call: those of a pipe run side by side
    record = 'record() { local each form=""; for each; do form+="%s\\0"; done; printf "$form\\n" "$@"; } >&3'
    functions = "\n".join(f'{name}() {{ record {name} "$@"; }}' for name in programs)
    script = f"set -eu\nexec 3>&1 >/dev/null\n{record}\n{functions}\n{block}"
    slurm = {"SLURM_JOB_ID": "1", "SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "first"}
    bash = shutil.which("bash")
    done = subprocess.run([bash, "-c", script], env={"PATH": ""} | slurm, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}\nin\n{block}"
    return [line.split("\0") for line in done.stdout.split("\0\n")[:-1]]


SUITE = """
baseline = "own"
run = { backbone = "glyph_vit", scale = "small", settings = { n_epochs = 1, n_steps = 1, views = 2 } }
[[problems]]
name = "letters"
target = "glyphs:per_class=4,scripts=digits"
pool = { shapes = "glyphs:per_class=2,scripts=shapes" }
[[settings]]
name = "own"
run = { selector = "own" }
[[settings]]
name = "everything"
run = { selector = "none" }
"""


def drawn(script: str, classes: range, images: range) -> ImageSet:
    """Some drawings of some characters of a script."""
    every = glyph_set(per_class=images.stop, scripts=(script,), seed=0)
    some = every.of_classes([sorted(every.classes)[n] for n in classes])
    return some.take([row for row in range(len(some)) if row % images.stop in images])


def write_folder(images: ImageSet, folder: Path, is_flat: bool = False) -> dict[str, str]:
    """The images as files, one folder a class or all in one; gives the class of each file."""
    found = {}
    for row, (label, path) in enumerate(zip(images.labels, images.paths, strict=True)):
        number = Path(path).stem
        file = folder / (f"{label}-{number}.png" if is_flat else f"{label}/{number}.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(images.encoded(row))
        found[file.name] = str(label)
    return found


def set_up(folder: Path) -> None:
    """Everything that the pages name and no command of theirs makes."""
    known, photos = range(4), range(8)
    for name in ("labeled", "birds", "shared/birds"):
        write_folder(drawn("georgian", known, range(4)), folder / name)
    for name in ("photos", "shared/photos"):
        class_of = write_folder(drawn("georgian", photos, range(4, 8)), folder / name, is_flat=True)
    for name in ("more-photos", "more_photos"):
        write_folder(drawn("georgian", photos, range(8, 9)), folder / name, is_flat=True)
    write_folder(drawn("greek", range(5), range(4)), folder / "other-labeled")
    with zipfile.ZipFile(folder / "other-labeled.zip", "w") as archive:
        for file in sorted((folder / "other-labeled").rglob("*.png")):
            archive.write(file, file.relative_to(folder / "other-labeled"))
    old = {path.name for path in (folder / "labeled").iterdir()}
    with (folder / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "class_name", "is_old"])
        rows.writerows([name, label, label in old] for name, label in class_of.items())
    write_cub(drawn("armenian", range(8), range(6)), folder / "DATA" / "CUB_200_2011")
    split = {"known_classes": [0, 1, 2, 3], "unknown_classes": {"Easy": [4], "Medium": [5], "Hard": [6, 7]}}
    (folder / "cub_ssb_splits.json").write_text(json.dumps(split))
    (folder / "small.toml").write_text(SUITE)
    saved = {"path": "alphabets/greek/u0393-greek-capital-letter-gamma/0.png", "category": "gamma"}
    (folder / "project-1.json").write_text(json.dumps([saved]))  # as Label Studio saves what people chose
    (folder / "docs").mkdir()
    shutil.copytree(ROOT / "docs" / "results", folder / "docs" / "results")
    shutil.copytree(ROOT / "docs" / "results" / "selection", folder / "study")
    os.mkdir(folder / "docs" / "images")


def write_cub(images: ImageSet, root: Path) -> None:
    """The images in the layout of CUB-200-2011, all of them in its part for training."""
    classes = sorted(images.classes)
    names = [f"{number:03}.Bird_{number}" for number in range(1, len(classes) + 1)]
    rows = []
    for row, label in enumerate(images.labels.tolist()):
        file = root / "images" / names[classes.index(label)] / f"{row}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(images.encoded(row))
        rows.append((file.relative_to(root / "images"), classes.index(label) + 1))
    lines = {
        "classes": names,
        "images": [path for path, _ in rows],
        "image_class_labels": [label for _, label in rows],
        "train_test_split": [1] * len(rows),
    }
    for name, values in lines.items():
        (root / f"{name}.txt").write_text("".join(f"{n} {value}\n" for n, value in enumerate(values, 1)))
