"""Errors of estimates of K on problems with known K, and the coverage of their intervals.

    python benchmarks/study_counts.py                       # characters alone
    python benchmarks/study_counts.py --photos FEATURES --out docs/results/counts.jsonl
    python benchmarks/study_counts.py --show docs/results/counts.jsonl

The constants of CombinedCounter are chosen on one part of the problems; others judge them. With `--choose` only the
first part is run, and the constants that it suggests are printed: weights by least squares, errors as the 97.5 %
quantile over sources that were left out of the fit, since those of a user were never in it. The form of the error was
changed after the first judging; problems drawn again from the same sources judge it a second time.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from count_problems import Bank, Drawn, Setting, settings
from threadpoolctl import threadpool_limits

from justright import CombinedCounter, LabeledSearchCounter, MixtureCounter
from justright.estimation.base import Given
from justright.estimation.combined import DISAGREEMENT, FEW_CLASSES, FEW_IMAGES
from justright.runs.counting import k_note
from justright.utils.files import write_text

SHOWN = ("combined", "mixture", "labeled-search")
GIVEN = (0.5, 0.7, 1.0, 1.3, 2.0)  # values of `discover --k`, as multiples of the true K
N_AXES = 128
N_OWN, N_POOL = {"chosen": 60, "judged": 32, "judged again": 32}, {"chosen": 40, "judged": 20, "judged again": 0}


def counted(setting: Setting, drawn: Drawn) -> dict[str, Any]:
    """The problem and every estimate; the older counters have an interval only on problems to judge on."""
    start = time.process_time()
    combined = CombinedCounter().fit(drawn.features, drawn.labels, pool=drawn.pool)
    interval = combined.interval()
    seconds = time.process_time() - start
    labels = drawn.labels if drawn.pool is None else drawn.pool[1]
    record = asdict(setting) | {
        "n_categories": drawn.n_categories,
        "images": len(drawn.features),
        "labeled_classes": len(set(labels.tolist()) - {-1}),
        "seconds": round(seconds, 1),
        "combined": [combined.n_categories_, *interval],
        "parts": combined.estimates_,
    }
    if drawn.pool is None:
        x = Given.of(drawn.features, None, None, normalize=True).axes(N_AXES).astype(np.float32)
        search = LabeledSearchCounter(normalize=False).fit(x, drawn.labels)
        record["parts"]["labeled-search"] = search.n_categories_
        if setting.part == "judged":
            mixture = MixtureCounter(normalize=False).fit(x, drawn.labels)
            record["mixture"] = [mixture.n_categories_, *mixture.interval(n_resamples=4)]
            record["labeled-search"] = [search.n_categories_, *search.interval()]
    return record


def line(record: dict[str, Any]) -> str:
    """One problem as a line of the table."""
    lines = [f"{name} {_text(record[name], record['n_categories'])}" for name in SHOWN if name in record]
    what = f"{record['source'][:22]:22} {record['images']:5} images {record['labeled_classes']:3} labeled classes"
    flags = f"{'uneven' if record['is_uneven'] else '':6} {'pool' if record['pool'] else record['old_share']!s:4}"
    return f"{what} {flags} K {record['n_categories']:3}: {', '.join(lines)} ({record['seconds']} s)"


def summary(records: list[dict[str, Any]]) -> list[str]:
    """Mean absolute error and coverage by part and kind of problem."""
    lines = []
    for part in N_OWN:
        for kind in ("own labels", "pool alone"):
            some = [each for each in records if each["part"] == part and bool(each["pool"]) == (kind == "pool alone")]
            for name in SHOWN:
                of_counter = [(each[name], each["n_categories"]) for each in some if name in each]
                if not of_counter:
                    continue
                off = [abs(k - true) / true for (k, *_), true in of_counter]
                n_held = sum(low <= true <= high for (_, low, high), true in of_counter)
                width = [high / low for (_, low, high), _ in of_counter]
                lines.append(
                    f"{part}, {kind}, {name}: off by {np.mean(off):.1%}, held in {n_held} of {len(off)} "
                    f"({n_held / len(off):.0%}), high / low {np.median(width):.2f}"
                )
                if name == "combined":
                    doubted = {by: sum(_is_doubted(by * true, each) for each, true in of_counter) for by in GIVEN}
                    lines.append(f"  doubted where `discover --k` is given a multiple of K: {doubted}")
    return lines


def _is_doubted(given: float, estimate: list[int]) -> bool:
    return k_note(round(given), {"n_categories": estimate[0], "interval": estimate[1:]}) is not None


def suggested(records: list[dict[str, Any]]) -> list[str]:
    """Constants of CombinedCounter, from the problems to choose on."""
    own = [each for each in records if each["part"] == "chosen" and not each["pool"]]
    pool = [each for each in records if each["part"] == "chosen" and each["pool"]]
    lines = [f"spread_share {_share(own):.2f}, with labeled-search beside {_shares_of_three(own)}"]
    off = []
    for source in sorted({each["source"] for each in own}):
        share = _share([each for each in own if each["source"] != source])
        for each in (each for each in own if each["source"] == source):
            log_k = share * math.log(each["parts"]["spread"]) + (1 - share) * math.log(each["parts"]["mixture"])
            few = FEW_CLASSES / each["labeled_classes"] + FEW_IMAGES * math.exp(log_k) / each["images"]
            apart = abs(math.log(each["parts"]["spread"] / each["parts"]["mixture"]))
            off.append(abs(log_k - math.log(each["n_categories"])) / (1 + few + DISAGREEMENT * apart))
    lines.append(f"error {np.quantile(off, 0.975):.3f} (at 90 %: {np.quantile(off, 0.9):.3f})")
    if pool:
        log_off = [abs(math.log(each["parts"]["spread"] / each["n_categories"])) for each in pool]
        lines.append(f"pool error {np.quantile(log_off, 0.95):.2f} (at 90 %: {np.quantile(log_off, 0.9):.2f})")
    return lines


def _share(records: list[dict[str, Any]]) -> float:
    spread, mixture, true = _logs(records)
    apart = spread - mixture
    return float(np.clip(apart @ (true - mixture) / (apart @ apart), 0, 1))


def _shares_of_three(records: list[dict[str, Any]]) -> str:
    spread, mixture, true = _logs(records)
    search = np.log([each["parts"]["labeled-search"] for each in records])
    found = np.linalg.lstsq(np.stack([spread - mixture, search - mixture], 1), true - mixture, rcond=None)[0]
    return f"{found[0]:.2f} and {found[1]:.2f}"


def _logs(records: list[dict[str, Any]]) -> Any:
    parts = [(each["parts"]["spread"], each["parts"]["mixture"], each["n_categories"]) for each in records]
    return np.log(np.array(parts, dtype=np.float64)).T


def _text(estimate: list[int], true: int) -> str:
    return f"{estimate[0]} [{estimate[1]}, {estimate[2]}]{'' if estimate[1] <= true <= estimate[2] else ' MISSED'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=Path, help="a folder with stores of features, such as pets37.features")
    parser.add_argument("--out", type=Path, help="file for the records, as JSON lines")
    parser.add_argument("--choose", action="store_true", help="run the first part only, and suggest constants")
    parser.add_argument("--show", type=Path, help="file of such records to summarize; nothing is counted")
    options = parser.parse_args()
    if options.show:
        print("\n".join(summary([json.loads(each) for each in options.show.read_text(encoding="utf-8").splitlines()])))
        return
    bank, records = Bank(options.photos), []
    for part in ["chosen"] if options.choose else N_OWN:
        print(f"{part}:")
        for setting in settings(part, N_OWN[part], N_POOL[part], options.photos is not None):
            records.append(counted(setting, bank.draw(setting)))
            print(" ", line(records[-1]), flush=True)
    print("\n".join(suggested(records) if options.choose else summary(records)))
    if options.out:
        write_text(options.out, "".join(json.dumps(each) + "\n" for each in records))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
