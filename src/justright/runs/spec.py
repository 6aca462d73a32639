"""RunSpec: all settings of a run as plain values, and the config of the method that follows from them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from justright.discovery.methods import METHODS, is_trained
from justright.estimation import BEST
from justright.runs.problem import PoolRole
from justright.selection import DEFAULT_SELECTOR
from justright.utils.errors import JustrightError, MissingDataError, did_you_mean
from justright.utils.hashing import hash_file
from justright.utils.remote import Place
from justright.utils.settings import flat

AUTO = "auto"  # the selector, device, network or scale is chosen automatically
Scale = Literal["paper", "full", "small"]
# paper: as the scripts of a publication run it; full: the same with stored views; small: lighter settings for a CPU
SCALES: tuple[str, ...] = get_args(Scale)

Answer = Literal["joint", "method"]
ANSWERS: tuple[str, ...] = get_args(Answer)
"""Where categories come from: the method together with clusters of its features, or the method alone, as published."""

# settings with an option of `justright discover`
OWN_OPTIONS = {"n_epochs": "--epochs", "minutes": "--minutes", "held_out_share": "--held-out"}


@dataclass(frozen=True)
class RunSpec:
    """One selector, one method, one seed."""

    pool_role: PoolRole = "guide"  # whether classes of the pool only guide learning or are categories too
    selector: str = DEFAULT_SELECTOR  # which classes of the pool to learn from; "auto" lets the diagnosis choose
    selector_params: Mapping[str, Any] = field(default_factory=dict)  # what differs from the defaults of the selector
    weights: Path | None = None  # a file of weights, in place of a selector
    select_labeled: bool = False  # weigh the target's own classes as well, which otherwise keep the weight 1
    n_resamples: int = 10  # resamples on which the selection is repeated to measure its stability; 0 for none
    weighting: str = "auto"  # how weights act in training, one of `WEIGHTINGS`
    method: str = "simgcd"  # one of `METHODS`
    scale: Scale = "full"  # defaults of the method, those of its scripts (`Config.exact`), or lighter (`Config.small`)
    settings: Mapping[str, Any] = field(default_factory=dict)  # what differs from these defaults
    backbone: str = "dinov2_vitb14"  # the network that gives the features
    checkpoint: Path | None = None  # of the network; None to look for it by name
    img_size: int | None = None
    device: str = "cpu"
    features: tuple[Place, ...] = ()  # stores with features of the images
    n_target: int | None = None  # K, the number of categories in the target; None estimates it
    counter: str = BEST  # what estimates K, one of `COUNTERS`
    seed: int = 0  # same seed, same result
    n_seeds: int = 1  # number of seeds, from this one on; their trainings give one answer together
    answer: Answer = "method"  # where categories come from; the command line has the default joint

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; files by their content, so that they may be moved."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=os.fspath))
        if self.weights is not None:
            plain["weights"] = {"content": _content(self.weights)}
        if self.checkpoint is not None:
            from justright.features.checkpoints import file_in

            plain["checkpoint"] = {"content": _content(file_in(self.checkpoint))}
        # the header of a store has the hash of all its other files
        return plain | {"features": sorted(_content(store / "store.json") for store in self.features) or None}


def _content(file: Place) -> str:
    if not file.is_file():
        raise MissingDataError(f"no such file: {file}")
    return hash_file(file)


def config_of(spec: RunSpec) -> Any:
    """The config of the method at the scale of the spec, changed by its settings; seeds share `minutes`.

    Raises for settings that are unknown or have no effect.
    """
    config = METHODS[spec.method].config_class()
    if spec.scale == "small":
        config = config.small()
    if spec.scale == "paper":
        config = config.exact()
    known = {each.name for each in fields(config)}
    for name in sorted(set(spec.settings) - known):
        trained = (METHODS[method].config_class for method in METHODS if is_trained(method))
        if not is_trained(spec.method) and any(name == each.name for kind in trained for each in fields(kind)):
            option = OWN_OPTIONS.get(name, f"--set {name}")
            raise JustrightError(f"{spec.method} does not train, so {option} does not apply", advice="leave it out")
        raise JustrightError(
            f"{spec.method} has no setting {name!r}",
            expected=f"one of {', '.join(sorted(known))}",
            advice=did_you_mean(name, known) or f"`justright settings {spec.method}` explains them",
        )
    made = config.with_settings(spec.settings)
    for name in flat(spec.settings):
        if name in made.without_effect:
            raise JustrightError(
                f"{name} does nothing in {spec.method}: {made.without_effect[name]}",
                expected="settings that have an effect",
                advice="leave it out",
            )
    if (minutes := getattr(made, "minutes", None)) is None:
        return made
    return config.with_settings(dict(spec.settings) | {"minutes": minutes / spec.n_seeds})
