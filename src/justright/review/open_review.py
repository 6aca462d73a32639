"""An open review: the run, its log and its state. Threads and processes may share it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property, lru_cache

from jaxtyping import Float

from justright.review.actions import Action, LogLine, Request
from justright.review.cluster_lists import ClusterLists
from justright.review.log import Log
from justright.review.random_checks import draw_order
from justright.review.state import REJECTED, ConflictError, Entry, ReviewState
from justright.review.thumbnails import Thumbnails
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DataError
from justright.utils.hashing import hash_file
from justright.utils.types import Array

logger = logging.getLogger(__name__)


class OpenReview:
    """Reads and acts on the review of one run."""

    def __init__(self, run: RunFolder):
        self.run = run
        self.folder = run.path / "review"
        self.predictions = run.predictions
        self.state = ReviewState(self.predictions, frozenset(self.known_classes))
        self.lists = ClusterLists(self.state, self.predictions, self.features)
        self.thumbnails = Thumbnails(run.target, self.folder / "thumbnails")
        self.log = Log(self.folder / "log.jsonl", hash_file(run.path / "predictions.parquet"))
        self._draw_order = lru_cache(2)(self._draw)
        self._lock = threading.RLock()
        self._misfit: DataError | None = None
        self._apply(self.log.new_lines())

    @property
    def seed(self) -> int:
        """The seed of the run, so that random checks are reproducible."""
        return int(self.run.about.get("seed") or 0)

    @cached_property
    def known_classes(self) -> list[str]:
        """Classes that a cluster may be marked as: known classes of the run, then those of a rival pool.

        Classes of a pool that only guides are of other kinds, and are not offered.
        """
        of_run = [each.name for each in self.predictions.categories if each.kind == "known"]
        if self.run.about.get("pool_role") == "guide":
            return of_run
        try:
            others = sorted(self.run.pool.classes.values())
        except DataError:  # the list of the pool may have been deleted
            others = []
        return list(dict.fromkeys([*of_run, *others]))

    @cached_property
    def features(self) -> Float[Array, "images dim"] | None:
        """Tuned features, if the run has them for every image; warns if they are damaged."""
        try:
            features = self.run.tuned
        except DataError as error:
            logger.warning("%s\nClusters cannot be split, and images are not ordered by centrality.", error)
            return None
        return features if len(features) == len(self.predictions) else None

    @contextmanager
    def reading(self) -> Iterator[ReviewState]:
        """Yield the state, updated from the log and locked against changes."""
        with self._lock:
            self._apply(self.log.new_lines())
            yield self.state

    def next_check(self, reviewer: str) -> int | None:
        """The first image in the random order of this round that the reviewer has not judged; None if there is none.

        Images labeled before the run are skipped: they have no prediction.
        """
        done = {row for row, by in self.state.checks[self.state.round] if by == reviewer}
        order = self._draw_order(self.state.round)
        is_candidate = (self.state.group != REJECTED) & ~self.state.is_given
        return next((row for row in order if row not in done and is_candidate[row]), None)

    def _draw(self, round_: int) -> list[int]:
        return draw_order(self.predictions.confidence, self.predictions.is_given, self.seed, round_).tolist()

    def act(self, request: Request) -> Entry:
        """Apply the action of a request; it is on disk when this returns.

        ConflictError, with nothing changed, if the clusters concerned changed since the reviewer saw them.
        """
        with self.reading() as state:
            if request.id in state.by_request:  # sent again after a lost response
                return state.by_request[request.id]
            state.check_fresh(request.action, request.base)
        return self.enter(request.action.prepare(self), request.reviewer, request.base, request.id)

    def enter(self, prepared: Action, by: str, base: int, request_id: str) -> Entry:
        """Apply an action that was prepared after action `base`, and save it."""
        with self.reading() as state:
            if request_id not in state.by_request:
                self._line(prepared, by, base, request_id)  # a rejected action leaves no trace, not even an empty log
            with self.log.writing() as new_lines:
                self._apply(new_lines)
                if request_id not in state.by_request:
                    line = self._line(prepared, by, base, request_id)
                    self.log.append(line)
                    state.apply(line)
                return state.by_request[request_id]

    def _line(self, prepared: Action, by: str, base: int, request_id: str) -> LogLine:
        """Return the log line of an action; ConflictError if it does not fit."""
        action = prepared.resolve(self, by)
        self.state.check_fresh(action, base)
        action.plan(self.state, by)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return LogLine(seq=self.state.seq + 1, at=now, by=by, id=request_id, action=action)

    def _apply(self, lines: list[LogLine]) -> None:
        for line in lines if self._misfit is None else ():
            try:
                self.state.apply(line)
            except ConflictError as error:
                self._misfit = DataError(
                    f"{self.log.path}: action {line.seq} does not fit: {error}",
                    advice="the file was edited, or belongs to another run",
                )
                break
        if self._misfit:  # permanently: later actions would build on a state without this one
            raise self._misfit
