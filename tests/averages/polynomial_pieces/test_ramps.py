"""Averages of pairs of piecewise linear functions against one integral with mpmath."""

import mpmath
import numpy as np
import pytest
import sympy as sp

from fieldtheory.averages.polynomial_pieces import ramps
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.layer_averages.entries import entries
from tests.oracles import ramps as oracle
from tests.tables import crossed

x = sp.Symbol("x", real=True)
half, tenth, sixth = sp.Rational(1, 2), sp.Rational(1, 10), sp.Rational(1, 6)
# φ, its line far on the left as value at zero and slope, and its kinks with the change of slope.
CASES = {
    "hard tanh": (sp.Max(-1, sp.Min(1, x)), (-1, 0), [(-1, 1), (1, -1)]),
    "relu6": (sp.Max(0, sp.Min(6, x)), (0, 0), [(0, 1), (6, -1)]),
    "hard sigmoid": (
        sp.Max(0, sp.Min(6, x + 3)) / 6,
        (0, 0),
        [(-3, mpmath.mpf(1) / 6), (3, -mpmath.mpf(1) / 6)],
    ),
    "leaky relu at 1": (
        sp.Max(x - 1, tenth * (x - 1)),
        (-mpmath.mpf(1) / 10, mpmath.mpf(1) / 10),
        [(1, mpmath.mpf(9) / 10)],
    ),
    "shrink": (
        sp.Max(0, x - half) + sp.Min(0, x + half),
        (0.5, 1),
        [(-0.5, -1), (0.5, 1)],
    ),
    "three pieces": (
        sp.Piecewise((x, x < 0), (2 * x, x < 2), (4, True)),
        (0, 1),
        [(0, 1), (2, -2)],
    ),
}
VARIANCES = [(0.3, 0.3), (1e-3, 20.0), (1.0, 1 + 1e-6), (40.0, 40.0), (1e6, 1e5), (1e-12, 1e-12)]
CORRELATIONS = [0.0, 1e-6, 0.5, 0.94, 0.999, 1 - 1e-9, -0.3, -0.9, -1 + 1e-6]


@pytest.mark.parametrize(("name", "variances", "c"), crossed(CASES, VARIANCES, CORRELATIONS))
def test_averages_at_all_correlations(name, variances, c):
    phi, line, kinks = CASES[name]
    p, q = variances
    r = c * np.sqrt(p * q)
    e, f = entries(as_activation(phi)), ramps.ramps_of(phi, x)
    with mpmath.workdps(22):
        known = [oracle.digits(k) for k in oracle.averages(line, kinks, p, q, r)]
    found = [float(e.covariance(p, q, r)), float(e.covariance_susceptibility(p, q, r))]
    values, good = ramps.average(f, f, *(np.array([k]) for k in (p, q, r)))
    # φ that vanish on one side have small differences for nearly opposite inputs.
    size = np.sqrt(float(e.second_moment(p)) * float(e.second_moment(q)))
    rounding = [1e-15 * size, 1e-15 * size / np.sqrt(p * q)] if c < -0.2 else [1e-40, 1e-40]
    for k in range(2):
        assert found[k] == pytest.approx(known[k], rel=1e-12, abs=rounding[k])
        if good[k, 0] and abs(known[k]) > 1e-40:
            assert values[k, 0] == pytest.approx(known[k], rel=1e-12, abs=0)


def test_where_terms_cancel_or_variables_are_one_another_rule_is_taken():
    f = ramps.ramps_of(CASES["relu6"][0], x)
    p, q = np.ones(5), np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    r = np.array([0.5, -0.8, -0.95, 1.0, 0.0])
    _, good = ramps.average(f, f, p, q, r)
    assert good.tolist() == [[True, True, False, False, False], [True, True, True, False, False]]
    # Kinks beyond what is resolved count where nothing else does.
    K = np.array([1.0, 0.5 / 36, 0.5 / 70])
    shrink, clipped = (ramps.ramps_of(CASES[name][0], x) for name in ("shrink", "hard tanh"))
    assert ramps.average(shrink, shrink, K, K, K / 2)[1].tolist() == [[True, True, False]] * 2
    assert ramps.average(clipped, clipped, K, K, K / 2)[1].all()


def test_many_pairs_are_each_alone():
    rng = np.random.default_rng(3)
    f = ramps.ramps_of(CASES["three pieces"][0], x)
    p, q = 10 ** rng.uniform(-3, 4, (2, 3000))
    r = np.tanh(rng.uniform(-8, 8, 3000)) * np.sqrt(p * q)
    values, good = ramps.average(f, f, p, q, r)
    for i in range(0, 3000, 300):
        alone, fine = ramps.average(f, f, *(k[i : i + 1] for k in (p, q, r)))
        np.testing.assert_allclose(alone[:, 0][good[:, i]], values[:, i][good[:, i]], rtol=1e-12)
        assert fine[:, 0].tolist() == good[:, i].tolist()
    rough = ramps.average(f, f, p, q, r, rough=True)[0]
    np.testing.assert_allclose(rough[good], values[good], rtol=1e-3)


@pytest.mark.parametrize(
    "phi",
    [sp.Max(0, x) ** 2, sp.Heaviside(x - 1), sp.tanh(x), x * sp.Heaviside(x - 1), sp.exp(x)],
)
def test_other_functions_are_no_ramps(phi):
    assert ramps.ramps_of(phi, x) is None


def test_slopes():
    assert ramps.ramps_of_slopes(sp.Heaviside(x - 1) - sp.Heaviside(x - 3), x).bends == (1, -1)
    assert ramps.ramps_of_slopes(sp.Max(0, x), x) is None
    f = ramps.ramps_of(CASES["three pieces"][0], x)
    slopes = ramps.ramps_of_slopes(sp.diff(CASES["three pieces"][0], x), x)
    K = np.array([0.3, 5.0])
    np.testing.assert_array_equal(
        ramps.average(slopes, slopes, K, K, K / 3)[0][1], ramps.average(f, f, K, K, K / 3)[0][1]
    )
