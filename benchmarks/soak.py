"""Random kills, damaged files and full disks in every stage, and the outcome of each.

    OMP_NUM_THREADS=1 nice python -m benchmarks.soak --rounds 200 --seed 0

Every stage runs once without disturbance. A round copies the prepared files, disturbs one stage, resumes it and judges
the outcome: the same result, an error that names a damaged file, recomputed with a warning, or WRONG. A kill must not
change the result. A full disk is a private tmpfs if mounting is allowed, else a limit on file sizes; it must raise a
named error, and with free space the result must be the same.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.forked import Ended, import_everything
from benchmarks.soak_damage import damage
from benchmarks.soak_review import review_stage
from benchmarks.soak_stages import DIGITS, LETTERS, NETWORK, SUITE, Stage, stages, start

IDENTICAL, REFUSED, RECOMPUTED, WRONG = OUTCOMES = ("identical", "refused by name", "recomputed, warned", "WRONG")
TROUBLES = ("kill", "damage", "kill, then damage", "full disk")
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000  # of Linux: <sched.h>
DISK_BYTES = 512 << 20  # size of the disk of each round
DISK_FULL = re.compile(r"No space left on device|File too large|is needed in|GB are free|cannot be written")
WARNS = re.compile("damaged|Not saved")


@dataclass(frozen=True)
class Judged:
    """The outcome of a round."""

    stage: str
    trouble: str
    outcome: str
    why: str = ""


class Soak:
    """Rounds on copies of a prepared folder.

    Parameters:
        prepared: a folder in which every stage has been run.
        rounds: the folder for the temporary folders of rounds.
    """

    def __init__(self, all_stages: Sequence[Stage], prepared: Path, rounds: Path, seed: int, can_mount: bool):
        self.stages, self.prepared, self.rounds, self.seed = all_stages, prepared, rounds, seed
        self.troubles = TROUBLES
        self.can_mount = can_mount

    def round(self, number: int) -> Judged:
        """One round; all its randomness comes from the seed and its number, except the speed of the machine."""
        rng = np.random.default_rng([self.seed, number])
        stage = self.stages[number % len(self.stages)]
        kind = stage.first_damage if number < len(self.stages) else None
        trouble = "damage" if kind else str(rng.choice(self.troubles))
        folder = self.rounds / f"round-{number}"
        is_small = trouble == "full disk" and self.can_mount
        if is_small:
            folder.mkdir()
            _mount(folder, DISK_BYTES)
        try:
            shutil.copytree(self.prepared, folder, dirs_exist_ok=True)
            stage.begin()
            return self._disturbed(stage, trouble, folder, rng, kind)
        finally:
            if is_small:
                subprocess.run(["umount", folder], check=True)
            shutil.rmtree(folder)

    def _disturbed(
        self, stage: Stage, trouble: str, folder: Path, rng: np.random.Generator, kind: str | None = None
    ) -> Judged:
        if trouble != "damage" or kind or rng.random() < 0.5:
            stage.clear(folder)
        if trouble != "damage" and rng.random() < 0.5:
            shutil.rmtree(folder / "home", ignore_errors=True)
        if trouble == "full disk":
            return self._with_full_disk(stage, folder, rng)
        if trouble != "damage":
            for _ in range(int(rng.integers(1, 4))):
                stage.kill(folder, float(rng.random()))
        damaged = None if trouble == "kill" else damage(folder, stage.reads, rng, kind)
        what, names = damaged or ("kill", [])
        ended = stage.finish(folder)
        if trouble == "damage" and (left := half_written(folder)):
            return Judged(stage.name, what, WRONG, f"half-written files stay: {left}")
        return Judged(stage.name, what, *self.judge(stage, folder, ended, names))

    def _with_full_disk(self, stage: Stage, folder: Path, rng: np.random.Generator) -> Judged:
        limit = None
        if self.can_mount:
            _mount(folder, shutil.disk_usage(folder).used + int(rng.random() * stage.n_bytes), "remount,")
        else:
            limit = int(10 ** rng.uniform(0, 6.5))
        ended = stage.finish(folder, limit)
        if left := half_written(folder):
            return Judged(stage.name, "full disk", WRONG, f"half-written files stay: {left}")
        if ended.code == 0:
            return Judged(stage.name, "full disk", *self.judge(stage, folder, ended, []))
        if ended.code != 1 or "Traceback" in ended.err or not DISK_FULL.search(ended.err):
            return Judged(stage.name, "full disk", WRONG, f"ended with {ended.code}: {ended.err[-900:]}")
        if self.can_mount:
            _mount(folder, DISK_BYTES, "remount,")
        outcome, why = self.judge(stage, folder, stage.finish(folder), [])
        return Judged(stage.name, "full disk", REFUSED if outcome in (IDENTICAL, RECOMPUTED) else outcome, why)

    def judge(self, stage: Stage, folder: Path, ended: Ended, names: list[str]) -> tuple[str, str]:
        """The outcome, and why it is wrong if it is; `names` are the damaged files."""
        if "Traceback" in ended.err or ended.code not in (0, 1):
            return WRONG, f"ended with {ended.code}: {ended.err[-900:]}"
        if ended.code == 1:
            is_named = any(_is_named(name, ended.err) for name in names)
            return (REFUSED, "") if is_named else (WRONG, f"refused without the name of {names}: {ended.err[-900:]}")
        found = stage.results(folder, ended)
        if stage.fits(found):
            return RECOMPUTED if WARNS.search(ended.err) else IDENTICAL, ""
        shown = ended.err + " ".join(part.decode(errors="replace") for part in found.values() if stage.shows_parts)
        if stage.shows_parts and any(_is_named(name, shown) for name in names):
            return REFUSED, ""
        other = sorted(name for name in {*found, *stage.expected} if found.get(name) != stage.expected.get(name))
        return WRONG, f"damaged {names}, then a different {', '.join(other)} without a warning: {ended.err[-300:]!r}"


def half_written(folder: Path) -> list[str]:
    """Temporary files, which every command deletes before it ends unless it is killed."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(".*.tmp"))


def _is_named(name: str, text: str) -> bool:
    """Whether a text names a file, or its folder, if that is a store, a checkpoint or similar."""
    text = text.replace("\n", "")
    folder = Path(name).parent
    return Path(name).name in text or (len(folder.parts) > 0 and folder.parts[-1] not in ("run", "home") and
                                       folder.as_posix() in text)  # fmt: skip


def unshare_mounts() -> bool:
    """Give this process its own mounts, as `unshare -rm` does. Returns whether that is allowed."""
    user, group = os.getuid(), os.getgid()
    # another process tries it first, because a partial failure here could not be undone
    is_allowed = shutil.which("unshare") and subprocess.run(["unshare", "-rm", "true"]).returncode == 0
    if not is_allowed or ctypes.CDLL(None).unshare(NEW_USER | NEW_MOUNTS) != 0:  # refused where there are threads
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path("/proc/self", name).write_text(text)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    return True


def _mount(folder: Path, n_bytes: int, how: str = "") -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{how}size={n_bytes}", "none", folder], check=True)


def prepare(all_stages: Sequence[Stage], folder: Path) -> None:
    """Run every stage undisturbed."""
    (folder / "suite.toml").write_text(SUITE)
    for words in (
        ["data", "split", LETTERS, "--out", "split"],
        ["extract", DIGITS, *NETWORK, "--batch-size", "4", "--out", "pool.features"],
    ):
        ended = start(folder, words).end()
        assert ended.code == 0, ended
    for stage in all_stages:
        stage.learn(folder)


def tally(judged: Sequence[Judged]) -> str:
    """A table of the outcomes by stage and by trouble."""
    lines = []
    for title, key in (("stage", lambda each: each.stage), ("trouble", lambda each: each.trouble)):
        counts = Counter((key(each), each.outcome) for each in judged)
        lines.append(f"{title:28}" + "".join(f"{outcome:>20}" for outcome in OUTCOMES))
        for name in dict.fromkeys(sorted(map(key, judged))):
            lines.append(f"{name:28}" + "".join(f"{counts[name, outcome]:20}" for outcome in OUTCOMES))
        lines.append("")
    total = Counter(each.outcome for each in judged)
    return "\n".join([*lines, ", ".join(f"{total[outcome]} {outcome}" for outcome in OUTCOMES)])


def soak(rounds: Soak, numbers: Sequence[int]) -> int:
    """Run rounds and print their outcomes; 1 if any was wrong."""
    judged = []
    for number in numbers:
        judged.append(rounds.round(number))
        if judged[-1].outcome == WRONG:
            print(f"WRONG in round {number}, {judged[-1].stage}, {judged[-1].trouble}: {judged[-1].why}")
            print(f"    to repeat it: python -m benchmarks.soak --seed {rounds.seed} --round {number}", flush=True)
    print(tally(judged))
    return int(any(each.outcome == WRONG for each in judged))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--round", type=int, action="append", help="only this one; may be repeated")
    options = parser.parse_args()
    can_mount = unshare_mounts()  # before there is a second thread
    import_everything()
    with tempfile.TemporaryDirectory(prefix="soak-") as place:
        prepared, rounds = Path(place) / "prepared", Path(place) / "rounds"
        prepared.mkdir()
        rounds.mkdir()
        all_stages = stages(review_stage())
        prepare(all_stages, prepared)
        print(f"a full disk is a {'tmpfs' if can_mount else 'limit on the size of files'}", flush=True)
        return soak(Soak(all_stages, prepared, rounds, options.seed, can_mount), options.round or range(options.rounds))


if __name__ == "__main__":
    sys.exit(main())
