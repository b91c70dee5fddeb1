"""Averages of any size in logarithms, against closed forms of mpmath."""

import pytest
import sympy as sp
from mpmath import mp, mpf

from fieldtheory.averages.growing.beyond_float import function_of, pair, single
from fieldtheory.averages.integrands.steps import first_derivative
from tests.tables import slow

h = sp.Symbol("h", real=True)


@pytest.fixture(autouse=True)
def thirty_digits():
    with mp.workdps(30):
        yield


def exponential(p, q, r):
    return (p + q) / 2 + r


def hyperbolic_sine(p, q, r):
    return (p + q) / 2 + mp.log(mp.sinh(abs(r)))


def times_exponential(p, q, r):
    """<x e^x y e^y>, completing the square."""
    return (p + q) / 2 + r + mp.log(abs((p + r) * (q + r) + r))


def of_tangent(p, q, r):
    """cosh(h) tanh(h) is sinh(h), written without a closed form."""
    return hyperbolic_sine(p, q, r)


CLOSED = {
    "exp": (sp.exp(h), exponential),
    "2^h": (2 ** (h / sp.log(2)), exponential),
    "sinh": (sp.sinh(h), hyperbolic_sine),
    "h exp": (h * sp.exp(h), times_exponential),
    "cosh tanh": (sp.cosh(h) * sp.tanh(h), of_tangent),
}
VARIANCES = ["1", "30", "350", "1e4", "1e8", "1e14", "1e20", "1e100", "1e300"]


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("name", CLOSED)
def test_one_signal(name, variance):
    phi, exponent = CLOSED[name]
    K = mpf(variance)
    found = mp.log(single(phi, phi, h, K))
    assert abs(found / exponent(K, K, K) - 1) < 3e-14


CORRELATIONS = [0.5, -0.5, 0.0, 1e-6, -1e-6, 0.999999, -0.999, 1 - 1e-13]
QUICK = {(0.5, "350"), (-0.5, "350"), (1e-6, "1e8"), (1 - 1e-13, "1e20"), (-0.999, "1e4")}


@pytest.mark.parametrize(
    ("c", "variance"),
    [(c, K) if (c, K) in QUICK else slow(c, K) for c in CORRELATIONS for K in VARIANCES[1:]],
)
@pytest.mark.parametrize("name", CLOSED)
def test_two_signals(name, c, variance):
    """Errors of the logarithm are relative to the variances, of which it is a difference."""
    phi, exponent = CLOSED[name]
    p, q = mpf(variance), 2 * mpf(variance)
    r = mpf(c) * mp.sqrt(p * q)
    found = pair(phi, h, (p, q), c, 1 - c)
    if c == 0 and name in ("sinh", "cosh tanh"):
        assert found == 0
        return
    # Logarithms of signals are rounded to 1e-16 of themselves, and so are those of their squares.
    rounding = 4.4e-16 * max(25, float(mp.log(q)) / 2)
    assert abs(mp.log(abs(found)) - exponent(p, q, r)) < rounding * (p + q) + 1e-11


def moment_of_logarithms(order):
    """d^n/ds^n <|z|^s> at s = 2."""
    return mp.diff(lambda s: 2 ** (s / 2) * mp.gamma((1 + s) / 2) / mp.sqrt(mp.pi), 2, order)


@pytest.mark.parametrize("variance", ["1e290", "1e400", "1e5000", "1e100000"])
def test_logarithms(variance):
    """h log(1 + |h|) is h log|h| so far out that nothing else counts."""
    phi, slope = h * sp.log(1 + sp.Abs(h)), sp.log(1 + sp.Abs(h)) + sp.Abs(h) / (1 + sp.Abs(h))
    K = mpf(variance)
    L = mp.log(K) / 2
    moment = sum(n * L ** (2 - k) * moment_of_logarithms(k) for k, n in enumerate((1, 2, 1)))
    assert abs(single(phi, phi, h, K) / K / moment - 1) < 1e-13
    gain = moment + L + moment_of_logarithms(1)
    assert abs(single(phi, slope, h, K, 1) / mp.sqrt(K) / gain - 1) < 1e-13
    for c in (0.5, -0.9, 1e-8, 0.999999):

        def of_powers(s, t, c=c):
            """<x |x|^s y |y|^t>."""
            gammas = mp.gamma((3 + s) / 2) * mp.gamma((3 + t) / 2)
            series = mp.hyp2f1(-s / 2, -t / 2, mpf(3) / 2, mpf(c) ** 2)
            return 2 ** ((s + t) / 2) * 4 * c / mp.pi * gammas * series

        L_ = L + mp.log(10)
        expected = sum(
            L ** (1 - i) * L_ ** (1 - j) * mp.diff(of_powers, (0, 0), (i, j))
            for i in (0, 1)
            for j in (0, 1)
        )
        found = pair(phi, h, (K, 100 * K), c, 1 - c) / (10 * K)
        assert abs(found / expected - 1) < 1e-12


def test_slopes_whose_weight_is_at_small_signals():
    """<1/(1 + h^2)> of variance K is sqrt(pi/(2 K)) for large K."""
    K, slope = mpf("1e300"), 1 / sp.sqrt(1 + h**2)
    found = single(slope, slope, h, K)
    assert abs(found / mp.sqrt(mp.pi / (2 * K)) - 1) < 1e-12


def test_what_exceeds_all_logarithms_is_infinite():
    K = mpf(10) ** 400
    assert single(sp.exp(h), sp.exp(h), h, K) == mp.inf
    assert pair(sp.sinh(h), h, (K, K), 0.3, 0.7) == mp.inf
    assert single(sp.exp(-(h**2)), sp.exp(-(h**2)), h, mpf(3)) < 1
    root = sp.exp(sp.sqrt(sp.Abs(h)))
    assert mp.isfinite(mp.log(single(root, root, h, K)))


def test_exponentials_that_cancel_beside_steps():
    """Of e^{2h} (1 − θ(h)) nothing is left for h > 0: its rounding is larger than e^h."""
    f = sp.Piecewise((h, h > 0), (sp.exp(h) - 1, True)) * sp.sinh(h)
    slope = function_of(first_derivative(f, h), h)
    for place in (mp.mpf(90), mp.mpf(10) ** 8):
        assert mp.almosteq(slope(place), mp.sinh(place) + place * mp.cosh(place), 1e-13)
        below = mp.exp(-place) * mp.sinh(-place) + mp.expm1(-place) * mp.cosh(place)
        assert mp.almosteq(slope(-place), below, 1e-13)
