"""Write the pictures of the README: the report of a small run on drawn characters, and its review page.

python scripts/page_pictures.py docs/images             # report.png and review.png
python scripts/page_pictures.py DIR --all --runs DIR    # every page, whole, also dark and on a phone, to look at

It needs playwright (`pip install '.[dev]'`) and Chromium. With --runs the runs stay for the next call.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

LETTERS = "--scripts georgian --per-class 20 --size 96"
POOL = "--scripts greek,braille --per-class 5"
HOW = "--backbone glyph_vit --epochs 20 --seed 0"
N_COLORS = 256  # a palette keeps the files small
WIDE, PHONE = (1180, 900), (390, 844)
LOOKS = {"": (WIDE, "light"), "-dark": (WIDE, "dark"), "-phone": (PHONE, "light")}


def justright(*words: object) -> None:
    """Run a command, as a user would."""
    subprocess.run([sys.executable, "-m", "justright", *map(str, words)], check=True)


def make_runs(folder: Path, names: list[str]) -> list[Path]:
    """Finished runs, with a pool as a guide or without."""
    justright("data", "glyphs", "--out", folder / "drawn", *LETTERS.split())
    for path in (folder / "drawn" / "alphabets" / "georgian").iterdir():  # u10f4-georgian-letter-har becomes har
        name = path.name.split("-", 2)[2].replace("letter-", "")
        shutil.copytree(path, folder / "georgian" / name, dirs_exist_ok=True)
    justright("data", "glyphs", "--out", folder / "other-letters", *POOL.split())
    justright("data", "split", folder / "georgian", "--out", folder / "split")
    given = [f"--{name}={folder / 'split' / name}.parquet" for name in ("labeled", "target", "truth")]
    runs = {"letters": ["--pool", folder / "other-letters", "--selector", "bins"], "own-labels": ["--selector", "own"]}
    for name in names:
        justright("discover", *given, *runs[name], *HOW.split(), "--out", folder / name)
    return [folder / name for name in names]


@contextmanager
def served(run: Path) -> Iterator[str]:
    """The address of the review page of a run, as long as it is looked at."""
    words = [sys.executable, "-m", "justright", "review", run, "--port", "0", "--quiet", "--reviewer", "anna"]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def save(page: Page, path: Path, is_whole: bool) -> None:
    """What the window shows, or the whole page, as a PNG with a palette."""
    picture = Image.open(io.BytesIO(page.screenshot(full_page=is_whole))).convert("RGB")
    picture.quantize(N_COLORS, method=Image.Quantize.MEDIANCUT).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1000} kB")


def take(browser: Browser, runs: list[Path], out: Path, look: str, is_all: bool) -> None:
    """Report and review of the first run, and the comparison, in a window of this look."""
    (width, height), scheme = LOOKS[look]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto((runs[0] / "report.html").resolve().as_uri())
    save(page, out / f"report{look}.png", is_all)
    with served(runs[0]) as address:
        page.goto(address)
        page.locator("#clusters .row").first.wait_for()
        if is_all:
            save(page, out / f"review-list{look}.png", is_all)
        page.locator("#clusters .row").nth(1).click()
        page.locator("#grid .tile img").first.wait_for()
        page.wait_for_load_state("networkidle")
        save(page, out / f"review{look}.png", is_all)
    if is_all:
        page.goto((runs[0].parent / "compare.html").resolve().as_uri())
        save(page, out / f"comparison{look}.png", is_all)
    page.close()


def main(out: Path, folder: Path, is_all: bool) -> None:
    """Make the runs, open their pages and write what can be seen."""
    runs = make_runs(folder, ["letters", "own-labels"] if is_all else ["letters"])
    if is_all:
        justright("report", *runs, "--out", folder / "compare.html")
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for look in LOOKS if is_all else [""]:
            take(browser, runs, out, look, is_all)
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for the pictures")
    parser.add_argument("--runs", type=Path, help="folder for the runs, if they are to be kept")
    parser.add_argument("--all", action="store_true", dest="is_all", help="every page in every look, whole")
    asked = parser.parse_args()
    with TemporaryDirectory() as temporary:
        main(asked.out, asked.runs or Path(temporary), asked.is_all)
