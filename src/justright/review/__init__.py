"""What a person says back: look through the clusters, correct them, export the labels."""

from __future__ import annotations

from justright.review.open_review import OpenReview
from justright.review.state import ReviewState

__all__ = ["OpenReview", "ReviewState"]
