"""The main job as one Python call: `justright.discover` and `justright.discover_features`.

The command line calls the same functions. Modules that import torch are imported inside functions, to keep help quick.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Unpack

import numpy as np

from justright.data import ImageSet, open_images
from justright.data.folder import is_image_name
from justright.data.vectors import checked_vectors, has_vectors, vector_set, with_vectors
from justright.discovery.methods import is_trained
from justright.result import VECTORS, Result, Source, network_of, optional_path, showing_progress
from justright.runs.options import OF_IMAGES, Options, checked_options, describe
from justright.runs.problem import joined, make_problem
from justright.runs.request_checks import check_problem, check_request, expect_own_folder
from justright.runs.run_features import expect_network
from justright.runs.run_folder import RunFolder, owned
from justright.runs.source_checks import copies_left_out, label_warnings, left_out_by_name, summary
from justright.runs.spec import (
    AUTO,
    make_spec,
    number_of_categories,
    resolve_backbone,
    resolve_device,
    resolve_method,
    with_published_settings,
)
from justright.utils.context import current, notify, silent, use
from justright.utils.errors import JustrightError
from justright.utils.parallel import ENGINES
from justright.utils.remote import place_of


def discover(
    target: Source,
    labeled: Source | Sequence[Source] | None = None,
    pool: Source | Sequence[Source] | None = None,
    out: str | Path | None = None,
    *,
    features: Any = (),
    progress: bool = True,
    **options: Unpack[Options],
) -> Result:
    """Sort the unlabeled images of `target` into known classes and new clusters.

    Call it again with the same arguments to resume after an interruption; the result is the same.

    Parameters:
        target: the unlabeled images; labels that it has are ignored.
        labeled: labeled images of classes that the target may show; a list holds several sources or paths.
        pool: labeled images of other kinds, which only guide what is learned.
        out: folder of the run; without it a temporary folder that is not deleted.
        features: known features of these images, so that no network runs: stores that `justright extract` wrote for
            this backbone; or arrays and .npy files of any network, with one row for each image of labeled, then of
            pool, then of target. On the latter only the heads of a method can be trained.
        progress: show progress bars.
        options: those of `justright.runs.options.Options`; `help` lists them.
    """
    checked = checked_options(options)
    labeled, pool = _sources(labeled), _sources(pool)
    request = {"labeled": [*map(_described, labeled)], "pool": [*map(_described, pool)], "target": _described(target)}
    with showing_progress(progress):
        sets = [[open_images(source) for source in sources] for sources in (labeled, pool, [target])]
        (own, others, (unlabeled,)), stores = _with_features(sets, features)
        return run_discovery(own, others, unlabeled, out, request=request, features=stores, **checked)


def discover_features(
    target: Any,
    labeled: Any = None,
    labels: Any = None,
    pool: Any = None,
    pool_labels: Any = None,
    out: str | Path | None = None,
    *,
    target_labels: Any = None,
    progress: bool = True,
    **options: Unpack[Options],
) -> Result:
    """Discover categories among features that were computed elsewhere, such as those of CLIP or DINO.

    Nothing is trained unless `method` names a trained one, whose heads then learn on the vectors. Everything else is
    as in `discover`, which also takes features and in addition shows the images that they belong to.

    Parameters:
        target: one row of numbers for each unlabeled image.
        labeled, labels: rows of classes that the target may show, and the class of each: a name or a whole number,
            which becomes a name.
        pool, pool_labels: rows of other kinds, which only guide what is learned.
        target_labels: the true class of each row of the target, if it is known. Read only after training, to compute
            `Result.scores`.
        out: as in `discover`.
        options: those of `discover` but backbone, checkpoint and img_size.

    Examples:
        >>> result = justright.discover_features(target, labeled, labels, k=40)
        >>> result.predictions["category"]
    """
    checked = checked_options(options)
    for rows, of_rows, name in ((labeled, labels, "labeled"), (pool, pool_labels, "pool")):
        if (rows is None) != (of_rows is None):
            raise JustrightError(f"only one of the features and the labels of {name}", expected="both or none")
    own = [] if labeled is None else [vector_set(labeled, labels, "labeled")]
    others = [] if pool is None else [vector_set(pool, pool_labels, "pool")]
    if target_labels is not None:
        checked["target_has_labels"] = True
    with showing_progress(progress):
        return run_discovery(own, others, vector_set(target, target_labels, "target"), out, **checked)


def run_discovery(
    labeled: Sequence[ImageSet],
    pool: Sequence[ImageSet],
    target: ImageSet,
    out: str | Path | None,
    *,
    request: Mapping[str, Any] | None = None,
    features: Sequence[str | Path] = (),
    k: int | str | Path | None,
    backbone: str,
    checkpoint: str | Path | None,
    device: str,
    method: str,
    truth: str | Path | None,
    target_has_labels: bool,
    max_per_class: int | None,
    max_bad: float,
    drop_copies: bool,
    weights: str | Path | None,
    engine: str,
    tensorboard: bool,
    **others: Any,
) -> Result:
    """Carry out a run on images that are open already.

    Parameters:
        request: the sources of labeled, pool and target, for run.json and to list files that are no images.
        features: stores that `justright extract` wrote for these images and this backbone.
        k, ...: the other arguments are the options of `runs.options.Options`, of which `others` go to `make_spec`.
    """
    from justright.discovery.processes import joined_processes
    from justright.runs.run import Run

    if truth is not None and target_has_labels:
        raise JustrightError("--truth together with --target-has-labels", expected="one of them")
    of_images = zip(OF_IMAGES, (backbone, checkpoint, others["img_size"]), strict=True)
    if has_vectors(target) and (idle := [name for name, value in of_images if value not in (None, AUTO)]):
        raise JustrightError(f"{idle[0]} together with features that were given", advice=f"leave out {idle[0]}")
    out, truth = Path(mkdtemp(prefix="justright-") if out is None else out), optional_path(truth)
    sources = {"pool": [], "labeled": [], "target": ""} | dict(request or {})
    previous = RunFolder(out).about["spec"] if (out / "run.json").exists() else {}
    is_first = int(os.environ.get("RANK", "0")) == 0  # of the processes that torchrun started
    with ExitStack() as stack:
        stack.enter_context(use(tensorboard=tensorboard))
        if not is_first:
            stack.enter_context(use(progress=silent, message=lambda message: None))
        device = resolve_device(device, previous.get("device", ""))
        spec = make_spec(
            device=device,
            method=method,
            checkpoint=optional_path(checkpoint),
            weights=optional_path(weights),
            features=tuple(map(place_of, features)),
            n_target=number_of_categories(k),
            **others,
        )
        check_request(spec)
        if is_first:
            expect_own_folder(out, filter(None, [*sources["labeled"], *sources["pool"], sources["target"]]))
            stack.enter_context(owned(out))
        processes = stack.enter_context(joined_processes(device))
        if engine != "local":
            stack.enter_context(use(engine=stack.enter_context(ENGINES[engine](None))))
        own = joined(labeled)
        spec = with_published_settings(spec, target.datasets)
        name, why = VECTORS, "features that were given"
        if not has_vectors(target):
            name, why = resolve_backbone(backbone, device, spec.checkpoint, previous.get("backbone", ""))
        spec = replace(spec, backbone=name)
        if method == AUTO and not tensorboard:
            spec = resolve_method(spec, bool(pool), has_vectors(target), previous.get("method", ""))
        problem = make_problem(pool, own, target, target_has_labels, max_per_class)
        check_problem(problem, spec, out, truth, max_bad)
        network = network_of(target, name, spec.checkpoint, device, spec.img_size)
        expect_network(spec.features, network)  # before images are hashed, which may take minutes
        left_out = left_out_by_name(sources["labeled"], sources["pool"], [sources["target"]])
        left_out = [each for each in left_out if out.absolute() not in Path(each.path).parents]  # --out in a source
        for images in (problem.pool.images, problem.target):
            processes.hash_together(images)
        warnings = label_warnings(problem.pool, target.classes.values() if target_has_labels else ())
        all_labeled = problem.pool.images
        problem, copies = problem.without_copies() if drop_copies else problem.with_given_labels(own)
        if left_out:
            notify(f"{summary(left_out)}.")
        for warning in warnings:
            notify(f"Warning: {warning}.")
        for note in copies.notes:
            notify(f"{note}.")
        if spec.scale == "small" and is_trained(spec.method):
            notify("Lighter settings for a CPU, not those of the publication; --scale full takes the latter.")
        files = {"truth": truth, "weights": spec.weights, "checkpoint": spec.checkpoint}
        about = sources | {name: path and str(path) for name, path in files.items()}
        about |= {"features": list(map(str, spec.features)), "network": why, "copies left out": copies.n_left_out}
        run = Run(
            problem,
            spec,
            out,
            network,
            request=about | {"command": current().command},
            truth=truth,
            left_out=left_out + copies_left_out(all_labeled, problem.pool.images),
            max_bad=max_bad,
            warnings=[*warnings, *copies.notes],
            is_interactive=True,
        )
        return Result(run.all(is_owned=True))


def _sources(sources: Source | Sequence[Source] | None) -> list[Source]:
    """One or several sources as a list; a list of image files, or of pairs of image and label, is one source."""
    if sources is None:
        return []
    if not isinstance(sources, list | tuple):
        return [sources]
    is_list_of_images = all(_is_image(each) or _is_pair(each) for each in sources)
    return [list(sources)] if sources and is_list_of_images else list(sources)


def _is_image(source: Any) -> bool:
    return isinstance(source, str | Path) and is_image_name(str(source))


def _is_pair(source: Any) -> bool:
    """Whether it is an image and its label, as in `samples` of torchvision's ImageFolder."""
    return isinstance(source, tuple) and len(source) == 2 and _is_image(source[0]) and not _is_image(source[1])


def _described(source: Source) -> str:
    """A source for run.json: its place, or its type and length."""
    if isinstance(source, str | Path):
        return str(source)
    name = type(source).__name__
    return f"{name} of {len(source):,}" if hasattr(source, "__len__") else name


def _with_features(
    sets: Sequence[Sequence[ImageSet]], features: Any
) -> tuple[Sequence[Sequence[ImageSet]], list[str | Path]]:
    """Give each image its row of the arrays, in the order labeled, pool, target; stores are returned as they are."""
    given = [features] if isinstance(features, str | Path) or hasattr(features, "shape") else list(features)
    arrays = [_read_array(each) for each in given if hasattr(each, "shape") or str(each).endswith(".npy")]
    if not arrays:
        return sets, given
    if len(arrays) < len(given):
        raise JustrightError("features both as arrays and as stores", expected="one of them")
    rows = np.concatenate([checked_vectors(array, "features") for array in arrays])
    sizes = [len(images) for group in sets for images in group]
    if len(rows) != sum(sizes):
        raise JustrightError(
            f"{len(rows):,} rows of features for {sum(sizes):,} images",
            expected="one row for each image of labeled, then of pool, then of target",
            advice="give images as a table or a list, whose order is plain to see",
        )
    parts = iter(np.split(rows, np.cumsum(sizes)[:-1]))
    return [[with_vectors(images, next(parts)) for images in group] for group in sets], []


def _read_array(given: Any) -> Any:
    if hasattr(given, "shape"):
        return given
    try:
        return np.load(given, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise JustrightError(f"{given} cannot be read: {error}", expected="an array that numpy.save wrote") from error


describe(discover)
describe(discover_features, without=OF_IMAGES)
