"""What people say about the clusters of a run: the review page, its log and the labels it exports."""

from justright.review import random_checks, relabel  # register their actions
