"""Intervals from random checks with confidences: their coverage, and their length compared with plain intervals.

Run: PYTHONPATH=src python benchmarks/bench_checks.py
Images are drawn whose confidence is calibrated, then the confidence is distorted. Each line is over many
reviews that check images in the order of the review page. The ratio of lengths is to the interval of Wilson, which
has the checks only.
"""

from __future__ import annotations

import numpy as np
from measuring import options

from justright.evaluation import estimate_accuracy, forecast_checks
from justright.review.random_checks import draw_order

DISTORTIONS = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: p**0.2,
    "shuffled": np.random.default_rng(1).permutation,
}
SPREADS = {"weak": 0.25, "good": 0.7, "sharp": 3.0}


def area_under_curve(is_right: np.ndarray, confidence: np.ndarray) -> float:
    """How often a right image has a higher confidence than a wrong one."""
    rank = np.argsort(np.argsort(confidence)) + 1
    n_right, n_wrong = is_right.sum(), (~is_right).sum()
    return float((rank[is_right].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong))


def main() -> None:
    args = options(__doc__, images=2000, accuracy=0.65, reviews=300)
    none_given = np.zeros(args.images, dtype=bool)
    print(f"{args.images:,} images, {args.accuracy:.0%} right, {args.reviews} reviews a line")
    print(f"{'confidence':22} {'AUC':>5} {'guess':>6} {'checks':>6} {'covered':>8} {'plain':>6} {'ratio':>6}")
    for sharpness, spread in SPREADS.items():
        rng = np.random.default_rng(0)
        chance = rng.beta(args.accuracy / spread, (1 - args.accuracy) / spread, args.images)
        is_right = rng.random(args.images) < chance
        truth = is_right.mean()
        for distortion, distort in DISTORTIONS.items():
            confidence = distort(chance)
            auc, guess = area_under_curve(is_right, confidence), forecast_checks(confidence)
            for n_checks in (15, 30, 60, 120, 240):
                estimates = []
                for seed in range(args.reviews):
                    rows = draw_order(confidence, none_given, seed, 1)[:n_checks]
                    estimates.append(estimate_accuracy(rows, is_right[rows], args.images, confidence=confidence))
                covered = np.mean([each.low <= truth <= each.high for each in estimates])
                plain = np.mean([each.plain_low <= truth <= each.plain_high for each in estimates])
                ratio = np.mean([each.length_ratio for each in estimates])
                name = f"{sharpness}, {distortion}"
                print(f"{name:22} {auc:5.2f} {guess:6} {n_checks:6} {covered:8.1%} {plain:6.1%} {ratio:6.2f}")


if __name__ == "__main__":
    main()
