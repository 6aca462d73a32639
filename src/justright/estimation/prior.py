"""How likely points are under a Gaussian of unknown mean and covariance, and what is expected of both beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, multigammaln

from justright.utils.types import UNLABELED, Array, Labels

Axes = Float[Array, "images axes"]


@dataclass(frozen=True, eq=False)
class NormalInverseWishart:
    """Prior over the mean and covariance of a cluster in d dimensions."""

    mean: Float[Array, " dim"]  # m
    kappa: float  # how many images m counts for
    nu: float  # the same for the covariance, above d - 1
    psi: float  # the scale: Psi = psi I

    def log_marginal(self, x: Float[Array, "members dim"]) -> float:
        """log p(x), mean and covariance integrated out.

            - N d/2 log pi + log G_d(nu*/2) - log G_d(nu/2) + nu/2 log|Psi| - nu*/2 log|Psi*| + d/2 log(kappa/kappa*)

        with kappa* = kappa + N, nu* = nu + N, Psi* = Psi + S + kappa N / kappa* (x_bar - m)(x_bar - m)^T, S the
        scatter about the mean x_bar and G_d the multivariate gamma function (Murphy, 2007).
        """
        n, d = x.shape
        kappa, nu = self.kappa + n, self.nu + n
        center = x.mean(axis=0)
        # Psi* = psi I + A^T A with these rows A; |psi I + A^T A| = psi^(d-m) |psi I + A A^T|: take the smaller.
        rows = np.vstack([x - center, math.sqrt(self.kappa * n / kappa) * (center - self.mean)])
        gram = rows @ rows.T if len(rows) < d else rows.T @ rows
        small = len(gram)
        _, log_det = np.linalg.slogdet(gram + self.psi * np.eye(small))
        log_det += (d - small) * math.log(self.psi)
        return float(
            -n * d / 2 * math.log(math.pi)
            + multigammaln(nu / 2, d)
            - multigammaln(self.nu / 2, d)
            + self.nu / 2 * d * math.log(self.psi)
            - nu / 2 * log_det
            + d / 2 * math.log(self.kappa / kappa)
        )

    def log_joint(self, x: Float[Array, "members dim"]) -> float:
        """log G(N) + log p(x): what a cluster of these N members adds to a mixture, G the gamma function.

        The odds of two clusters against one that holds all their members are then, positive for two,

            log H = log_joint(one) + log_joint(other) - log_joint(both)

        as in GPC: a Dirichlet process of concentration 1 over sizes. A merge asks the same with the opposite sign.
        """
        return float(gammaln(len(x))) + self.log_marginal(x)


def gpc_prior(z: Axes) -> NormalInverseWishart:
    """The constants of GPC (Zhao et al., ICCV 2023): kappa 1e-4, nu = d + 1, Psi = 0.005 I, for unit features."""
    return NormalInverseWishart(mean=z.mean(axis=0), kappa=1e-4, nu=z.shape[1] + 1.0, psi=0.005)


def labeled_prior(z: Axes, labels: Labels, strength: float = 10.0) -> tuple[Axes, NormalInverseWishart]:
    """Axes and a prior in which a labeled class is what a cluster is expected to look like.

    It takes two classes or more, and more images than classes (`Given.require_classes`). Axes are scaled so that
    labeled classes have variance 1 along each. Then, with d axes,

        kappa = variance within classes / variance of their means,  nu = strength * d,  E[covariance] = I.
    """
    labeled = z[labels != UNLABELED]
    classes, place, size = np.unique(labels[labels != UNLABELED], return_inverse=True, return_counts=True)
    means = np.stack([labeled[place == k].mean(axis=0) for k in range(len(classes))])
    within = ((labeled - means[place]) ** 2).sum(axis=0) / (len(labeled) - len(classes))
    # classes may agree to the last digit along an axis; a floor keeps that axis from deciding alone
    scale = np.sqrt(np.maximum(within, 1e-3 * within.mean() + 1e-300))
    z, means = z / scale, means / scale
    # the means vary by their own spread and by the error each of them has, 1 / size in these units
    between = float(np.maximum(means.var(axis=0, ddof=1).mean() - (1.0 / size).mean(), 1e-3))
    n_axes = z.shape[1]
    nu = max(strength * n_axes, n_axes + 2.0)
    return z, NormalInverseWishart(mean=z.mean(axis=0), kappa=1.0 / between, nu=nu, psi=nu - n_axes - 1.0)
