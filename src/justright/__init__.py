"""Find new categories in unlabeled images, with the labeled data that actually helps."""

__version__ = "0.1.0"
