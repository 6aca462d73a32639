from __future__ import annotations

import math
from dataclasses import replace

from tests.report.html_checks import part, text_of

from justright.evaluation import break_down
from justright.report.elements import Missing
from justright.report.run_parts import errors_part, judged, percent, scores_part
from justright.runs.run_folder import RunFolder


def test_scores_are_those_of_the_file(finished):
    scores, text = finished.scores, text_of(part("run", "scores", scores_part(finished)))
    for name in ("all", "old", "new"):
        low, high = scores.intervals[name]
        value = getattr(scores, name)
        assert f"{name.capitalize()} {100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]" in text
    assert f"NMI {scores.nmi:.3f}" in text
    assert "do not include the variation between seeds" in text


def test_dropped_old_classes_have_their_own_row(finished, own_run):
    (own_run.path / "scores.json").unlink()
    replace(finished.scores, old_kept=0.5).save(own_run.path / "scores.json")
    assert "labels kept" not in text_of(part("run", "scores", scores_part(finished)))
    assert "Old, labels kept 50.0" in text_of(part("run", "scores", scores_part(own_run)))
    assert percent(replace(finished.scores, old=math.nan), "old") == "no images"


def test_names_count_is_a_column_if_the_scores_have_it(finished, own_run):
    assert "names count" not in text_of(part("run", "scores", scores_part(finished)))
    (own_run.path / "scores.json").unlink()
    names = {"all": 0.5, "old": 0.25, "new": math.nan}
    replace(finished.scores, old_kept=0.5, names=names).save(own_run.path / "scores.json")
    text = text_of(part("run", "scores", scores_part(own_run)))
    assert "names count %" in text
    assert f"{finished.scores.n_old} 25.0 Old, labels kept" in text


def test_scored_simple_methods_are_shown(finished, own_run):
    assert "Simple methods" not in text_of(part("run", "scores", scores_part(finished)))
    ward = {"all": 0.725, "old": None, "new": 0.5, "names": {"all": 0.25, "old": None, "new": 0.3}}
    own_run.save_about(own_run.about | {"check": {"baselines": {"Ward, whitened": ward}}})
    text = text_of(part("run", "scores", scores_part(RunFolder.open(own_run.path))))
    assert f"this run (simgcd) {100 * finished.scores.all:.1f}" in text
    assert "Ward, whitened 72.5 50.0 25.0" in text


def test_errors_agree_with_the_breakdown(finished):
    found = judged(finished)
    errors = break_down(found.y_true, found.y_pred, found.is_old)
    html = part("run", "errors", errors_part(found, finished.predictions))
    text = text_of(html)
    for kind, n in errors.by_kind().items():
        assert f"{kind.replace('_', ' ')} {n} {100 * n / len(found.y_true):.2f}" in text
    assert html.count("<svg") == 2
    worst = min(range(len(errors.classes)), key=lambda i: errors.n_right[i] / errors.n_images[i])
    assert text.index(f"{len(errors.classes)} classes") < text.rindex(found.class_names[int(errors.classes[worst])])


def test_the_most_frequent_confusion_comes_first(finished):
    found = judged(finished)
    y_pred = found.y_pred.copy()
    rows = [row for row, label in enumerate(found.y_true) if label == found.y_true[0]]
    other = next(k for k in found.y_pred if k != found.y_pred[rows[1]])
    y_pred[rows[: len(rows) // 2]] = other
    text = text_of(part("run", "errors", errors_part(replace(found, y_pred=y_pred), finished.predictions)))
    _, _, pairs = text.partition("Most frequent confusions")
    assert pairs.split("images", 1)[1].strip().startswith(found.class_names[int(found.y_true[0])])


def test_page_without_truth_recommends_a_review(own_run):
    (own_run.path / "truth.parquet").unlink()
    (own_run.path / "scores.json").unlink()
    assert "justright review" in part("run", "scores", scores_part(own_run))
    found = judged(own_run)
    assert isinstance(found, Missing)
    reason = errors_part(found, own_run.predictions).reason
    assert reason == "Errors cannot be counted: the run has no labels of the target", "not: no errors"
