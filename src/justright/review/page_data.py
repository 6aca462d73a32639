"""What the review page is told, as plain JSON values, each under the address that `routes` gives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Annotated, Any, Literal

from fastapi.responses import JSONResponse
from pydantic import Field

from justright.errors import MissingDataError
from justright.review.actions import MAX_ROWS, ClusterOrRejected, Reviewer
from justright.review.agreement import agreement, disputes
from justright.review.cluster_actions import MAX_PARTS
from justright.review.cluster_lists import IMAGE_ORDERS, ClusterOrder, ImageOrder
from justright.review.open_review import OpenReview
from justright.review.random_checks import accuracy, checked_images
from justright.review.state import REJECTED, Status
from justright.review.undo import Undo

N_EXAMPLES = 8
"""Images that stand for a cluster next to the one to be checked."""

MAX_PAGE = 2000
"""Entries of a list that are given at once."""

Offset = Annotated[int, Field(ge=0, lt=2**31)]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE)]
Search = Annotated[str, Field(max_length=200)]


class PageData:
    """Answers to what the page asks about a review; `reviewer` is the name it proposes to whoever has none."""

    def __init__(self, opened: OpenReview, reviewer: str = ""):
        self.opened = opened
        self.reviewer = reviewer

    def routes(self) -> dict[str, Callable[..., JSONResponse]]:
        """The answers by address. Names, types and limits of their parameters are those of the address."""
        answers: dict[str, Callable[..., dict[str, Any]]] = {
            "/about": self.about,
            "/status": self.status,
            "/clusters": self.clusters,
            "/clusters/{cluster}": self.cluster,
            "/clusters/{cluster}/images": self.images,
            "/clusters/{cluster}/near": self.near,
            "/check": self.check,
            "/history": self.history,
            "/agreement": self.agreement,
        }
        return {address: _as_json(answer) for address, answer in answers.items()}

    def about(self) -> dict[str, Any]:
        """What does not change while the page is open."""
        return {
            "run": self.opened.run.path.resolve().name,
            "n_images": len(self.opened.predictions),
            "known_classes": self.opened.known_classes,
            "reviewer": self.reviewer,
            "image_orders": IMAGE_ORDERS,
            "can_split": self.opened.features is not None,
            "max_parts": MAX_PARTS,
            "max_rows": MAX_ROWS,
        }

    def status(self, since: Annotated[int, Field(ge=0, lt=2**53)] = 0) -> dict[str, Any]:
        """How far the review is, how accurate the clusters are, and which clusters changed after action `since`."""
        with self.opened.reading() as state:
            count, _ = self.opened.lists.sizes()
            status = {cluster: state.status(cluster) for cluster in self.opened.lists.alive()}
            reviewed = [cluster for cluster, said in status.items() if said != "open"]
            n_rejected = len(state.rows_of(REJECTED))
            estimate = accuracy(state, self.opened.lists.confidence)
            recent = state.entries[since:] if since <= state.seq else state.entries
            return {
                "seq": state.seq,
                "n_clusters": len(status),
                "n_reviewed": len(reviewed),
                "by_status": Counter(status.values()),
                "n_images": len(state.group),
                "n_images_reviewed": int(count[reviewed].sum()) + n_rejected,
                "n_rejected": n_rejected,
                "accuracy": estimate.to_dict() if estimate else None,
                "round": state.round,
                "n_checked": len(checked_images(state, state.round)),
                "reviewers": state.reviewers,
                "changed": sorted({cluster for entry in recent for cluster in entry.clusters} - {REJECTED}),
            }

    def clusters(
        self,
        order: ClusterOrder = "largest",
        status: Status | Literal["all"] = "all",
        search: Search = "",
        offset: Offset = 0,
        limit: Limit = 100,
    ) -> dict[str, Any]:
        """A part of the list of clusters."""
        with self.opened.reading() as state:
            chosen = self.opened.lists.clusters(order, None if status == "all" else status, search)
            page = [self._card(cluster) for cluster in chosen[offset : offset + limit]]
            return {"seq": state.seq, "n": len(chosen), "n_all": len(self.opened.lists.alive()), "clusters": page}

    def near(
        self,
        cluster: ClusterOrRejected,
        rows: Annotated[str, Field(pattern=r"^(\d{1,9}(,\d{1,9}){0,99})?$")] = "",
        search: Search = "",
        limit: Limit = 50,
    ) -> dict[str, Any]:
        """Clusters that these images, numbers with commas between them, could go to, the most similar first."""
        with self.opened.reading() as state:
            given = [int(row) for row in rows.split(",") if row and int(row) < len(state.group)]
            chosen = self.opened.lists.near(cluster, given, search)[:limit]
            return {"seq": state.seq, "clusters": [self._card(each) for each in chosen]}

    def cluster(self, cluster: ClusterOrRejected) -> dict[str, Any]:
        """One cluster, or the rejected images, with what everyone said about it."""
        with self.opened.reading() as state:
            if cluster == REJECTED:
                return {"seq": state.seq, "cluster": REJECTED, "name": "Rejected images", "kind": "rejected",
                        "n": len(state.rows_of(REJECTED)), "confidence": None, "status": "rejected",
                        "opinions": {}}  # fmt: skip
            if not state.has(cluster):
                raise MissingDataError(
                    f"cluster {cluster} is not there", advice="it was merged or taken back: see the list"
                )
            name = state.labels[cluster].name
            return {
                "seq": state.seq,
                **self._card(cluster),
                "opinions": {who: asdict(said) for who, said in sorted(state.opinions.get(cluster, {}).items())},
                "same_name": [c for c in self.opened.lists.alive() if state.labels[c].name == name and c != cluster],
            }

    def images(
        self, cluster: ClusterOrRejected, order: ImageOrder = "central", offset: Offset = 0, limit: Limit = 200
    ) -> dict[str, Any]:
        """A part of the images of a cluster: number and confidence of each, and whether it looks like no category."""
        with self.opened.reading() as state:
            rows = self.opened.lists.images(cluster, order)
            page = rows[offset : offset + limit]
            confidence = self.opened.predictions.confidence[page].astype(float).round(4).tolist()
            unlike = self.opened.predictions.is_neither[page].tolist()
            told = [list(each) for each in zip(page.tolist(), confidence, unlike, strict=True)]
            return {"seq": state.seq, "n": len(rows), "images": told}

    def check(self, reviewer: Reviewer) -> dict[str, Any]:
        """The next randomly drawn image for a reviewer, and images that stand for its cluster."""
        with self.opened.reading() as state:
            row = self.opened.next_check(reviewer)
            found: dict[str, Any] = {"seq": state.seq, "round": state.round, "row": row}
            if row is not None:
                cluster = int(state.group[row])
                central = self.opened.lists.images(cluster, "central")[: N_EXAMPLES + 1].tolist()
                examples = [each for each in central if each != row][:N_EXAMPLES]
                found |= {"cluster": cluster, "name": state.labels[cluster].name, "examples": examples}
            return found

    def history(self, limit: Limit = 100) -> dict[str, Any]:
        """The latest actions, newest first."""
        with self.opened.reading() as state:
            lines = [
                {"seq": line.seq, "at": line.at, "by": line.by, "text": line.action.describe(state),
                 "is_undone": bool(state.undone.get(line.seq)), "is_undo": isinstance(line.action, Undo)}
                for line in (entry.line for entry in state.entries[: -limit - 1 : -1])
            ]  # fmt: skip
            return {"seq": state.seq, "lines": lines}

    def agreement(self) -> dict[str, Any]:
        """How far reviewers agree, and on what they do not."""
        with self.opened.reading() as state:
            found = [asdict(each) | {"name": state.name_of(each.cluster)} for each in disputes(state)[:500]]
            return {"seq": state.seq, "pairs": [asdict(pair) for pair in agreement(state)], "disputes": found}

    def _card(self, cluster: int) -> dict[str, Any]:
        card = self.opened.lists.summary(cluster)
        return {"cluster": cluster, "name": card.name, "kind": card.kind, "n": card.n_images, "status": card.status,
                "confidence": round(card.confidence, 4), "cover": self.opened.lists.cover(cluster)}  # fmt: skip


def _as_json(answer: Callable[..., dict[str, Any]]) -> Callable[..., JSONResponse]:
    @wraps(answer)  # which keeps the names and types of the parameters
    def answering(**fields: Any) -> JSONResponse:
        return JSONResponse(answer(**fields))

    return answering
