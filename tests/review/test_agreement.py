from __future__ import annotations

import pytest

from justright.review.findings import agreement, cohen_kappa, disputes


def kappa_as_loops(both):
    answers = {a for pair in both for a in pair}
    observed = sum(a == b for a, b in both) / len(both)
    expected = sum(
        sum(a == answer for a, _ in both) / len(both) * sum(b == answer for _, b in both) / len(both)
        for answer in answers
    )
    return (observed - expected) / (1 - expected)


def test_kappa_follows_the_definition_of_cohen():
    both = [("keep", "keep")] * 20 + [("keep", "reject")] * 5 + [("reject", "keep")] * 10 + [("reject", "reject")] * 15
    assert cohen_kappa(both) == pytest.approx(0.4)
    assert cohen_kappa(both) == pytest.approx(kappa_as_loops(both))


def test_kappa_is_none_for_a_single_answer():
    assert cohen_kappa([("right", "right")] * 5) is None


def test_reviewers_are_compared_on_what_both_judged(opened, say):
    say(opened, "keep", cluster=0)
    say(opened, "keep", cluster=1)
    say(opened, "keep", cluster=2)
    say(opened, "discard", by="ben", cluster=1)
    say(opened, "keep", by="ben", cluster=2)
    [pair] = [pair for pair in agreement(opened.state) if pair["what"] == "verdicts"]
    assert (pair["reviewers"], pair["n_both"], pair["n_same"]) == (("anna", "ben"), 2, 1)
    [dispute] = [each for each in disputes(opened.state) if each["what"] == "verdicts"]
    assert (dispute["cluster"], dispute["answers"]) == (1, {"anna": "keep", "ben": "reject"})


def test_keeping_a_named_cluster_agrees_with_its_name(opened, say):
    new = next(c for c, label in opened.state.labels.items() if label.kind == "discovered")
    say(opened, "keep", by="dan", cluster=new)  # before it had a name: no word about the name
    say(opened, "name", cluster=new, name="goose")
    say(opened, "keep", by="ben", cluster=new)
    say(opened, "name", by="cleo", cluster=new, name="duck")
    [dispute] = [each for each in disputes(opened.state) if each["what"] == "names"]
    assert dispute["answers"] == {"anna": "goose", "ben": "goose", "cleo": "duck"}
    say(opened, "keep", cluster=new)
    say(opened, "keep", by="ben", cluster=new)
    assert disputes(opened.state) == []


def test_one_reviewer_has_no_agreement(opened, say):
    say(opened, "keep", cluster=0)
    assert agreement(opened.state) == []
    assert disputes(opened.state) == []
