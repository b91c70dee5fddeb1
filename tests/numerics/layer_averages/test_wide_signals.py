"""Averages of signals much wider than φ's curve, against nested integrals."""

from itertools import product

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.special import erf, expit

import fieldtheory as ft
from fieldtheory.networks.activations import as_activation, h
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.layer_averages.large_variances import pair_averages
from fieldtheory.numerics.layer_averages.wide_signals import wide_signals
from tests.oracles import mixture, wide_pairs
from tests.tables import slow

# φ and φ', and where these have kinks.
TABLE = {
    "softplus": (lambda x: np.logaddexp(0, x), expit, ()),
    "swish": (lambda x: x * expit(x), lambda x: expit(x) * (1 + x * expit(-x)), ()),
    "gelu": (
        lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
        lambda x: (1 + erf(x / np.sqrt(2))) / 2 + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi),
        (),
    ),
    "elu": (
        lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        lambda x: np.exp(np.minimum(x, 0)),
        (0,),
    ),
    "tanh": (np.tanh, lambda x: 4 * expit(2 * x) * expit(-2 * x), ()),
    "erf": (erf, lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x), ()),
    "hard_swish": (
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
        lambda x: np.where(np.abs(x) < 3, (2 * x + 3) / 6, x > 0),
        (-3, 3),
    ),
    "relu6": (lambda x: np.clip(x, 0, 6), lambda x: ((x > 0) & (x < 6)) * 1.0, (0, 6)),
    "log_cosh": (
        lambda x: np.abs(x) + np.log1p(np.exp(-2 * np.abs(x))) - np.log(2),
        np.tanh,
        (),
    ),
}
VARIANCES = [(2e3, 2e3), (1e6, 4e6), (1e9, 3e5), (1e4, 1e20), (2.0**43, 2.0**43), (1e25, 1e25)]
ANGLES = [2.5, 0.7, 1e-3, 1e-6, 1e-10]


SELU, SLOPE = 1.0507009873554805, 1.6732632423543772
QUICK = [("elu", VARIANCES[0], 1e-3), ("tanh", VARIANCES[1], 0.7)]


@pytest.mark.parametrize(
    ("name", "K", "angle"),
    [case if case in QUICK else slow(*case) for case in product(TABLE, VARIANCES, ANGLES)],
)
def test_averages(name, K, angle):
    phi, slope, kinks = TABLE[name]
    net = ft.ResidualNetwork(depth=1, activation=name)
    given = [np.array([k]) for k in (*K, np.cos(angle), 2 * np.sin(angle / 2) ** 2)]
    for kind, F in (("covariance", phi), ("slope", slope)):
        expected = wide_pairs.average(F, kinks, *K, angle)
        (found,) = pair_averages(net, kind, *given)
        assert found == pytest.approx(expected, rel=1e-12), kind


def sech2(x):
    """1/cosh(x)²."""
    return 4 * expit(2 * x) * expit(-2 * x)


# φ and φ' of kernels at any variance; softsign has no local rest and is left to quadrature.
OTHERS = {
    "softsign": (lambda x: x / (1 + np.abs(x)), lambda x: (1 + np.abs(x)) ** -2.0, (0,)),
    "selu": (
        lambda x: SELU * np.where(x > 0, x, SLOPE * np.expm1(np.minimum(x, 0))),
        lambda x: SELU * np.where(x > 0, 1, SLOPE * np.exp(np.minimum(x, 0))),
        (0,),
    ),
    "mish": (
        lambda x: x * np.tanh(np.logaddexp(0, x)),
        lambda x: np.tanh(np.logaddexp(0, x)) + x * expit(x) * sech2(np.logaddexp(0, x)),
        (),
    ),
}
PLAIN = [name for name in TABLE if name not in ("erf", "gelu")] + list(OTHERS)
SIZES = [0.01, 1.0, 30.0, 1e6, 2.0**43]
QUICK_PLAIN = [("mish", 1.0, 0.1), ("softsign", 1.0, 0.1), ("elu", 1e6, 2.5)]


@pytest.mark.parametrize(
    ("name", "K", "angle"),
    [c if c in QUICK_PLAIN else slow(*c) for c in product(PLAIN, SIZES, [2.5, 0.1, 1e-3])],
)
def test_plain_averages(name, K, angle):
    """Those that kernels take, without logarithms."""
    phi, slope, kinks = (TABLE | OTHERS)[name]
    x, y = K, 1.7 * K
    xy = np.sqrt(x * y) * np.cos(angle)
    found = network_entries(ft.ResidualNetwork(depth=1, activation=name)).covariance_gain(x, y, xy)
    with mpmath.workdps(40):
        # Of the covariance as it is rounded.
        exact = float(mpmath.acos(xy / mpmath.sqrt(mpmath.mpf(x) * y)))
    for F, value in zip((phi, slope), found, strict=True):
        assert value == pytest.approx(wide_pairs.average(F, kinks, x, y, exact), rel=1e-12)


@pytest.mark.parametrize("correlation", [0.3, -1e-6, 1e-12, -1e-40, 1e-200])
def test_weak_correlations_of_odd_functions(correlation):
    """⟨φφ⟩ as small as the correlation has its digits too."""
    x, y = 1e3, 1e6
    xy = correlation * np.sqrt(x * y)
    found = network_entries(ft.ResidualNetwork(depth=1, activation="tanh")).covariance(x, y, xy)
    with mpmath.workdps(25):
        expected = mixture.tanh_tanh(mpmath.mpf(x), mpmath.mpf(y), mpmath.mpf(xy))
    assert found == pytest.approx(float(expected), rel=1e-13, abs=0)


def test_lines_are_read_off_and_what_has_none_is_refused():
    found = wide_signals(as_activation("log_cosh")(h))
    assert found.lines == pytest.approx((0, 1, -np.log(2), 0), abs=1e-13)
    for phi in (sp.atan(h), sp.sign(h), h**2, h / (1 + sp.Abs(h))):
        assert wide_signals(phi) is None


@pytest.mark.parametrize("factor", [30, sp.Rational(1, 30)])
def test_curves_of_any_width(factor):
    """⟨φφ⟩ of φ(f x)/f is that of φ at the variance f² K over f²."""
    phi = as_activation("swish")(h)
    plain, other = wide_signals(phi), wide_signals(phi.subs(h, factor * h) / factor)
    f, K = float(factor), np.array([1e7])
    given = np.cos([1e-4]), 2 * np.sin([5e-5]) ** 2
    found = other.covariance(K, K, *given)[0] * f**2, other.slopes(K, K, *given)[0]
    expected = [of(K * f**2, K * f**2, *given)[0] for of in (plain.covariance, plain.slopes)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
