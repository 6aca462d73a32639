"""What a person says back: look through the clusters, correct them, export the labels."""

from __future__ import annotations

from justright.review import cluster_actions, random_checks, undo  # their actions become known
