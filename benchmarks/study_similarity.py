"""The similarity that Beta sees: quantiles by source, and the weights that each reading of Beta makes of them.

    python benchmarks/study_similarity.py --data DATA --backbone efficientnet_lite0 --img-size 160
    python benchmarks/study_similarity.py --data DATA --backbone dinov2_vits14_reg --checkpoint VIT --img-size 168

DATA has cub200.zip and the other sources of the suite `cub`, whose problem "all labels" is used: CUB's own labels and
five other sources, against CUB's target.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from justright import BetaSelector, load_backbone
from justright.benchmark.problems import problem_of
from justright.benchmark.suite import read_suite
from justright.features.extract import extract
from justright.utils.errors import JustrightError

READINGS = {
    "clip": BetaSelector(),
    "affine": BetaSelector(domain="affine"),
    "rank": BetaSelector(domain="rank"),
    "minmax": BetaSelector(domain="minmax"),
    "median, clip": BetaSelector(reduction="median"),
    "median, affine": BetaSelector(reduction="median", domain="affine"),
}


def main() -> None:
    """Extract the features once and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--img-size", type=int)
    options = parser.parse_args()
    (description,) = [each for each in read_suite("cub").problems if each.name == "all labels"]
    problem = problem_of(description, options.data)
    backbone = load_backbone(options.backbone, options.checkpoint, img_size=options.img_size)
    with tempfile.TemporaryDirectory() as folder:
        pool = extract(problem.pool.images, backbone, Path(folder) / "pool.features")
        target = extract(problem.target, backbone, Path(folder) / "target.features")
        features = np.asarray(pool.features), pool.labels, np.asarray(target.features)
    source = np.array([problem.pool.origins[label].dataset for label in np.unique(pool.labels)])
    fitted = {}
    for name, selector in READINGS.items():
        try:
            fitted[name] = selector.fit(*features, quiet=True)
        except JustrightError as error:
            print(f"{name}: {error.problem}")
    print(f"{options.backbone}: cosine of a class centroid to the target, quantiles 5 %, 50 %, 95 % over classes\n")
    print("| source | classes | to the farthest image | to the median image |\n|---|---|---|---|")
    for each in dict.fromkeys(source.tolist()):
        parts = [fitted[name].class_similarity_[source == each] for name in ("clip", "median, clip")]
        cells = [" / ".join(f"{value:.2f}" for value in np.quantile(part, [0.05, 0.5, 0.95])) for part in parts]
        print(f"| {each} | {(source == each).sum()} | {' | '.join(cells)} |")
    print("\nMean weight by source; in the paper neither the nearest nor the farthest source weighs most\n")
    print(f"| source | {' | '.join(fitted)} |\n|---|{'---|' * len(fitted)}")
    for each in dict.fromkeys(source.tolist()):
        means = [selector.class_weight_[source == each].mean() for selector in fitted.values()]
        print(f"| {each} | {' | '.join(f'{mean:.2f}' for mean in means)} |")


if __name__ == "__main__":
    main()
