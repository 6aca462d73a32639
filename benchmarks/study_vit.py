"""Judge the defaults for ViTs on photos: train with one setting changed at a time.

    python benchmarks/study_vit.py run --data DATA --checkpoint FILE --out docs/results/vit
    python benchmarks/study_vit.py show --out docs/results/vit

`run` adds one line of JSON per run to OUT/runs.jsonl and skips runs that have a line. A line has All / Old / New in
percent of the default answer, of the method alone (`--answer method`) and of simple methods on frozen features, with
the true K. Settings are compared on even classes of CUB ("choose"); "judge" has odd classes of CUB, and plants.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from justright.data import ClassSplit, gcd_split, merge_pool, open_images
from justright.data.parquet import read_parquet
from justright.evaluation import evaluate
from justright.evaluation.scores import GROUPS
from justright.features.backbone import load_backbone
from justright.runs.problem import OWN, Problem
from justright.runs.run import Run
from justright.runs.spec import RunSpec
from justright.utils.seeding import generator

BACKBONE, IMG_SIZE = "dinov2_vits14_reg", 168
N_CLASSES = 20

# the file, the class numbers to draw from (0: even, 1: odd, None: all), images of each class, and the purpose
PROBLEMS = {
    "birds, even classes": ("cub200.zip", 0, 30, "choose"),
    "birds, odd classes": ("cub200.zip", 1, 15, "judge"),
    "plants": ("plantvillage38.zip", None, 15, "judge"),
}
RATE = {"backbone_share": 1.0}  # the default when the study began; 0.03 followed from it
# What differs from the default of then; 20 classes are trained for 400 steps by default, 100 epochs of 4
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "rate 0.3": {"backbone_share": 0.3},
    "rate 0.1": {"backbone_share": 0.1},
    "rate 0.03": {"backbone_share": 0.03},
    "rate 0.01": {"backbone_share": 0.01},
    "heads first": {"heads_first": 1000},
    "half as long": {"n_epochs": 50, "n_steps": 4},
    "twice as long": {"n_epochs": 200, "n_steps": 4},
    "teacher temperature 0.07": {"temperature_teacher": 0.07},
    "centered features": {"center": "always"},
    "rate 0.03, heads first": {"backbone_share": 0.03, "heads_first": 1000},
    "rate 0.03, half as long": {"backbone_share": 0.03, "n_epochs": 50, "n_steps": 4},
    "rate 0.03, twice as long": {"backbone_share": 0.03, "n_epochs": 200, "n_steps": 4},
    "rate 0.03, teacher temperature 0.07": {"backbone_share": 0.03, "temperature_teacher": 0.07},
    "rate 0.03, centered features": {"backbone_share": 0.03, "center": "always"},
}


def make_problem(name: str, data: Path, split_seed: int = 0) -> Problem:
    """Draw 20 classes and images of each; half of the classes are old, and half of their images are labeled."""
    file, parity, per_class, _ = PROBLEMS[name]
    source = open_images(data / file)
    candidates = [label for label in sorted(source.classes) if parity is None or label % 2 == parity]
    draw = generator(split_seed, "study of ViTs")
    chosen = draw.permutation(candidates)[:N_CLASSES].tolist()
    rows = [draw.permutation(np.flatnonzero(source.labels == label))[:per_class] for label in chosen]
    images = source.take(np.sort(np.concatenate(rows)))
    n_old = N_CLASSES // 2
    roles = ClassSplit(tuple(sorted(chosen[:n_old])), {"new": tuple(sorted(chosen[n_old:]))})
    split, truth = gcd_split(images.named(OWN), roles, 0.5, split_seed)
    return Problem(merge_pool([split.labeled]), split.unlabeled, truth, N_CLASSES).without_copies()[0]


def run_one(problem: Problem, settings: dict[str, Any], seed: int, backbone: Any, checkpoint: Path, out: Path) -> Any:
    """Train once; return the scores and other numbers of a line."""
    spec = RunSpec(
        selector="none",
        n_resamples=0,
        scale="small",
        settings=settings,
        backbone=BACKBONE,
        checkpoint=checkpoint,
        img_size=IMG_SIZE,
        n_target=problem.n_target_classes,
        answer="joint",
        seed=seed,
    )
    shutil.rmtree(out, ignore_errors=True)
    started = time.perf_counter()
    run = Run(problem, spec, out, backbone).all()
    judged = run.judged(run.truth_file)
    of_method = read_parquet(out / "evidence.parquet")["method cluster"].to_numpy()[~judged.is_given]
    scores = {
        "answer": run.scores.to_dict(),
        "method": evaluate(judged.y_true, of_method, judged.is_old, with_intervals=False).to_dict(),
    } | (run.about["check"]["baselines"] or {})
    config = run.about["config"]
    shutil.rmtree(out)
    return {
        "scores": {name: {group: round(100 * each[group], 1) for group in GROUPS} for name, each in scores.items()},
        "n_images": len(judged.y_true),
        "used_by_method": len(np.unique(of_method)),
        "settings": settings,
        "n_epochs": config["n_epochs"],
        "n_steps": config["n_steps"],
        "heads_first": config["heads_first"],
        "notes": run.about["notes"],
        "seconds": round(time.perf_counter() - started),
    }


def run_all(args: argparse.Namespace) -> None:
    """Run whatever has no line yet."""
    lines = args.out / "runs.jsonl"
    args.out.mkdir(parents=True, exist_ok=True)
    done = {(line["problem"], line["setting"], line["seed"]) for line in read_lines(lines)}
    backbone = load_backbone(BACKBONE, args.checkpoint, "cpu", IMG_SIZE)
    for problem_name in args.problem or PROBLEMS:
        problem = make_problem(problem_name, args.data)
        for seed in args.seed:
            for setting in args.setting or SETTINGS:
                if (problem_name, setting, seed) in done:
                    continue
                settings = RATE | SETTINGS[setting]
                result = run_one(problem, settings, seed, backbone, args.checkpoint, args.out / "run")
                head = {"problem": problem_name, "part": PROBLEMS[problem_name][-1], "setting": setting, "seed": seed}
                with lines.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(head | result) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of earlier runs."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def show(args: argparse.Namespace) -> None:
    """Print one Markdown table per problem, the mean over seeds."""
    by_problem: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for line in read_lines(args.out / "runs.jsonl"):
        by_problem[line["problem"]][line["setting"]].append(line)
    for problem, settings in by_problem.items():
        print(f"\n**{problem}**\n\n| setting | seeds | method alone | default answer | categories in use |")
        print("|---|---|---|---|---|")
        for setting, lines in settings.items():
            cells = [_cell(lines, "method"), _cell(lines, "answer")]
            used = np.mean([line["used_by_method"] for line in lines])
            print(f"| {setting} | {len(lines)} | {' | '.join(cells)} | {used:.1f} of {N_CLASSES} |")
        lines = settings["default"]
        for name in list(lines[0]["scores"])[2:]:
            print(f"| {name}, frozen features | {len(lines)} | {_cell(lines, name)} | | |")


def _cell(lines: list[Any], name: str) -> str:
    values = [[line["scores"][name][group] for group in GROUPS] for line in lines]
    return " / ".join(f"{value:.1f}" for value in np.mean(values, axis=0))


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "show"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--problem", action="append", choices=list(PROBLEMS))
    parser.add_argument("--setting", action="append", choices=list(SETTINGS))
    parser.add_argument("--seed", type=int, action="append", default=None)
    args = parser.parse_args()
    args.seed = args.seed or [0]
    run_all(args) if args.action == "run" else show(args)


if __name__ == "__main__":
    main()
