"""Tensors on disk, in a file that is either whole or not there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save
from torch import Tensor

from justright.files import replacing


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str] | None = None) -> None:
    """Write tensors by name, as safetensors with `about` in its header."""
    # as bytes: `save_file` writes to a temporary file of a name of its own, which a kill would leave there for good
    content = save(dict(tensors), metadata=None if about is None else dict(about))
    with replacing(path) as temporary:
        temporary.write_bytes(content)
