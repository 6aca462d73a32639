"""How good is a clustering: accuracy, errors, and estimates from spot checks of a person."""

from justright.evaluation.accuracy import evaluate, names_right
from justright.evaluation.checked import HALF_WIDTH, CheckedAccuracy, estimate_accuracy, forecast_checks
from justright.evaluation.confusions import Errors, break_down, matched_confusion
from justright.evaluation.matching import Counts, match_counts
from justright.evaluation.scores import PROTOCOLS, Protocol, Scores
