"""Compare the answer of runs with simple methods, and its confidence with its accuracy.

    python benchmarks/study_answers.py RUN [RUN ...] --lines after.jsonl
    python benchmarks/study_answers.py --summary before.jsonl after.jsonl --figure reliability.svg

For each finished run with truth it prints a table and a line of JSON:

- All / Old / New in percent, and the same if names count: of the answer, of the method's own assignment if the run has
  kept it, and of simple methods on frozen features with the same K
- accuracy, mean confidence, calibration error over ten equally filled bins, area under the curve
- whether the interval for the number of right images holds that number
- how many clusters "may be two kinds" or "may belong with" another, and how many of these doubts are right

`--summary` prints means over the problems of each file of lines, and how often the goals are met. A problem is the mean
of its seeds. `--figure` draws accuracy over confidence, a panel for each file.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from scipy.stats import norm

from justright.data.parquet import read_parquet
from justright.data.pool import OWN
from justright.discovery.evidence import NAMES, expected_right, probability_right
from justright.evaluation import Counts, evaluate, match_counts
from justright.evaluation.files import JudgedPredictions, classes_named
from justright.evaluation.scores import GROUPS
from justright.report.drawing import COLORS, INK, LINE, figure_with_axes, to_svg
from justright.runs.frozen_check import baseline_scores, simple_results
from justright.runs.run_folder import RunFolder
from justright.utils.errors import DegenerateError
from justright.utils.files import write_text
from justright.utils.types import UNLABELED, Array

ANSWER, METHOD = "answer", "method"
EVIDENCE, OWN_COLUMN = "evidence.parquet", "method cluster"  # the method's own assignment, beside a joint answer
GAINS = "gains of simple methods"
CLEAR = 2.6  # standard errors: 5 % one-sided, corrected for ten simple methods
KINDS = ("all", "known", "discovered")
N_BINS = 10  # of confidence
CLOSE = {"all": 5.0, "known": 8.0, "discovered": 8.0}  # points between mean confidence and accuracy

Line = dict[str, Any]


def study(
    folder: Path, truth_name: str, problem: str | None = None, with_baselines: bool = True, is_again: bool = False
) -> Line:
    """The line of a finished run; scores in percent."""
    run = RunFolder.open(folder)
    inside = folder / truth_name
    judged = run.judged(inside if inside.exists() else Path(truth_name))
    about, predictions, is_judged = run.about, run.predictions, ~judged.is_given
    sides = judged.y_true, judged.y_pred, judged.is_old
    is_right = right(judged.y_true, judged.y_pred)
    compared: dict[str, Line] = {}
    scores = {ANSWER: evaluate(*sides, called=judged.called, with_intervals=False).to_dict()}
    if (folder / EVIDENCE).exists():
        own = read_parquet(folder / EVIDENCE)[OWN_COLUMN].to_numpy().astype(np.int64)[is_judged]
        scores[METHOD] = evaluate(
            judged.y_true, own, judged.is_old, called=_called(run, own, judged), with_intervals=False
        ).to_dict()
    if with_baselines and run.frozen is not None:
        known = [each.name for each in predictions.categories if each.kind == "known"]
        results = simple_results(_as_method(run, known), *run.frozen, run.own_classes)
        scores |= baseline_scores(results or {}, known, judged)
        for name, clusters in (results or {}).items():
            gain = right(judged.y_true, clusters[is_judged]).astype(int) - is_right
            compared[name] = gains(gain, judged.y_true, judged.is_old)
    kinds, sure = np.array(predictions.table()["kind"].to_pylist())[is_judged], predictions.confidence[is_judged]
    expected = about.get("expected_right")
    if is_again:
        table = read_parquet(folder / EVIDENCE)
        evidence = np.stack([table[name].to_numpy() for name in NAMES], axis=1)[is_judged]
        sure = probability_right(evidence)
        expected = asdict(expected_right(sure, not evidence[:, NAMES.index("unchecked")].any()))
    chosen = {"all": np.ones_like(is_right)} | {str(kind): kinds == kind for kind in np.unique(kinds)}
    return {
        "problem": problem or f"{folder.resolve().parent.name}/{re.sub(r'-[0-9]+$', '', folder.resolve().name)}",
        "seed": about.get("seed"),
        "method": about.get("method"),
        "n_images": len(is_right),
        "k": len(predictions.categories),
        "n_classes": len(np.unique(judged.y_true)),
        "scores": {name: _percent(each) for name, each in scores.items()},
        "calibration": {name: _calibration(sure[rows], is_right[rows]) for name, rows in chosen.items()},
        "interval": _interval(expected, float(is_right.mean())),
        "noise": noise(sure.astype(np.float64), is_right, judged.y_true),
        GAINS: compared,
        "doubts": _doubts(run, judged),
    }


def right(y_true: np.ndarray, y_pred: np.ndarray) -> np.ndarray:
    """Whether each image is in the cluster that is matched with its class."""
    return match_counts(Counts.of(y_true, y_pred)).to_classes(y_pred) == y_true


def gains(gain: np.ndarray, y_true: np.ndarray, is_old: np.ndarray) -> Line:
    """How much better another answer is in All and New, and the standard error over classes, in points.

    gain: 1 for each image that only the other answer has right, -1 if only this one has, else 0.
    """
    result: Line = {}
    for name, rows in (("all", slice(None)), ("new", ~is_old)):
        sums = np.array([gain[rows][y_true[rows] == label].sum() for label in np.unique(y_true[rows])])
        sizes = np.bincount(y_true[rows])[np.unique(y_true[rows])]
        mean = sums.sum() / max(1, sizes.sum())
        error = np.sqrt(np.sum((sums - mean * sizes) ** 2)) / max(1, sizes.sum())
        result[name] = [round(100 * float(mean), 1), round(100 * float(error), 1)]
    return result


def _as_method(run: RunFolder, known: list[str]) -> SimpleNamespace:
    """The attributes of a fitted method that `simple_results` reads; classes are matched by name."""
    number, names = {name: k for k, name in enumerate(known)}, run.frozen[0].index["class_name"].to_pylist()
    labels = np.array([number.get((name or "").removeprefix(f"{OWN}/"), UNLABELED) for name in names], dtype=np.int64)
    rows, categories = np.flatnonzero(labels != UNLABELED), run.predictions.categories
    return SimpleNamespace(
        class_rows_=rows,
        class_labels_=labels[rows],
        known_labels_=tuple(number.values()),
        n_categories_=len(categories),
        categories_=categories,
        seed=int(run.about.get("seed", 0)),
    )


def noise(sure: np.ndarray, is_right: np.ndarray, y_true: np.ndarray) -> Line:
    """How far accuracy and calibration error would be off by chance alone, in percent.

    gap: standard deviation of mean confidence less accuracy if other classes of the same kind had been drawn, by a
        bootstrap over true classes.
    error: the mean calibration error of confidences that are exactly right, for as many images: whether each image is
        right is drawn with its confidence.
    """
    rng, by_class = np.random.default_rng(0), [np.flatnonzero(y_true == label) for label in np.unique(y_true)]
    gaps, errors = [], []
    for _ in range(300):
        rows = np.concatenate([by_class[k] for k in rng.integers(len(by_class), size=len(by_class))])
        gaps.append(sure[rows].mean() - is_right[rows].mean())
        errors.append(calibration(sure, rng.random(len(sure)) < sure).error)
    return {"gap": round(100 * float(np.std(gaps)), 1), "error": round(100 * float(np.mean(errors)), 1)}


def _called(run: RunFolder, clusters: np.ndarray, judged: JudgedPredictions) -> np.ndarray | None:
    """The class whose name each cluster has."""
    if not judged.class_names:
        return None
    categories = run.predictions.categories
    named = classes_named([each.name for each in categories], judged.class_names)
    return np.where([each.kind == "known" for each in categories], named, UNLABELED)[clusters]


def _percent(scores: Mapping[str, Any]) -> Line:
    def rounded(values: Mapping[str, Any]) -> Line:
        return {name: None if values.get(name) is None else round(100 * values[name], 1) for name in GROUPS}

    return rounded(scores) | {"names": rounded(scores["names"]) if scores["names"] else None}


@dataclass(frozen=True)
class Calibration:
    """Confidences compared with what is right; shares between 0 and 1."""

    n_images: int
    accuracy: float
    confidence: float  # its mean
    error: float  # expected calibration error
    auc: float  # area under the curve; NaN where all images are right, or none is
    bins: tuple[tuple[int, float, float], ...]  # images, mean confidence and accuracy, from the lowest confidence on


def calibration(confidence: Float[Array, " images"], is_right: Bool[Array, " images"]) -> Calibration:
    """Compare confidences c with what is right, over bins B of equally many images in the order of confidence.

    error = sum_B |B| / N |mean_B(c) - mean_B(right)|
    auc   = P(c_i > c_j) + 1/2 P(c_i = c_j)     over all pairs of a right image i and a wrong image j
    """
    from sklearn.metrics import roc_auc_score  # slow to import

    if not len(confidence):
        raise DegenerateError("no confidences to compare", expected="at least one image")
    c = confidence.astype(np.float64)
    parts = [part for part in np.array_split(np.argsort(c, kind="stable"), N_BINS) if len(part)]
    bins = tuple((len(part), float(c[part].mean()), float(is_right[part].mean())) for part in parts)
    accuracy = float(is_right.mean())
    auc = float(roc_auc_score(is_right, c)) if 0 < accuracy < 1 else np.nan
    error = sum(size * abs(mean - right) for size, mean, right in bins) / len(c)
    return Calibration(len(c), accuracy, float(c.mean()), error, auc, bins)


def _calibration(confidence: np.ndarray, is_right: np.ndarray) -> Line:
    measured = calibration(confidence.astype(np.float64), is_right)
    return {
        "n": measured.n_images,
        **{name: round(100 * getattr(measured, name), 1) for name in ("accuracy", "confidence", "error")},
        "auc": None if np.isnan(measured.auc) else round(measured.auc, 3),
        "bins": [[n, *(round(100 * share, 1) for share in shares)] for n, *shares in measured.bins],
    }


def _interval(expected: Mapping[str, Any] | None, accuracy: float) -> Line | None:
    """The interval for the number of right images, and whether it holds that number."""
    if not expected:
        return None
    n_right = accuracy * expected["n"]
    holds = bool(expected["low"] <= round(n_right, 6) <= expected["high"])
    return {**{name: expected[name] for name in ("low", "expected", "high", "n")}, "right": n_right, "holds": holds}


def _doubts(run: RunFolder, judged: JudgedPredictions) -> Line:
    """How many doubts of each kind there are, and how many of them are right.

    "Two kinds" is right if the main class of the images that decide it differs from that of the others in the cluster.
    "Belongs with" is right if both clusters have the same main class.
    """
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    y_true = np.full(len(run.predictions), UNLABELED)
    y_true[~judged.is_given] = judged.y_true
    for doubt in run.doubts:
        own = (run.predictions.cluster == doubt.category) & ~judged.is_given
        side, other = np.isin(np.arange(len(own)), doubt.rows), run.predictions.cluster == doubt.other
        if doubt.other is None:
            is_right = _main_class(y_true[own & side]) != _main_class(y_true[own & ~side])
        else:
            is_right = _main_class(y_true[own]) == _main_class(y_true[other & ~judged.is_given])
        counts[doubt.kind][0] += 1
        counts[doubt.kind][1] += is_right
    return {kind: {"n": n, "right": n_right} for kind, (n, n_right) in counts.items()}


def _main_class(labels: np.ndarray) -> int:
    return int(np.bincount(labels).argmax())


def table_of(line: Line) -> str:
    """The line of a run as Markdown."""
    rows = [f"**{line['problem']}**, seed {line['seed']}, {line['n_images']:,} images, K = {line['k']}"]
    rows += ["", *_table(line["scores"]), ""]
    rows += ["| images | n | accuracy | mean confidence | calibration error | AUC |", "|---|---|---|---|---|---|"]
    for name, each in line["calibration"].items():
        shares = " | ".join(_cell(each[value]) for value in ("accuracy", "confidence", "error"))
        rows.append(f"| {name} | {each['n']:,} | {shares} | {_cell(each['auc'], 3)} |")
    if interval := line["interval"]:
        verb = "holds" if interval["holds"] else "does not hold"
        rows += ["", "Expected right: {low:,} to {high:,} of {n:,}".format(**interval)]
        rows[-1] += f", which {verb} the {interval['right']:,.0f} that are."
    for kind, each in line["doubts"].items():
        rows += ["", f"{kind.capitalize()}: {each['right']} of {each['n']} such doubts are right."]
    return "\n".join(rows)


def _table(scores: Mapping[str, Line]) -> list[str]:
    rows = ["| method | All / Old / New | names count |", "|---|---|---|"]
    return rows + [f"| {name} | {_three(each)} | {_three(each['names'])} |" for name, each in scores.items()]


def _three(scores: Mapping[str, float | None] | None) -> str:
    return "" if scores is None else " / ".join(_cell(scores[name]) for name in GROUPS)


def _cell(value: float | None, decimals: int = 1) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def mean_of(values: Sequence[Any]) -> Any:
    """The mean of numbers, or of each entry of mappings or lists; None does not count."""
    given = [value for value in values if value is not None]
    if not given:
        return None
    if isinstance(given[0], Mapping):
        names = dict.fromkeys(name for value in given for name in value)
        return {name: mean_of([value.get(name) for value in given]) for name in names}
    if isinstance(given[0], Sequence):
        return [mean_of(parts) for parts in zip(*given, strict=True)]
    return float(np.mean(given))


def by_problem(lines: Iterable[Line]) -> dict[str, Line]:
    """For each problem the mean over its seeds."""
    groups = defaultdict(list)
    for line in lines:
        groups[line["problem"]].append(line)
    return {name: {"n_seeds": len(each), **_mean_line(each)} for name, each in groups.items()}


def _mean_line(lines: Sequence[Line]) -> Line:
    without_bins = [
        {name: {key: v for key, v in each.items() if key != "bins"} for name, each in line["calibration"].items()}
        for line in lines
    ]
    intervals = [line["interval"] and float(line["interval"]["holds"]) for line in lines]
    parts = {"scores": [line["scores"] for line in lines], "calibration": without_bins, "holds": intervals}
    for name in ("noise", GAINS):
        parts[name] = [line.get(name) for line in lines]
    return {name: mean_of(values) for name, values in parts.items()}


def summary(lines: Sequence[Line]) -> str:
    """Means over problems, and how often the goals are met."""
    problems = by_problem(lines)
    rows = ["| problem | seeds | answer | best simple method by All | accuracy | confidence | error | AUC |"]
    rows += ["|---|---|---|---|---|---|---|---|"]
    for name, each in problems.items():
        simple = {key: scores for key, scores in each["scores"].items() if key not in (ANSWER, METHOD)}
        best = max(simple, key=lambda key: simple[key]["all"], default=None)
        by_best = "" if best is None else f"{best}: {_three(simple[best])}"
        whole = each["calibration"]["all"]
        shares = " | ".join(_cell(whole[value]) for value in ("accuracy", "confidence", "error"))
        answer = _three(each["scores"][ANSWER])
        rows.append(f"| {name} | {each['n_seeds']} | {answer} | {by_best} | {shares} | {_cell(whole['auc'], 3)} |")
    means = mean_of([each["scores"] for each in problems.values()])
    rows += ["", f"Mean of {len(problems)} problems:", "", *_table(means)]
    return "\n".join([*rows, "", *counts(problems.values())])


def counts(problems: Iterable[Line]) -> list[str]:
    """Sentences: how many problems have an accurate confidence, calibration errors, how often the interval holds."""
    problems, sentences = list(problems), []
    for kind in KINDS:
        given = [each["calibration"][kind] for each in problems if each["calibration"].get(kind)]
        n_close = sum(abs(each["confidence"] - each["accuracy"]) <= CLOSE[kind] for each in given)
        sentences.append(
            f"- mean confidence within {CLOSE[kind]:.0f} points of accuracy, {kind}: {n_close} of {len(given)}"
        )
    errors = [each["calibration"]["all"]["error"] for each in problems]
    sentences.append(f"- calibration error: median {np.median(errors):.1f}, worst {max(errors):.1f}")
    auc = mean_of([each["calibration"]["all"]["auc"] for each in problems])
    sentences.append(f"- area under the curve: mean {_cell(auc, 3)}")
    if all(each.get("noise") for each in problems):
        floor = [each["noise"]["error"] for each in problems]
        gaps = np.array([each["noise"]["gap"] for each in problems])
        n_by_chance = np.sum(2 * norm.cdf(CLOSE["all"] / gaps) - 1)
        sentences.append(
            f"- calibration error of perfect confidences: median {np.median(floor):.1f}, worst {max(floor):.1f}"
        )
        sentences.append(
            f"- standard deviation of the gap over draws of classes: mean {gaps.mean():.1f}; confidences without bias "
            f"would be within {CLOSE['all']:.0f} points in {n_by_chance:.0f} of {len(problems)}"
        )
    compared = [each[GAINS] for each in problems if each.get(GAINS)]
    for group in ("all", "new") if compared else ():
        best = [max(each.values(), key=lambda gain: gain[group][0])[group] for each in compared]
        n_better = sum(gain > 0 for gain, _ in best)
        n_clear = sum(any(g[group][0] > CLEAR * g[group][1] for g in each.values()) for each in compared)
        sentences.append(
            f"- the best simple method, chosen with the truth, is better in {group}: {n_better} of {len(best)}; "
            f"one is by more than {CLEAR} standard errors over classes: {n_clear}"
        )
    holds = [each["holds"] for each in problems if each["holds"] is not None]
    if holds:
        sentences.append(f"- the interval holds the number of right images: {sum(holds):.1f} of {len(holds)}")
    return sentences


def draw_reliability(files: Mapping[str, Sequence[Line]]) -> Figure:
    """Accuracy over confidence in ten bins: thin lines are runs, the thick one is the mean over problems."""
    figure, panels = figure_with_axes(4.2 * len(files), 4.2, (1, len(files)), sharey=True)
    for axes, (name, lines) in zip(panels, files.items(), strict=True):
        axes.plot([0, 100], [0, 100], color=INK, linewidth=0.8, linestyle="--")
        groups = defaultdict(list)
        for line in lines:
            bins = np.array(line["calibration"]["all"]["bins"], dtype=np.float64)
            axes.plot(bins[:, 1], bins[:, 2], color=LINE, linewidth=0.8)
            if len(bins) == 10:
                groups[line["problem"]].append(bins)
        if groups:
            mean = np.mean([np.mean(each, axis=0) for each in groups.values()], axis=0)
            axes.plot(mean[:, 1], mean[:, 2], "o-", color=COLORS[0], linewidth=2, markersize=4)
        axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
        axes.set_title(name, loc="left", fontsize=10.5, fontweight="bold")
        axes.set_xlabel("mean confidence of a tenth of the images, %", fontsize=9.5)
    panels[0].set_ylabel("of them right, %", fontsize=9.5)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Study runs, or summarize lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folder of a finished run")
    parser.add_argument("--truth-name", default="truth.parquet", help="the truth, in the folder of the run or a path")
    parser.add_argument("--problem", help="name for all the runs; otherwise that of their folders without the seed")
    parser.add_argument("--no-baselines", action="store_true", help="leave the simple methods out")
    parser.add_argument("--again", action="store_true", help="confidences from evidence.parquet, by this version")
    parser.add_argument("--lines", type=Path, help="file that the lines are added to")
    parser.add_argument("--summary", nargs="+", type=Path, metavar="LINES", default=[], help="files of lines")
    parser.add_argument("--figure", type=Path, help="with --summary: file for the reliability diagram, as SVG")
    options = parser.parse_args(arguments)
    if bool(options.runs) == bool(options.summary):
        parser.error("give folders of runs, or --summary with files of lines")
    for folder in options.runs:
        line = study(folder, options.truth_name, options.problem, not options.no_baselines, options.again)
        text = json.dumps(line)
        print(f"{table_of(line)}\n\n{text}\n", flush=True)
        if options.lines:
            with options.lines.open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")
    files = {
        path.stem: [json.loads(text) for text in path.read_text().splitlines() if text] for path in options.summary
    }
    for name, lines in files.items():
        print(f"## {name}\n\n{summary(lines)}\n")
    if options.figure and files:
        write_text(options.figure, to_svg(draw_reliability(files)))


if __name__ == "__main__":
    main()
