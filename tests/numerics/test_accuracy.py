"""float64 against mpmath over the whole range of variances, correlations and depths.

References: closed forms typed in (erf, ReLU, sin), and the symbolic closed form at 80 digits (GELU,
leaky ReLU). Those of all other activations are stored with tests/averages.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from tests.oracles import exact
from tests.tables import slow

PAIRS = [
    (1e-12, 1e-12),
    (1e-6, 0.1),
    (0.3, 0.3),
    (1.0, 2.0),
    (3.0, 30.0),
    (40.0, 40.0),
    (100.0, 130.0),
    (1e3, 1e4),
    (1e6, 1e6),
    (1e-12, 1e6),
]
CORRELATIONS = [-1, -1 + 1e-8, -0.9, -1e-6, 0.1, 0.6, 0.9, 1 - 1e-4, 1 - 1e-8, 1 - 1e-14, 1]
RTOL = 1e-12
EPS = 2.0**-52


def positive_semidefinite(a, b, correlation):
    """The covariance in float64, moved by roundings until K_xy² <= K_xx K_yy holds exactly."""
    c = float(correlation * np.sqrt(a * b))
    while Fraction(c) ** 2 > Fraction(a) * Fraction(b):
        c = float(np.nextafter(c, 0))
    return a, b, c


def points(pairs=PAIRS, correlations=CORRELATIONS):
    return [positive_semidefinite(a, b, r) for a, b in pairs for r in correlations]


def close(value, reference, rtol=RTOL, atol=0.0):
    __tracebackhide__ = True
    error = abs(mpf(float(value)) - reference)
    assert error <= rtol * abs(reference) + atol, f"{float(value)} != {mpmath.nstr(reference, 17)}"


def erf_connected(a, b, c):
    """The integral of `exact.erf_connected` in t = t_s tanh v, where it is smooth."""
    scale = mpmath.sqrt((1 + 2 * a) * (1 + 2 * b))

    def integrand(v):
        sinh, cosh = mpmath.sinh(v), mpmath.cosh(v)
        roots = (2 - cosh**2 / (1 + 2 * a)) * (2 - cosh**2 / (1 + 2 * b))
        return mpmath.asin(sinh * cosh / scale / mpmath.sqrt(roots)) / cosh

    end = mpmath.asinh(2 * c / mpmath.sqrt(1 + 2 * a + 2 * b + 4 * (a * b - c * c)))
    return 16 / mp.pi**2 * mpmath.quad(integrand, mpmath.linspace(0, end, 9))


def erf_reference(a, b, c):
    root = mpmath.sqrt(1 + 2 * a + 2 * b + 4 * (a * b - c * c))
    slope = 4 / mp.pi / root
    return exact.erf_average(a, b, c), slope, -slope * c / (1 + 2 * a), erf_connected(a, b, c)


def relu_reference(a, b, c):
    cross = mpmath.sqrt(a * b - c * c) / (4 * mp.pi * a)
    product, slope = exact.relu_average(1, a, b, c), exact.relu_average(0, a, b, c)
    return product, slope, cross, exact.relu_connected(a, b, c)


def sin_reference(a, b, c):
    bell = mpmath.exp(-(a + b) / 2)
    product, squares = bell * mpmath.sinh(c), mpmath.exp(-2 * (a + b)) * mpmath.sinh(2 * c) ** 2 / 2
    return product, bell * mpmath.cosh(c), -product / 2, squares


REFERENCES = {"erf": erf_reference, "relu": relu_reference, "sin": sin_reference}


def check_pair(name, a, b, c, atol=0.0):
    """``atol`` of ⟨φφ⟩."""
    e = layer_functions(as_activation(name))
    values = e.covariance, e.covariance_susceptibility, e.cross_susceptibility, e.connected
    references = REFERENCES[name](mpf(a), mpf(b), mpf(c))
    for value, reference, most in zip(values, references, (atol, 0, 0, 0), strict=True):
        if abs(reference) < mpf(10) ** -60:
            assert abs(value(a, b, c)) < 1e-60
        else:
            close(value(a, b, c), reference, atol=most)


# Every third: of eleven correlations all come, with different variances.
ERF_POINTS = [point if i % 3 == 0 else slow(*point) for i, point in enumerate(points())]


@pytest.mark.slow_but(3, 12, 18, 36, 69, 93, 99, 108)
@pytest.mark.parametrize("a,b,c", ERF_POINTS)
def test_pairs_of_erf(a, b, c):
    with mpmath.workdps(30):
        check_pair("erf", a, b, c)


@pytest.mark.slow_but(1, 16, 31, 46, 62, 77, 94, 109)
@pytest.mark.parametrize("a,b,c", points())
def test_pairs_of_sin(a, b, c):
    with mpmath.workdps(80):
        check_pair("sin", a, b, c)


@pytest.mark.parametrize("a,b,c", points())
def test_pairs_of_relu(a, b, c):
    """⟨φφ⟩ of opposite inputs is (sin θ − θ cos θ)/2π at small θ: absolute error ε √det."""
    with mpmath.workdps(80):
        root = mpmath.sqrt(mpf(a) * mpf(b) - mpf(c) ** 2)
        check_pair("relu", a, b, c, atol=EPS * root)


@pytest.mark.parametrize("name", ["gelu", "leaky_relu"])
@pytest.mark.parametrize("a,b,c", points())
def test_pairs_of_gelu_and_leaky_relu(name, a, b, c):
    """⟨φφ⟩ of opposite inputs cancels as for ReLU: absolute error ε √(1 + a + b + det)."""
    e, m = layer_functions(as_activation(name)), layer_functions(as_activation(name), "mpmath")
    with mpmath.workdps(80):
        root = mpmath.sqrt(1 + a + b + mpf(a) * mpf(b) - mpf(c) ** 2)
        for quantity in ("covariance", "covariance_susceptibility", "cross_susceptibility"):
            reference = getattr(m, quantity)(mpf(a), mpf(b), mpf(c))
            atol = EPS * root if quantity == "covariance" else 0.0
            close(getattr(e, quantity)(a, b, c), reference, atol=atol)


def erf_chain(net, K0):
    """C, K, η, χ of one input and the gains, at the current precision."""
    rho2 = mpf(float(net.branch_scale)) ** 2
    a = [mpf(0)] + [rho2 * mpf(net.weight_variance)] * net.depth + [mpf(net.readout_variances[0])]
    c = [mpf(0)] + [rho2 * mpf(net.bias_variance)] * net.depth + [mpf(net.readout_variances[1])]
    C, K, eta, chi, gains = [mpf(K0)], [mpf(K0)], [mpf(1)], [mpf(1)], [mpf(0)]
    for l in range(1, net.depth + 2):
        skip = 0 if l == net.depth + 1 else mpf(float(net.skip_scale)) ** 2
        gains.append(a[l] * exact.erf_slope(K[-1]))
        C.append(a[l] * exact.erf_average(K[-1], K[-1], K[-1]) + c[l])
        eta.append(gains[-1] * chi[-1])
        K.append(skip * K[-1] + C[-1])
        chi.append(skip * chi[-1] + eta[-1])
    return C, K, eta, chi, gains


@pytest.mark.slow_but(0, 2, 4, 6, 8)
@pytest.mark.parametrize("depth", [50, 1000])
@pytest.mark.parametrize("rho,gamma", [(0.02, 1.0), (0.3, 1.0), (1.0, 1.0), (1.0, 0.0), (0.5, 0.9)])
def test_kernels_and_responses_of_deep_networks(depth, rho, gamma):
    net = ft.ResidualNetwork(depth=depth, branch_scale=rho, skip_scale=gamma)
    s = ft.solve(net, 0.05)
    with mpmath.workdps(50):
        C, K, eta, chi, _ = erf_chain(net, 0.05)
    for value, reference in ((s.residual_kernels, C), (s.kernels, K)):
        np.testing.assert_allclose(value, np.array(reference, dtype=float), rtol=1e-11)
    for value, reference in ((s.residual_response, eta), (s.response, chi)):
        np.testing.assert_allclose(value, np.array(reference[:-1], dtype=float), rtol=1e-11)
    assert s.output_response == pytest.approx(float(chi[-1]), rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [slow(0.03), 0.3])
def test_propagators_at_depth_1000(rho):
    """Rows of G12 and the variance of the output; S22 is compared at random entries.

    All entries of S22 and G12 are positive, so that its relative errors bound that of G11.
    """
    net = ft.ResidualNetwork(depth=1000, branch_scale=rho, width=10**7)
    s = ft.solve(net, 0.05)
    K = s.kernels
    connected = layer_functions(net.activation).connected
    with mpmath.workdps(30):
        _, K_mp, _, _, gains = erf_chain(net, 0.05)
        row = [mpf(1)] * 1002
        # Backwards: the response of the output to a source in layer m.
        carry = gains[-1]
        for m in range(1000, -1, -1):
            row[m] = carry
            carry *= 1 + gains[m]
        np.testing.assert_allclose(net.width * s.G12[-1], np.array(row, dtype=float), rtol=1e-11)
        weights = np.full(1002, rho**2 * net.weight_variance)
        weights[[0, -1]] = 0.0, net.readout_variances[0]
        rng = np.random.default_rng(2)
        for k, l in np.sort(rng.integers(0, 1001, (12, 2)), axis=1):
            reference = erf_connected(K_mp[l], K_mp[k], K_mp[k])
            close(connected(K[l], K[k], K[k]), reference, rtol=1e-11)
    from fieldtheory.networks.coefficients import layer_coefficients
    from fieldtheory.numerics.one_input import source_covariance

    S22 = source_covariance(net, layer_coefficients(net), K)
    for k, l in np.sort(rng.integers(0, 1001, (50, 2)), axis=1):
        direct = weights[k + 1] * weights[l + 1] * connected(K[l], K[k], K[k])
        assert S22[k + 1, l + 1] == pytest.approx(direct, rel=1e-12)
    g12 = np.array(row, dtype=float)
    assert (S22[1:, 1:] > 0).all()
    assert s.G11[-1, -1] == pytest.approx(g12 @ S22 @ g12 / net.width, rel=1e-11)
