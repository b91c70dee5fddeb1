"""The rule for every node in float64: one algorithm each, arrays, variances of zero."""

import numpy as np
import pytest
import sympy as sp
from scipy.stats import norm

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.choosing import NESTED, PAIRS, PANELS, choose, mean_about
from fieldtheory.averages.nodes.base import entry_indices
from tests.oracles import quadrature as oracle
from tests.tables import slow

x, y, z, w = sp.symbols("x y z w", real=True)
PAIR = sp.Matrix([[2, 1], [1, 2]])
K = np.array([[1.0, 0.5, 0.3], [0.5, 1.2, -0.25], [0.3, -0.25, 0.8]])


def entries(covariance):
    return [covariance[i, j] for i, j in entry_indices(len(covariance))]


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (GaussianAverage(sp.tanh(x) ** 2, x, 2), PANELS),
        (GaussianAverage(sp.Abs(x - 1) * sp.tanh(x), x, 2), PANELS),
        (GaussianAverage(sp.tanh(x) * sp.tanh(y), (x, y), PAIR), PAIRS),
        (GaussianAverage(sp.tanh(x) * (y + sp.Abs(y)), (x, y), PAIR), PAIRS),
        (ConnectedCorrelator(sp.tanh(x) ** 2, sp.Abs(y), (x, y), PAIR), PAIRS),
        (ConnectedCorrelator(sp.tanh(x) ** 2, sp.Abs(x), x, 2), PAIRS),
    ],
)
def test_names(node, name):
    rule = choose(node)
    assert rule.name == name and rule.reason


@pytest.mark.parametrize("size", [1, 2])
def test_arrays_broadcast(size):
    """The shape is that of the entries; equal entries give equal numbers."""
    F = sp.tanh(x) * (sp.tanh(x) if size == 1 else sp.tanh(y))
    rule = choose(GaussianAverage(F, (x, y)[:size], PAIR[:size, :size]))
    a, t = np.array([[1.0, 2.0, 2.0]]), np.array([[0.3], [-0.3]])
    values = rule.function(a) if size == 1 else rule.function(a, 1.5, t)
    assert values.shape == ((1, 3) if size == 1 else (2, 3))
    assert (values[..., 1] == values[..., 2]).all()
    single = rule.function(2.0) if size == 1 else rule.function(2.0, 1.5, -0.3)
    assert np.shape(single) == () and single == pytest.approx(values[-1, 1], rel=1e-14)


def test_sums_of_products():
    """Against a dense trapezoidal sum."""
    F = sp.tanh(x) ** 2 * sp.tanh(y) ** 2 + sp.tanh(x) * y + sp.cos(y)
    node = GaussianAverage(F, (x, y), sp.Matrix(K[:2, :2]), evaluate=False)
    expected = oracle.average_smooth(
        lambda u, v: np.tanh(u) ** 2 * np.tanh(v) ** 2 + np.tanh(u) * v + np.cos(v),
        K[:2, :2],
        0.2,
        9,
    )
    assert choose(node).function(*entries(K[:2, :2])) == pytest.approx(expected, rel=1e-12)


def test_cumulants_of_joint_functions():
    """⟨F;G⟩ and ⟨F;G;H⟩ of two variables by averages of products."""
    F, G = sp.tanh(x) * sp.tanh(y), sp.Abs(x)
    node = ConnectedCorrelator(F, G, (x, y), sp.Matrix(K[:2, :2]))
    parts = [GaussianAverage(f, (x, y), sp.Matrix(K[:2, :2])) for f in (F * G, F)]
    a, b, t = entries(K[:2, :2])
    joint, first = (choose(part).function(a, b, t) for part in parts)
    second = choose(GaussianAverage(G, x, 1, evaluate=False)).function(a)
    assert choose(node).function(a, b, t) == pytest.approx(joint - first * second, rel=1e-11)
    third = ConnectedCorrelator(sp.tanh(x), sp.tanh(x), sp.tanh(y) ** 2, (x, y), PAIR)
    assert choose(third).name == PAIRS


@pytest.mark.parametrize("covariance", [slow(K), slow(0.9 + 0.1 * np.eye(3)), np.ones((3, 3))])
def test_three_variables(covariance):
    """Smooth functions against a dense sum; near and at equal variables."""
    F, G = sp.tanh(x) * sp.tanh(y), sp.tanh(z) ** 2
    rule = choose(ConnectedCorrelator(F, G, (x, y, z), sp.Matrix(K)))
    assert rule.name == NESTED
    pair, step = covariance[:2, :2], min(0.2, 0.3 * np.sqrt(np.linalg.eigvalsh(covariance)[0]))
    if step < 1e-3:
        u, weight = np.polynomial.hermite_e.hermegauss(200)
        weight = weight / weight.sum()
        square = np.tanh(u) ** 2
        expected = weight @ square**2 - (weight @ square) ** 2
    else:
        mean = oracle.average_smooth(lambda u, v: np.tanh(u) * np.tanh(v), pair, step, 9.0)

        def centred(u, v, s):
            return (np.tanh(u) * np.tanh(v) - mean) * np.tanh(s) ** 2

        expected = oracle.average_smooth(centred, covariance, step, 9.0)
    assert rule.function(*entries(covariance)) == pytest.approx(expected, abs=1e-10)


def moments_of_signs(c):
    """⟨θ(x)θ(y)θ(z)⟩ of unit variances."""
    return 1 / 8 + sum(np.arcsin(c[i, j]) for i, j in ((0, 1), (0, 2), (1, 2))) / (4 * np.pi)


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("noise", [1.0, 0.1, 1e-3])
def test_jumps_of_three_variables(noise):
    """The probability of an orthant; averages of four kinks add up to those of three."""
    c = (1 - noise) * np.array([[1, 0.7, 0.4], [0.7, 1, 0.1], [0.4, 0.1, 1]]) + noise * np.eye(3)
    F = sp.Heaviside(x) * sp.Heaviside(y) * sp.Heaviside(z)
    step = GaussianAverage(F, (x, y, z), sp.Matrix(K))
    assert choose(step).function(*entries(c)) == pytest.approx(moments_of_signs(c), abs=1e-10)


@pytest.mark.slow
def test_kinks_of_four_variables():
    """relu(w) − relu(−w) = w, whose average over the others is Gaussian."""
    covariance = np.array(
        [
            [1.0, 0.6, 0.97, 0.55],
            [0.6, 0.9, 0.57, 0.87],
            [0.97, 0.57, 1.05, 0.58],
            [0.55, 0.87, 0.58, 0.95],
        ]
    )

    def average(F, variables):
        size = len(variables)
        node = GaussianAverage(F, variables, sp.Matrix(covariance[:size, :size]))
        return choose(node).function(*entries(covariance[:size, :size]))

    inside = sp.Max(0, x) * sp.Max(0, y) * sp.Max(0, z)
    forms = [inside * sp.Max(0, w), inside * sp.Max(0, -w), inside * w]
    above, below, linear = (average(F, (x, y, z, w)) for F in forms)
    assert above - below == pytest.approx(linear, abs=1e-10)
    # Stein's lemma: ⟨w F⟩ = Σ K_wi ⟨∂_i F⟩.
    slopes = [inside.subs(sp.Max(0, v), sp.Heaviside(v)) for v in (x, y, z)]
    averages = [average(F, (x, y, z)) for F in slopes]
    assert linear == pytest.approx(covariance[3, :3] @ averages, abs=1e-10)


def test_variances_of_zero():
    """Limits: the mean of both sides of a jump; equal signs of two variables without variance."""
    step = choose(GaussianAverage(sp.Heaviside(x), x, 1, evaluate=False)).function
    assert step(np.array([0.0, 1.0])) == pytest.approx([0.5, 0.5])
    signs = choose(GaussianAverage(sp.sign(x) * sp.sign(y), (x, y), PAIR)).function
    zero = np.array([0.0, 0.0, 1.0])
    assert signs(zero, np.array([0.0, 2.0, 0.0]), 0 * zero) == pytest.approx([1.0, 0.0, 0.0])
    F = sp.exp(-(x**2)) * sp.cosh(y)
    pair = choose(GaussianAverage(F, (x, y), PAIR)).function
    assert pair(0.0, 1.0, 0.0) == pytest.approx(np.exp(0.5), rel=1e-13)
    connected = ConnectedCorrelator(sp.exp(-(x**2)), sp.cosh(y), (x, y), PAIR)
    assert choose(connected).function(0.0, 1.0, 0.0) == 0


def test_means():
    """⟨F(h + m)⟩ of variances and means, a kink among them."""
    rule = mean_about(sp.Max(0, x), x).function
    deviation, m = 1.3, np.array([-2.0, 0.0, 0.4])
    expected = m * norm.cdf(m / deviation) + deviation * norm.pdf(m / deviation)
    assert rule(deviation**2, m) == pytest.approx(expected, rel=1e-13)
    assert rule(0.0, m) == pytest.approx(np.maximum(m, 0))


def test_kinks_that_are_no_places():
    """Kinks along lines that mix the variables have no panels."""
    with pytest.raises(ValueError, match="products"):
        choose(GaussianAverage(sp.Abs(x - y) * sp.exp(-(x**2)), (x, y), PAIR))
