"""The review page with 100,000 images in 2,000 clusters and 10,000 actions in the log.

    python benchmarks/bench_review.py [--images 100000] [--clusters 2000] [--actions 10000]

Draws a run with random features of 384 numbers and 500 JPEGs under 100,000 ids, serves it as `justright review` does,
and prints median and 95th percentile of each route over one connection, the memory of the server, and how long
Chromium takes until the page can be used, from cluster to cluster, and to a place far down a list. Thumbnails are timed
made and kept; their ratio is what the cache is worth.
"""

from __future__ import annotations

import argparse
import http.client
import json
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import measuring
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from justright.data.columns import COLUMNS, NAME
from justright.discovery.predictions import Predictions, category_names
from justright.review.actions import Keep, LogLine, Move, SetName
from justright.review.log import with_checksum
from justright.review.open_review import OpenReview
from justright.runs.run_folder import RunFolder
from justright.utils.hashing import hash_bytes

DIM, SIZE, N_PICTURES = 384, 256, 500

WATCH = """() => {
  window.shown = [];
  document.addEventListener("keydown", () => { window.pressed = performance.now(); }, true);
  const seen = () => window.shown.push(performance.now() - window.pressed);
  new MutationObserver(seen).observe(document.getElementById("name"), { childList: true });
}"""


def draw_run(path: Path, n_images: int, n_clusters: int) -> RunFolder:
    rng = np.random.default_rng(0)
    path.mkdir(parents=True)
    (path / "photos").mkdir()
    for number in range(N_PICTURES):
        measuring.blurred_noise(rng, (6, 6), (SIZE, SIZE)).save(path / "photos" / f"{number}.jpg", quality=80)
    ids = [hash_bytes(str(row).encode()) for row in range(n_images)]  # of their own: every image gets a thumbnail
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_images, np.int32)), pa.array(["folder:photos"]))
    dataset = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_images, np.int32)), pa.array(["photos"]))
    columns = {
        "id": pa.array(ids),
        "source": same,
        "path": pa.array([f"{row % N_PICTURES}.jpg" for row in range(n_images)]),
        "label": pa.array(np.full(n_images, -1, np.int32)),
        "class_name": pa.nulls(n_images, NAME),
        "dataset": dataset,
        "split": pa.nulls(n_images, NAME),
    }
    table = pa.table({name: columns[name] for name in COLUMNS})
    pq.write_table(table, path / "target.parquet")
    # a few clusters are large, as they are in life
    share = 1 / np.arange(1, n_clusters + 1) ** 0.7
    cluster = np.concatenate(
        [np.arange(n_clusters), rng.choice(n_clusters, n_images - n_clusters, p=share / share.sum())]
    )
    centers = rng.normal(size=(n_clusters, DIM)).astype(np.float32)
    tuned = np.lib.format.open_memmap(path / "tuned.npy", mode="w+", dtype=np.float32, shape=(n_images, DIM))
    tuned[:] = centers[cluster] + 0.5 * rng.normal(size=(n_images, DIM)).astype(np.float32)
    tuned.flush()
    known = [f"known/{number}" for number in range(n_clusters // 4)]
    confidence = rng.beta(8, 2, n_images).astype(np.float32)
    index = table.select(["id", "dataset", "path"])
    predictions = Predictions(index, cluster, confidence, confidence < 0.3, category_names(known, n_clusters))
    predictions.save(path / "predictions.parquet")
    folder = RunFolder(path)
    folder.save_about({"seed": 0, "method": "simgcd", "n_categories": n_clusters})
    return RunFolder.open(path)


def write_actions(run: RunFolder, n_actions: int) -> None:
    """Fill a log as a review of weeks would; without a flush to disk a line, which is not what is measured."""
    opened, rng = OpenReview(run), np.random.default_rng(1)
    opened.folder.mkdir(exist_ok=True)
    lines = [with_checksum(opened.log.header)]
    for seq in range(1, n_actions + 1):
        row = int(rng.integers(len(opened.state.group)))
        cluster, to = int(opened.state.group[row]), int(rng.integers(len(opened.predictions.categories)))
        move = Move(cluster=cluster, rows=[row], to=to)
        action = move if seq % 3 == 0 and to != cluster else Keep(cluster=cluster)
        action = SetName(cluster=cluster, name=f"name {seq}") if seq % 10 == 0 else action
        line = LogLine(seq=seq, at="2026-01-01T00:00:00Z", by="anna", id=secrets.token_hex(8), action=action)
        opened.state.apply(line)
        lines.append(with_checksum(line.model_dump()))
    opened.log.path.write_bytes(b"".join(lines))


def start(run: Path) -> tuple[subprocess.Popen[str], str, float]:
    begun = time.perf_counter()
    command = [sys.executable, "-m", "justright", "review", str(run), "--port", "0", "--quiet", "--reviewer", "anna"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    return process, url, time.perf_counter() - begun


class Client:
    def __init__(self, url: str):
        self.parts = urlsplit(url)
        self.connection = http.client.HTTPConnection(self.parts.netloc)

    def ask(self, path: str, body: object = None) -> bytes:
        method, data = ("POST", json.dumps(body)) if body is not None else ("GET", None)
        self.connection.request(method, self.parts.path + path, data, {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        content = response.read()
        assert response.status == 200, (path, response.status, content[:200])
        return content


def timed(name: str, work: Callable[[int], object], n: int) -> float:
    seconds = [measuring.timed(partial(work, number)).clock for number in range(n)]
    median = statistics.median(seconds)
    print(f"{name:38} median {1e3 * median:8.1f} ms   p95 {1e3 * sorted(seconds)[int(0.95 * n)]:8.1f} ms   of {n}")
    return median


def memory(pid: int) -> str:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    now, file_backed = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "RssFile"))
    return f"{now:,.0f} MB resident, {file_backed:,.0f} MB of it mapped files"


def measure_routes(url: str, pid: int, n_images: int) -> None:
    rng = np.random.default_rng(2)
    client = Client(url)
    print(f"memory at the start: {memory(pid)}")
    cards = json.loads(client.ask("clusters?limit=2000&order=largest"))["clusters"]
    pick = rng.permutation(len(cards))

    def image(number: int) -> bytes:
        return client.ask(f"images/{rows[number]}/160")

    def act(number: int) -> bytes:
        seq = json.loads(client.ask("status?since=10000"))["seq"]
        action = {"do": "keep", "cluster": cards[pick[number]]["cluster"]}
        return client.ask("act", {"id": secrets.token_hex(8), "base": seq, "reviewer": "ben", "action": action})

    timed("page", lambda _: client.ask(""), 50)
    timed("status", lambda _: client.ask("status?since=9990"), 50)
    timed("clusters, a page of 100", lambda n: client.ask(f"clusters?limit=100&offset={100 * (n % 20)}"), 60)
    timed("clusters, search", lambda n: client.ask(f"clusters?search=name+{n}"), 50)
    timed("one cluster", lambda n: client.ask(f"clusters/{cards[pick[n]]['cluster']}"), 100)
    timed(
        "images of a cluster, a page of 200", lambda n: client.ask(f"clusters/{cards[pick[n]]['cluster']}/images"), 100
    )
    timed("images of the largest, new order", lambda n: client.ask(f"clusters/{cards[n]['cluster']}/images"), 10)
    client.ask(f"clusters/{cards[0]['cluster']}/near")
    timed("where to move, most similar first", lambda n: client.ask(f"clusters/{cards[n]['cluster']}/near"), 20)
    timed("next random check", lambda _: client.ask("check?reviewer=ben"), 30)
    timed("history", lambda _: client.ask("history"), 30)
    timed("agreement", lambda _: client.ask("agreement"), 10)
    rows = rng.choice(n_images, 400, replace=False).tolist()
    made = timed("thumbnail, made", image, 400)
    kept = timed("thumbnail, kept", image, 400)
    print(f"{'':38} made / kept = {made / kept:.1f}")
    timed("action, on disk (and a status)", act, 100)
    big = cards[0]
    seq = json.loads(client.ask("status"))["seq"]
    split = {"do": "split", "cluster": big["cluster"], "n_parts": 3}
    request = {"id": secrets.token_hex(8), "base": seq, "reviewer": "ben", "action": split}
    timed(f"split of {big['n']:,} images into 3", lambda _: client.ask("act", request), 1)
    for form in ("csv", "parquet", "labeled"):
        timed(f"export, {form}", lambda _, form=form: client.ask("export", {"form": form}), 1)
    print(f"memory at the end: {memory(pid)}")


def measure_page(url: str, n_clusters: int) -> None:
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if found is None:
        print("no Chromium: the page was not measured")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})

        def usable(_: int) -> None:
            page.goto(url)
            page.wait_for_selector("body[data-ready]")
            page.wait_for_selector("#grid .tile img")

        timed("browser: until the page is usable", usable, 5)

        # by the clock of the page: asking it from outside takes longer than it does
        page.evaluate(WATCH)
        for _ in range(30):
            page.keyboard.press(".")
            page.wait_for_timeout(300)
        shown = page.evaluate("() => window.shown")
        print(
            f"{'browser: from key to the next cluster':38} median {statistics.median(shown):8.1f} ms   of {len(shown)}"
        )

        page.wait_for_function("() => !('busy' in document.body.dataset)")  # else the last key scrolls back

        def far(number: int) -> None:
            place = n_clusters * (95 - 4 * number) // 100
            page.evaluate("n => { document.getElementById('clusters').scrollTop = n; }", 68 * place)
            page.wait_for_selector(f"#clusters-{place + 2}")

        timed("browser: far down the list", far, 10)
        cells = page.evaluate("() => document.querySelectorAll('.row, .tile').length")
        print(f"{'browser: cells in the document':38} {cells}")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--clusters", type=int, default=2_000)
    parser.add_argument("--actions", type=int, default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = draw_run(Path(folder) / "run", asked.images, asked.clusters)
        write_actions(run, asked.actions)
        process, url, seconds = start(run.path)
        print(
            f"{asked.images:,} images, {asked.clusters:,} clusters, {asked.actions:,} actions: "
            f"ready after {seconds:.1f} s"
        )
        try:
            measure_routes(url, process.pid, asked.images)
            measure_page(url, asked.clusters)
            print(f"memory after the browser: {memory(process.pid)}")
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
