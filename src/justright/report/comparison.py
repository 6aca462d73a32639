"""Several runs beside each other: which settings differ, what seeds do, and what a pool or a selection changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from justright.evaluation.scores import GROUPS
from justright.report.agreement_part import Agreement
from justright.report.seed_groups import ComparedRun, ScoreChange, SeedGroup, change
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DataError

BASELINES = {"own": "own labels alone", "none": "no selection"}  # others are compared with the first that is there


@dataclass(frozen=True)
class Comparison:
    """The runs, in the order given."""

    runs: tuple[ComparedRun, ...]

    @staticmethod
    def of(folders: Sequence[RunFolder]) -> Comparison:
        """Compare two runs or more."""
        if len(folders) < 2:
            raise DataError(f"{len(folders)} run to compare", expected="at least two")
        names = _short_names([folder.path.resolve().parts for folder in folders])
        return Comparison(tuple(ComparedRun(name, folder) for name, folder in zip(names, folders, strict=True)))

    def differing(self) -> dict[str, list[Any]]:
        """Settings in which the runs differ, one value a run; None where a run does not have the setting."""
        names = dict.fromkeys(name for run in self.runs for name in run.settings)
        values = {name: [run.settings.get(name) for run in self.runs] for name in names}
        return {name: each for name, each in values.items() if any(value != each[0] for value in each)}

    def shared(self) -> dict[str, Any]:
        """Settings that all runs share."""
        differing = self.differing()
        return {name: value for name, value in self.runs[0].settings.items() if name not in differing}

    def groups(self) -> list[SeedGroup]:
        """Runs that differ by seed only, together."""
        found: dict[str, list[ComparedRun]] = {}
        for run in self.runs:
            found.setdefault(run.key(), []).append(run)
        return [SeedGroup(tuple(runs)) for runs in found.values()]

    @property
    def baseline(self) -> str | None:
        """The selector that others are compared with: own labels alone, or else no selection."""
        found = {run.settings.get("selector") for run in self.runs}
        return next((name for name in BASELINES if name in found), None)

    @property
    def baseline_title(self) -> str:
        """The baseline in words."""
        return BASELINES[self.baseline or "none"]

    def changes(self) -> list[tuple[SeedGroup, list[ScoreChange]]]:
        """For each other group, what it gained over the runs of the baseline that share all other settings."""
        groups = self.groups()
        baselines = {
            group.runs[0].key(ignoring_selection=True): group for group in groups if group.selector == self.baseline
        }
        found = []
        for group in groups:
            baseline = baselines.get(group.runs[0].key(ignoring_selection=True))
            if baseline is not None and baseline is not group:
                changes = [change(group, baseline, name) for name in GROUPS]
                found.append((group, [each for each in changes if each is not None]))
        return found

    @cached_property
    def agreement(self) -> Agreement:
        """How far the runs agree, whatever the truth is."""
        return Agreement(self.runs)

    def warnings(self) -> list[str]:
        """Why numbers may not be comparable."""
        said = []
        # files that nobody could read are in the fingerprints too, and may have been removed since
        if len({run.target_print for run in self.runs}) > 1 and not self.agreement.has_same_images:
            said.append("The runs did not see the same target, so their scores are not comparable.")
        protocols = {run.scores.protocol for run in self.runs if run.scores is not None}
        if len(protocols) > 1:
            said.append(f"Scores follow different protocols: {', '.join(sorted(protocols))}.")
        without = [run.name for run in self.runs if run.scores is None]
        if 0 < len(without) < len(self.runs):
            said.append(f"Without scores: {', '.join(without)}.")
        return said

    def to_json(self) -> dict[str, Any]:
        """Scores by run and changes, as JSON has them."""
        return {
            "runs": {run.name: None if run.scores is None else run.scores.to_dict() for run in self.runs},
            "differing": self.differing(),
            "agreement": [pair.to_json() for pair in self.agreement.pairs],
            "changes": {
                group.name: [asdict(each) | {"verdict": each.verdict()} for each in changes]
                for group, changes in self.changes()
            },
            "warnings": self.warnings(),
        }


def _short_names(paths: Sequence[Sequence[str]]) -> list[str]:
    """The last parts of each path, as many as tell them apart; a run that is given twice gets a number."""
    for n in range(1, max(map(len, paths)) + 1):
        names = ["/".join(parts[-n:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{'/'.join(parts[-1:])} ({number})" for number, parts in enumerate(paths, start=1)]
