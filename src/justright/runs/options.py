"""The options of `justright.discover`: type, default, meaning and range of each, in one place.

The signature and the help of the Python functions, and the options of the commands, are made from them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, NamedTuple, TypedDict, get_args, get_type_hints

import numpy as np

from justright.data.quarantine import MAX_BAD
from justright.discovery.methods import METHODS
from justright.discovery.training_data import WEIGHTINGS
from justright.estimation import BEST, COUNTERS
from justright.runs.problem import POOL_ROLES
from justright.runs.spec import ANSWERS, AUTO, HELD_OUT, SCALES, UNTRAINED, RunSpec
from justright.utils.errors import JustrightError, did_you_mean
from justright.utils.parallel import ENGINES
from justright.utils.settings import (
    ANYTHING,
    BELOW_1,
    COUNT,
    POSITIVE,
    SHARE,
    WHOLE,
    YES_OR_NO,
    Range,
    at_least,
    check_range,
    one_of,
)

PATH = Range(lambda value: isinstance(value, str | os.PathLike), "a path").or_none()
TEXT = Range(lambda value: isinstance(value, str), "a name")
NAMED = Range(lambda value: isinstance(value, Mapping), "a dict of names and values").or_none()


def name_in(family: Mapping[str, Any]) -> Range:
    """Any name; those in the family, to which more may be added later, are the choices that help shows."""
    return Range(TEXT.allows, TEXT.expected, family)


SELECTOR = Range(TEXT.allows, "a name in justright.SELECTORS; its parameters go into selector_params").or_none()

FLAGS = {"n_seeds": "seeds", "n_resamples": "stability", "settings": "set"}
"""The options that have another name on the command line."""

OF_IMAGES = ("backbone", "checkpoint", "img_size")
"""Options without a meaning where features are given."""


class Options(TypedDict, total=False):
    """The options of `justright.discover` and `justright.discover_features`."""

    k: Annotated[
        int | str | Path | None,
        "number of categories in the target, if you know it, or the file that `justright estimate --out` wrote; "
        "estimated if it is not given",
        ANYTHING,
    ]
    counter: Annotated[str, "what estimates k, or checks it if given", name_in(COUNTERS)]
    method: Annotated[
        str,
        f"how categories are learned. auto: {RunSpec.method}; but {UNTRAINED}, which does not train, on features that "
        "are given and with an EfficientNet-Lite, if neither a pool nor a setting of training is given",
        name_in(METHODS),
    ]
    scale: Annotated[
        str,
        "defaults of the method. paper: exactly as published, with new views at every step; full: the same with "
        "stored views, which is faster; small: fewer epochs and smaller heads; auto: small on a CPU, else full",
        one_of(AUTO, *SCALES),
    ]
    epochs: Annotated[int | None, "number of epochs; by default that of the scale", COUNT.or_none()]
    minutes: Annotated[float | None, "minutes that training may take, roughly; seeds share them", POSITIVE.or_none()]
    held_out: Annotated[
        float | None,
        "share of the labeled images that is kept out of training, to calibrate confidences on; by default "
        f"{HELD_OUT}, and 0 with scale paper",
        BELOW_1.or_none(),
    ]
    settings: Annotated[
        Mapping[str, Any] | None,
        "any other settings of the method, by name; `justright settings METHOD` lists them",
        NAMED,
    ]
    seed: Annotated[int, "seed of all random choices: same seed, same result", WHOLE]
    n_seeds: Annotated[int, "train with this many seeds, for one joint answer", COUNT]
    selector: Annotated[
        str | None,
        "how classes of the pool are chosen: a name in `justright.SELECTORS`, or auto, which takes all or none of "
        "them; by default all",
        SELECTOR,
    ]
    selector_params: Annotated[Mapping[str, Any] | None, "parameters of the selector, by name", NAMED]
    preset: Annotated[
        str | None,
        "selection as elsewhere. paper: as in the tables of the paper; official: as in its public code",
        Range(TEXT.allows, "paper, or official").or_none(),
    ]
    weights: Annotated[
        str | Path | None,
        "file of weights in place of a selector, as `justright select --out` writes it, or a table with class_name "
        "and weight",
        PATH,
    ]
    select_labeled: Annotated[bool, "select among the labeled classes too; all of them are used otherwise", YES_OR_NO]
    weighting: Annotated[
        str,
        "what weights do. hard: all must be 0 or 1; soft: they scale the loss; resample: they set how often an image "
        "is drawn; auto: hard if all are 0 or 1, else soft",
        one_of(*WEIGHTINGS),
    ]
    n_resamples: Annotated[
        int, "how often the selection is repeated on random samples of the images, to see how stable it is", at_least(0)
    ]
    pool_role: Annotated[
        str,
        "what the pool is for. guide: no image is ever put into a class of the pool; rival: they compete for images, "
        "as in the paper",
        one_of(*POOL_ROLES),
    ]
    answer: Annotated[
        str | None,
        "where categories come from. joint: from the method together with clusters of its features, the default; "
        "method: as its publication has them, the default with scale paper and with a preset",
        one_of(*ANSWERS).or_none(),
    ]
    backbone: Annotated[
        str,
        "network that computes features, such as dinov2_vitb14, efficientnet_lite0 or the name of a timm model; auto: "
        "DINOv2 if its checkpoint is there or can be downloaded, else the best one in an installed package",
        TEXT,
    ]
    checkpoint: Annotated[str | Path | None, "file or folder with the weights of the backbone", PATH]
    device: Annotated[str, "where the network runs: cuda, cuda:1, mps, cpu; auto: the first one that works", TEXT]
    img_size: Annotated[int | None, "scale images to this many pixels, not the backbone's own", at_least(16).or_none()]
    truth: Annotated[
        str | Path | None, "file with the true labels of the target, read only after training, to compute scores", PATH
    ]
    target_has_labels: Annotated[bool, "take the true labels from the target itself, to compute scores", YES_OR_NO]
    max_per_class: Annotated[int | None, "use at most this many labeled images of each class", COUNT.or_none()]
    max_bad: Annotated[float, "largest share of images of a source that may be unreadable", SHARE]
    drop_copies: Annotated[
        bool, "leave out labeled images that are in the target too, byte for byte, as benchmarks do", YES_OR_NO
    ]
    engine: Annotated[str, "where features, views and weights are computed", name_in(ENGINES)]
    tensorboard: Annotated[bool, "also write the training curves for TensorBoard", YES_OR_NO]


DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("method", "scale", "backbone", "device"), AUTO),
    **{name: getattr(RunSpec, name) for name in ("seed", "n_seeds", "weighting", "n_resamples", "pool_role")},
    **dict.fromkeys(("select_labeled", "target_has_labels", "drop_copies", "tensorboard"), False),
    "counter": BEST,
    "max_bad": MAX_BAD,
    "engine": "local",
}
"""Of all other options the default is None."""


class Option(NamedTuple):
    """What `Options` says of one option."""

    kind: Any
    about: str
    allowed: Range
    default: Any


@cache
def option_types() -> dict[str, Option]:
    """The options by name."""
    options = {}
    for name, hint in get_type_hints(Options, include_extras=True).items():
        kind, about, allowed = get_args(hint)
        options[name] = Option(kind, about, allowed, DEFAULTS.get(name))
    return options


def checked_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """All options, with numbers of numpy as plain ones; raises for unknown options and values out of range."""
    known = option_types()
    for name in given:
        if name not in known:
            of_flag = {flag: option for option, flag in FLAGS.items()} | {"n_clusters": "k"}
            close = f"did you mean {of_flag[name]}?" if name in of_flag else did_you_mean(name, known)
            raise JustrightError(
                f"there is no option {name!r}",
                expected=f"one of {', '.join(known)}",
                advice=close or "help(justright.discover) explains them",
            )
    options = {name: option.default for name, option in known.items()}
    options |= {name: _plain(value) for name, value in given.items()}
    for name, value in options.items():
        check_range(name, value, known[name].allowed)
    return options


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of Python, which JSON knows; in a dict too."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def option_help(name: str) -> str:
    """The meaning of an option as a sentence."""
    about = option_types()[name].about
    return f"{about[0].upper()}{about[1:]}."


def explained(names: Iterable[str]) -> list[tuple[str, str]]:
    """The meaning of options, with the choices that it does not mention."""
    lines = []
    for name in names:
        option = option_types()[name]
        choices = [*option.allowed.choices]
        is_listed = not choices or choices[-1] in option.about
        lines.append((name, option.about if is_listed else f"{option.about} ({', '.join(choices)})"))
    return lines


def describe(function: Callable[..., Any], without: Iterable[str] = ()) -> None:
    """Show the options in the signature and in the documentation of a function that takes `**options`."""
    options = {name: option for name, option in option_types().items() if name not in without}
    own = signature(function)
    parameters = [each for each in own.parameters.values() if each.kind != Parameter.VAR_KEYWORD]
    for name, option in options.items():
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=option.default, annotation=option.kind))
    function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    if function.__doc__ is not None:  # there is none with python -OO
        lines = [
            fill(
                f"{name} ({options[name].default!r}): {about}.", 112, initial_indent=" " * 4, subsequent_indent=" " * 8
            )
            for name, about in explained(options)
        ]
        function.__doc__ = "\n".join([cleandoc(function.__doc__), "", "Options and their defaults:", *lines])
