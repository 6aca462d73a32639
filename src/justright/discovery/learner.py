"""What the training loop needs of a method: its network and loss (`Learner`), and features of the network."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from justright.data.batches import BalancedBatches
from justright.data.transforms import Transform, transform_named
from justright.discovery.processes import Processes
from justright.discovery.training_data import TrainingData
from justright.features.backbone import Backbone, Stored
from justright.features.bank import Views
from justright.features.chunked_suffix import chunked_suffix
from justright.features.workers import on_one_core_each, one_core_a_thread
from justright.losses import LossParts, WeightedCrossEntropy
from justright.losses.classification import Logits
from justright.losses.heads import PrototypeClassifier
from justright.losses.reduction import Labels, Weights
from justright.utils.context import track
from justright.utils.parallel import n_cores
from justright.utils.types import Array

BatchLabels = Sequence[Int[Tensor, " _"]]
BatchWeights = Sequence[Float[Tensor, " _"]]
"""One tensor for each batch of a step, which may differ in length."""

Outputs = Mapping[str, Float[Tensor, "_ _ _"]]
"""Inputs of a method's losses by name, views x images x numbers; batches may differ in all three."""

Module = TypeVar("Module", bound=nn.Module)

FEATURE_ROWS = 64  # on a CPU larger blocks leave its caches: 256 took 1.5 times as long


class Learner(nn.Module, ABC):
    """A network and its loss. A method implements `outputs` and `objective`, and may override the methods after them.

    A step draws a batch from each of `batches`; XCon has several, one for each expert. They are numbered by `part`.
    With a `guide` a step draws one more batch, of the pool, and adds its loss.
    """

    streams: ClassVar[Mapping[str, int]] = {"weak": 2}
    """How many views of which transform a step needs of each image."""

    is_tuned = True  # False for `heads_first`: the backbone is frozen, and views are features

    def __init__(self, backbone: Backbone, batches: Sequence[BalancedBatches], micro_batch: int | None = None):
        super().__init__()
        self.backbone = backbone
        self.batches = tuple(batches)
        self.micro_batch = micro_batch
        self.guide: Guide | None = None
        self.batch_rows: Sequence[Int[Array, " _"]] = ()  # images of each batch of the step under way
        self.n_unsettled = 0  # epochs in which the objective itself changes, such as the teacher's temperature

    @abstractmethod
    def outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Compute the inputs of the losses for batch number `part`.

        `stored` has its views by stream, after the frozen part of the network, ordered view by view.
        """

    @abstractmethod
    def objective(self, outputs: Sequence[Outputs], labels: BatchLabels, weight: BatchWeights, epoch: int) -> LossParts:
        """Compute the loss of a step from the outputs of all its batches."""

    def transform(self, stream: str) -> Transform:
        """Return the transform of a stream's views."""
        return transform_named(stream)

    def begin_epoch(self, epoch: int, views: Mapping[str, Views]) -> None:
        """Prepare an epoch, such as neighbors of all images: a function of settings, epoch and parameters alone.

        `changing` must return what it sets: a training resumed within an epoch does not call it.
        """

    def categories_of(self, features: Float[Array, "rows dim"]) -> Int[Array, " rows"]:
        """Return the current category of each feature. A learner that implements it may stop at a plateau."""
        raise NotImplementedError

    def after_step(self, epoch: int) -> None:
        """Hook after the optimizer step, such as a teacher update."""

    def changing(self) -> dict[str, Tensor]:
        """Return every tensor that training changes, by name, for the checkpoint."""
        return dict(self.trained())

    @property
    def all_batches(self) -> tuple[BalancedBatches, ...]:
        """`batches`, then those of the guide, which do not make an epoch longer."""
        return self.batches if self.guide is None else (*self.batches, self.guide.batches)

    def all_outputs(self, stored: Mapping[str, Stored], part: int) -> Outputs:
        """Compute the outputs for batch number `part` of `all_batches`."""
        if self.guide is None or part < len(self.batches):
            return self.outputs(stored, part)
        stream, n_views = next(iter(self.streams.items()))
        return {"logits": self.guide(self.features(stored[stream], n_views))}

    def loss(self, outputs: Sequence[Outputs], labels: BatchLabels, weight: BatchWeights, epoch: int) -> LossParts:
        """Compute the objective of the method, plus the loss of the guide."""
        n = len(self.batches)
        loss = self.objective(outputs[:n], labels[:n], weight[:n], epoch)
        if self.guide is None:
            return loss
        return self.guide.added_to(loss, outputs[n]["logits"], labels[n], weight[n])

    def trained(self) -> dict[str, nn.Parameter]:
        """Return the trained parameters by name."""
        own = {name: parameter for name, parameter in self.named_parameters() if parameter.requires_grad}
        return own if self.is_tuned else {name: own[name] for name in own if not name.startswith("backbone.")}

    def features(self, stored: Stored, n_views: int) -> Float[Tensor, "views images dim"]:
        """Compute features of rows that are ordered view by view."""
        features = in_chunks(self.backbone, stored, self.micro_batch) if self.is_tuned else stored[0]
        return features.view(n_views, -1, features.shape[-1])


class Guide(nn.Module):
    """A classifier for the classes of the pool, separate from the categories of the target.

        L + lambda * scale * mean_i  w_i * -log softmax(logits_i / temperature_student)[y_i]

    i runs over both views of images of the pool: Eq. 4, with a classifier for the pool alone, beside the loss L of a
    method on the target and its own labels. It shapes the features that both share. lambda is the supervised share.
    """

    center: Tensor

    def __init__(
        self,
        batches: BalancedBatches,  # of the pool
        first_label: int,  # the number of its first class
        n_classes: int,
        dim: int,
        scale: float,  # factor of the loss, the supervised share in it
        generator: torch.Generator,
        center: Float[Array, " dim"] | None = None,  # subtracted from features
    ):
        super().__init__()
        self.batches, self.first_label, self.scale = batches, first_label, scale
        self.register_buffer("center", torch.zeros(dim) if center is None else torch.from_numpy(center))
        self.classifier = PrototypeClassifier(n_classes, dim, generator)
        self.loss = WeightedCrossEntropy()

    def forward(self, features: Float[Tensor, "views guides dim"]) -> Float[Tensor, "views guides classes"]:
        """The cosine with the prototype of each class of the pool."""
        return self.classifier(features - self.center)

    def added_to(self, loss: LossParts, logits: Logits, labels: Labels, weight: Weights) -> LossParts:
        """Add the loss of the pool to that of a step."""
        of_pool = self.loss(logits, labels - self.first_label, weight)
        return LossParts(loss.total + self.scale * of_pool, loss.terms | {"guide": of_pool.detach()})


@dataclass(eq=False)
class FitInputs:
    """The inputs of a method's `_learn`."""

    backbone: Backbone  # tuned in place
    data: TrainingData  # labeled and target images, their labels and weights
    open_plain: Callable[[], Views]  # opens `plain`
    frozen: Sequence[Float[Array, "_ dim"]] | None = None  # features before training, of labeled and of target images
    _features: Float[Array, "images dim"] | None = field(default=None, init=False)

    @cached_property
    def plain(self) -> Views:
        """One view of each image under the test transform; opened at the first use."""
        return self.open_plain()

    def features(self) -> Float[Array, "images dim"]:
        """Features of all images under the test transform by the current backbone, computed once for each state of it.

        Until the backbone is tuned these are the features before training.
        """
        if self._features is None:
            frozen = self.frozen
            self._features = features_of(self.backbone, self.plain) if frozen is None else np.concatenate(frozen)
        return self._features

    def mean_feature(self, rows: Int[Array, " rows"]) -> Float[Array, " dim"]:
        """The mean of `features` over some rows."""
        is_counted = np.zeros((len(self.data.images), 1), dtype=bool)
        is_counted[rows] = True
        return np.asarray(np.mean(self.features(), axis=0, dtype=np.float64, where=is_counted), dtype=np.float32)

    def forget_features(self) -> None:
        """Drop the features, because the backbone is about to change."""
        self.frozen = self._features = None


def trainable_copy(network: Module) -> Module:
    """Return a copy that can be tuned; frozen parameters are shared with the original."""
    # deepcopy reuses objects in its memo, so the frozen prefix is not in memory twice
    frozen: dict[int, Any] = {id(p): p for p in network.parameters() if not p.requires_grad}
    return copy.deepcopy(network, frozen)


def in_chunks(backbone: Backbone, stored: Stored, size: int | None) -> Float[Tensor, "rows dim"]:
    """Compute the tuned part `size` rows at a time; activations are recomputed for the gradient.

    The losses still see the whole batch, so that values and gradients are the same.
    """
    if size is None or len(stored[0]) <= size:
        return chunked_suffix(backbone, stored)
    chunks = zip(*(torch.split(part, size) for part in stored), strict=True)
    return torch.cat([checkpoint(lambda *each: backbone.suffix(each), *chunk, use_reentrant=False) for chunk in chunks])


def features_of(
    backbone: Backbone,
    views: Views,
    rows: Int[Array, " rows"] | None = None,
    numbers: Int[Array, " rows"] | None = None,
) -> Float[Array, "rows dim"]:
    """Compute features (float32) of one view of each row, by default of view 0 of all images.

    Processes share the rows, and each block of rows uses one CPU core: the bytes depend neither on the number of
    processes nor of cores.
    """
    rows = np.arange(len(views.images)) if rows is None else rows
    numbers = np.zeros_like(rows) if numbers is None else numbers
    processes, features = Processes(), np.empty((len(rows), backbone.dim), np.float32)
    parts = processes.parts(len(rows), FEATURE_ROWS)
    mine = parts[processes.rank]

    def compute(start: int) -> None:
        block = slice(start, min(start + FEATURE_ROWS, mine.stop))
        with torch.no_grad():
            features[block] = backbone.suffix(views.batch(rows[block], numbers[block])).float().cpu().numpy()

    n_threads = n_cores() if backbone.device.type == "cpu" else 0
    with one_core_a_thread():
        list(on_one_core_each(compute, range(mine.start, mine.stop, FEATURE_ROWS), n_threads))
    processes.exchange(features, parts, backbone.device)
    return features


MAX_IMAGES_FOR_HEADS = 20_000  # for training the heads alone: the features stay in memory
N_FRESH = 4  # views per image if none are stored


def rows_for_heads(data: TrainingData) -> tuple[Int[Array, " labeled"], Int[Array, " unlabeled"]]:
    """Return labeled and unlabeled rows for training the heads alone: all, or evenly spaced ones of many."""
    step = math.ceil(len(data.seen) / MAX_IMAGES_FOR_HEADS)
    return data.labeled[::step], data.unlabeled[::step]


class FeatureViews(Views):
    """Features of `n_views` views of some images by the current network, in memory.

    `views` holds stored or freshly drawn views of all images; `rows` are in ascending order.
    """

    purpose = "views of heads"

    def __init__(self, views: Views, rows: Int[Array, " rows"], n_views: int):
        super().__init__(views.backbone, views.images, views.transform, views.seed)
        self.views, self.rows, self.n_views = views, rows, n_views
        self.features: Float[Tensor, "views rows dim"] | None = None

    def batch(self, rows: Int[Array, " batch"], views: Int[Array, " batch"]) -> Stored:
        """Return one feature of each row; all are computed at the first call."""
        if self.features is None:
            of_views = [
                features_of(self.backbone, self.views, self.rows, np.full_like(self.rows, view))
                for view in track(range(self.n_views), self.n_views, "features of training views")
            ]
            self.features = torch.from_numpy(np.stack(of_views)).to(self.backbone.device)
        return (self.features[torch.from_numpy(views), torch.from_numpy(np.searchsorted(self.rows, rows))],)
