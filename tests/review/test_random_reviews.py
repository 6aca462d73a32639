"""Random actions of several reviewers, with undo and redo, against a simple reference."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.review.acting import act
from tests.review.test_state import picture_of

from justright.review.export import export, labeled_set
from justright.review.findings import findings
from justright.review.open_review import OpenReview
from justright.review.page_data import PageData
from justright.review.state import REJECTED, ConflictError
from justright.utils.errors import DegenerateError

REVIEWERS = ("anna", "ben", "cleo")


class RefusedError(Exception):
    """The reference rejects the action."""


@dataclass
class Written:
    """The effect of one action: for each key the value before and after, None for no entry."""

    by: str
    values: dict[Any, tuple[Any, Any]]
    target: int | None = None  # the action it took back, if it is an undo


@dataclass
class Reference:
    """A review as one table of ("image", row), ("name", cluster), ("verdict", cluster, who) and ("undone", action).

    Undo puts back what was there before. It is refused where that was overwritten, or where an image or a verdict would
    be left in a cluster that has no name.
    """

    table: dict[Any, Any]
    next_cluster: int
    past: list[Written] = field(default_factory=list)

    def rows(self, cluster: int) -> list[int]:
        return sorted(key[1] for key, value in self.table.items() if key[0] == "image" and value == cluster)

    def clusters(self) -> list[int]:
        return sorted({value for key, value in self.table.items() if key[0] == "image"} - {REJECTED})

    def write(self, by: str, new: dict[Any, Any], target: int | None = None) -> None:
        values = {key: (self.table.get(key), after) for key, after in new.items()}
        table = self.table | new
        table = {key: value for key, value in table.items() if value is not None}
        used = {value for key, value in table.items() if key[0] == "image"} - {REJECTED}
        used |= {key[1] for key in table if key[0] == "verdict"}
        if not used <= {key[1] for key in table if key[0] == "name"}:
            raise RefusedError
        self.table = table
        self.past.append(Written(by, values, target))

    def new_cluster(self) -> tuple[int, str]:
        number, self.next_cluster = self.next_cluster, self.next_cluster + 1
        return number, f"cluster-{number}"

    def undo(self, by: str, target: int) -> None:
        values = self.past[target - 1].values
        if ("undone", target) in self.table or any(self.table.get(key) != after for key, (_, after) in values.items()):
            raise RefusedError
        self.write(by, {key: before for key, (before, _) in values.items()} | {("undone", target): True}, target)

    def latest(self, by: str, is_undo: bool) -> int:
        mine = [n for n, done in enumerate(self.past, start=1) if done.by == by and ("undone", n) not in self.table]
        acted = [n for n in mine if self.past[n - 1].target is None]
        took_back = [
            n for n in mine if (target := self.past[n - 1].target) and self.past[target - 1].target is None
            and n > max(acted, default=0)
        ]  # fmt: skip
        if not (took_back if is_undo else acted):
            raise RefusedError
        return max(took_back if is_undo else acted)

    def do(self, by: str, do: str, fields: dict[str, Any], parts: list[list[int]] | None) -> None:
        """Apply the same action; `parts` are the parts of a split, None if it was rejected."""
        cluster = fields.get("cluster")
        if do == "keep":
            self.write(by, {("verdict", cluster, by): "keep"})
        elif do == "discard":
            self.write(by, {("verdict", cluster, by): "reject"})
        elif do == "name":
            self.write(by, {("name", cluster): fields["name"], ("verdict", cluster, by): "keep"})
        elif do == "merge":
            self.write(by, {("image", row): fields["into"] for row in self.rows(cluster)})
        elif do == "reject":
            self.write(by, {("image", row): REJECTED for row in fields["rows"]})
        elif do == "move":
            to, new = fields["to"], {}
            if to is None:
                to, name = self.new_cluster()
                new = {("name", to): name}
            self.write(by, new | {("image", row): to for row in fields["rows"]})
        elif do in ("split", "part"):
            if not parts:
                raise RefusedError
            new = {key: None for key in self.table if key[:2] == ("verdict", cluster)}
            for part in parts:
                number, name = self.new_cluster()
                new |= {("name", number): name} | {("image", row): number for row in part}
            self.write(by, new)
        elif do == "undo":
            self.undo(by, fields["target"] or self.latest(by, is_undo=False))
        elif do == "redo":
            self.undo(by, self.latest(by, is_undo=True))


def random_step(reference: Reference, rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    """A valid action, mostly on the same few clusters, so that conflicts are common."""
    alive = reference.clusters()
    cluster = int(rng.choice(alive[:2] + alive[-2:]))
    other = int(rng.choice([c for c in alive[:2] + 2 * alive[-2:] if c != cluster]))
    rows = rng.permutation(reference.rows(cluster))[: rng.integers(1, 4)].tolist()
    steps = [
        ("keep", {"cluster": cluster}),
        ("discard", {"cluster": cluster}),
        ("name", {"cluster": cluster, "name": f"name {rng.integers(3)}"}),
        ("merge", {"cluster": cluster, "into": other}),
        ("split", {"cluster": cluster, "n_parts": 2}),
        *[("move", {"cluster": cluster, "rows": rows, "to": other})] * 3,
        *[("move", {"cluster": cluster, "rows": rows, "to": None})] * 3,
        ("reject", {"cluster": cluster, "rows": rows}),
    ]
    if rejected := reference.rows(REJECTED):
        steps.append(("move", {"cluster": REJECTED, "rows": rejected[:1], "to": cluster}))
    if reference.past:
        recent = max(1, len(reference.past) - 5)
        steps += [("undo", {"target": None}), ("redo", {})]
        steps += [("undo", {"target": int(rng.integers(recent, len(reference.past) + 1))})] * 6
    return steps[rng.integers(len(steps))]


def check_everything(opened: OpenReview, reference: Reference, folder) -> None:
    """State and reference agree, pages and exports can be written, and replaying the log gives the same state."""
    state = opened.state
    assert dict(enumerate(state.group.tolist())) == {k[1]: v for k, v in reference.table.items() if k[0] == "image"}
    assert {c: label.name for c, label in state.labels.items()} == {
        key[1]: value for key, value in reference.table.items() if key[0] == "name"
    }
    assert {(c, who): each.verdict for c, text in state.opinions.items() for who, each in text.items()} == {
        key[1:]: value for key, value in reference.table.items() if key[0] == "verdict"
    }
    check_pages_and_exports(opened, folder)


def check_pages_and_exports(opened: OpenReview, folder) -> None:
    state = opened.state
    alive = sorted(set(state.group.tolist()) - {REJECTED})
    page = PageData(opened, "anna")
    assert sorted(each["cluster"] for each in page.clusters(limit=1000)["clusters"]) == alive
    for cluster in (*alive[:2], *alive[-2:], REJECTED):
        assert page.cluster(cluster)["n"] == len(page.images(cluster)["images"]) == (state.group == cluster).sum()
        page.near(cluster)
    page.about(), page.status(), page.check("anna"), page.history(), page.agreement()
    export(opened, folder / "labels.csv", "csv")
    with (folder / "labels.csv").open(newline="", encoding="utf-8") as file:
        for row, line in enumerate(csv.DictReader(file)):
            is_rejected = state.group[row] == REJECTED
            assert line["class_name"] == ("" if is_rejected else state.labels[int(state.group[row])].name)
            assert bool(line["class_name"]) != is_rejected
    try:
        assert "" not in labeled_set(opened, "again", is_all=True).classes.values()
    except DegenerateError:
        assert all(state.status(cluster) in ("rejected", "disputed") for cluster in alive)
    findings(opened.run)
    assert picture_of(OpenReview(opened.run).state) == picture_of(state)


@pytest.mark.parametrize("seed", range(4))
def test_random_actions_agree_with_the_reference(opened, tmp_path, seed):
    rng = np.random.default_rng(seed)
    reference = reference_of(opened)
    n_refused = 0
    for _ in range(60):
        by = str(rng.choice(REVIEWERS))
        do, fields = random_step(reference, rng)
        parts: list[list[int]] | None = None
        try:
            done = act(opened, do, by=by, **fields).line.action
        except (ConflictError, DegenerateError):
            done = None
        if do == "split" and done is not None:
            parts = done.parts
        try:
            reference.do(by, do, fields, parts)
        except RefusedError:
            assert done is None, f"{do} {fields} of {by} was done, and should have been refused"
            n_refused += 1
        else:
            assert done is not None, f"{do} {fields} of {by} was refused"
            assert opened.state.seq == len(reference.past)
            check_everything(opened, reference, tmp_path)
    assert 0 < n_refused < 30


def reference_of(opened: OpenReview) -> Reference:
    labels = {("name", number): label.name for number, label in opened.state.labels.items()}
    images = {("image", row): cluster for row, cluster in enumerate(opened.state.group.tolist())}
    return Reference(labels | images, len(labels))
