"""Checks of a run before it reads an image: of its settings, and of the lists of images."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from justright.data.quarantine import MAX_BAD
from justright.evaluation.files import expect_truth
from justright.runs.counting import check_k
from justright.runs.problem import OWN, Problem
from justright.runs.run_folder import RECOMPUTED, TRUTH, RunFolder
from justright.runs.run_selection import check_weights
from justright.runs.spec import RunSpec, config_of
from justright.selection import SELECTORS, BetaSelector, Selector, selector_of
from justright.selection.clustered import ClusteredSelector
from justright.utils.context import current
from justright.utils.errors import DegenerateError, JustrightError


def check_request(spec: RunSpec) -> None:
    """Validate the settings of a run, and raise if an optional package is missing."""
    config_of(spec)
    selector = _selector(spec)
    if selector is not None:
        selector.check()
        beta = selector if isinstance(selector, BetaSelector) else None
        if spec.weighting == "hard" and beta and beta.threshold is None and (beta.alpha, beta.beta) != (1, 1):
            raise JustrightError(
                "--weighting hard with --selector beta, whose weights are between 0 and 1",
                expected="weights of 0 or 1",
                advice="--threshold, or another --weighting",
            )
    if current().tensorboard:
        from justright.discovery.checkpoints import expect_tensorboard
        from justright.discovery.methods import is_trained

        if not is_trained(spec.method):
            raise JustrightError(
                f"{spec.method} does not train, so --tensorboard does not apply", advice="leave it out"
            )
        expect_tensorboard()


def check_problem(
    problem: Problem, spec: RunSpec, out: Path, truth: Path | None = None, max_bad: float = MAX_BAD
) -> None:
    """Check the settings against the images, and against an earlier run in the same folder."""
    from justright.discovery.checkpoints import check_same_settings

    if (out / "run.json").exists():
        check_same_settings(RunFolder(out).about["spec"], spec.to_json(), out)
    own, n_target = problem.own_rows, len(problem.target) - len(problem.given_rows())
    if n_target == 1 and not len(own):
        raise DegenerateError(
            "the target has 1 image, and nothing is labeled",
            expected="at least 2 images to find categories among",
            advice="more images, or --labeled",
        )
    n_known = len(np.unique(problem.pool.images.labels[own])) if config_of(spec).sees_labels else 0
    if spec.weights is not None:
        check_weights(spec.weights, problem.pool)
        n_known = 0  # the file may leave some of them out
    if spec.n_target is not None:
        check_k(spec.n_target, n_known, n_target)
    elif spec.counter == "labeled-search" and not len(own):
        raise JustrightError(
            "--counter labeled-search without labeled images of the target's own classes",
            expected="--labeled, or another counter",
        )
    selector = _selector(spec)
    needs_clusters = isinstance(selector, ClusteredSelector) or getattr(selector, "domain", "") == "target"
    n_clusters = getattr(selector, "n_clusters", None) or 0
    if needs_clusters and n_clusters > n_target and (spec.select_labeled or len(problem.other_rows)):
        raise DegenerateError(
            f"{n_target:,} target images for {n_clusters:,} clusters of --selector {spec.selector}",
            expected=f"at most {n_target:,}",
            advice="a smaller --n-clusters or --k",
        )
    if truth is not None:
        # a truth need not list unreadable images, and a run with more of them raises anyway
        expect_truth(truth, problem.target.table, own_names(problem), may_lack=max_bad)


def expect_own_folder(out: Path, sources: Iterable[str]) -> None:
    """Raise if the folder of a new run is one of its sources, or holds files that the run would overwrite."""
    if out.is_file():
        raise JustrightError(f"out is the file {out}", expected="a new folder, or that of a run to resume")
    if (out / "run.json").exists() or not out.is_dir():
        return
    if any(Path(source).is_dir() and out.samefile(source) for source in sources):
        raise JustrightError(
            f"--out {out} is a folder of images of this run", expected="a folder of its own", advice="another --out"
        )
    if found := [name for name in (*RECOMPUTED, TRUTH, "report.html") if (out / name).exists()]:
        raise JustrightError(
            f"{out} holds {found[0]}, which is not of a run and would be overwritten",
            expected="a new folder, an empty one, or that of a run",
            advice="another --out",
        )


def own_names(problem: Problem) -> frozenset[str]:
    """The names of the labeled classes that the target may show: the old classes of an evaluation."""
    origins = (problem.pool.origins[label] for label in np.unique(problem.pool.images.labels))
    return frozenset(origin.class_name for origin in origins if origin.dataset == OWN)


def _selector(spec: RunSpec) -> Selector | None:
    """The requested selector; None if weights come from a file or from the diagnosis."""
    if spec.selector not in SELECTORS:
        return None
    params = dict(spec.selector_params)
    if isinstance(params.get("n_clusters"), str):  # the name of a counter, whose result is not known yet
        del params["n_clusters"]
    return selector_of(spec.selector, params, spec.seed, spec.n_target)
