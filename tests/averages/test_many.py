"""Averages of three and four variables in float64: every rule against an independent integral."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.choosing import choose
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals import tensor, tilting
from fieldtheory.averages.polynomial_pieces import orthants
from fieldtheory.averages.rules import entry_indices
from tests.oracles import quadrature as oracle
from tests.tables import crossed, slow

x, y, z, w = VARIABLES = sp.symbols("x y z w", real=True)
PHI = {"erf": erf, "tanh": np.tanh, "relu": lambda u: np.maximum(u, 0)}
SYMBOLIC = {"erf": sp.erf, "tanh": sp.tanh, "relu": lambda u: sp.Max(0, u)}
ELU = sp.Piecewise((x, x > 0), (sp.exp(x) - 1, True))

GENERIC = np.array(
    [[1.0, 0.5, 0.3, 0.2], [0.5, 1.2, -0.25, 0.25], [0.3, -0.25, 0.8, 0.1], [0.2, 0.25, 0.1, 0.9]]
)
# Two inputs in two layers of a network with a small residual branch.
LAYERS = np.array(
    [
        [1.0, 0.6, 0.97, 0.55],
        [0.6, 0.9, 0.57, 0.87],
        [0.97, 0.57, 1.05, 0.58],
        [0.55, 0.87, 0.58, 0.95],
    ]
)
EQUAL = np.array([[1, 0.5, 1, 0.5], [0.5, 1, 0.5, 1], [1, 0.5, 1, 0.5], [0.5, 1, 0.5, 1]])
COVARIANCES = {"generic": GENERIC, "layers": LAYERS, "equal": EQUAL}


def value(node):
    """By the rule that is chosen for the node; its variables may be in another order."""
    K = np.array(node.covariance.tolist(), dtype=float)
    return float(choose(node).function(*[K[i, j] for i, j in entry_indices(len(K))]))


def connected(name, K):
    """⟨φφ;φφ⟩ by the rule and by the dense trapezoidal oracle."""
    f, phi = SYMBOLIC[name], PHI[name]
    node = ConnectedCorrelator(f(x) * f(y), f(z) * f(w), VARIABLES, sp.Matrix(K))
    means = [
        oracle.average_smooth(lambda u, v: phi(u) * phi(v), K[part, part], 0.2, 9.0)
        for part in (slice(0, 2), slice(2, 4))
    ]
    expected = oracle.average_smooth(
        lambda a, b, c, d: (phi(a) * phi(b) - means[0]) * (phi(c) * phi(d) - means[1]), K, 0.3, 8.6
    )
    return value(node), expected


# Rules against the oracle -------------------------------------------------------------


@pytest.mark.parametrize(
    ("covariance", "name"),
    [
        ("generic", "erf"),
        slow("generic", "tanh"),
        *(slow(K, name) for K in ("layers", "equal") for name in ("tanh", "erf")),
    ],
)
def test_four_smooth_variables(name, covariance):
    found, expected = connected(name, COVARIANCES[covariance])
    assert found == pytest.approx(expected, rel=1e-9)


THREE = [
    sp.Max(0, x) * sp.Max(0, y) * sp.Max(0, z) ** 2,
    sp.Abs(x) * sp.Max(0, y) * (sp.Max(0, z) + sp.Min(0, z) / 100),
    sp.Heaviside(x) * y**2 * sp.Max(0, z),
    sp.erf(x) ** 2 * sp.erf(y) * sp.erf(z),
    sp.exp(-(x**2)) * sp.erf(y) * sp.erf(z / 2) + sp.exp(-(x**2) - z**2) * sp.cos(0 * y),
    sp.tanh(x) * sp.erf(y) * z**2,
]


@pytest.mark.parametrize(("F", "covariance"), crossed(THREE, COVARIANCES))
def test_three_variables(F, covariance):
    K = COVARIANCES[covariance][:3, :3]
    f = sp.lambdify([x, y, z], F, [{"Max": np.maximum, "Min": np.minimum, "amax": _amax,
                                    "amin": _amin}, "scipy", "numpy"])  # fmt: skip
    names = [v for v in (x, y, z) if F.has(v)]
    kept = [i for i, v in enumerate((x, y, z)) if F.has(v)]
    node = GaussianAverage(F, names, sp.Matrix(K[np.ix_(kept, kept)]))
    found = sum(
        float(c) * value(n) if n.has(GaussianAverage) else float(n)
        for c, n in (t.as_coeff_Mul() for t in sp.Add.make_args(node))
    )
    assert found == pytest.approx(oracle.average(f, K), rel=2e-10, abs=1e-12)


def _amax(values, axis):
    return np.maximum.reduce(np.broadcast_arrays(*values))


def _amin(values, axis):
    return np.minimum.reduce(np.broadcast_arrays(*values))


@pytest.mark.parametrize("name", ["erf", "tanh", "relu"])
def test_joint_functions_of_two_variables(name):
    """⟨φ_xφ_y;φ_xφ_y⟩ and ⟨φ_x²;φ_xφ_y⟩, the diagonal blocks of two inputs."""
    f, phi = SYMBOLIC[name], PHI[name]
    K = GENERIC[:2, :2]
    for F, G, numeric in (
        (f(x) * f(y), f(x) * f(y), lambda u, v: (phi(u) * phi(v), phi(u) * phi(v))),
        (f(x) ** 2, f(x) * f(y), lambda u, v: (phi(u) ** 2, phi(u) * phi(v))),
    ):
        means = [oracle.average2(lambda u, v, k=k, n=numeric: n(u, v)[k], K) for k in (0, 1)]
        expected = oracle.average2(
            lambda u, v, n=numeric, m=means: (n(u, v)[0] - m[0]) * (n(u, v)[1] - m[1]), K
        )
        node = ConnectedCorrelator(F, G, (x, y), sp.Matrix(K))
        assert value(node) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", ["erf", slow("tanh"), "relu"])
def test_third_cumulant(name):
    f, phi = SYMBOLIC[name], PHI[name]
    K = GENERIC[:3, :3]
    means = [oracle.average1(lambda u: phi(u) ** 2, K[i, i]) for i in range(3)]
    expected = oracle.average(
        lambda u, v, s: (
            (phi(u) ** 2 - means[0]) * (phi(v) ** 2 - means[1]) * (phi(s) ** 2 - means[2])
        ),
        K,
    )
    node = ConnectedCorrelator(f(x) ** 2, f(y) ** 2, f(z) ** 2, (x, y, z), sp.Matrix(K))
    assert value(node) == pytest.approx(expected, rel=1e-9)


# Two routes of the package for one number --------------------------------------------------


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_price_against_the_trapezoidal_rule(covariance, scale):
    K = scale * COVARIANCES[covariance]
    path = tilting.path_of(sp.erf(x) * sp.erf(y), sp.erf(z) * sp.erf(w), VARIABLES)
    functions = [lambda a, b, c, d: erf(a) * erf(b), lambda a, b, c, d: erf(c) * erf(d)]
    direct = tensor.cumulant(functions, [()] * 4, K, "erf")
    assert tilting.connected(path)(K) == pytest.approx(direct, rel=1e-10)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_orthants_against_panels(covariance):
    K = COVARIANCES[covariance][:3, :3]
    pieces = orthants.pieces_of(sp.Max(0, x) * sp.Abs(y) * sp.Max(0, z), (x, y, z))
    functions = [lambda a, b, c: np.maximum(a, 0) * np.abs(b) * np.maximum(c, 0)]
    direct = tensor.cumulant(functions, [(0.0,)] * 3, K, "orthants")
    assert float(orthants.averaged(pieces)(K[None])[0]) == pytest.approx(direct, rel=1e-9)


def test_kinks_away_from_zero_by_panels():
    elu = [ELU.subs(x, v) for v in (x, y, z)]
    node = GaussianAverage(elu[0] * elu[1] * elu[2] ** 2, (x, y, z), sp.Matrix(GENERIC[:3, :3]))
    assert choose(node).name == "panels"

    def f(a, b, c):
        A, B, C = (np.where(u > 0, u, np.expm1(np.minimum(u, 0))) for u in (a, b, c))
        return A * B * C**2

    assert value(node) == pytest.approx(oracle.average(f, GENERIC[:3, :3]), rel=1e-9)


# Probabilities of orthants ---------------------------------------------------------------


def test_orthant_probabilities():
    assert orthants.probability(np.eye(4)[None])[0] == pytest.approx(1 / 16, rel=1e-15)
    # All correlations 1/2: 1/(n+1) for n variables (one of n + 1 is the largest).
    for size in (2, 3, 4):
        K = (np.eye(size) + np.ones((size, size))) / 2
        assert orthants.probability(K[None])[0] == pytest.approx(1 / (size + 1), rel=1e-13)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12, 0.0])
def test_nearly_equal_variables(gap):
    """The probability tends to that of two variables, 1/3 at correlation 1/2."""
    K = EQUAL * (1 - gap) + gap * np.eye(4)
    assert orthants.probability(K[None])[0] == pytest.approx(1 / 3, abs=2 * np.sqrt(gap) + 1e-12)


def test_opposite_variables():
    K = EQUAL * np.outer([1, 1, -1, 1], [1, 1, -1, 1])
    assert orthants.probability(K[None])[0] == 0.0


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), size=st.integers(2, 4))
def test_orthants_add_up_to_one(seed, size):
    factor = np.random.default_rng(seed).normal(size=(size, size + 1))
    K = factor @ factor.T
    signs = np.array(np.meshgrid(*[[1, -1]] * size)).reshape(size, -1).T
    mirrored = K * signs[:, :, None] * signs[:, None, :]
    values = orthants.probability(mirrored)
    assert values.min() > -1e-12
    assert values.sum() == pytest.approx(1.0, abs=1e-11)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_moments_of_orthants_add_up_to_wick(seed):
    """Over all orthants the signs drop out: ⟨x²yz⟩ = K_xx K_yz + 2 K_xy K_xz."""
    factor = np.random.default_rng(seed).normal(size=(3, 4))
    K = factor @ factor.T
    pieces = orthants.pieces_of(x**2 * y * z + 0 * sp.Abs(x), (x, y, z))
    wick = K[0, 0] * K[1, 2] + 2 * K[0, 1] * K[0, 2]
    found = float(orthants.averaged(pieces)(K[None])[0])
    assert found == pytest.approx(wick, abs=1e-11 * K.max() ** 2)


# Properties --------------------------------------------------------------------------------


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(["erf", "tanh", "relu"]))
def test_variance_is_positive_and_bounds_the_covariance(seed, name):
    factor = np.random.default_rng(seed).normal(size=(4, 5)) / 2
    K = factor @ factor.T
    f = SYMBOLIC[name]
    F, G = f(x) * f(y), f(z) * f(w)
    across = value(ConnectedCorrelator(F, G, VARIABLES, sp.Matrix(K)))
    own = [
        value(ConnectedCorrelator(H, H, names, sp.Matrix(part)))
        for H, names, part in ((F, (x, y), K[:2, :2]), (G, (z, w), K[2:, 2:]))
    ]
    assert min(own) > 0
    assert across**2 <= own[0] * own[1] * (1 + 1e-9)


def test_arrays_broadcast():
    f = sp.tanh
    rule = choose(
        ConnectedCorrelator(f(x) * f(y), f(z) ** 2, (x, y, z), sp.eye(3) + sp.ones(3) / 2)
    )
    c = np.array([[0.1], [0.2]])
    values = rule.function(1.0, np.array([1.0, 2.0]), 1.5, 0.3, 0.2, c)
    assert values.shape == (2, 2)
    assert values[1, 1] == float(rule.function(1.0, 2.0, 1.5, 0.3, 0.2, 0.2))


def test_no_coupling():
    rule = choose(
        ConnectedCorrelator(sp.tanh(x) * sp.tanh(y), sp.tanh(z) ** 2, (x, y, z), sp.ones(3))
    )
    assert abs(rule.function(1.0, 1.0, 1.0, 0.5, 0.0, 0.0)) < 1e-16


# Errors --------------------------------------------------------------------------------------


def test_what_does_not_converge_raises():
    node = ConnectedCorrelator(
        sp.cos(sp.sinh(3 * x)) * y,
        sp.cos(sp.sinh(z)) * y,
        (x, y, z),
        4 * sp.Matrix(GENERIC[:3, :3]),
    )
    with pytest.raises(QuadratureError, match="did not converge") as caught:
        value(node)
    assert "cos(sinh(z))" in str(caught.value)


def test_too_many_nodes_raise():
    f = sp.tanh
    node = ConnectedCorrelator(f(x) * f(y), f(z) * f(w), VARIABLES, 10**4 * sp.Matrix(GENERIC))
    with pytest.raises(QuadratureError, match="did not converge with 134217728 nodes"):
        value(node)


def test_rules_that_are_chosen():
    K3, K4 = sp.Matrix(GENERIC[:3, :3]), sp.Matrix(GENERIC)
    relu = SYMBOLIC["relu"]
    expected = {
        GaussianAverage(sp.exp(-(x**2)) * sp.erf(y) * sp.erf(z), (x, y, z), K3): "closed form",
        GaussianAverage(sp.erf(x) ** 2 * sp.erf(y) * sp.erf(z), (x, y, z), K3): "Price's theorem",
        GaussianAverage(sp.erf(x) ** 3 * sp.erf(y) * sp.erf(z) ** 2, (x, y, z), K3):
            "trapezoidal rule",
        GaussianAverage(relu(x) * relu(y) * relu(z) * relu(w), VARIABLES, K4): "orthants",
        GaussianAverage(relu(x - 1) * relu(y) * relu(z), (x, y, z), K3): "orthants",
        GaussianAverage(relu(x) * relu(y) * sp.tanh(z), (x, y, z), K3): "panels",
    }  # fmt: skip
    for node, name in expected.items():
        assert choose(node).name == name
