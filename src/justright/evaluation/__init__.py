"""How good is a clustering: accuracy, errors, and what a person's spot checks say."""

from justright.evaluation.accuracy import evaluate
from justright.evaluation.checked import HALF_WIDTH, CheckedAccuracy, estimate_accuracy, forecast_looks
from justright.evaluation.confusions import Errors, break_down, matched_confusion
from justright.evaluation.counts import Counts
from justright.evaluation.matching import match_counts
from justright.evaluation.names import names_right
from justright.evaluation.scores import PROTOCOLS, Protocol, Scores
