"""What the review page is told, as plain JSON values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from justright.errors import MissingDataError
from justright.review import actions
from justright.review.accuracy import accuracy, checked_images
from justright.review.actions import REJECTED
from justright.review.agreement import agreement, disputes
from justright.review.open_review import OpenReview
from justright.review.sheets import IMAGE_ORDERS, Card, ClusterOrder, ImageOrder, n_rejected
from justright.review.state import ReviewState, Status

N_EXAMPLES = 8
"""Images that stand for a cluster next to the one to be checked."""


def about(opened: OpenReview, reviewer: str) -> dict[str, Any]:
    """What does not change while the page is open."""
    return {
        "run": opened.run.path.resolve().name,
        "n_images": len(opened.predictions),
        "known_classes": opened.known_classes,
        "reviewer": reviewer,
        "image_orders": IMAGE_ORDERS,
        "can_split": opened.features is not None,
        "max_parts": actions.MAX_PARTS,
        "max_rows": actions.MAX_ROWS,
    }


def status(opened: OpenReview, since: int) -> dict[str, Any]:
    """How far the review is, how accurate the clusters are, and which clusters changed after action `since`."""
    with opened.reading() as state:
        count, _ = opened.sheets.sizes()
        alive = np.flatnonzero(count).tolist()
        by_status: dict[str, int] = {}
        n_reviewed = 0
        for cluster in alive:
            said = state.status(cluster)
            by_status[said] = by_status.get(said, 0) + 1
            n_reviewed += int(count[cluster]) if said != "open" else 0
        rejected = n_rejected(state)
        estimate = accuracy(state, opened.sheets.confidence)
        recent = state.entries[since:] if since <= state.seq else state.entries
        return {
            "seq": state.seq,
            "n_clusters": len(alive),
            "n_reviewed": sum(n for said, n in by_status.items() if said != "open"),
            "by_status": by_status,
            "n_images": len(state.group),
            "n_images_reviewed": n_reviewed + rejected,
            "n_rejected": rejected,
            "accuracy": estimate.to_dict() if estimate else None,
            "round": state.round,
            "n_checked": len(checked_images(state, state.round)),
            "reviewers": sorted({entry.line.by for entry in state.entries}),
            "changed": sorted({cluster for entry in recent for cluster in _touched(entry)}),
        }


def clusters(
    opened: OpenReview, order: ClusterOrder, status: Status | None, search: str, offset: int, limit: int
) -> dict[str, Any]:
    """A part of the list of clusters."""
    with opened.reading() as state:
        chosen, n_all = opened.sheets.cards(order, status, search)
        page = [_card(opened, opened.sheets.card(cluster)) for cluster in chosen[offset : offset + limit]]
        return {"seq": state.seq, "n": len(chosen), "n_all": n_all, "clusters": page}


def near(opened: OpenReview, number: int, rows: list[int], search: str, limit: int) -> dict[str, Any]:
    """Clusters that these images could go to, the most similar first."""
    with opened.reading() as state:
        rows = [row for row in rows if row < len(state.group)]
        chosen = opened.sheets.near(number, rows, search)[:limit]
        return {"seq": state.seq, "clusters": [_card(opened, opened.sheets.card(each)) for each in chosen]}


def cluster(opened: OpenReview, number: int) -> dict[str, Any]:
    """One cluster, or the rejected images, with what everyone said about it."""
    with opened.reading() as state:
        if number == REJECTED:
            return {"seq": state.seq, "cluster": REJECTED, "name": "Rejected images", "kind": "rejected",
                    "n": n_rejected(state), "confidence": None, "status": "rejected", "opinions": {}}  # fmt: skip
        if number not in state.labels or not (state.group == number).any():
            raise MissingDataError(f"cluster {number} is not there", advice="it was merged or taken back: see the list")
        said = {who: asdict(opinion) for who, opinion in sorted(state.opinions.get(number, {}).items())}
        same_name = [
            other for other, label in state.labels.items()
            if label.name == state.labels[number].name and other != number and (state.group == other).any()
        ]  # fmt: skip
        card = _card(opened, opened.sheets.card(number))
        return {"seq": state.seq, **card, "opinions": said, "same_name": same_name}


def images(opened: OpenReview, number: int, order: ImageOrder, offset: int, limit: int) -> dict[str, Any]:
    """A part of the images of a cluster: number and confidence of each, and whether it looks like no category."""
    with opened.reading() as state:
        rows = opened.sheets.images(number, order)
        page = rows[offset : offset + limit]
        confidence = opened.predictions.confidence[page].astype(float).round(4).tolist()
        unlike = opened.predictions.is_neither[page].tolist()
        return {
            "seq": state.seq,
            "n": len(rows),
            "images": [list(each) for each in zip(page.tolist(), confidence, unlike, strict=True)],
        }


def check(opened: OpenReview, reviewer: str) -> dict[str, Any]:
    """The next randomly drawn image for a reviewer, and images that stand for its cluster."""
    with opened.reading() as state:
        row = opened.next_check(reviewer)
        found: dict[str, Any] = {"seq": state.seq, "round": state.round, "row": row}
        if row is not None:
            number = int(state.group[row])
            central = [
                each for each in opened.sheets.images(number, "central")[: N_EXAMPLES + 1].tolist() if each != row
            ]
            found |= {"cluster": number, "name": state.labels[number].name, "examples": central[:N_EXAMPLES]}
        return found


def history(opened: OpenReview, limit: int) -> dict[str, Any]:
    """The latest actions, newest first."""
    with opened.reading() as state:
        lines = [
            {"seq": e.line.seq, "at": e.line.at, "by": e.line.by, "text": _told(state, e.line.action),
             "is_undone": bool(state.undone.get(e.line.seq)), "is_undo": isinstance(e.line.action, actions.Undo)}
            for e in state.entries[: -limit - 1 : -1]
        ]  # fmt: skip
        return {"seq": state.seq, "lines": lines}


def agreed(opened: OpenReview) -> dict[str, Any]:
    """How far reviewers agree, and on what they do not."""
    with opened.reading() as state:
        found = [asdict(dispute) | {"name": _name(state, dispute.cluster)} for dispute in disputes(state)[:500]]
        return {"seq": state.seq, "pairs": [asdict(pair) for pair in agreement(state)], "disputes": found}


def _card(opened: OpenReview, card: Card) -> dict[str, Any]:
    confidence = round(card.confidence, 4)
    return {"cluster": card.cluster, "name": card.name, "kind": card.kind, "n": card.n_images,
            "confidence": confidence, "status": card.status, "cover": opened.sheets.cover(card.cluster)}  # fmt: skip


def _touched(entry: Any) -> set[int]:
    own = getattr(entry.line.action, "cluster", None)
    return {group for group in entry.change.groups if group != REJECTED} | ({own} if own is not None else set())


def _name(state: ReviewState, number: int | None) -> str:
    if number == REJECTED:
        return "the rejected images"
    return state.labels[number].name if number in state.labels else f"cluster-{number}"


def _told(state: ReviewState, action: Any) -> str:
    """An action in words; clusters under the names they have now."""
    name = _name(state, getattr(action, "cluster", None))
    if isinstance(action, actions.SetName | actions.SetKnown):
        return f"{'named' if action.do == 'name' else 'known as'} {action.name}"
    if isinstance(action, actions.Merge):
        return f"merged {name} into {_name(state, action.into)}"
    if isinstance(action, actions.Part):
        return f"split {name} into {len(action.parts) + 1}"
    if isinstance(action, actions.Move):
        to = "a new cluster" if action.to is None else _name(state, action.to)
        return f"moved {_images(len(action.rows))} from {name} to {to}"
    if isinstance(action, actions.Reject):
        return f"rejected {_images(len(action.rows))} of {name}"
    if isinstance(action, actions.Check):
        return f"called an image of {name} {'right' if action.is_right else 'wrong'}"
    if isinstance(action, actions.Undo):
        return f"took back action {action.target}"
    if isinstance(action, actions.NewRound):
        return f"began round {action.round} of the checks"
    return f"{'kept' if action.do == 'keep' else 'rejected'} {name}"


def _images(n: int) -> str:
    return f"{n:,} image{'s' if n > 1 else ''}"
