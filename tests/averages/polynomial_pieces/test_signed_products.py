"""Products of polynomials between kinks and of error functions, against a model of two factors."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.special import erf, ndtr

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.polynomial_pieces import signed_products, signs
from fieldtheory.averages.polynomial_pieces.signed_moments import SignedMoments
from tests.oracles import factor_model
from tests.tables import slow

VARIABLES = x, y, z, w = sp.symbols("x y z w", real=True)
# As symbols, as functions of arrays, and their kinks.
PHI = {
    "relu": (lambda u: sp.Max(0, u), lambda u: np.maximum(u, 0), (0.0,)),
    "leaky": (lambda u: sp.Max(u, u / 10), lambda u: np.maximum(u, u / 10), (0.0,)),
    "abs": (sp.Abs, np.abs, (0.0,)),
    "sign": (sp.sign, np.sign, (0.0,)),
    "threshold": (lambda u: sp.Max(0, u - 1), lambda u: np.maximum(u - 1, 0), (1.0,)),
    "hard_tanh": (lambda u: sp.Max(-1, sp.Min(1, u)), lambda u: np.clip(u, -1, 1), (-1.0, 1.0)),
    "relu6": (lambda u: sp.Min(6, sp.Max(0, u)), lambda u: np.clip(u, 0, 6), (0.0, 6.0)),
    "hard_swish": (
        lambda u: u * sp.Min(6, sp.Max(0, u + 3)) / 6,
        lambda u: u * np.clip(u + 3, 0, 6) / 6,
        (-3.0, 3.0),
    ),
    "hard_shrink": (
        lambda u: sp.Piecewise((0, sp.Abs(u) < sp.Rational(1, 2)), (u, True)),
        lambda u: np.where(np.abs(u) < 0.5, 0.0, u),
        (-0.5, 0.5),
    ),
    "erf": (sp.erf, erf, ()),
    "probit": (lambda u: 1 + sp.erf(1 - 2 * u), lambda u: 1 + erf(1 - 2 * u), ()),
    "gelu": (lambda u: u * (1 + sp.erf(u / sp.sqrt(2))) / 2, lambda u: u * ndtr(u), ()),
}
GENERIC = np.array([[0.9, 0.2], [-0.4, 0.7], [0.5, -0.6], [0.1, 0.8]])
# Two inputs in two layers of a network with skip connections.
LAYERS = np.array([[0.9, 0.0], [0.5, 0.7], [0.9, 0.0], [0.5, 0.7]])
OPPOSED = np.array([[0.9, 0.1], [-0.9, -0.1], [0.8, 0.3], [-0.8, -0.3]])
ONE = np.array([[0.7, 0.0]] * 4)
MODELS = {
    "generic": (GENERIC, np.array([0.4, 0.3, 0.5, 0.2])),
    "layers": (LAYERS, np.array([0.05, 0.05, 0.08, 0.08])),
    "narrow": (GENERIC / 10, np.array([0.004, 0.003, 0.005, 0.002])),
    "wide": (8 * GENERIC, np.array([6.0, 5.0, 9.0, 4.0])),
    "opposed": (OPPOSED, np.array([0.02, 0.02, 0.02, 0.02])),
    "alike": (ONE, np.array([0.02, 0.03, 0.02, 0.04])),
    "apart": (GENERIC * [[1, 0], [1, 0], [0, 1], [0, 1]], np.full(4, 0.3)),
}


def found(F, K):
    return float(signed_products.averaged(signed_products.slots_of(F, VARIABLES))(K[None])[0])


def expected(name, B, d):
    _, phi, kinks = PHI[name]
    return factor_model.average([phi] * 4, kinks, B, d)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        *((name, "generic") for name in PHI),
        *(slow(name, model) for name in PHI for model in ("layers", "opposed", "alike", "apart")),
    ],
)
def test_four_variables(name, model):
    B, d = MODELS[model]
    phi, of_arrays, _ = PHI[name]
    F = sp.Mul(*map(phi, VARIABLES))
    known = expected(name, B, d)
    spread = 1 + 2 * np.sqrt((B**2).sum(axis=1) + d)
    size = np.prod(np.maximum(np.abs(of_arrays(spread)), np.abs(of_arrays(-spread)))) + abs(known)
    assert found(F, factor_model.covariance(B, d)) == pytest.approx(known, rel=0, abs=1e-12 * size)


@pytest.mark.parametrize("model", [slow("narrow"), slow("wide")])
@pytest.mark.parametrize("name", ["relu", "hard_tanh", "hard_swish", "erf", "gelu"])
def test_narrow_and_wide_variables(name, model):
    B, d = MODELS[model]
    known = expected(name, B, d)
    value = found(sp.Mul(*map(PHI[name][0], VARIABLES)), factor_model.covariance(B, d))
    assert value == pytest.approx(known, rel=2e-10, abs=1e-15)


@pytest.mark.parametrize("name", ["relu", "hard_tanh", "sign", "gelu"])
def test_three_variables_and_powers(name):
    """A variable that occurs twice; powers of functions with kinks are taken between kinks."""
    B, d = (part[:3] for part in MODELS["generic"])
    phi, of_arrays, kinks = PHI[name]
    slots = signed_products.slots_of(phi(x) ** 2 * phi(y) * phi(z), (x, y, z))
    functions = [lambda u: of_arrays(u) ** 2, of_arrays, of_arrays]
    known = factor_model.average(functions, kinks, B, d)
    value = signed_products.averaged(slots)(factor_model.covariance(B, d)[None])[0]
    assert value == pytest.approx(known, rel=1e-12, abs=1e-15)


OTHERS = [
    sp.tanh(x),
    sp.Max(x, y),
    sp.Max(0, x) * sp.exp(y),
    sp.erf(x**2),
    sp.erf(x) ** 3 * sp.erf(y) ** 2,
    sp.Max(0, sp.exp(x) - 2),
    sp.Max(0, x) / w,
]


@pytest.mark.parametrize("F", OTHERS, ids=str)
def test_other_functions(F):
    assert signed_products.slots_of(F, VARIABLES) is None


def test_terms_that_cancel_are_an_error():
    """Hard tanh of signals of 1e6 is the difference of much larger numbers."""
    F = sp.Mul(*map(PHI["hard_tanh"][0], VARIABLES))
    K = 1e12 * factor_model.covariance(*MODELS["generic"])
    with pytest.raises(QuadratureError, match=r"cancel up to a relative error of .*rtol="):
        found(F, K)


# Signs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-11, 1e-14, 0.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_signs_of_nearly_equal_pairs(gap, sign):
    """(x, y) and (x, y) + √gap (u, v): ⟨s s' s s'⟩ tends to ±1 as the root of the gap."""
    K = np.array([[1.0, 0.3], [0.3, 0.8]])
    signs_of = np.outer([1, 1, 1, sign], [1, 1, 1, sign])
    both = np.block([[K, K], [K, K + gap * np.eye(2)]]) * signs_of
    value = signs.product(both[..., None])[0]
    assert -1e-13 <= 1 - sign * value <= 2 * np.sqrt(gap) + 1e-13
    # The other couplings first.
    for order in ([0, 2, 1, 3], [0, 3, 1, 2], [2, 1, 3, 0]):
        other = signs.product(both[np.ix_(order, order)][..., None])[0]
        rounding = 1e-15 / np.sqrt(gap) if gap else 5e-8
        assert other == pytest.approx(value, abs=1e-13 + rounding)


def test_signs_of_a_plane():
    """Four unit vectors of a plane: a singular covariance, whose signs are sums of angles."""
    angles = np.array([0.3, 1.1, 2.0, 2.9])
    K = np.cos(angles[:, None] - angles)
    edges = np.sort(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]) % (2 * np.pi))
    middles = (edges + np.append(edges[1:], edges[0] + 2 * np.pi)) / 2
    arcs = np.diff(np.append(edges, edges[0] + 2 * np.pi))
    known = (np.prod(np.sign(np.cos(middles[:, None] - angles)), axis=1) @ arcs) / (2 * np.pi)
    assert signs.product(K[..., None])[0] == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize(("name", "radial"), [("relu", 8), ("leaky", 8), ("abs", 8), ("sign", 1)])
def test_four_variables_of_a_plane(name, radial):
    """A covariance of rank two: an angle, and ⟨r⁴⟩ = 8."""
    phi, of_arrays, _ = PHI[name]
    angles, sizes = np.array([0.3, 1.1, 2.0, 2.9]), np.array([1.0, 0.8, 1.2, 0.9])
    K = np.outer(sizes, sizes) * np.cos(angles[:, None] - angles)
    edges = np.sort(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]) % (2 * np.pi))
    half = np.diff(np.append(edges, edges[0] + 2 * np.pi))[:, None] / 2
    t, weights = np.polynomial.legendre.leggauss(24)
    theta = edges[:, None] + half * (1 + t)
    values = np.prod(
        [of_arrays(r * np.cos(theta - a)) for r, a in zip(sizes, angles, strict=True)], axis=0
    )
    known = radial * np.sum(half * weights * values) / (2 * np.pi)
    assert found(sp.Mul(*map(phi, VARIABLES)), K) == pytest.approx(known, rel=0, abs=1e-13)


@pytest.mark.parametrize("name", ["hard_tanh", slow("relu6"), slow("hard_swish")])
def test_a_singular_covariance_is_a_limit(name):
    """Linear in a small variance that is added."""
    B, _ = MODELS["generic"]
    F = sp.Mul(*map(PHI[name][0], VARIABLES))
    near = [found(F, 4 * B @ B.T + gap * np.eye(4)) for gap in (0.0, 1e-6, 2e-6)]
    assert near[0] == pytest.approx(2 * near[1] - near[2], abs=1e-7)


def test_kinks_that_meet_on_a_line():
    """Three variables with y = (x + z)/2, all of them at a kink at once."""
    B = np.array([[1.0, -1.0], [1.0, 0.1], [1.0, 1.2]]) * np.array([0.3, 0.7])
    phi = PHI["hard_tanh"][0]
    slots = signed_products.slots_of(phi(x) ** 2 * phi(y) * phi(z), (x, y, z))
    K = np.array([B @ B.T + gap * np.eye(3) for gap in (0.0, 1e-7, 2e-7)])
    values = signed_products.averaged(slots)(K)
    assert values[0] == pytest.approx(2 * values[1] - values[2], abs=1e-10)


def test_signs_of_weakly_coupled_pairs():
    """⟨s s ; s s⟩ keeps its digits: (2/π)² (c² + c²) for small correlations c across."""
    for c in (1e-3, 1e-6, 1e-9):
        K = np.eye(4)
        K[0, 2] = K[2, 0] = K[1, 3] = K[3, 1] = c
        value = signs.connected(K[..., None])[0]
        exact = (2 / mpmath.pi * mpmath.asin(c)) ** 2
        assert value == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("c", [1e-3, 1e-6, 1e-9, 1e-12])
def test_signs_of_which_one_pair_is_weakly_coupled(c):
    """(2/π)² asin c asin d, however small c is beside d, at any scale."""
    K = np.eye(4)
    K[0, 2] = K[2, 0] = c
    K[1, 3] = K[3, 1] = 0.75
    scale = np.array([2.0**-40, 1.0, 4.0, 2.0])
    exact = (2 / mpmath.pi) ** 2 * mpmath.asin(c) * mpmath.asin(0.75)
    for one in (K, K * scale * scale[:, None]):
        assert signs.connected(one[..., None])[0] == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 10.0])
def test_signs_with_means(size, scale):
    B, d = (part[:size] for part in MODELS["generic"])
    K = factor_model.covariance(B, d)
    means = scale * np.array([0.5, -0.2, 0.45, 0.1])[:size]
    functions = [lambda u, m=m: np.sign(u + m) for m in means]
    known = factor_model.average(functions, tuple(-means), B, d)
    assert signs.product(K[..., None], means[:, None])[0] == pytest.approx(known, abs=1e-13)


def test_signs_with_means_of_equal_variables():
    """x, x and −x, their means apart: piecewise constant functions of one variable."""
    K = np.outer([1, 1, -1], [1, 1, -1.0])
    means = np.array([0.5, -0.3, 0.2])
    edges = [-np.inf, -0.5, 0.2, 0.3, np.inf]
    middles = np.array([-1.0, 0.0, 0.25, 1.0])
    values = np.sign(middles + 0.5) * np.sign(middles - 0.3) * np.sign(0.2 - middles)
    known = values @ np.diff(ndtr(edges))
    assert signs.product(K[..., None], means[:, None])[0] == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize("size", [3, 4])
def test_signs_of_a_line_with_kinks_that_meet(size):
    """Multiples of one variable, of which some change sign together: intervals of it."""
    slopes = np.array([1.0, -3.0, 2.0, -0.5])[:size]
    for meeting in ((0, 1), (0, 2), (1, 2), (0, 1, 2), tuple(range(size))):
        kinks = np.array([0.4, -1.1, 1.7, 0.9])[:size]
        kinks[list(meeting)] = 0.7
        ends = np.concatenate([[-np.inf], np.sort(kinks), [np.inf]])
        inside = np.concatenate([[-9.0], (ends[1:-2] + ends[2:-1]) / 2, [9.0]])
        exact = np.diff(ndtr(ends)) @ np.sign(slopes * (inside[:, None] - kinks)).prod(axis=1)
        K, means = np.outer(slopes, slopes)[..., None], (-slopes * kinks)[:, None]
        np.testing.assert_allclose(signs.product(K, means), exact, rtol=0, atol=1e-11)


def test_moments_add_up():
    """h² s² = h²: without signs they are those of Wick."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(4, 4, 20))
    K = np.einsum("ikm,jkm->ijm", A, A)
    moments = SignedMoments(K)
    wick = K[0, 0] * K[1, 2] + 2 * K[0, 1] * K[0, 2]
    np.testing.assert_allclose(moments.average((2, 1, 1, 0), (0, 0, 0, 0)), wick, rtol=1e-12)
