"""A tiny random ViT, a few drawn images, and settings under which every method trains within a second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file

from justright.data.image_set import ImageSet
from justright.data.objects import from_dataset
from justright.data.splits import ClassSplit, Split, gcd_split
from justright.data.transforms import ImageRecipe
from justright.discovery.methods import METHODS
from justright.discovery.training_data import TrainingData
from justright.features.backbone import Backbone
from justright.features.guarded_timm import VisionTransformer
from justright.utils.context import silent, use

TRAINED = ["gcd", "xcon", "simgcd", "mugcd", "cms", "selex"]
N_CATEGORIES = 5
SIZES = {"img_size": 16, "patch_size": 8, "embed_dim": 12, "depth": 2, "num_heads": 3, "num_classes": 0}


def backbone_of_noise(seed=0, **options) -> Backbone:
    torch.manual_seed(seed)
    model = VisionTransformer(**SIZES | options)
    for parameter in model.blocks.parameters():
        if parameter.ndim > 1:  # drawn as timm draws them, features of so few layers would all be alike
            parameter.data.mul_(12)
    return Backbone(model, "tiny", ImageRecipe(resolution=16, resize=18))


def drawn_images(labels, name="drawn", seed=0):
    """One image a label: noise around the pattern of its class."""
    rng = np.random.default_rng(seed)
    patterns = {label: np.random.default_rng(1000 + label).integers(0, 256, (5, 6, 3)) for label in set(labels)}
    items = []
    for label in labels:
        pattern = np.kron(patterns[label], np.ones((4, 4, 1)))
        pixels = np.clip(0.6 * pattern + 0.4 * rng.integers(0, 256, pattern.shape), 0, 255)
        items.append((pixels.astype(np.uint8), label))
    return from_dataset(items, name)


def drawn_split(per_class=8, old=(0, 1, 2), new=(3, 4), seed=0) -> Split:
    """Half of the images of old classes are labeled."""
    images = drawn_images([label for label in sorted((*old, *new)) for _ in range(per_class)], seed=seed)
    split, _ = gcd_split(images, ClassSplit(tuple(old), {"Ungraded": tuple(new)}))
    return Split(split.labeled.with_ids(), split.unlabeled.with_ids(), split.classes)


OTHER = (20, 21, 22)


def guided_split(old=(0, 1, 2)) -> Split:
    """The drawn split, and eight images each of three classes of another kind."""
    split = drawn_split()
    own = split.labeled if old else split.labeled.take([])
    others = drawn_images([label for label in OTHER for _ in range(8)], "others", seed=5)
    return Split(ImageSet.concat([own, others.with_ids()]), split.unlabeled, guide_classes=OTHER)


def config_of(name, **more):
    """The settings of a method, tiny."""
    config = METHODS[name].config_class()
    if name == "kmeans":
        return config.with_settings({"n_init": 2} | more)
    light = {
        "n_epochs": 2,
        "steady_share": 0.0,
        "batch_size": 8,
        "hidden_dim": 16,
        "out_dim": 8,
        "views": 2,
        "n_init": 2,
    }
    if name == "xcon":
        light["n_experts"] = 2
    return config.small().with_settings(light | more)


def learned(
    name, split, backbone, bank, folder=None, *, seed=0, weight=None, n=N_CATEGORIES, fit=None, progress=silent, **more
):
    """A method after `fit`."""
    method = METHODS[name](n, backbone, config_of(name, **more), seed=seed, folder=folder, bank=bank)
    with use(progress=progress):
        return method.fit(split, weight, **(fit or {}))


class FinishedTraining(NamedTuple):
    """A finished training: its folder, and the method after `fit`."""

    folder: Path
    method: Any


def data_of(split, weight=None, **options) -> TrainingData:
    return TrainingData.of(split, weight, **options)


def newest(folder):
    """The newest checkpoint of a run."""
    return max((folder / "checkpoint").glob("step-*.safetensors"))


def final_bytes(folder):
    """Every tensor of the last checkpoint, heads included, as bytes."""
    return {name: tensor.numpy().tobytes() for name, tensor in load_file(newest(folder)).items()}


def records(folder):
    """The records of metrics.jsonl without seconds."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines]


class Stopped(Exception):  # noqa: N818
    """Training was stopped before its end."""


def stop_after(n_steps, n_before=0):
    """A progress bar that stops after `n_steps` steps of training; the first `n_before` trainings finish."""
    started = []

    def track(steps, total, what):
        started.extend([what] if what.startswith("training") else [])
        for number, step in enumerate(steps, start=1):
            yield step
            if what.startswith("training") and number == n_steps and len(started) > n_before:
                raise Stopped

    return track
