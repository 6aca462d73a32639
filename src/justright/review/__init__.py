"""What a person says back: look through the clusters, correct them, export the labels."""

from __future__ import annotations

from justright.review.desk import Desk
from justright.review.state import ReviewState

__all__ = ["Desk", "ReviewState"]
