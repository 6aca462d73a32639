"""What a line of results says of a run: scores, errors, what was kept, how long it took."""

from __future__ import annotations

from typing import Any

import numpy as np

from justright.evaluation import break_down
from justright.evaluation.files import read_judged
from justright.runs.problem import Problem
from justright.runs.run_folder import RunFolder
from justright.types import Labels

Line = dict[str, Any]
"""What results.jsonl says about a run: problem, part, setting, seed, print (its fingerprint), and scores or failed."""

N_FOLDS = 4


def result_of(run: RunFolder, seconds: float, is_probed: bool = False) -> Line:
    """The line of a run that came to an end."""
    scores, about, selection = run.scores, run.about, run.selection
    assert scores is not None, "a problem of a suite has a truth"
    assert run.truth_file is not None
    weighed, config = None if selection is None else selection.weighed, about["config"]
    kept = [] if weighed is None else weighed.classes["weight"].to_numpy()
    judged = read_judged(run.path / "predictions.parquet", run.truth_file)
    errors = break_down(judged.y_true, judged.y_pred, judged.is_old).by_kind()
    n_new = int((~judged.is_old).sum())
    line = {
        "all": scores.all,
        "old": None if np.isnan(scores.old) else scores.old,
        "new": scores.new,
        "new_as_old": errors["new_as_old"] / n_new,
        "new_as_new": errors["new_as_new"] / n_new,
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

    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    folds = KFold(N_FOLDS, shuffle=True, random_state=0)
    return float(cross_val_score(RidgeClassifier(0.1), unit, labels, cv=folds).mean())
