"""Random damage to the log of a review raises, or no confirmed action is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.bad_day.fuzzing import ANYTHING, budget, damaged, damages, nearly_fits
from tests.made_runs import make_run
from tests.review.acting import act, check

from justright.review.actions import ACTIONS
from justright.review.findings import findings
from justright.review.log import with_checksum
from justright.review.open_review import OpenReview
from justright.review.page_data import PageData
from justright.review.state import ReviewState
from justright.utils.errors import DataError


class Reviewed:
    """A run with a review of every kind of action, which a case may damage."""

    def __init__(self, path: Path):
        self.run = make_run(path, per_class=8)
        opened = OpenReview(self.run)
        rows = opened.state.rows_of(2).tolist()
        self.states = [facts(opened.state)]
        """After each action."""
        for do, fields in [
            ("keep", {"cluster": 0}),
            ("name", {"cluster": 1, "name": "Größe"}),
            ("known", {"cluster": 3, "name": opened.known_classes[0]}),
            ("merge", {"cluster": 4, "into": 5}),
            ("split", {"cluster": 6, "n_parts": 2}),
            ("move", {"cluster": 2, "rows": rows[:2], "to": None}),
            ("reject", {"cluster": 2, "rows": rows[2:3]}),
            ("discard", {"cluster": 8}),
            ("undo", {}),
            ("redo", {}),
            ("check", {}),
            ("round", {"round": 2}),
        ]:
            check(opened, True) if do == "check" else act(opened, do, **fields)
            self.states.append(facts(opened.state))
        self.log = opened.log.path
        self.whole = self.log.read_bytes()
        self.count = opened.log.saved.read_bytes()
        self.header = opened.log.header

    def put(self, log: bytes, count: bytes | None) -> None:
        shutil.rmtree(self.log.parent)
        self.log.parent.mkdir()
        self.log.write_bytes(log)
        if count is not None:
            self.log.with_name("saved.json").write_bytes(count)

    def open(self) -> OpenReview | None:
        """The review, None where it is refused, with an error that names the file."""
        refused = None
        try:
            return OpenReview(self.run)
        except DataError as error:
            refused = str(error)
        assert str(self.log) in refused
        return None


def facts(state: ReviewState) -> tuple:
    """Everything in a review, to be compared."""
    opinions = {cluster: dict(by_reviewer) for cluster, by_reviewer in state.opinions.items() if by_reviewer}
    checks = {round_: dict(of_round) for round_, of_round in state.checks.items() if of_round}
    lines = [entry.line for entry in state.entries]
    return lines, state.group.tolist(), dict(state.labels), opinions, checks, dict(state.rounds), dict(state.undone)


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory) -> Reviewed:
    return Reviewed(tmp_path_factory.mktemp("fuzzed") / "run")


@given(damage=damages())
@budget(150)
def test_damage_loses_no_confirmed_action(reviewed, damage):
    data = damaged(reviewed.whole, damage)
    reviewed.put(data, reviewed.count)
    opened = reviewed.open()
    event("refused" if opened is None else "harmless")
    if opened is None:
        with pytest.raises(DataError):
            findings(reviewed.run)
        assert reviewed.log.read_bytes() == data, "a damaged log was written to"
        return
    assert facts(opened.state) == reviewed.states[-1]
    act(opened, "keep", cluster=1)
    assert reviewed.log.read_bytes().startswith(data)
    assert facts(OpenReview(reviewed.run).state) == facts(opened.state)


@given(damage=damages(), of_count=st.none() | damages())
@budget(100)
def test_log_without_count_is_read_up_to_the_damage(reviewed, damage, of_count):
    reviewed.put(damaged(reviewed.whole, damage), None if of_count is None else damaged(reviewed.count, of_count))
    opened = reviewed.open()
    assert opened is None or facts(opened.state) in reviewed.states


SCHEMAS = {do: action.model_json_schema() for do, action in ACTIONS.items()}
ENTRIES = st.sampled_from(sorted(SCHEMAS)).flatmap(
    lambda do: nearly_fits(SCHEMAS[do]).map(lambda fields: {"do": do, **fields})
)
VALUES = st.fixed_dictionaries(
    {"at": st.text(max_size=40), "by": st.sampled_from(["anna", "ben"]) | ANYTHING, "id": st.text(max_size=20)}
)


@given(lines=st.lists(st.tuples(VALUES, ENTRIES), max_size=8), junk=ANYTHING)
@budget(60)
def test_foreign_lines_with_valid_checksum_are_applied_or_raise(reviewed, lines, junk):
    values = [value | {"seq": n, "action": action} for n, (value, action) in enumerate(lines, start=1)]
    try:
        text = b"".join(map(with_checksum, [reviewed.header, *values, *([junk] if isinstance(junk, dict) else [])]))
    except (UnicodeEncodeError, TypeError):  # half a character: no file can hold that
        return
    reviewed.put(text, None)
    opened = reviewed.open()
    if opened is None:
        return
    assert opened.state.seq == len(lines)
    page = PageData(opened)
    for answer in (page.status, page.clusters, page.history, page.agreement):
        json.dumps(answer())
    found = findings(reviewed.run)
    assert (found is None) is (not lines)
