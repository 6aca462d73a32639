"""Model files: tuned parameters and the assigner as safetensors, the rest as JSON.

model.safetensors  tuned/<name in timm>, vectors, offset, reference, center, directions, joint/<part of a joint answer>
model.json         method, settings, categories, which backbone, temperature, the rest of a joint answer
backbone.safetensors (on request)  an ordinary timm state dict with the tuned parameters in their places
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from justright.discovery.assigner import CategoryAssigner
from justright.discovery.checkpoints import checksum, write_tensors
from justright.discovery.joint import JointAnswer
from justright.features.backbone import Backbone
from justright.utils.errors import DataError, MissingDataError
from justright.utils.files import parsed_json, remove_leftovers, write_json
from justright.utils.hashing import signed, verified

FORMAT = "justright model 1"
TUNED, JOINT = "tuned/", "joint/"
ARRAYS = ("vectors", "offset", "reference", "center", "directions")  # of the assigner; it may lack the last three
OF_METHOD = {"method", "n_categories", "seed", "config", "categories", "known_labels", "calibrated_on"}
REQUIRED_KEYS = OF_METHOD | {"backbone", "temperature", "checksum"}  # of model.json
BACKBONE_KEYS = {"name", "prefix_fingerprint", "resolution"}  # of its "backbone"


def write_model(
    folder: Path, backbone: Backbone, assigner: CategoryAssigner, about: dict[str, Any], joint: JointAnswer | None
) -> None:
    """Write both files; the JSON last, so that a model without it is not finished."""
    tensors = {f"{TUNED}{name}": tensor.cpu() for name, tensor in backbone.tuned_state().items()}
    parts = {name: getattr(assigner, name) for name in ARRAYS}
    if joint is not None:
        parts |= {f"{JOINT}{name}": part for name, part in joint.tensors().items()}
        about = about | {"joint": joint.about()}
    tensors |= {name: torch.from_numpy(np.ascontiguousarray(part)) for name, part in parts.items() if part is not None}
    write_tensors(folder / "model.safetensors", tensors)
    network = {
        "name": backbone.name,
        "prefix_fingerprint": backbone.prefix_fingerprint,
        "resolution": backbone.recipe.resolution,
    }
    header = {"format": FORMAT, "backbone": network, "temperature": assigner.temperature}
    write_json(folder / "model.json", signed(header | about | {"checksum": checksum(tensors)}))
    remove_leftovers(folder)


def about_model(folder: Path) -> dict[str, Any]:
    """Read and validate model.json."""
    path = folder / "model.json"
    if not path.exists():
        raise MissingDataError(
            f"{folder} holds no trained model: there is no {path.name}",
            expected="the folder of a finished run",
            advice="justright discover --out writes one; call it again with the same options to continue after a stop",
        )
    try:
        about: dict[str, Any] = parsed_json(path.read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']!r}")
        if missing := sorted(REQUIRED_KEYS - about.keys()) or sorted(BACKBONE_KEYS - {*about["backbone"]}):
            raise ValueError(f"{', '.join(missing)} is missing")
        return verified(about)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} does not describe a model of this version: {error}",
            advice="justright discover --out writes one at the end of training",
        ) from error


def read_model(
    folder: Path, backbone: Backbone
) -> tuple[Backbone, CategoryAssigner, JointAnswer | None, dict[str, Any]]:
    """Load the tuned parameters into the backbone; return it, the assigner, and the joint answer if there is one.

    Raises if the frozen part of the backbone differs from that in training.
    """
    about = about_model(folder)
    path = folder / "model.safetensors"
    if backbone.prefix_fingerprint != about["backbone"]["prefix_fingerprint"]:
        raise DataError(
            f"the frozen part of this {backbone.name} is not the one that {folder} was trained on",
            expected=f"{about['backbone']['name']} with the same checkpoint and resolution",
        )
    try:
        tensors = load_file(path)
        if checksum(tensors) != about["checksum"]:
            raise ValueError("it does not belong to model.json, or one of them is damaged")
        tuned = {name.removeprefix(TUNED): part for name, part in tensors.items() if name.startswith(TUNED)}
        backbone.load_tuned_state(tuned)
        parts = {name: tensors[name].numpy() for name in ARRAYS if name in tensors}
        assigner = CategoryAssigner(temperature=float(about["temperature"]), **parts)
        of_joint = {name.removeprefix(JOINT): part.numpy() for name, part in tensors.items() if name.startswith(JOINT)}
        if bool(of_joint) != (about.get("joint") is not None):
            raise ValueError("only one of the two files has a joint answer")
        joint = JointAnswer.of(of_joint, about["joint"]) if of_joint else None
    except (OSError, SafetensorError, LookupError, ValueError, TypeError, ArithmeticError, RuntimeError) as error:
        raise DataError(f"{path} cannot be read: {error}", expected="a file written by `save`") from error
    return backbone, assigner, joint, about


def write_backbone(path: Path, backbone: Backbone) -> None:
    """Write a timm state dict: `timm.create_model(...).load_state_dict(safetensors.torch.load_file(path))`."""
    write_tensors(path, {name: tensor.cpu() for name, tensor in backbone.full_state_dict().items()})
