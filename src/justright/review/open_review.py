"""One review at work: a run, its log and where it stands. Threads, tabs and other processes may share it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from jaxtyping import Float

from justright.errors import DataError
from justright.review import actions
from justright.review.accuracy import draw_order, next_check
from justright.review.actions import Line, Request
from justright.review.changes import ConflictError
from justright.review.log import Log
from justright.review.sheets import Sheets
from justright.review.splitting import split
from justright.review.state import ReviewState
from justright.review.thumbnails import Thumbnails
from justright.runs.run_folder import RunFolder
from justright.types import Array


@dataclass(frozen=True)
class Applied:
    """What became of a request: the line it is in, the clusters that changed, and a cluster it made."""

    seq: int
    changed: list[int]
    made: list[int]


class OpenReview:
    """Reads and acts on the review of one run."""

    def __init__(self, run: RunFolder):
        self.run = run
        self.folder = run.path / "review"
        self.predictions = run.predictions
        self.state = ReviewState(self.predictions, frozenset(self.known_classes))
        self.sheets = Sheets(self.state, self.predictions, self.features)
        self.thumbnails = Thumbnails(run.target, self.folder / "thumbnails")
        self.log = Log(self.folder / "log.jsonl", _fingerprint(run.path / "predictions.parquet"))
        self._lock = threading.RLock()
        self._order = lru_cache(2)(draw_order)
        with self.reading():
            pass

    @property
    def seed(self) -> int:
        """The seed of the run: same run, same draws."""
        return int(self.run.about.get("seed") or 0)

    @cached_property
    def known_classes(self) -> list[str]:
        """Classes that images may be said to show: those the run looked for, then others of a pool that competes.

        Classes of a pool that only guides are of other kinds, and are not offered.
        """
        looked_for = [each.name for each in self.predictions.categories if each.kind == "known"]
        if self.run.about.get("pool_role") == "guide":
            return looked_for
        try:
            others = sorted(self.run.pool.classes.values())
        except DataError:  # the pool may have been removed to save space
            others = []
        return list(dict.fromkeys([*looked_for, *others]))

    @cached_property
    def features(self) -> Float[Array, "images dim"] | None:
        """Tuned features, where the run has them for every image."""
        try:
            features = self.run.tuned
        except DataError:
            return None
        return features if len(features) == len(self.predictions) else None

    @contextmanager
    def reading(self) -> Iterator[ReviewState]:
        """The state with all that is in the log by now; nobody changes it inside."""
        with self._lock:
            self._fold(self.log.new_lines())
            yield self.state

    def next_check(self, reviewer: str) -> int | None:
        """The image that this reviewer is to judge next."""
        with self.reading():
            return self._next_check(reviewer)

    def _next_check(self, reviewer: str) -> int | None:
        order = self._order(len(self.predictions), self.seed, self.state.round)
        return next_check(self.state, order, reviewer)

    def act(self, request: Request) -> Applied:
        """Do what is asked and write it down; when this returns it is on disk.

        ConflictError, with nothing done, where what the reviewer looked at has changed meanwhile.
        """
        asked: Any = request.action
        with self.reading() as state:
            if request.id in state.ids:  # sent again, because the first answer did not arrive
                return self._outcome(state.ids[request.id])
        if isinstance(asked, actions.SplitCluster):  # takes a moment: not while others wait
            asked = self._parted(asked, request.base)
        with self.reading():
            self._line(request, asked)  # what is refused leaves no trace, not even an empty log
            with self.log.writing() as news:
                self._fold(news)
                if request.id in self.state.ids:
                    return self._outcome(self.state.ids[request.id])
                line = self._line(request, asked)
                self.log.append(line)
                self.state.fold(line)
                return self._outcome(line.seq)

    def _line(self, request: Request, asked: Any) -> Line:
        """The line that a request would become; ConflictError where it does not fit."""
        action = self._resolved(asked, request.reviewer)
        self.state.check_fresh(action, request.base)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = Line(seq=self.state.seq + 1, at=now, by=request.reviewer, id=request.id, action=action)
        self.state.plan(line)
        return line

    def _parted(self, asked: actions.SplitCluster, base: int) -> actions.Part:
        with self.reading() as state:
            state.check_fresh(asked, base)
            rows = state.rows_of(asked.cluster)
        return split(asked.cluster, rows, self.features, asked.n_parts, self.seed)

    def _resolved(self, asked: Any, reviewer: str) -> Any:
        """The action with every choice made."""
        if isinstance(asked, actions.Check) and asked.row != self._next_check(reviewer):
            raise ConflictError("another image is next to be checked", advice="only random draws make an estimate")
        if isinstance(asked, actions.Undo) and asked.target is None:
            return actions.Undo(target=self._latest(reviewer, is_undo=False))
        if isinstance(asked, actions.Redo):
            return actions.Undo(target=self._latest(reviewer, is_undo=True))
        return asked

    def _latest(self, reviewer: str, *, is_undo: bool) -> int:
        """The last action of a reviewer that is not undone; with `is_undo`, the last undo since they did anything."""
        for entry in reversed(self.state.entries):
            line = entry.line
            if line.by != reviewer or self.state.undone.get(line.seq):
                continue
            if isinstance(line.action, actions.Undo):
                taken_back = self.state.entries[(line.action.target or 0) - 1].line.action
                if is_undo and not isinstance(taken_back, actions.Undo):
                    return line.seq
            elif is_undo:
                break
            else:
                return line.seq
        raise ConflictError(f"nothing of {reviewer} is left to {'do again' if is_undo else 'undo'}")

    def _fold(self, lines: list[Line]) -> None:
        for line in lines:
            try:
                self.state.fold(line)
            except ConflictError as error:
                raise DataError(
                    f"{self.log.path}: action {line.seq} does not fit: {error}",
                    advice="the file was changed by hand, or is of another run",
                ) from error

    def _outcome(self, seq: int) -> Applied:
        entry = self.state.entries[seq - 1]
        named = [each.key for each in entry.change.edits if each.table is self.state.labels]
        made = [each.key for each in entry.change.edits if each.table is self.state.labels and each.before is None]
        cluster = getattr(entry.line.action, "cluster", None)
        changed = entry.change.groups | set(named) | ({cluster} if cluster is not None else set())
        return Applied(seq, sorted(changed), made)


def _fingerprint(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
