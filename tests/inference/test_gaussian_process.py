"""Posteriors of Gaussian processes against inverses in mpmath and scikit-learn."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import fieldtheory as ft
from fieldtheory.inference import condition
from tests.oracles import inference as oracle

NETWORK = ft.ResidualNetwork(depth=7, activation="relu", branch_scale=0.4, weight_variance=2.0)


def data(count, seed=0, features=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, features)), rng.standard_normal(count)


class RadialKernel:
    """A kernel of scikit-learn, in the form that `condition` takes."""

    def __call__(self, X, Z=None):
        return RBF()(np.asarray(X), Z)

    def diagonal(self, X):
        return np.ones(len(X))


@pytest.mark.slow_but(*range(4))
@pytest.mark.parametrize("noise", [1e-10, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("count", [1, 12])
def test_posterior_is_that_of_dense_inverses(count, noise):
    k = ft.kernel(NETWORK)
    X, y = data(count)
    Z = np.vstack([data(4, 1)[0], X[:1]])
    found = condition(k, X, y, noise)
    mean, covariance, evidence, divergence = oracle.posterior(k(X), k(Z, X), k(Z), y, noise)
    # The matrix has condition 1e4 besides the noise.
    scale = np.diagonal(k(Z)).max()
    assert found.mean(Z) == pytest.approx(mean, rel=1e-9, abs=1e-10)
    assert found.covariance(Z) == pytest.approx(covariance, abs=1e-12 * scale)
    assert found.variance(Z) == pytest.approx(np.diagonal(covariance), abs=1e-12 * scale)
    assert found.log_evidence == pytest.approx(float(evidence), rel=1e-10)
    # At huge noise the divergence is a difference of near equals of size P.
    assert found.divergence == pytest.approx(float(divergence), rel=1e-9, abs=1e-13 * count)
    assert found.training_mean == pytest.approx(found.mean(X), rel=1e-8, abs=1e-10)
    assert found.training_variance == pytest.approx(found.variance(X), abs=1e-12 * scale)


def test_posterior_is_that_of_scikit_learn():
    X, y = data(200)
    Z = data(50, 1)[0]
    found = condition(RadialKernel(), X, y, 0.01)
    theirs = GaussianProcessRegressor(RBF(), alpha=0.01, optimizer=None).fit(X, y)
    mean, deviation = theirs.predict(Z, return_std=True)
    assert found.mean(Z) == pytest.approx(mean, rel=1e-9, abs=1e-9)
    assert np.sqrt(found.variance(Z)) == pytest.approx(deviation, rel=1e-9)
    assert found.log_evidence == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-12)


def test_without_noise_the_posterior_passes_through_the_values():
    k = ft.kernel(NETWORK)
    X, y = data(20)
    found = condition(k, X, y, 0.0)
    assert found.mean(X) == pytest.approx(y, abs=1e-9)
    assert np.all(found.variance(X) < 1e-10) and found.divergence == np.inf


def test_outputs_are_independent():
    k = ft.kernel(NETWORK)
    X, y = data(20)
    both = condition(k, X, np.stack([y, 2 * y], axis=1), 0.1)
    one, two = condition(k, X, y, 0.1), condition(k, X, 2 * y, 0.1)
    Z = data(5, 2)[0]
    assert both.mean(Z) == pytest.approx(np.stack([one.mean(Z), two.mean(Z)], axis=1))
    assert both.log_evidence == pytest.approx(one.log_evidence + two.log_evidence)
    assert both.divergence == pytest.approx(one.divergence + two.divergence)


def test_jitter_is_added_where_asked():
    k = ft.kernel(NETWORK)
    X, y = [[1.0], [1.0]], [1.0, 3.0]
    assert condition(k, X, y, 0.0, jitter=1e-6).mean([[1.0]]) == pytest.approx([2.0], rel=1e-5)
    assert condition(k, X, y, 1e-6).weights == pytest.approx(
        condition(k, X, y, 0.0, jitter=1e-6).weights
    )
