"""The data of the review page as JSON, by route."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import wraps
from typing import Annotated, Any, Literal

from fastapi.responses import JSONResponse
from pydantic import Field

from justright.review.actions import MAX_PARTS, MAX_ROWS, ClusterOrRejected, Reviewer, Undo
from justright.review.cluster_lists import ClusterOrder, ImageOrder
from justright.review.findings import agreement, disputes
from justright.review.open_review import OpenReview
from justright.review.random_checks import accuracy, n_checks_needed
from justright.review.state import REJECTED, Status
from justright.utils.errors import DataError, MissingDataError

N_EXAMPLES = 8  # example images of the cluster beside the image to check
MAX_PAGE = 2000  # entries of a list per request

Offset = Annotated[int, Field(ge=0, lt=2**31)]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE)]
Search = Annotated[str, Field(max_length=200)]


class PageData:
    """Responses for the page; `reviewer` is the default name of the reviewer."""

    def __init__(self, opened: OpenReview, reviewer: str = ""):
        self.opened = opened
        self.state = opened.state
        self.lists = opened.lists
        self.reviewer = reviewer
        self.may_be_two: set[int] = set()
        with suppress(DataError):  # hints only: a damaged file does not prevent a review
            self.may_be_two = {doubt.category for doubt in opened.run.doubts if doubt.other is None}

    def routes(self) -> dict[str, Callable[..., JSONResponse]]:
        """The handlers by path. Their parameters are the query parameters, with types and limits."""
        handlers: dict[str, Callable[..., dict[str, Any]]] = {
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
        return {path: self._up_to_date(handler) for path, handler in handlers.items()}

    def _up_to_date(self, handler: Callable[..., dict[str, Any]]) -> Callable[..., JSONResponse]:
        """Wrap a handler: update the state first, and add the number of the last action."""

        @wraps(handler)  # keeps names and types of the parameters
        def wrapped(**fields: Any) -> JSONResponse:
            with self.opened.reading() as state:
                values = {"seq": state.seq} | handler(**fields)
            return JSONResponse(values)

        return wrapped

    def about(self) -> dict[str, Any]:
        """Facts that do not change while the page is open."""
        expected = self.opened.run.expected
        return {
            "run": self.opened.run.path.resolve().name,
            "expected": "" if expected is None else expected.in_words(),
            "known_classes": self.opened.known_classes,
            "reviewer": self.reviewer,
            "can_split": self.opened.features is not None,
            "max_parts": MAX_PARTS,
            "max_rows": MAX_ROWS,
        }

    def status(self, since: Annotated[int, Field(ge=0, lt=2**53)] = 0) -> dict[str, Any]:
        """Progress, estimated accuracy, and the clusters that changed after action `since`."""
        status = {cluster: self.state.status(cluster) for cluster in self.lists.alive()}
        reviewed = [cluster for cluster, each in status.items() if each != "open"]
        n_rejected = len(self.state.rows_of(REJECTED))
        confidence = self.opened.predictions.confidence
        estimate = accuracy(self.state, confidence)
        recent = self.state.entries[since if since <= self.state.seq else 0 :]
        return {
            "n_clusters": len(status),
            "n_reviewed": len(reviewed),
            "by_status": Counter(status.values()),
            "n_images": len(self.state.group),
            "n_images_reviewed": int(self.lists.sizes()[0][reviewed].sum()) + n_rejected,
            "n_rejected": n_rejected,
            "accuracy": estimate.to_dict() if estimate else None,
            "n_more_checks": estimate.n_more if estimate else n_checks_needed(self.state, confidence),
            "round": self.state.round,
            "changed": sorted({cluster for entry in recent for cluster in entry.clusters} - {REJECTED}),
        }

    def clusters(
        self,
        order: ClusterOrder = "corrections",
        status: Status | Literal["all"] = "all",
        search: Search = "",
        offset: Offset = 0,
        limit: Limit = 100,
    ) -> dict[str, Any]:
        """One page of the list of clusters."""
        chosen = self.lists.clusters(order, None if status == "all" else status, search)
        return {"n": len(chosen), "clusters": list(map(self.lists.summary, chosen[offset : offset + limit]))}

    def near(
        self,
        cluster: ClusterOrRejected,
        rows: Annotated[str, Field(pattern=r"^(\d{1,9}(,\d{1,9}){0,99})?$")] = "",
        search: Search = "",
        limit: Limit = 50,
    ) -> dict[str, Any]:
        """Clusters to move these images to (comma-separated rows), the most similar first."""
        given = [int(row) for row in rows.split(",") if row and int(row) < len(self.state.group)]
        return {"clusters": list(map(self.lists.summary, self.lists.near(cluster, given, search)[:limit]))}

    def cluster(self, cluster: ClusterOrRejected) -> dict[str, Any]:
        """One cluster, or the rejected images, with the opinions of all reviewers."""
        if cluster == REJECTED:
            n = len(self.state.rows_of(REJECTED))
            return {"cluster": REJECTED, "name": "Rejected images", "kind": "rejected", "n": n, "confidence": None,
                    "status": "rejected", "opinions": {}}  # fmt: skip
        if not self.state.has(cluster):
            raise MissingDataError(f"cluster {cluster} does not exist", advice="it was merged or undone: see the list")
        labels = self.state.labels
        same_name = [c for c in self.lists.alive() if c != cluster and labels[c].name == labels[cluster].name]
        opinions = {who: asdict(opinion) for who, opinion in sorted(self.state.opinions.get(cluster, {}).items())}
        is_unchanged = not self.state.changed_at(cluster)  # the hint is about the cluster as the run made it
        doubt = "may be two kinds" if cluster in self.may_be_two and is_unchanged else ""
        return self.lists.summary(cluster) | {"opinions": opinions, "same_name": same_name, "doubt": doubt}

    def images(
        self, cluster: ClusterOrRejected, order: ImageOrder = "uncertain", offset: Offset = 0, limit: Limit = 200
    ) -> dict[str, Any]:
        """One page of the images of a cluster: row, confidence, whether unlike all categories, whether labeled."""
        rows = self.lists.images(cluster, order)
        page = rows[offset : offset + limit]
        confidence = self.opened.predictions.confidence[page].astype(float).round(4).tolist()
        unlike = self.opened.predictions.is_neither[page].tolist()
        given = self.opened.predictions.is_given[page].tolist()
        return {"n": len(rows), "images": list(zip(page.tolist(), confidence, unlike, given, strict=True))}

    def check(self, reviewer: Reviewer) -> dict[str, Any]:
        """The next random image for a reviewer, and examples of its cluster."""
        row = self.opened.next_check(reviewer)
        values: dict[str, Any] = {"round": self.state.round, "row": row}
        if row is not None:
            cluster = int(self.state.group[row])
            central = self.lists.images(cluster, "central")[: N_EXAMPLES + 1].tolist()
            examples = [each for each in central if each != row][:N_EXAMPLES]
            values |= {"cluster": cluster, "name": self.state.labels[cluster].name, "examples": examples}
        return values

    def history(self, limit: Limit = 100) -> dict[str, Any]:
        """The latest actions, newest first."""
        lines = [entry.line for entry in self.state.entries[: -limit - 1 : -1]]
        return {"lines": [
            {"seq": line.seq, "at": line.at, "by": line.by, "text": line.action.describe(self.state),
             "is_undone": bool(self.state.undone.get(line.seq)), "is_undo": isinstance(line.action, Undo)}
            for line in lines
        ]}  # fmt: skip

    def agreement(self) -> dict[str, Any]:
        """Agreement between reviewers, and their disputes."""
        return {"pairs": agreement(self.state), "disputes": disputes(self.state)[:500]}
