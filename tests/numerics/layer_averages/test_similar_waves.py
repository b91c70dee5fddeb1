"""Wide, nearly parallel signals of φ with waves, against closed forms and dense panels."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf
from numpy.polynomial.legendre import leggauss

import fieldtheory as ft
from fieldtheory.averages.integrands.steps import first_derivative
from fieldtheory.averages.oscillating import parallel_waves
from fieldtheory.averages.oscillating.amplitudes import amplitudes_of
from fieldtheory.networks.activations import h
from fieldtheory.numerics.layer_averages.large_variances import pair_averages
from fieldtheory.numerics.overflow.decorrelations import of_features
from tests.numerics.layer_averages.test_steady_waves import sine_times_h
from tests.numerics.overflow.test_logarithms import network
from tests.tables import some

SIMILAR = [
    (1e5, 1e5, 1e-9),
    (1e5, 1e5, 1e-5),
    (1e5, 1e5, 1e-4),
    (1e8, 1e8 * (1 + 1e-4), 1e-8),
    (1e5, 1.1e5, 1e-5),
    (1e12, 1e12, 2e-12),
    (1e20, 1e20, 1e-20),
]


@pytest.mark.parametrize(("a", "b", "delta"), SIMILAR)
def test_sine_times_h(a, b, delta):
    """Of one wave and a power, of which Wick's theorem gives all averages."""
    f = amplitudes_of(h * sp.sin(h), h)
    with mp.workdps(60):
        phi, K = sine_times_h(), (mpf(a), mpf(b))
        exact = phi.pair(*K, mp.sqrt(K[0] * K[1]) * (1 - mpf(delta)))[0]
        norms = [mp.sqrt(phi.M(each)) for each in K]
        apart = float(1 - exact / (norms[0] * norms[1]))
        size = float(norms[0] * norms[1])
    found = parallel_waves.product(f, f, a, b, delta)
    assert found == pytest.approx(float(exact), rel=1e-13, abs=2e-15 * size)
    sides = [parallel_waves.Side(f, float(norm)) for norm in norms]
    assert parallel_waves.difference(*sides, a, b, delta) == pytest.approx(apart, rel=1e-13)


def dense(f, a, b, delta):
    """⟨f(x) f(y)⟩, ⟨f²⟩ of both, and 1 − their correlation, on panels that end at zero."""
    nodes, weights = leggauss(16)
    slope, rest = np.sqrt(b / a) * (1 - delta), b * delta * (2 - delta)
    spread = np.sqrt(rest)

    def panels(cuts):
        half = np.diff(cuts, axis=-1)[..., None] / 2
        shape = (*cuts.shape[:-1], -1)
        middle = cuts[..., :-1, None] + half
        return (middle + half * nodes).reshape(shape), (half * weights).reshape(shape)

    near = spread * np.array([0, 0.25, 0.5, 1, 2, 4, 8, 16])
    even = 2.0 * np.arange(np.ceil(4.4 * np.sqrt(a)))
    cuts = np.union1d(even, near[near < even[-1]])
    x, wx = panels(np.union1d(cuts, -cuts))
    bells = [wx * np.exp(-(x**2) / (2 * K)) / np.sqrt(2 * np.pi * K) for K in (a, b)]
    values = f(x)
    own = [bell @ values**2 for bell in bells]
    fixed = spread * np.linspace(-8.8, 8.8, max(8, int(9 * spread) + 2))
    product = difference = 0.0
    for some_x, bell in zip(np.array_split(x, 100), np.array_split(bells[0], 100), strict=True):
        kink = np.clip(-slope * some_x, fixed[0], fixed[-1])[:, None]
        rows = np.broadcast_to(fixed, (len(some_x), len(fixed)))
        w, ww = panels(np.sort(np.concatenate([rows, kink], axis=1), axis=1))
        ww = ww * np.exp(-(w**2) / (2 * rest)) / np.sqrt(2 * np.pi * rest)
        one, other = f(some_x)[:, None], f(slope * some_x[:, None] + w)
        product += bell @ (ww * one * other).sum(axis=1)
        apart = one / np.sqrt(own[0]) - other / np.sqrt(own[1])
        difference += bell @ (ww * apart**2 / 2).sum(axis=1)
    return product, own, difference


NAMES = ["h*sin(h)*tanh(h)", "h*sin(h)/(1+abs(h))+h", "relu(h)*cos(h)", "h*exp(sin(h))"]
PAIRS = [(1.0, 1e-9), (1.0, 1e-5), (1.0, 1e-3), (1.2, 1e-4), (1.01, 3e-2)]


@pytest.mark.parametrize("name", some(NAMES, NAMES[1:3]))
@pytest.mark.parametrize(("ratio", "delta"), PAIRS)
@pytest.mark.parametrize("K", [30.0, 1.2e4])
def test_averages(name, ratio, delta, K):
    """Whether waves are left, or what comes from signals near zero, or the mean alone."""
    net = network(name, 1)
    given = [np.array([each]) for each in (K, K * ratio, 1 - delta, delta)]
    phi = net.activation.expression
    f, slope = (sp.lambdify(h, e, ["numpy", "scipy"]) for e in (phi, first_derivative(phi, h)))
    exact, own, apart = dense(f, K, K * ratio, delta)
    size = np.sqrt(own[0] * own[1])
    found = pair_averages(net, "covariance", *given)[0]
    assert found == pytest.approx(exact, rel=1e-12, abs=2e-13 * size)
    found = of_features(net, given[0], given[1], np.array([size]), given[3])[0]
    assert found == pytest.approx(apart, rel=2e-12)
    exact, own, _ = dense(slope, K, K * ratio, delta)
    found = pair_averages(net, "slope", *given)[0]
    assert found == pytest.approx(exact, rel=1e-12, abs=2e-13 * np.sqrt(own[0] * own[1]))


@pytest.mark.parametrize("name", some(["h**2*sin(h)*tanh(h)", NAMES[1], NAMES[2]], NAMES[1:2]))
@pytest.mark.parametrize("skip", [0.7, 2.0])
def test_deep_networks_of_nearly_parallel_inputs(name, skip):
    """Where waves average out K grows by what φ̄ leaves: nothing, or h."""
    K0 = [[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]]
    solution = ft.solve(network(name, 600, skip_scale=skip, weight_variance=6.0), K0)
    logs, chi = solution.log_kernels[:, 0, 1], solution.log_response[:, 0, 1]
    growth = np.log(skip**2 + (6.0 if name == NAMES[1] else 0.0))
    assert np.isfinite(logs).all() and np.isfinite(chi).all()
    np.testing.assert_allclose(np.diff(chi[400:601]), growth, rtol=1e-12)
    if growth > 0:
        np.testing.assert_allclose(np.diff(logs[400:601]), growth, rtol=1e-12)
    else:
        bias = network(name, 1).bias_variance
        np.testing.assert_allclose(logs[400:601], np.log(bias / (1 - skip**2)), rtol=1e-12)
