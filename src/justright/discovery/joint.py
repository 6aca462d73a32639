"""The joint answer: one category for each image, from the method and from clusters of features before and after it.

Each image becomes one vector, z = [t, f, 0.27 sqrt(p)]: its features after training and before, each along principal
directions with their spreads evened out by half and at unit length, and the probabilities of the method. Ward's
clustering of these vectors, in which labeled images keep their class, gives categories, which spread to the nearest
neighbors. The same is done with random halves of the coordinates of z, and all clusterings vote.
docs/research/discovery.md measures each part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from justright.clustering.principal import BLOCK_ROWS, in_directions, principal_directions
from justright.clustering.spreading import nearest_rows, share_alike
from justright.discovery.doubts import OtherClusterings
from justright.discovery.ensemble import (
    N_NEIGHBORS,
    NEIGHBOR_SHARE,
    clustered,
    ensemble,
    means,
    most_votes,
    nearest_mean,
)
from justright.discovery.evidence import CategoryShapes, evidence, largest_overlap, probability_right
from justright.discovery.hidden import hidden_class_shift
from justright.discovery.predictions import UNCALIBRATED
from justright.geometry import below_quantile, evenly_spaced, quantiles, unit_rows
from justright.utils.types import UNLABELED, Array, Mask

N_DIRECTIONS = 256
METHOD_WEIGHT = 0.27  # of the method's probabilities beside two vectors of length 1
MOST_ANCHORS = 10_000  # target images, and as many labeled ones, that are clustered; other images follow them


@dataclass(frozen=True, eq=False)
class PrincipalView:
    """Features along principal directions, (h - m) P, at unit length."""

    center: Float[Array, " dim"]
    directions: Float[Array, "dim kept"]

    @staticmethod
    def of(features: Float[Array, "images dim"]) -> PrincipalView:
        """The directions of these features."""
        return PrincipalView(*principal_directions(features, N_DIRECTIONS))

    def of_images(self, features: Float[Array, "images dim"]) -> Float[Array, "images kept"]:
        """Other features along them."""
        return unit_rows(in_directions(features, self.center, self.directions))


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs for some images: features before training, and the results of each of several trainings."""

    frozen: Float[Array, "images dim"]  # features before training
    tuned: Sequence[Float[Array, "images tuned"]]  # features after each training
    probability: Sequence[Float[Array, "images categories"]]  # of the categories, by each method

    def __add__(self, more: Inputs) -> Inputs:
        """These images, then the others."""
        tuned = [np.concatenate(both) for both in zip(self.tuned, more.tuned, strict=True)]
        probability = [np.concatenate(both) for both in zip(self.probability, more.probability, strict=True)]
        return Inputs(np.concatenate([self.frozen, more.frozen]), tuned, probability)

    def of_training(self, number: int) -> Inputs:
        """The inputs with one of the trainings only."""
        return Inputs(self.frozen, [self.tuned[number]], [self.probability[number]])


@dataclass(frozen=True, eq=False)
class Space:
    """Maps the inputs of images to z."""

    frozen: PrincipalView
    tuned: tuple[PrincipalView, ...]

    @staticmethod
    def of(inputs: Inputs) -> Space:
        """Principal directions of these images."""
        return Space(PrincipalView.of(inputs.frozen), tuple(PrincipalView.of(each) for each in inputs.tuned))

    def parts(self, inputs: Inputs) -> tuple[Array, Array, Array]:
        """The parts of z: after training, before it, and by the method. Several trainings weigh as much as one."""
        share = 1 / np.sqrt(len(self.tuned))
        tuned = [share * view.of_images(each) for view, each in zip(self.tuned, inputs.tuned, strict=True)]
        method = [METHOD_WEIGHT * share * np.sqrt(each) for each in inputs.probability]
        parts = np.concatenate(tuned, axis=1), self.frozen.of_images(inputs.frozen), np.concatenate(method, axis=1)
        return parts[0].astype(np.float32), parts[1].astype(np.float32), parts[2].astype(np.float32)

    def of_training(self, number: int) -> Space:
        """The space with one of the trainings only."""
        return Space(self.frozen, (self.tuned[number],))


@dataclass(frozen=True, eq=False)
class Assignment:
    """The category of each image, and the evidence for it."""

    category: Int[Array, " images"]
    evidence: Float[Array, "images columns"]
    similarity: Float[Array, " images"]  # the mean cosine to the nearest anchors

    @staticmethod
    def concat(parts: Sequence[Assignment]) -> Assignment:
        """Concatenate."""
        names = "category", "evidence", "similarity"
        return Assignment(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True, eq=False)
class JointAnswer:
    """Assigns new images by their neighbors among the anchors, which are images whose category is known."""

    space: Space  # with one training
    anchors: Float[Array, "anchors joint"]  # z of labeled images, then of target images
    category: Int[Array, " anchors"]
    vote: Float[Array, " anchors"]  # share of the votes for that category
    shapes: CategoryShapes
    n_labeled: int  # how many anchors are labeled images
    similarity: Float[Array, " quantiles"]  # of the mean cosine of target images to their nearest anchors
    temperature: float  # turns scores of the method into probabilities

    @cached_property
    def _category_means(self) -> Float[Array, "categories joint"]:
        """The mean z of each category."""
        return means(self.anchors, self.category, len(self.shapes.size))

    def predict(
        self,
        frozen: Float[Array, "images dim"],
        tuned: Float[Array, "images dim"],
        scores: Callable[[Float[Array, "images dim"]], Float[Array, "images categories"]],
    ) -> Assignment:
        """Assign new images by their features before and after training; `scores` gives the method's scores."""
        blocks = []
        for start in range(0, max(1, len(tuned)), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            probability = probabilities(scores(tuned[rows]), self.temperature)
            blocks.append(self.assign(Inputs(frozen[rows], [tuned[rows]], [probability])))
        return Assignment.concat(blocks)

    def is_neither(self, similarity: Float[Array, " images"], level: float) -> Mask:
        """Whether an image is less similar to the anchors than all but a share `level` of the target's images are."""
        return below_quantile(similarity, self.similarity, level)

    def tensors(self) -> dict[str, Array]:
        """All arrays, by name; the largest in half precision."""
        frozen, tuned = self.space.frozen, self.space.tuned[0]
        return {
            "frozen center": frozen.center,
            "frozen directions": frozen.directions,
            "tuned center": tuned.center,
            "tuned directions": tuned.directions,
            "anchors": self.anchors.astype(np.float16),
            "similarity": self.similarity,
            "category": self.category.astype(np.int32),
            "vote": self.vote.astype(np.float32),
            "size": self.shapes.size,
            "repeated": self.shapes.repeated,
        }

    def about(self) -> dict[str, Any]:
        """All other values."""
        numbers = {"below": self.shapes.below, "hidden": self.shapes.hidden, "temperature": self.temperature}
        return {"n_labeled": self.n_labeled, **numbers}

    @staticmethod
    def of(tensors: Mapping[str, Array], about: Mapping[str, Any]) -> JointAnswer:
        """The inverse of `tensors` and `about`; raises ValueError if shapes or values are inconsistent."""
        _expect_consistent(tensors, about)
        frozen, tuned = (
            PrincipalView(tensors[f"{name} center"], tensors[f"{name} directions"]) for name in ("frozen", "tuned")
        )
        return JointAnswer(
            space=Space(frozen, (tuned,)),
            anchors=tensors["anchors"].astype(np.float32),
            category=tensors["category"].astype(np.int64),
            vote=tensors["vote"],
            shapes=CategoryShapes(tensors["size"], tensors["repeated"], about["below"], about["hidden"]),
            n_labeled=int(about["n_labeled"]),
            similarity=tensors["similarity"],
            temperature=float(about["temperature"]),
        )

    def assign(self, inputs: Inputs) -> Assignment:
        """Assign other images of the same training: the nearest category mean and the nearest anchors vote."""
        z = np.concatenate(self.space.parts(inputs), axis=1)
        near = nearest_rows(z, self.anchors, N_NEIGHBORS)
        one_hot = np.eye(len(self.shapes.size), dtype=np.float32)
        votes = (1 - NEIGHBOR_SHARE) * one_hot[nearest_mean(z, self._category_means)]
        rows = np.repeat(np.arange(len(z)), near.rows.shape[1])
        np.add.at(votes, (rows, self.category[near.rows].ravel()), (NEIGHBOR_SHARE * near.weight).ravel())
        category = votes.argmax(axis=1)
        alike = share_alike(category, near, self.category)
        vote = np.sum(near.weight * (self.category[near.rows] == category[:, None]) * self.vote[near.rows], axis=1)
        return Assignment(category, evidence(category, alike, vote, self.shapes), near.similarity)


def _expect_consistent(tensors: Mapping[str, Array], about: Mapping[str, Any]) -> None:
    """Raise ValueError unless these are the parts of one joint answer."""
    n_categories, n_anchors = len(tensors["size"]), len(tensors["anchors"])
    kept = {name: tensors[f"{name} directions"].shape[-1] for name in ("tuned", "frozen")}
    checks = (
        tensors["category"].shape == tensors["vote"].shape == (n_anchors,),
        all(tensors[name].min(initial=0) >= 0 for name in ("category", "vote", "size", "repeated")),
        all(tensors[name].max(initial=0) <= 1 for name in ("vote", "repeated")),
        tensors["category"].max(initial=0) < n_categories,
        tensors["size"].shape == tensors["repeated"].shape == (n_categories,),
        tensors["anchors"].ndim == 2 and tensors["anchors"].shape[1] >= sum(kept.values()),
        all(tensors[f"{name} directions"].shape == (*tensors[f"{name} center"].shape, n) for name, n in kept.items()),
        tensors["similarity"].ndim == 1 and len(tensors["similarity"]) > 0,
        0 <= about["n_labeled"] <= n_anchors,
        np.isfinite([about["below"], about["hidden"] or 0.0]).all() and 0 < about["temperature"] < np.inf,
    )
    if not all(checks):
        raise ValueError("the arrays of the joint answer do not belong together")


def probabilities(scores: Float[Array, "images categories"], temperature: float) -> Float[Array, "images categories"]:
    """softmax(scores / temperature)."""
    return softmax(scores.astype(np.float64) / temperature, axis=1).astype(np.float32)


def joint_answer(
    labeled: Inputs,
    labels: Int[Array, " labeled"],
    target_at: Callable[[Int[Array, " rows"]], Inputs],
    given: Int[Array, " target"],
    n_categories: int,
    temperature: float,
    reference: int = 0,
    below: float = 0.0,
) -> tuple[JointAnswer, Assignment, OtherClusterings]:
    """The answer for new images, the categories of the target (known classes first), and other clusterings of it.

    Parameters:
        labels: the known class of each labeled image, numbered from 0 without gaps.
        target_at: returns the inputs of some target images.
        given: the known class that a person gave each target image, -1 for most.
        temperature: of the probabilities of the reference.
        reference: the training that new images are assigned by.
        below: how far K is below its estimate, see `evidence.NAMES`.
    """
    n_labeled, n_target = len(labels), len(given)
    n_known = int(labels.max(initial=-1)) + 1
    of_target = slice(n_labeled, None)  # anchors are labeled images, then images of the target
    rows = evenly_spaced(n_target, min(n_target, MOST_ANCHORS))
    inputs = labeled + target_at(rows)
    fixed = np.concatenate([labels, given[rows]])
    space = Space.of(inputs)
    tuned, frozen, _ = parts = space.parts(inputs)
    votes, inner, near = ensemble(parts, fixed, n_categories)
    category = most_votes(votes, n_known)
    vote = votes[np.arange(len(votes)), category]

    by_method = inputs.probability[reference].argmax(axis=1)
    by_tuned, by_frozen = (clustered(part, fixed, n_categories)[0] for part in (tuned, frozen))
    members = np.stack([by_method, by_tuned, by_frozen])[:, of_target]
    clusterings = OtherClusterings(rows, category[of_target], members, inner, n_known)

    shapes = CategoryShapes(
        size=np.bincount(category[of_target], minlength=n_categories),
        repeated=largest_overlap(category[of_target], by_frozen[of_target], n_categories),
        below=below,
        hidden=hidden_class_shift(frozen, fixed, n_labeled, n_categories, N_NEIGHBORS, NEIGHBOR_SHARE),
    )
    columns = evidence(category, share_alike(category, near, category), vote, shapes)
    of_anchors = Assignment(category[of_target], columns[of_target], near.similarity[of_target])

    if len(space.tuned) > 1:
        space = space.of_training(reference)
        parts = space.parts(inputs.of_training(reference))
    answer = JointAnswer(
        space=space,
        anchors=np.concatenate(parts, axis=1),
        category=category,
        vote=vote,
        shapes=shapes,
        n_labeled=n_labeled,
        similarity=quantiles(of_anchors.similarity),
        temperature=temperature,
    )

    others = np.setdiff1d(np.arange(n_target), rows)  # target images that are no anchors
    blocks = [others[start : start + BLOCK_ROWS] for start in range(0, len(others), BLOCK_ROWS)]
    of_others = [answer.assign(target_at(block).of_training(reference)) for block in blocks]
    every = Assignment.concat([of_anchors, *of_others])
    order = np.argsort(np.concatenate([rows, others]))
    category = np.where(given == UNLABELED, every.category[order], given)
    return answer, Assignment(category, every.evidence[order], every.similarity[order]), clusterings


CALIBRATED_ON = "how far clusterings agree, by a model fitted on problems whose truth is known"
UNCALIBRATED_TEMPERATURE = 0.1  # that of SimGCD's student, where no labeled images calibrate it


def join(
    methods: Sequence[Any],
    pool: Float[Array, "labeled dim"],
    target: Float[Array, "target dim"],
    reference: int = 0,
    below: float = 0.0,
) -> Any:
    """Give the method of the `reference` the joint answer of all of them; its own is kept as `own_labels_`.

    Parameters:
        methods: after `fit` on the same images, each with another seed.
        pool, target: features before training, of all labeled images and of the target.
        below: how far K is below its estimate, see `evidence.NAMES`.
    """
    method = methods[reference]
    places = _anchor_rows(method.class_labels_)
    temperatures = [
        UNCALIBRATED_TEMPERATURE if each.calibrated_on_ == UNCALIBRATED else float(each.assigner_.temperature)
        for each in methods
    ]

    def inputs_of(frozen: Array, tuned: Sequence[Array]) -> Inputs:
        scores = [each.assigner_.scores(features) for each, features in zip(methods, tuned, strict=True)]
        return Inputs(frozen.astype(np.float32), tuned, list(map(probabilities, scores, temperatures)))

    def target_at(rows: Int[Array, " rows"]) -> Inputs:
        return inputs_of(np.asarray(target[rows]), [each.features_[rows] for each in methods])

    labeled_rows = method.class_rows_[places]
    labeled = inputs_of(np.asarray(pool[labeled_rows]), [each.class_features_[places] for each in methods])
    method.joint_, assignment, method.other_clusterings_ = joint_answer(
        labeled,
        labels=method.class_labels_[places],
        target_at=target_at,
        given=np.where(method.is_given_, method.labels_, UNLABELED),
        n_categories=method.n_categories_,
        temperature=temperatures[reference],
        reference=reference,
        below=below,
    )
    method.own_labels_ = method.labels_
    method.labels_, method.evidence_ = assignment.category, assignment.evidence
    method.confidence_ = np.where(method.is_given_, 1.0, probability_right(assignment.evidence)).astype(np.float32)
    method.calibrated_on_ = CALIBRATED_ON
    return method


def _anchor_rows(labels: Int[Array, " labeled"]) -> Int[Array, " kept"]:
    """Places of all labeled images, or of some of each class if there are too many."""
    step = -(-len(labels) // MOST_ANCHORS)
    if step <= 1:
        return np.arange(len(labels))
    by_class = np.argsort(labels, kind="stable")
    _, first = np.unique(labels[by_class], return_index=True)
    return np.sort(by_class[np.union1d(np.arange(0, len(labels), step), first)])
