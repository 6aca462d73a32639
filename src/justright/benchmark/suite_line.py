"""What a line of results says of a run: scores, errors, what was kept, how long it took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from justright.discovery.predictions import Category
from justright.evaluation import break_down
from justright.evaluation.confusions import Errors
from justright.evaluation.files import JudgedPredictions
from justright.geometry import unit_rows
from justright.runs.problem import Problem
from justright.runs.run_folder import RunFolder
from justright.utils.types import UNLABELED, Labels

Line = dict[str, Any]
"""What results.jsonl says about a run: problem, part, setting, seed, print (its fingerprint), and scores or failed."""


def result_of(run: RunFolder, seconds: float, is_probed: bool = False) -> Line:
    """The line of a run that came to an end."""
    scores, about, selection = run.scores, run.about, run.selection
    assert scores is not None, "a problem of a suite has a truth"
    assert run.truth_file is not None
    weighed, config = None if selection is None else selection.weighed, about["config"]
    kept = [] if weighed is None else weighed.classes["weight"].to_numpy()
    judged = run.judged(run.truth_file)
    breakdown = break_down(judged.y_true, judged.y_pred, judged.is_old)
    errors, n_new = breakdown.by_kind(), int((~judged.is_old).sum())
    line = {
        "all": scores.all,
        "old": None if np.isnan(scores.old) else scores.old,
        "new": scores.new,
        "new_as_old": errors["new_as_old"] / n_new,
        "new_as_new": errors["new_as_new"] / n_new,
        "new_as_pool": _in_pool_categories(run.predictions.categories, judged, breakdown) / n_new,
        "n_target": about["n_target"],
        "n_categories": about["n_categories"],
        "n_used": int((run.predictions.sizes > 0).sum()),
        "pool_classes": len(kept),
        "kept_classes": int(np.count_nonzero(kept)),
        "notes": about["notes"],
        "check": about.get("check"),
        "n_steps": config["n_steps"] * config["n_epochs"] if config.get("n_steps") else None,
        "seconds": round(seconds, 1),
    }
    return line | ({"probe": probe(run.tuned, judged.y_true)} if is_probed else {})


def _in_pool_categories(categories: Sequence[Category], judged: JudgedPredictions, errors: Errors) -> int:
    """New images in a category of a labeled class that the target does not have, where it is matched to no class."""
    own = {judged.class_names[label] for label in set(judged.y_true[judged.is_old].tolist())}
    is_pool = np.array([each.kind == "known" and each.name not in own for each in categories])
    is_pool[errors.cluster[errors.cluster != UNLABELED]] = False
    return int(is_pool[judged.y_pred[~judged.is_old]].sum())


def lacks(line: Line, group: str) -> bool:
    """Whether a line of an older version does not count images in categories of rivals apart (Fig. 3)."""
    has_rivals = line.get("n_categories", 0) > line.get("n_target", 0)
    return group in ("new_as_old", "new_as_new") and has_rivals and "new_as_pool" not in line


def shown_value(line: Line, group: str) -> float | None:
    """What a table shows of a run; None where it has no such value.

    A class of the pool is labeled, so an image in its category is taken for old, as the paper has it.
    """
    if lacks(line, group) or line.get(group) is None:
        return None
    pool = {"new_as_old": 1, "new_as_new": -1}.get(group, 0) * line.get("new_as_pool", 0.0)
    return float(line[group]) + pool


def counts_of(problem: Problem) -> Line:
    """What Tab. A9 says of a data set: labeled images and classes, and those of the target."""
    assert problem.truth is not None, "a problem of a suite has a truth"
    return {
        "labeled_images": len(problem.pool.images),
        "labeled_classes": len(problem.pool.images.classes),
        "target_images": len(problem.target),
        "target_classes": problem.n_target_classes,
    }


def probe(features: Any, labels: Labels) -> float:
    """How well a linear classifier that is given labels of the target knows the rest of it: the transfer of Fig. 1.

    The mean over four folds. Images of old and new classes alike; an oracle, for it reads the truth.
    """
    from sklearn.linear_model import RidgeClassifier  # imported here because it takes a second
    from sklearn.model_selection import KFold, cross_val_score

    folds = KFold(4, shuffle=True, random_state=0)
    return float(cross_val_score(RidgeClassifier(0.1), unit_rows(features), labels, cv=folds).mean())
