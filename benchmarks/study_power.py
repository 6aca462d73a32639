"""How many problems and seeds a comparison of settings needs, from the variances in committed lines of a suite.

A difference of two settings on one problem varies between problems (another target, another class split) and between
seeds of training. Both variances are estimated from paired lines; power and the chance to show equivalence follow from
the noncentral t distribution and a normal approximation of two one-sided tests.

    python benchmarks/study_power.py docs/results/selection/results.jsonl "everything, as rivals" "bins, as rivals"
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import nct, norm, t

from justright.benchmark.results import Line, read_results

LEVEL = 0.95


class Variances(NamedTuple):
    """Variances of a paired difference in points: between problems, and between seeds of one problem."""

    between: float
    within: float
    n_problems: int
    mean: float

    def error(self, n_problems: int, n_seeds: int) -> float:
        """The standard error of the mean difference."""
        return math.sqrt((self.between + self.within / n_seeds) / n_problems)


def variances(lines: Sequence[Line], setting: str, baseline: str, group: str) -> Variances:
    """Analysis of variance with one random factor, the problem; a negative estimate counts as 0."""
    scores = {(line["problem"], line["setting"], line["seed"]): line.get(group) for line in lines}
    of_problem: dict[str, list[float]] = {}
    for (problem, name, seed), score in scores.items():
        against = scores.get((problem, baseline, seed))
        if name == setting and score is not None and against is not None:
            of_problem.setdefault(problem, []).append(100 * (score - against))
    repeated = [differences for differences in of_problem.values() if len(differences) > 1]
    if len(repeated) < 2:
        raise SystemExit(f"{setting} against {baseline}: fewer than two problems have two seeds each")
    within = float(np.mean([np.var(differences, ddof=1) for differences in repeated]))
    means = [float(np.mean(differences)) for differences in repeated]
    n_seeds = float(np.mean([len(differences) for differences in repeated]))
    between = max(0.0, float(np.var(means, ddof=1)) - within / n_seeds)
    return Variances(between, within, len(repeated), float(np.mean(means)))


def power(effect: float, error: float, n_problems: int) -> float:
    """The chance that a two-sided t test over problems finds a difference of this size."""
    limit = float(t.ppf((1 + LEVEL) / 2, n_problems - 1))
    return float(1 - nct.cdf(limit, n_problems - 1, effect / error) + nct.cdf(-limit, n_problems - 1, effect / error))


def chance_of_equivalence(margin: float, error: float, n_problems: int) -> float:
    """The chance that the 90 % interval lies within the margin if there is no difference at all."""
    limit = float(t.ppf(LEVEL, n_problems - 1))
    return max(0.0, 2 * float(norm.cdf(margin / error - limit)) - 1)


def needed(estimated: Variances, effect: float, n_seeds: int, wanted: float = 0.8) -> int | None:
    """The smallest number of problems with this power; None above 500."""
    return next((n for n in range(3, 501) if power(effect, estimated.error(n, n_seeds), n) >= wanted), None)


def main() -> None:
    """Print the variances, the number of problems that is needed, and the power of the problems at hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=Path)
    parser.add_argument("baseline")
    parser.add_argument("settings", nargs="+")
    parser.add_argument("--group", default="all")
    parser.add_argument("--effect", type=float, default=2.0, help="smallest effect of interest and margin, in points")
    options = parser.parse_args()
    lines = read_results(options.lines)
    print(f"{options.group}, against {options.baseline}; an effect and a margin of {options.effect:g} points")
    print("| setting | mean | sd between problems | sd between seeds | problems for 3 / 5 seeds | power, equivalence |")
    print("|---|---|---|---|---|---|")
    for setting in options.settings:
        estimated = variances(lines, setting, options.baseline, options.group)
        counts = " / ".join(str(needed(estimated, options.effect, n) or "> 500") for n in (3, 5))
        error = estimated.error(estimated.n_problems, 3)
        shown = power(options.effect, error, estimated.n_problems)
        equal = chance_of_equivalence(options.effect, error, estimated.n_problems)
        deviations = " | ".join(f"{math.sqrt(variance):.1f}" for variance in (estimated.between, estimated.within))
        print(
            f"| {setting} | {estimated.mean:+.1f} | {deviations} "
            f"| {counts} | {shown:.2f}, {equal:.2f} at {estimated.n_problems} problems x 3 seeds |"
        )


if __name__ == "__main__":
    main()
