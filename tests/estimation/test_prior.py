import math

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_t
from tests.estimation.test_mixture import mixture

from justright.estimation.mixture import NormalInverseWishart, labeled_prior


def log_marginal_as_written(x, m, kappa, nu, psi):
    """The closed form, term by term, with the full scatter matrix."""
    n, d = x.shape

    def log_gamma_d(a):
        return d * (d - 1) / 4 * math.log(math.pi) + sum(math.lgamma(a - j / 2) for j in range(d))

    center = sum(x) / n
    scatter = sum(np.outer(row - center, row - center) for row in x)
    star = psi * np.eye(d) + scatter + kappa * n / (kappa + n) * np.outer(center - m, center - m)
    return (
        -n * d / 2 * math.log(math.pi)
        + log_gamma_d((nu + n) / 2)
        - log_gamma_d(nu / 2)
        + nu / 2 * math.log(np.linalg.det(psi * np.eye(d)))
        - (nu + n) / 2 * math.log(np.linalg.det(star))
        + d / 2 * (math.log(kappa) - math.log(kappa + n))
    )


@pytest.mark.parametrize("n", [1, 3, 30])  # fewer members than dimensions, and more
def test_agrees_with_the_closed_form_written_out(n):
    x = np.random.default_rng(n).normal(size=(n, 5))
    prior = NormalInverseWishart(np.full(5, 0.3), kappa=0.2, nu=7.0, psi=0.7)
    assert prior.log_marginal(x) == pytest.approx(log_marginal_as_written(x, prior.mean, 0.2, 7.0, 0.7), rel=1e-9)


def test_is_the_product_of_student_t_predictions():
    """p(x) = prod_i p(x_i | x_1 .. x_{i-1}), each factor a multivariate t."""
    d, kappa, nu, psi = 3, 0.5, 5.0, 1.3
    x = np.random.default_rng(0).normal(size=(6, d))
    mean, scale, total = np.zeros(d), psi * np.eye(d), 0.0
    for row in x:
        free = nu - d + 1
        total += multivariate_t(mean, scale * (kappa + 1) / (kappa * free), df=free).logpdf(row)
        scale = scale + kappa / (kappa + 1) * np.outer(row - mean, row - mean)
        mean = (kappa * mean + row) / (kappa + 1)
        kappa, nu = kappa + 1, nu + 1
    assert NormalInverseWishart(np.zeros(d), 0.5, 5.0, psi).log_marginal(x) == pytest.approx(total)


def test_joint_adds_the_gamma_function_of_the_size():
    x = np.random.default_rng(0).normal(size=(9, 2))
    prior = NormalInverseWishart(np.zeros(2), 1.0, 4.0, 1.0)
    assert prior.log_joint(x) == pytest.approx(gammaln(9) + prior.log_marginal(x))


def test_the_labeled_prior_expects_classes_like_the_labeled_ones():
    x, _, labels = mixture(n_images=3000, noise=0.5)
    z, prior = labeled_prior(x, labels)
    known = labels >= 0
    within = np.mean([z[labels == c].var(axis=0, ddof=1) for c in np.unique(labels[known])], axis=0)
    np.testing.assert_allclose(within, 1.0, rtol=0.1)
    # means were drawn with variance 1 per axis, noise with 0.25: its share of the means' variance is 0.25
    assert prior.kappa == pytest.approx(0.25, rel=0.3)
    assert prior.psi == pytest.approx(prior.nu - 32 - 1)
