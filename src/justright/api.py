"""The main job as one Python call: `justright.discover` and `justright.discover_features`.

The command line calls the same functions. Heavy imports are inside functions, so that `import justright` stays quick.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np

from justright.data.vectors import checked_vectors, has_vectors, vector_set, with_vectors
from justright.result import VECTORS, Result, Source, open_source, optional_path, showing_progress, vector_network
from justright.utils.context import current, notify, use
from justright.utils.errors import JustrightError
from justright.utils.progress import silent

if TYPE_CHECKING:
    from justright.data import ImageSet


def discover(
    target: Source,
    labeled: Source | Sequence[Source] | None = None,
    pool: Source | Sequence[Source] | None = None,
    out: str | Path | None = None,
    *,
    features: Any = (),
    progress: bool = True,
    **options: Any,
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
            pool, then of target. On the latter only the heads of a method are trained.
        progress: show progress bars.
        options: the other arguments of `run_discovery` and `runs.request.make_spec`: k, method, scale, epochs, minutes,
            held_out, settings, selector, selector_params, preset, weights, select_labeled, weighting, n_resamples,
            pool_role, answer, counter, backbone, checkpoint, device, img_size, seed, n_seeds, truth, target_has_labels,
            max_per_class, max_bad, drop_copies, engine, tensorboard.
    """
    labeled, pool = _sources(labeled), _sources(pool)
    request = {"pool": _described(pool), "labeled": _described(labeled), "target": _described([target])[0]}
    with showing_progress(progress):
        sets = tuple([open_source(source) for source in sources] for sources in (labeled, pool, [target]))
        stores, arrays = _stores_and_arrays(features)
        if arrays:
            sets = _with_vectors(sets, arrays)
        names = _names(labeled), _names(pool), _names([target])
        own, others, unlabeled = sets
        return run_discovery(own, others, unlabeled, out, names=names, request=request, features=stores, **options)


def discover_features(
    target: Any,
    labeled: Any = None,
    labels: Any = None,
    pool: Any = None,
    pool_labels: Any = None,
    out: str | Path | None = None,
    *,
    progress: bool = True,
    **options: Any,
) -> Result:
    """Discover categories among features that were computed elsewhere, such as those of CLIP or DINO.

    The heads of a method are trained on the vectors. Everything else is as in `discover`, which also takes features
    and in addition shows the images that they belong to.

    Parameters:
        target: one row of numbers for each unlabeled image.
        labeled, labels: rows of classes that the target may show, and the class of each: a name or a whole number.
        pool, pool_labels: rows of other kinds, which only guide what is learned.
        out, options: as in `discover`.

    Examples:
        >>> result = justright.discover_features(target, labeled, labels, k=40)
        >>> result.predictions["category"]
    """

    for rows, of_rows, name in ((labeled, labels, "labeled"), (pool, pool_labels, "pool")):
        if (rows is None) != (of_rows is None):
            raise JustrightError(f"only one of the features and the labels of {name}", expected="both or none")
    own = [] if labeled is None else [vector_set(labeled, labels, "labeled")]
    others = [] if pool is None else [vector_set(pool, pool_labels, "pool")]
    with showing_progress(progress):
        return run_discovery(own, others, [vector_set(target, name="target")], out, request={}, **options)


def run_discovery(
    labeled: Sequence[ImageSet],
    pool: Sequence[ImageSet],
    target: Sequence[ImageSet],
    out: str | Path | None = None,
    *,
    request: Mapping[str, Any],
    names: tuple[Sequence[str], Sequence[str], Sequence[str]] = ((), (), ()),
    k: int | str | Path | None = None,
    backbone: str = "auto",
    checkpoint: str | Path | None = None,
    device: str = "auto",
    truth: str | Path | None = None,
    target_has_labels: bool = False,
    max_per_class: int | None = None,
    max_bad: float | None = None,
    drop_copies: bool = False,
    features: Any = (),
    weights: str | Path | None = None,
    engine: str = "local",
    tensorboard: bool = False,
    command: str = "",
    **options: Any,
) -> Result:
    """Carry out a run on images that are open already.

    Parameters:
        target: one set of images.
        request: descriptions of the sources, for run.json.
        names: the sources on disk of labeled, pool and target, to list files that are no images.
        k: number of categories in the target, or a file that `justright estimate --out` wrote; None estimates it.
        backbone, checkpoint, device: the network that computes features and where it runs; auto chooses.
        truth: file with the true labels of the target, read only after training, to compute scores.
        target_has_labels: take the true labels from `target` itself.
        max_per_class: use at most this many labeled images of each class.
        max_bad: largest share of images of a source that may be unreadable.
        drop_copies: leave out labeled images that are in the target too, as benchmarks do.
        features: stores that `justright extract` wrote for these images and this backbone.
        weights: file with the weights of classes or images, in place of a selector.
        engine: where features, views and weights are computed: local, processes or ray.
        tensorboard: also write the training curves for TensorBoard.
        command: the command line that made this call, for run.json.
        options: what `runs.request.make_spec` has.
    """
    from justright.data.quarantine import MAX_BAD
    from justright.discovery.methods import is_trained
    from justright.discovery.processes import joined_processes
    from justright.features.backbone import load_backbone
    from justright.features.feature_network import usable
    from justright.runs.owner import owned
    from justright.runs.problem import joined, make_problem
    from justright.runs.request import (
        make_spec,
        number_of_categories,
        resolve_backbone,
        resolve_device,
        with_published_settings,
    )
    from justright.runs.request_checks import check_problem, check_request
    from justright.runs.run import Run
    from justright.runs.run_features import expect_network
    from justright.runs.run_folder import RunFolder
    from justright.runs.source_checks import copies_left_out, label_warnings, left_out_by_name, summary
    from justright.utils.remote import place_of

    if truth is not None and target_has_labels:
        raise JustrightError("--truth together with --target-has-labels", expected="one of them")
    out, max_bad = Path(mkdtemp(prefix="justright-") if out is None else out), MAX_BAD if max_bad is None else max_bad
    previous = RunFolder(out).about["spec"] if (out / "run.json").exists() else {}
    is_first = int(os.environ.get("RANK", "0")) == 0  # of the processes that torchrun started
    (unlabeled,) = target
    is_of_vectors = has_vectors(unlabeled)
    with ExitStack() as stack:
        if not is_first:
            stack.enter_context(use(progress=silent, message=lambda message: None))
        device = resolve_device(device, previous.get("device", ""))
        spec = make_spec(
            device=device,
            backbone=backbone,
            checkpoint=optional_path(checkpoint),
            weights=optional_path(weights),
            features=tuple(map(place_of, features)),
            n_target=number_of_categories(k),
            **options,
        )
        check_request(spec, tensorboard)
        if is_first:
            stack.enter_context(owned(out))
        processes = stack.enter_context(joined_processes(device))
        stack.enter_context(_engine(engine))
        own = joined(labeled)
        spec = with_published_settings(spec, unlabeled.datasets)
        name, why = VECTORS, "features that were given"
        if not is_of_vectors:
            name, why = resolve_backbone(backbone, device, spec.checkpoint, previous.get("backbone", ""))
        spec = replace(spec, backbone=name)
        problem = make_problem(pool, own, unlabeled, target_has_labels, max_per_class)
        truth = optional_path(truth)
        check_problem(problem, spec, out, truth, max_bad)
        if is_of_vectors:
            network = vector_network(unlabeled, usable(device))
        else:
            network = load_backbone(name, spec.checkpoint, usable(device), spec.img_size)
        if spec.features:
            expect_network(spec.features, network)
        left_out = left_out_by_name(*names)
        if left_out:
            notify(f"{summary(left_out)}.")
        for images in (problem.pool.images, problem.target):
            processes.hash_together(images)
        notes = label_warnings(problem.pool, unlabeled.classes.values() if target_has_labels else ())
        for note in notes:
            notify(f"Warning: {note}.")
        all_labeled = problem.pool.images
        if drop_copies:
            problem, n_copies = problem.without_copies()
            if n_copies:
                notify(f"{n_copies:,} labeled images are left out: they are images of the target too, byte for byte.")
        else:
            problem, copies = problem.with_given_labels(own)
            n_copies, notes = copies.n_left_out, [*notes, *copies.notes()]
            if copies.n_given:
                notify(f"{copies.n_given:,} images of the target are labeled images too: they keep their label.")
            for note in copies.notes():
                notify(f"{note}.")
        left_out += copies_left_out(all_labeled, problem.pool.images)
        if spec.scale == "small" and is_trained(spec.method):
            notify("Lighter settings for a CPU, not those of the publication; --scale full takes the latter.")
        about = {"pool": [], "labeled": [], "target": ""} | dict(request)
        about |= {
            "truth": truth and str(truth),
            "weights": spec.weights and str(spec.weights),
            "features": list(map(str, spec.features)),
            "checkpoint": spec.checkpoint and str(spec.checkpoint),
            "network": why,
            "copies left out": n_copies,
            "command": command,
        }
        run = Run(
            problem,
            spec,
            out,
            network,
            about,
            tensorboard=tensorboard,
            truth=truth,
            engine=current().engine,
            left_out=left_out,
            max_bad=max_bad,
            doubts=notes,
            checks_k=True,
            is_announced=not (previous or is_of_vectors),
        )
        if not is_of_vectors:
            notify(run.costs.disk_text())
        return Result(run.all(is_owned=True))


def _sources(sources: Source | Sequence[Source] | None) -> list[Source]:
    """One or several sources as a list; a list of image files is one source."""
    if sources is None:
        return []
    if not isinstance(sources, list | tuple):
        return [sources]
    is_list_of_images = all(isinstance(each, str | Path) and _is_image(each) for each in sources)
    return [list(sources)] if sources and is_list_of_images else list(sources)


def _is_image(path: str | Path) -> bool:
    from justright.data.folder import is_image_name

    return is_image_name(str(path))


def _names(sources: Iterable[Source]) -> list[str]:
    """The sources that are places on disk."""
    return [str(source) for source in sources if isinstance(source, str | Path)]


def _described(sources: Iterable[Source]) -> list[str]:
    """Each source for run.json."""
    return [
        str(source)
        if isinstance(source, str | Path)
        else f"{type(source).__name__} of {len(source):,}"
        if hasattr(source, "__len__")
        else type(source).__name__
        for source in sources
    ]


def _stores_and_arrays(features: Any) -> tuple[list[Any], list[Any]]:
    """Stores of `justright extract`, and arrays, read from .npy files where they are given by name."""
    stores, arrays = [], []
    for given in [features] if isinstance(features, str | Path) or hasattr(features, "shape") else features:
        if isinstance(given, str | Path) and str(given).endswith(".npy"):
            arrays.append(_read_array(Path(given)))
        elif isinstance(given, str | Path) or not hasattr(given, "shape"):
            stores.append(given)
        else:
            arrays.append(given)
    if stores and arrays:
        raise JustrightError("features both as arrays and as stores", expected="one of them")
    return stores, arrays


def _read_array(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise JustrightError(f"{path} cannot be read: {error}", expected="an array that numpy.save wrote") from error


def _with_vectors(sets: Sequence[Sequence[ImageSet]], arrays: Sequence[Any]) -> tuple[list[ImageSet], ...]:
    """Give each image its row of the arrays, in the order labeled, pool, target."""
    rows = np.concatenate([checked_vectors(array, "features") for array in arrays])
    n_images = sum(len(images) for group in sets for images in group)
    if len(rows) != n_images:
        raise JustrightError(
            f"{len(rows):,} rows of features for {n_images:,} images",
            expected="one row for each image of labeled, then of pool, then of target",
            advice="give images as a table or a list, whose order is plain to see",
        )
    ends = np.cumsum([len(images) for group in sets for images in group])
    parts = iter(np.split(rows, ends[:-1]))
    return tuple([with_vectors(images, next(parts)) for images in group] for group in sets)


def _engine(name: str) -> Any:
    """The engine of a name as context of the calls below; local is threads of this process."""
    if name == "local":
        return nullcontext()
    from justright.utils.parallel import ENGINES

    stack = ExitStack()
    stack.enter_context(use(engine=stack.enter_context(ENGINES[name](None))))
    return stack
