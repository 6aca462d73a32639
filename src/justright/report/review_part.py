"""What people said about the clusters of a run: about all of them, and about each one on its card."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from justright.report.elements import Missing, Name, Table, Values, Words, attempt, join
from justright.review.findings import ReviewedCluster, findings
from justright.runs.run_folder import RunFolder

COLUMNS = ("name by reviewers", "verdict", "images after review", "images that left")
MOST_REVIEWERS, MOST_PLACES, MOST_MADE = 3, 3, 500  # longer lists are summed up: a page has to stay small
DONE = {"keep": "kept", "reject": "rejected"}


def review_of(run: RunFolder) -> Values:
    """The review, or why it cannot be shown, or the command that begins one; and the clusters that it made."""
    review = attempt(lambda: findings(run), "")
    made = () if isinstance(review, Missing) else review.made
    return {
        "review": review,
        "command": shlex.join(["justright", "review", run.path.resolve().name]),
        "made": made_table(made),
        "n_made": len(made),
    }


def review_cells(found: ReviewedCluster | None, n_predicted: int) -> tuple[Words | int | None, ...]:
    """What stands under `COLUMNS` for a cluster that had so many images; None where there is nothing to say."""
    if found is None:
        return (None,) * len(COLUMNS)
    n_now = None if found.n_images == n_predicted else found.n_images
    return _called(found) or None, _verdict(found) or None, n_now, _elsewhere(found) or None


def made_table(made: Iterable[ReviewedCluster]) -> Table:
    """Clusters that the run did not find: what was split off, and what was put together from single images."""
    shown = sorted(made, key=lambda each: -each.n_images)[:MOST_MADE]
    rows = [(Name(each.name), each.n_images, _verdict(each) or None) for each in shown]
    return Table(("cluster", "images", "verdict"), rows)


def _called(found: ReviewedCluster) -> Words:
    """The name that people gave, and who would rather have another."""
    words: list[Words] = []
    if found.given_name is not None:
        words.append((Name(found.given_name), " (known class)" if found.kind == "known" else ""))
    for name in dict.fromkeys(found.other_names.values()):
        words.append((Name(name), " by ", *_people(who for who, said in found.other_names.items() if said == name)))
    return join("; ", words)


def _verdict(found: ReviewedCluster) -> Words:
    if _is_merged(found):
        return "merged into ", Name(found.elsewhere[0][0])
    if not found.n_images:  # what was said of it while it had images no longer counts
        return ("no image left",)
    said = [
        (f"{DONE[verdict]} by ", *_people(who for who, each in found.verdicts.items() if each == verdict))
        for verdict in DONE
        if verdict in found.verdicts.values()
    ]
    return (("disputed: ",) if found.status == "disputed" else ()) + join(", ", said)


def _elsewhere(found: ReviewedCluster) -> Words:
    """Where images of the cluster are now, if not in it."""
    if _is_merged(found):
        return ()
    words: list[Words] = [(f"{n:,} in ", Name(name)) for name, n in found.elsewhere[:MOST_PLACES]]
    if n_more := sum(n for _, n in found.elsewhere[MOST_PLACES:]):
        words.append((f"{n_more:,} in other clusters",))
    if found.n_rejected:
        words.append((f"{found.n_rejected:,} rejected",))
    return join(", ", words)


def _is_merged(found: ReviewedCluster) -> bool:
    return not found.n_images and len(found.elsewhere) == 1 and not found.n_rejected


def _people(reviewers: Iterable[str]) -> Words:
    names = list(reviewers)
    return (f"{len(names):,} reviewers",) if len(names) > MOST_REVIEWERS else join(" and ", [(Name(n),) for n in names])
