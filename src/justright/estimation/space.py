"""The space and the prior in which clusters are compared."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from justright.errors import DegenerateError
from justright.estimation.marginal import NormalInverseWishart
from justright.types import UNLABELED, Array


def principal_axes(x: Float[Array, "images dim"], n_axes: int) -> Float[Array, "images axes"]:
    """The features about their mean, along the n_axes directions of largest variance."""
    centered = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
    if centered.shape[0] < centered.shape[1]:
        # fewer images than dimensions: the small Gram matrix has the same eigenvalues
        value, vector = np.linalg.eigh(centered @ centered.T)
        axes = vector[:, ::-1][:, :n_axes] * np.sqrt(np.maximum(value[::-1][:n_axes], 0.0))
    else:
        _, vector = np.linalg.eigh(centered.T @ centered)
        axes = centered @ vector[:, ::-1][:, :n_axes]
    # an axis along which nothing varies says nothing and could not be scaled
    variance = axes.var(axis=0)
    return np.ascontiguousarray(axes[:, variance > 1e-12 * max(float(variance.max(initial=0.0)), 1e-300)])


def gpc_prior(z: Float[Array, "images axes"]) -> NormalInverseWishart:
    """The constants of GPC (Zhao et al., ICCV 2023): kappa 1e-4, nu = d + 1, Psi = 0.005 I, for unit features."""
    n_axes = z.shape[1]
    return NormalInverseWishart(mean=z.mean(axis=0), kappa=1e-4, nu=n_axes + 1.0, psi=0.005)


def labeled_prior(
    z: Float[Array, "images axes"], labels: Int[Array, " images"], strength: float = 10.0
) -> tuple[Float[Array, "images axes"], NormalInverseWishart]:
    """Axes and a prior in which a labeled class is what a cluster is expected to look like.

    Axes are scaled so that labeled classes have variance 1 along each. Then, with d axes,

        kappa = variance within classes / variance of their means,  nu = strength * d,  E[covariance] = I.
    """
    is_labeled = labels != UNLABELED
    classes, place, size = np.unique(labels[is_labeled], return_inverse=True, return_counts=True)
    n_free = int(is_labeled.sum()) - len(classes)
    if len(classes) < 2 or n_free < 1:
        raise DegenerateError(
            f"{len(classes)} labeled classes with {int(is_labeled.sum())} images.",
            expected="two classes or more, with more than one image each, to learn how wide a class is",
            advice='MixtureCounter(prior="gpc")',
        )
    labeled = z[is_labeled]
    means = np.stack([labeled[place == k].mean(axis=0) for k in range(len(classes))])
    within = ((labeled - means[place]) ** 2).sum(axis=0) / n_free
    # classes may agree to the last digit along an axis; a floor keeps that axis from deciding alone
    scale = np.sqrt(np.maximum(within, 1e-3 * within.mean() + 1e-300))
    z, means = z / scale, means / scale
    # the means vary by their own spread and by the error each of them has, 1 / size in these units
    between = float(np.maximum(means.var(axis=0, ddof=1).mean() - (1.0 / size).mean(), 1e-3))
    n_axes = z.shape[1]
    nu = max(strength * n_axes, n_axes + 2.0)
    return z, NormalInverseWishart(mean=z.mean(axis=0), kappa=1.0 / between, nu=nu, psi=nu - n_axes - 1.0)
