"""Base classes of all methods: `Discovery`, and `TrainedDiscovery` for methods that train a network."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import BaseEstimator

from justright.data.image_set import ImageSet
from justright.data.quarantine import MAX_BAD
from justright.data.splits import Split
from justright.data.transforms import Transform
from justright.discovery.assigner import Learned, by_clusters
from justright.discovery.configs import Config, PlannedTraining, TrainConfig
from justright.discovery.evidence import probability_right
from justright.discovery.joint import JointAnswer
from justright.discovery.learner import N_FRESH, FeatureViews, FitInputs, Guide, Learner, trainable_copy
from justright.discovery.loop import Training
from justright.discovery.model_files import read_model, write_model
from justright.discovery.predictions import NEITHER_SHARE, UNCALIBRATED, Category, Predictions, category_names
from justright.discovery.processes import Processes
from justright.discovery.training_data import TrainingData, Weighting
from justright.features.backbone import Backbone
from justright.features.bank import Views, open_views
from justright.features.extract import extract
from justright.utils.errors import DataError, DegenerateError
from justright.utils.files import home
from justright.utils.parallel import blas_threads
from justright.utils.seeding import generator
from justright.utils.settings import differences, is_whole_number
from justright.utils.types import UNLABELED, Array

CALIBRATION_ROWS = 1 << 15  # at most about so many labeled images calibrate the one temperature


class Discovery(BaseEstimator, ABC):
    """Put every target image into a known class or a new cluster.

    Parameters:
        n_categories: known and new categories together; `total_categories` counts them for a pool.
        backbone: computes features. `fit` tunes a copy.
        config: settings of type `config_class`; None for the published ones.
        seed: of heads, batches and clustering. Views have the seed 0, so that all seeds share them, unless
            `config.views_by_seed`.
        folder: for checkpoints and metrics.jsonl; None writes none, and an interrupted `fit` starts again.
        bank: root of the stored views; None for the cache folder.

    Attributes after `fit`:
        config_: the settings, with what depends on the data filled in.
        n_categories_: the number of categories; CMS may choose another one than `n_categories`.
        labels_: the category of each target image.
        confidence_: the estimated probability that it is right.
        is_given_: whether a person labeled the image, so that nothing was predicted.
        features_: of the target, after training.
        categories_: names and kinds, known ones first.
        known_labels_: the labels in the split of the first categories.
        backbone_: the tuned copy.
        assigner_: from features to categories.
        calibrated_on_: the images that the confidence was calibrated on.
        labeled_rows_: labeled images of known classes used in training.
        held_out_rows_: labeled images held out for calibration.
        class_rows_, class_labels_, class_features_: both together, their classes, and their features after training.
        joint_, evidence_, own_labels_, other_clusterings_: set by `join`: the joint answer for new images, its
            evidence, the labels before it, and what doubts about categories come from.
        held_out_accuracy_: of held-out labeled images; NaN without any.
        trained_share_: the share of the planned epochs that fitted into `config.minutes`.
        notes_: remarks for the reader of the result.
    """

    name: ClassVar[str]
    config_class: ClassVar[type[Config]]

    def __init__(
        self,
        n_categories: int,
        backbone: Backbone,
        config: Any = None,
        *,
        seed: int = 0,
        folder: Path | None = None,
        bank: Path | None = None,
    ):
        self.n_categories = n_categories
        self.backbone = backbone
        self.config = config
        self.seed = seed
        self.folder = folder
        self.bank = bank

    def __sklearn_clone__(self) -> Discovery:
        """Share the backbone, which `fit` does not change, instead of copying it."""
        return type(self)(**self.get_params(deep=False))

    def fit(
        self,
        split: Split,
        sample_weight: Float[Array, " labeled"] | None = None,
        *,
        weighting: Weighting = "auto",
        features: Sequence[Float[Array, "_ dim"]] | None = None,
    ) -> Discovery:
        """Learn from labeled and unlabeled images; `sample_weight` has one entry for each labeled one.

        features: of the labeled and of the unlabeled images before training, if they were computed already.
        """
        self.notes_: list[str] = []
        self.trained_share_ = 1.0
        self.joint_: JointAnswer | None = None
        config = self.config_class() if self.config is None else self.config
        if not isinstance(config, self.config_class):
            raise DataError(f"a {type(config).__name__} for {self.name}", expected=self.config_class.__name__)
        for name in ("n_categories", "seed"):
            if not is_whole_number(getattr(self, name)):
                raise DataError(f"{name} is {getattr(self, name)!r}", expected="a whole number")
        self.n_categories_ = int(self.n_categories)
        data = TrainingData.of(split, sample_weight, weighting, config.held_out_share)
        if not config.sees_labels:
            data = data.without_labels()
        if self.n_categories_ < max(1, len(data.known)):
            raise DegenerateError(
                f"{self.n_categories_} categories for {len(data.known)} known classes",
                expected="at least as many, and one",
                advice="count the classes of the pool that are kept and the new categories of the target",
            )
        adapted = self._for_classes(config, data)
        n_used, ends_in_norm = int(data.is_used.sum()), self.backbone.cut.ends_in_norm
        self.config_ = adapted.fitted(n_used, self.n_categories_, ends_in_norm)
        self.backbone_ = trainable_copy(self.backbone)
        with blas_threads(torch.get_num_threads()):
            plain = partial(self._views, "plain", data, views=1, precision="float32", seed=0)
            inputs = FitInputs(self.backbone_, data, plain, features)
            learned = self._learn(inputs)
            self._conclude(data, inputs.features(), learned)
        return self

    def _for_classes(self, config: Any, data: TrainingData) -> Any:
        """Adapt the settings to the sizes of the labeled classes, and note what changes."""
        sizes = np.bincount(data.labels[data.labeled], minlength=len(data.known))
        adapted = config.for_classes(sizes)
        self.notes_ += [
            f"labeled classes have {sizes.min()} to {sizes.max()} images: {name} is {now}, not {before}"
            for name, (before, now) in differences(asdict(config), asdict(adapted)).items()
        ]
        return adapted

    def _views(self, transform: str | Transform, data: TrainingData, **options: Any) -> Views:
        """Open views of all images, whatever their weight, so that other selections can reuse them.

        Of several processes the first one builds and checks them for all.
        """
        processes = Processes()
        root = self.bank or home() / "banks"
        options |= {"transform": transform, "is_built": not processes.is_first}
        views = partial(open_views, self.backbone_, data.images, root, **options)
        return processes.in_turn(views)

    @classmethod
    def trainings(cls, config: Any) -> list[PlannedTraining]:
        """List the trainings of the method in order, from `fitted` settings. Here none."""
        return []

    @abstractmethod
    def _learn(self, inputs: FitInputs) -> Learned:
        """Learn from the images and return how features are assigned to categories. A method implements this."""

    def _by_clusters(self, inputs: FitInputs) -> Learned:
        """Assign categories by semi-supervised k-means of the current features."""
        features, ends_in_norm = inputs.features(), inputs.backbone.cut.ends_in_norm
        return by_clusters(inputs.data, features, self.n_categories_, self.config_, self.seed, ends_in_norm)

    def _conclude(self, data: TrainingData, features: Float[Array, "images dim"], learned: Learned) -> None:
        """Calibrate the confidence and set the attributes."""
        self.labeled_rows_, self.held_out_rows_ = data.labeled, np.flatnonzero(data.is_held_out)
        self.class_rows_ = np.union1d(self.labeled_rows_, self.held_out_rows_)
        self.class_labels_ = data.labels[self.class_rows_].astype(np.int64)
        self.class_features_ = features[self.class_rows_]
        self.held_out_accuracy_ = math.nan
        if len(self.held_out_rows_):
            rows, self.calibrated_on_ = self.held_out_rows_, "held-out labeled images"
            category, _, _ = learned.assigner.assign(features[rows])
            self.held_out_accuracy_ = float(np.mean(category == data.labels[rows]))
        elif len(self.labeled_rows_):
            rows, self.calibrated_on_ = self.labeled_rows_, "the labeled images it learned from, hence too sure"
        else:
            rows, self.calibrated_on_ = self.labeled_rows_, UNCALIBRATED
        rows = rows[:: max(1, math.ceil(len(rows) / CALIBRATION_ROWS))]
        target = features[data.n_labeled :]
        assigner = learned.assigner.calibrated(features[rows], data.labels[rows])
        cluster, confidence, best = assigner.assign(target)
        self.assigner_ = assigner.with_reference(best)
        self.is_given_ = data.given != UNLABELED
        self.labels_, self.features_ = np.where(self.is_given_, data.given, learned.labels), target
        self.categories_ = category_names(data.known, self.n_categories_)
        self.known_labels_ = data.known_labels
        # no confidence for an image that clustering put into another cluster than the nearest
        confidence = np.where(cluster == learned.labels, confidence, 0.0)
        self.confidence_ = np.where(self.is_given_, 1.0, confidence).astype(np.float32)

    def predictions(self, images: ImageSet) -> Predictions:
        """Return the result of `fit` for the target; `images` are its images."""
        index = images.with_ids().table.select(["id", "dataset", "path"])
        is_neither = np.zeros(len(self.labels_), dtype=bool)
        return Predictions(index, self.labels_, self.confidence_, is_neither, self.categories_, self.is_given_)

    def predict(
        self,
        images: ImageSet,
        *,
        neither: float = NEITHER_SHARE,
        max_bad: float = MAX_BAD,
        given: Mapping[str, str] | None = None,
    ) -> Predictions:
        """Predict the category of any images; unreadable ones are skipped.

        neither: an image has no category if it fits worse than all but this share of the target's images; 0: never.
        given: labels from a person by content id; such an image keeps its label.
        """
        if not 0 <= neither < 1:
            raise DataError(f"the share of images of no category is {neither}", expected="at least 0, below 1")
        with TemporaryDirectory() as folder:
            table = extract(images, self.backbone_, Path(folder) / "tuned", max_bad=max_bad)
            tuned, index = np.asarray(table.features), table.index.select(["id", "dataset", "path"])
            good = np.setdiff1d(np.arange(len(images)), list(table.bad_rows))
            if self.joint_ is None:
                cluster, confidence, best = self.assigner_.assign(tuned)
                is_neither = self.assigner_.is_neither(best, neither)
            else:
                before = extract(images.take(good), self.backbone, Path(folder) / "frozen")
                answer = self.joint_.predict(np.asarray(before.features), tuned, self.assigner_.scores)
                cluster, confidence = answer.category, probability_right(answer.evidence)
                is_neither = self.joint_.is_neither(answer.similarity, neither)
        predicted = Predictions(index, cluster, confidence, is_neither, self.categories_)
        if not given:
            return predicted
        return predicted.with_given([given.get(each) for each in images.take(good).content_ids()])

    def save(self, folder: Path) -> None:
        """Write model.safetensors and model.json."""
        about = {
            "method": self.name,
            "n_categories": self.n_categories_,
            "seed": int(self.seed),
            "config": asdict(self.config_),
            "categories": [asdict(category) for category in self.categories_],
            "known_labels": list(self.known_labels_),
            "calibrated_on": self.calibrated_on_,
        }
        write_model(folder, self.backbone_, self.assigner_, about, self.joint_)

    @classmethod
    def load(cls, folder: Path, backbone: Backbone) -> Discovery:
        """Load a saved model onto a backbone of the same kind, for `predict`."""
        tuned, assigner, joint, about = read_model(folder, trainable_copy(backbone))
        if about["method"] != cls.name:
            raise DataError(f"{folder} holds a model of {about['method']}", expected=cls.name)
        config = cls.config_class().with_settings(about["config"])
        model = cls(about["n_categories"], backbone, config, seed=about["seed"])
        model.n_categories_, model.config_ = model.n_categories, config
        model.backbone_, model.assigner_, model.joint_ = tuned, assigner, joint
        model.categories_ = tuple(Category(**category) for category in about["categories"])
        model.known_labels_ = tuple(about["known_labels"])
        model.calibrated_on_ = about["calibrated_on"]
        return model


class TrainedDiscovery(Discovery):
    """A method that trains a network: `_learn` makes a learner and calls `_train`."""

    config_class: ClassVar[type[TrainConfig]]
    extractions_per_epoch: ClassVar[int] = 0  # of each image, before the first step of an epoch

    @classmethod
    def trainings(cls, config: Any) -> list[PlannedTraining]:
        """List one training with the default views of a learner."""
        return [PlannedTraining(config, tuple(Learner.streams))]

    def _train(self, learner: Learner, inputs: FitInputs, config: TrainConfig, part: str = "", **more: object) -> None:
        """Train a learner, resuming from its last checkpoint.

        Parameters:
            config: the settings of this training; a method may have several, one after the other.
            part: subfolder for its checkpoints and metrics.
            more: further values that must not change when a run is resumed.
        """
        data = inputs.data
        learner.guide = self._guide(inputs, config)
        views: dict[str, Views] = {
            stream: self._views(
                learner.transform(stream),
                data,
                views=config.views,
                precision=config.bank_precision,
                seed=self.seed if config.views_by_seed else 0,
            )
            for stream in learner.streams
        }
        if not learner.is_tuned:
            rows = np.unique(
                np.concatenate([np.concatenate([each.labeled, each.unlabeled]) for each in learner.batches])
            )
            n_views = N_FRESH if config.views == "fresh" else config.views
            views = {stream: FeatureViews(each, rows, n_views) for stream, each in views.items()}
        made_with = {
            "method": self.name,
            "seed": int(self.seed),
            "n_categories": self.n_categories_,
            "config": asdict(config),
            "backbone": self.backbone.fingerprint,  # before training
            "frozen": self.backbone.prefix_fingerprint,  # another version may tune another part
            "data": data.fingerprint,
            **more,
        }
        learner.to(self.backbone.device)
        what, plain = f"training the heads of {self.name}", None
        if learner.is_tuned:
            inputs.forget_features()
            # heads alone train so fast that the search for a plateau would take longer than it saves
            what, plain = f"training {self.name}", inputs.plain
        folder = None if self.folder is None else self.folder / part
        training = Training(learner, views, data, config, folder, made_with, plain)
        training.run(what)
        self.notes_ += training.notes()
        self.trained_share_ = min(self.trained_share_, training.trained_share)

    def _guide(self, inputs: FitInputs, config: TrainConfig) -> Guide | None:
        """Make the guide for images of the pool; None if the pool does not guide."""
        backbone, data = inputs.backbone, inputs.data
        rows, size = data.guides, round(config.guide_share * config.batch_size)
        if not len(rows) or not size:
            return None
        return Guide(
            data.batches(size, self.seed, "guide", rows, rows[:0]),
            first_label=len(data.known),
            n_classes=len(np.unique(data.labels[rows])),
            dim=backbone.dim,
            scale=config.supervised_share * config.guide_scale,
            generator=self._torch_generator("guide"),
            center=None if backbone.cut.ends_in_norm else inputs.mean_feature(rows),
        )

    def _torch_generator(self, purpose: str) -> torch.Generator:
        """A generator for the initial parameters of heads."""
        return torch.Generator().manual_seed(int(generator(self.seed, purpose).integers(2**62)))
