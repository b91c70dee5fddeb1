"""Trained ensembles against gradient flow by time steps, and against finite networks."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.inference import condition, train
from tests.oracles import inference as oracle

NETWORK = ft.ResidualNetwork(depth=4, activation="erf", branch_scale=0.5, weight_variance=1.5)


@pytest.fixture(scope="module")
def kernels():
    return ft.kernel(NETWORK), ft.kernel(NETWORK, "tangent_kernel")


def data(count=6):
    rng = np.random.default_rng(3)
    return rng.standard_normal((count, 3)), rng.standard_normal(count)


@pytest.mark.slow_but(0, 1)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("time", [0.1, 3.0])
def test_mean_and_covariance_are_those_of_the_flow(kernels, time, ridge):
    Q, T = kernels
    X, y = data()
    Z = np.random.default_rng(4).standard_normal((3, 3))
    found = train(Q, T, X, y, time=time, ridge=ridge)
    _, mean = oracle.gradient_flow(
        T(X), T(Z, X), np.zeros(len(X)), np.zeros(len(Z)), y, time, ridge
    )
    assert found.mean(Z) == pytest.approx(mean, rel=1e-8, abs=1e-10)
    # The flow is linear in the outputs at the start: its response to each of them gives A.
    columns = []
    for index in range(len(X)):
        start = np.eye(len(X))[index]
        columns.append(
            oracle.gradient_flow(T(X), T(Z, X), start, np.zeros(len(Z)), 0 * y, time, ridge)[1]
        )
    moved = np.hstack([np.eye(len(Z)), np.array(columns).T])
    joint = Q(np.vstack([Z, X]))
    assert found.covariance(Z) == pytest.approx(moved @ joint @ moved.T, rel=1e-7, abs=1e-9)
    assert found.variance(Z) == pytest.approx(np.diagonal(found.covariance(Z)), abs=1e-12)


def test_limits(kernels):
    Q, T = kernels
    X, y = data()
    Z = np.random.default_rng(4).standard_normal((3, 3))
    start, end = train(Q, T, X, y, time=0.0), train(Q, T, X, y)
    assert start.mean(Z) == pytest.approx(0) and start.covariance(Z) == pytest.approx(Q(Z))
    assert end.mean(X) == pytest.approx(y, abs=1e-9) and np.all(end.variance(X) < 1e-10)
    # To the end, the mean is that of a Gaussian process with the tangent kernel and noise λ.
    ridge = train(Q, T, X, y, ridge=0.2)
    assert ridge.mean(Z) == pytest.approx(condition(T, X, y, 0.2).mean(Z), rel=1e-10)
    # A network of which the readout alone is trained is the Bayesian one.
    readout = train(Q, Q, X, y)
    assert readout.variance(Z) == pytest.approx(condition(Q, X, y, 0.0).variance(Z), abs=1e-10)
