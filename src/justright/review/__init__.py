"""People correct the clusters of a run: the review page, its log and the labels that it exports."""

from justright.review import random_checks, relabel  # these register their actions
