"""All claims of the paper's tables, judged together: one family for each kind of images.

    python benchmarks/study_claims.py [--results docs/results]

Prints a table with a row for each claim, and the number of claims in each outcome.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from justright.benchmark.claims import Verdict, compared, corrected
from justright.benchmark.results import Line, suite_results
from justright.benchmark.suite import Suite, read_suite, suite_names

KINDS = {"glyphs": "drawn characters", "real": "photos"}


def suite_of(profile: str, results: Path, name: str) -> tuple[Suite, Sequence[Line]]:
    """A table of the paper and its committed lines."""
    suite = read_suite(name, profile)
    return suite, suite_results(suite, results / f"paper-{profile}")


def judged(profile: str, results: Path) -> dict[tuple[str, str, bool], Verdict]:
    """The claims about all methods together, by table, text and role."""
    verdicts: list[tuple[str, Verdict]] = []
    opened = partial(suite_of, profile, results)
    for name in (name for name in suite_names() if read_suite(name).columns):
        suite, lines = opened(name)
        for is_guide in (False, True):
            if any(setting.is_guide == is_guide for setting in suite.settings):
                verdicts += [(name, each) for each in compared(suite, lines, opened, is_guide) if not each.method]
    outcomes = corrected([each for _, each in verdicts])
    return {(name, each.claim, each.is_guide): each for (name, _), each in zip(verdicts, outcomes, strict=True)}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    by_kind = {profile: judged(profile, options.results) for profile in KINDS}
    rows = dict.fromkeys(key for kind in by_kind.values() for key, each in kind.items() if each.difference)
    print(f"| table | claim | {' | '.join(KINDS.values())} | paper |\n|---|---|---|---|---|")
    for table, claim, is_guide in rows:
        cells, paper = [], ""
        for kind in by_kind.values():
            verdict = kind.get((table, claim, is_guide))
            if verdict is None or verdict.difference is None:
                cells.append("")
                continue
            _, outcome, difference, n, printed = verdict.cells()
            cells.append(f"{outcome}, {difference}, {n}" + ", paper's size excluded" * ("excluded" in printed))
            paper = printed.removesuffix(", excluded") or paper
        print(f"| {table} | {claim}{' (guide)' * is_guide} | {' | '.join(cells)} | {paper} |")
    for profile, kind in by_kind.items():
        run = [each for each in kind.values() if each.difference]
        counts = Counter(each.verdict for each in run)
        n_excluded = sum(bool(each.is_paper_excluded) for each in run)
        print(f"\n{KINDS[profile]}: {len(run)} claims; {dict(counts)}; the paper's size is excluded in {n_excluded}")


if __name__ == "__main__":
    main()
