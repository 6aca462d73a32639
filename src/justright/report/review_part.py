"""What people said about the clusters of a run: a line about all of them, and the cells of each one's card."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from justright.report.names import Markup, named, text
from justright.report.page_shell import folded, note, table
from justright.report.reading import Missing, attempt
from justright.review.findings import Review, ReviewedCluster, findings
from justright.runs.run_folder import RunFolder

COLUMNS = ("name by reviewers", "verdict", "images after review", "images that left")

MOST_REVIEWERS = 3
MOST_PLACES = 3
MOST_MADE = 500
"""Longer lists are summed up: a page of thousands of clusters has to stay small."""

DONE = {"keep": "kept", "reject": "rejected"}


def review_of(run: RunFolder) -> tuple[Review | None, str]:
    """The review, if there is one that can be read, and in words what it found, or why there is none."""
    found = attempt(lambda: findings(run), "")
    if not isinstance(found, Missing):
        return found, _summary(found)
    if found.reason:
        return None, note(f"The review of this run cannot be shown: {found.reason}.")
    command = shlex.join(["justright", "review", run.path.resolve().name])
    hint = f"Nobody has reviewed these clusters yet. <code>{text(command)}</code> opens a page to do so."
    return None, note(Markup(hint))


def review_cells(found: ReviewedCluster | None, n_predicted: int) -> tuple[object, ...]:
    """What stands under `COLUMNS` for a cluster that had so many images; None where there is nothing to say."""
    if found is None:
        return (None,) * len(COLUMNS)
    n_now = None if found.n_images == n_predicted else found.n_images
    return _called(found), _verdict(found), n_now, None if _is_merged(found) else _elsewhere(found)


def made_part(review: Review) -> str:
    """Clusters that the run did not find: what was split off, and what was put together from single images."""
    if not review.made:
        return ""
    shown = sorted(review.made, key=lambda each: -each.n_images)[:MOST_MADE]
    rows = [(named(each.name), each.n_images, _verdict(each)) for each in shown]
    n_left = len(review.made) - len(shown)
    left = note(f"The {n_left:,} smallest are left out here.") if n_left else ""
    title = f"Clusters that were made in the review: {len(review.made):,}"
    return folded(title, table(("cluster", "images", "verdict"), rows) + left)


def _summary(review: Review) -> str:
    judged = {status: n for status, n in review.by_status.items() if status != "open"}
    how = ", ".join(f"{judged[status]:,} {status}" for status in ("kept", "rejected", "disputed") if status in judged)
    n = len(review.reviewers)
    said = (
        f"{n:,} reviewer{'' if n == 1 else 's'} looked at {sum(judged.values()):,} of {review.n_clusters:,} clusters"
        f"{f': {how}' if how else ''}."
    )
    checked = review.accuracy
    if checked is None:
        said += " No image was checked at random, so there is no estimate of the accuracy."
    else:
        said += (
            f" About {100 * checked.accuracy:.1f}\u00a0% of the images were in the right cluster, "
            f"[{100 * checked.low:.1f},\u00a0{100 * checked.high:.1f}] at {checked.level:.0%}: "
            f"{checked.n_checked:,} of {checked.n_images:,} were drawn at random and checked."
        )
    remark = "Cards show clusters as the run found them; corrections of the review stand in words."
    return f"<p>{said}</p>{note(remark)}"


def _called(found: ReviewedCluster) -> Markup | None:
    """The name that people gave, and who would rather have another."""
    kind = " (known class)" if found.kind == "known" else ""
    words = [f"{named(found.given_name)}{kind}"] if found.given_name is not None else []
    for name in dict.fromkeys(found.other_names.values()):
        words.append(f"{named(name)} by {_people(who for who, said in found.other_names.items() if said == name)}")
    return _sentence("; ".join(words))


def _verdict(found: ReviewedCluster) -> Markup | None:
    if _is_merged(found):
        return _sentence(f"merged into {named(found.elsewhere[0][0])}")
    if not found.n_images:  # what was said of it while it had images no longer counts
        return _sentence("no image left")
    said = [
        f"{DONE[verdict]} by {_people(who for who, each in found.verdicts.items() if each == verdict)}"
        for verdict in DONE
        if verdict in found.verdicts.values()
    ]
    return _sentence(("disputed: " if found.status == "disputed" else "") + ", ".join(said))


def _elsewhere(found: ReviewedCluster) -> Markup | None:
    """Where images of the cluster are now, if not in it."""
    words = [f"{n:,} in {named(name)}" for name, n in found.elsewhere[:MOST_PLACES]]
    if n_more := sum(n for _, n in found.elsewhere[MOST_PLACES:]):
        words.append(f"{n_more:,} in other clusters")
    if found.n_rejected:
        words.append(f"{found.n_rejected:,} rejected")
    return _sentence(", ".join(words))


def _is_merged(found: ReviewedCluster) -> bool:
    return not found.n_images and len(found.elsewhere) == 1 and not found.n_rejected


def _people(reviewers: Iterable[str]) -> str:
    names = list(reviewers)
    if len(names) > MOST_REVIEWERS:
        return f"{len(names):,} reviewers"
    return " and ".join(named(name) for name in names)


def _sentence(html: str) -> Markup | None:
    """Words and names as one piece: a card would set the pieces of a cell apart."""
    return Markup(f"<span>{html}</span>") if html else None
