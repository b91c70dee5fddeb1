"""⟨φ''φ⟩ and its like of odd φ with kinks, which vanish with the correlation, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.numerics.kinks.odd_pairs import covariance_curvature, cross_susceptibility
from tests.numerics.test_weak_correlations import network, two
from tests.tables import slow

CORRELATIONS = (1e-12, 1e-9, -1e-5, 2e-3, 0.02, 0.5, 0.9)


def normal(x, variance):
    return mp.npdf(x, 0, mp.sqrt(variance))


def seen_clip(place, K, c):
    """⟨max(-1, min(1, y))⟩ where x has a value: differences of ramps, in digits to spare."""
    mean, s = c * mp.sqrt(K[1] / K[0]) * place, mp.sqrt(K[1] * (1 - c * c))

    def ramp(kink):
        d = (mean - kink) / s
        return s * (d * mp.ncdf(d) + mp.npdf(d))

    return ramp(-1) - ramp(1) - 1


@pytest.mark.parametrize("c", CORRELATIONS)
@pytest.mark.parametrize("K", [(0.6, 0.78), (0.05, 3.0), (40.0, 0.6)])
def test_hard_tanh(K, c):
    """φ'' is δ(x + 1) − δ(x − 1)."""
    net, K_xy = network("hard_tanh", 1), c * np.sqrt(K[0] * K[1])
    with mp.workdps(60):
        k = [mp.mpf(one) for one in K]
        t = mp.mpf(float(K_xy)) / mp.sqrt(k[0] * k[1])

        def density(x, y):
            return normal(x, k[0]) * normal(y - t * mp.sqrt(k[1] / k[0]) * x, k[1] * (1 - t * t))

        def passed(x):
            return normal(x, k[0]) * seen_clip(x, k, t)

        cross = -passed(mp.mpf(1))
        both = 2 * (density(1, 1) - density(1, -1))
        twice = -mp.diff(passed, 1, 2) / 2
        expected = np.array([twice, both / 4, both], float)
    found = cross_susceptibility(net)(*K, K_xy)
    assert found == pytest.approx(float(cross), rel=1e-12, abs=0)
    xx, mixed, _, crossed = covariance_curvature(net)(*K, K_xy)
    np.testing.assert_allclose([xx, mixed, crossed], expected, rtol=1e-11)


SOFTSIGN = (lambda h: h / (1 + abs(h)), lambda h: -2 / (1 + h) ** 3, 0)
JUMP = (lambda h: h + mp.sign(h) / 2, lambda h: mp.mpf(0), 1)


@pytest.mark.parametrize(
    ("text", "functions", "c"),
    [("h + sign(h)/2", JUMP, c) for c in (1e-12, 1e-6, 5e-3)]
    + [slow("softsign", SOFTSIGN, c) for c in (1e-12, 5e-3, 0.3)],
)
def test_other_odd_functions(text, functions, c):
    """A jump of φ at zero, and φ'' on its right, whose average over y is odd in x."""
    (phi, bent, jump), K, K_xy = functions, (0.6, 0.78), c * np.sqrt(0.6 * 0.78)
    with mp.workdps(34):
        k = [mp.mpf(one) for one in K]
        slope, s = mp.mpf(float(K_xy)) / k[0], mp.sqrt(k[1] - mp.mpf(float(K_xy)) ** 2 / k[0])

        def seen(x):
            mean = slope * x
            return mp.quad(
                lambda z: (phi(mean + s * z) - phi(-mean + s * z)) / 2 * mp.npdf(z),
                sorted({-13, -mean / s, mean / s, 13}),
            )

        step = mp.mpf("1e-12")
        cross = -jump * seen(step) / step * normal(0, k[0]) / 2
        if bent(mp.mpf(1)):
            cross += mp.quad(lambda x: bent(x) * seen(x) * normal(x, k[0]), [0, 1, 3, 9])
    found = cross_susceptibility(network(text, 1))(*K, K_xy)
    assert found == pytest.approx(float(cross), rel=1e-11, abs=0)


@pytest.mark.parametrize("c", [1e-12, 1e-8])
@pytest.mark.parametrize("K", [(0.6, 0.78), (1e-4, 30.0)])
def test_first_order_of_softsign(K, c):
    """⟨φ''φ⟩/2 = c √K_yy ⟨φ''z⟩⟨φ'⟩/2 + O(c³)."""
    root = [mp.sqrt(one) for one in K]
    bent = mp.quad(lambda z: 2 * SOFTSIGN[1](root[0] * z) * z * mp.npdf(z), [0, 3, 9])
    slope = mp.quad(lambda z: 2 * (1 + root[1] * z) ** -2 * mp.npdf(z), [0, 0.2, 1, 3, 9])
    found = cross_susceptibility(network("softsign", 1))(*K, c * np.sqrt(K[0] * K[1]))
    assert found == pytest.approx(float(c * root[1] * bent * slope / 2), rel=1e-12, abs=0)


@pytest.mark.parametrize("name", ["hard_tanh", slow("softsign")])
def test_mean_shift_is_linear_in_small_correlations(name):
    near, far = (ft.solve(network(name, 2, 0.3), two(0.6, c)).mean_shift for c in (1e-9, 1e-12))
    np.testing.assert_allclose(near[2:, 0, 1], 1e3 * far[2:, 0, 1], rtol=1e-11)


def averaged(f, K):
    """⟨f⟩ of an even f with a kink at zero, on panels that grow from there."""
    x, w = np.polynomial.legendre.leggauss(40)
    edges = np.concatenate([[0.0], 9.0 * K**0.5 * 2.0 ** np.arange(-20.0, 1.0)])
    half = np.diff(edges)[:, None] / 2
    h = (edges[:-1, None] + half * (1 + x)).ravel()
    density = np.exp(-(h**2) / (2 * K)) / np.sqrt(2 * np.pi * K)
    return 2 * ((half * w).ravel() * density) @ f(h)


def softsign(h):
    return h / (1 + np.abs(h))


@pytest.mark.parametrize("rho", [1e-3, 1e-5])
def test_independent_inputs_of_small_branches(rho):
    """Products of what one input has; what is odd in either signal is zero, not rounding."""
    net = network("softsign", 1, rho**2).replace(width=1, skip_scale=1.0)
    K, a = np.array([0.6, 0.9]), rho**2
    s = ft.solve(net, np.diag(K))
    n, v = np.polynomial.hermite_e.hermegauss(40)
    v /= v.sum()
    q = a * np.array([averaged(lambda h: softsign(h) ** 2, k) for k in K])
    again = [
        averaged(lambda h, r=r: softsign(h) * (softsign(h[:, None] + r * n) @ v), k)
        for k, r in zip(K, np.sqrt(q), strict=True)
    ]
    slopes = [averaged(lambda h: (1 + h) ** -2, k) for k in K + q]
    # Of C_12 in the hidden layer and in the readout, whose derivative by it is ⟨φ'⟩⟨φ'⟩.
    first = np.prod(q)
    assert s.G11[1, 1, 1, 1] == pytest.approx(first, rel=1e-10, abs=0)
    expected = a * np.prod(again) + np.prod(slopes) * first
    assert s.G11[1, 2, 1, 1] == pytest.approx(expected, rel=1e-10, abs=0)
    assert not s.G11[:, :, [0, 0, 1], [1, 2, 2]].any()
    assert not s.mean_shift[:, 0, 1].any()


def test_inputs_that_correlate_by_biases_alone():
    """⟨φ(x)² ; φ(u) φ(v)⟩ is zero while v is independent of all else, as it is in layer 0."""
    net = network("hard_tanh", 1, 1e-6).replace(bias_variance=0.05, skip_scale=1.0, width=1)
    s = ft.solve(net, np.diag([0.6, 0.9]))
    assert not s.G11[1, 1, [0, 0, 1], [1, 2, 2]].any()
    q = [1e-6 * averaged(lambda h: np.minimum(np.abs(h), 1.0) ** 2, k) for k in (0.6, 0.9)]
    assert s.G11[1, 1, 1, 1] == pytest.approx(np.prod(q), rel=1e-4, abs=0)
    # To leading order in what biases add the readout has what it has without them.
    without = ft.solve(net.replace(bias_variance=0), np.diag([0.6, 0.9])).G11
    np.testing.assert_allclose(s.G11, without, rtol=0, atol=1e-6 * np.abs(without).max())


@pytest.mark.parametrize("name", ["softsign", "hard_tanh", "elu"])
@pytest.mark.parametrize("rho", [1.0, 1e-3])
def test_inputs_that_are_one_up_to_a_sign(name, rho):
    """Signals that are the same, or opposite ones of an odd φ, have what one of them has."""
    net = network(name, 2, rho**2).replace(width=1, skip_scale=1.0)
    one = ft.solve(net, 0.7)
    for c in (1, -1) if name != "elu" else (1,):
        s, signs = ft.solve(net, two(0.7, c)), np.array([1, c, 1])
        expected = one.G11[:, :, None, None] * np.outer(signs, signs)
        np.testing.assert_allclose(s.G11, expected, rtol=1e-9, atol=0)
        np.testing.assert_allclose(s.mean_shift[:, 0, 1], c * one.mean_shift, rtol=1e-12, atol=0)
