"""⟨φ''φ⟩ and its like of odd φ with kinks, which vanish with the correlation, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.numerics.odd_pairs import covariance_curvature, cross_susceptibility
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
