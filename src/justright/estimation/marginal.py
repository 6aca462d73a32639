"""How likely points are under a Gaussian whose mean and covariance are unknown."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, multigammaln

from justright.types import Array


@dataclass(frozen=True, eq=False)
class NormalInverseWishart:
    """Prior over the mean and covariance of a cluster in d dimensions.

    Attributes: mean m; kappa, how many images m counts for; nu > d - 1, the same for the covariance; psi, the
    scale: Psi = psi I.
    """

    mean: Float[Array, " dim"]
    kappa: float
    nu: float
    psi: float

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
