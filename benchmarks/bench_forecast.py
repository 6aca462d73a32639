"""Compare forecast and actual time of four kinds of runs, by stage.

k-means; SimGCD with a conv net, whose heads are trained first; SimGCD with the embedded ViT; GCD with two seeds. Photos
are drawn characters as JPEGs of 500 x 375 pixels. Each run starts with an empty cache, and its time is forecast right
before. K is estimated in these runs, so the second line is a forecast with that K.
On a busy machine the ratio means little; the load is printed.
Run: python benchmarks/bench_forecast.py --images 600
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from measuring import load, options
from whole_run import draw

from justright import glyph_set
from justright.data import open_images
from justright.features.backbone import load_backbone
from justright.runs.costs import CostPlan, Work, time_text
from justright.runs.measured_rates import measure
from justright.runs.problem import make_problem
from justright.runs.run import Run
from justright.runs.spec import RunSpec

GOAL = 1.5  # the larger of forecast / actual time and its inverse, on an idle machine
KINDS = {
    "k-means": RunSpec(method="kmeans", scale="small", backbone="efficientnet_lite0"),
    "SimGCD, heads first": RunSpec(scale="small", backbone="efficientnet_lite0"),
    "SimGCD, ViT": RunSpec(scale="small", backbone="glyph_vit"),
    "GCD, two seeds": RunSpec(method="gcd", scale="small", backbone="efficientnet_lite0", n_seeds=2),
}


def draw_photos(out: Path, n_images: int, n_classes: int) -> None:
    """A third of the images are labeled, of half of the classes."""
    for part, n, classes in (("photos", n_images, n_classes), ("labeled", n_images // 3, n_classes // 2)):
        images = glyph_set(-(-n // classes), seed=classes).of_classes(range(classes))
        draw(images, n, out / part, is_flat=part == "photos")


def compare(name: str, spec: RunSpec, photos: Path, out: Path) -> float:
    """Forecast a run, run it, and print both times. Returns forecast / actual time."""
    os.environ["JUSTRIGHT_HOME"] = str(out / "home")
    backbone = load_backbone(spec.backbone)
    problem = make_problem([], open_images(str(photos / "labeled")), open_images(str(photos / "photos")))
    run = Run(problem, spec, out / "run", backbone)
    started = time.perf_counter()
    first = replace(run.costs, rates=measure(run.costs, problem.target))
    measuring = time.perf_counter() - started
    about = run.all().about
    seconds = about["seconds"]
    known = replace(first, work=Work.of(problem, replace(spec, n_target=about["n_target"])))
    print(f"{name}: measured in {measuring:.1f} s, {load()}; {known.steps_text()}")
    for when, plan in (("at first", first), (f"K = {about['n_target']}", known)):
        print(f"  forecast {when}: {plan_text(plan)}")
    actual = sum(seconds.values())
    print(f"  actual: {', '.join(f'{stage} {spent:.1f} s' for stage, spent in seconds.items())}")
    ratio = sum(known.seconds().values()) / actual
    print(f"  all: {time_text(sum(known.seconds().values()))} forecast, {time_text(actual)} actual, ratio {ratio:.2f}")
    return ratio


def plan_text(plan: CostPlan) -> str:
    return ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in plan.seconds().items())


def main() -> None:
    args = options(__doc__, images=600, classes=40, kind="")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        draw_photos(folder, args.images, args.classes)
        kinds = {name: spec for name, spec in KINDS.items() if args.kind.lower() in name.lower()}
        ratios = [compare(name, spec, folder, folder / str(place)) for place, (name, spec) in enumerate(kinds.items())]
    worst = max(max(ratio, 1 / ratio) for ratio in ratios)
    print(f"{load()}; off by a factor of {worst:.2f} at most; goal: {GOAL} on an idle machine")


if __name__ == "__main__":
    main()
