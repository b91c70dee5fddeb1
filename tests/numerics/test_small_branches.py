"""Mean shifts of two inputs where layers add little, so that neighbouring kernels nearly agree."""

import mpmath
import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from tests.oracles import ramp_pairs
from tests.oracles.shallow_pairs import ShallowPair
from tests.tables import slow

EQUAL = np.array([[0.5, 0.15], [0.15, 0.5]])
OPPOSED = np.array([[0.5, -0.2], [-0.2, 0.3]])


def shift(name, rho, K0):
    """N (⟨C⟩ − C*)/ρ⁴ of the second layer."""
    net = ft.ResidualNetwork(depth=2, activation=name, branch_scale=rho, skip_scale=1.0)
    return net.width * ft.solve(net, K0).mean_shift[2, 0, 1] / rho**4


@pytest.mark.parametrize("K0", [EQUAL, OPPOSED])
@pytest.mark.parametrize("name", ["elu", "abs", slow("softsign"), "relu"])
def test_the_limit_of_small_branches_is_approached_as_their_square(name, K0):
    """S(ρ) = S + S' ρ² + O(ρ³), from ρ where no digits are lost, holds down to 1e-5."""
    rho = np.array([1.5e-3, 3e-3, 6e-3, 1.2e-2])
    basis = rho[:, None] ** [0, 2, 3, 4]
    limit = np.linalg.solve(basis, [shift(name, one, K0) for one in rho])
    for small in (3e-4, 1e-4, 1e-5):
        expected = limit @ small ** np.array([0, 2, 3, 4])
        assert shift(name, small, K0) == pytest.approx(expected, rel=1e-9)


FAR_FROM_PARALLEL = np.array([[1.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    "name",
    [
        "heaviside(x - 1)",
        slow("heaviside(x) * exp(-x)"),
        slow("sign(x - 1) + sign(x + 1)"),
        slow("sin(x) + heaviside(x - 0.3)"),
    ],
)
@pytest.mark.parametrize("c", [0.5, slow(0.97)])
@pytest.mark.parametrize("small", [1e-5, slow(1e-7)])
def test_steps_away_from_zero_approach_the_limit_of_small_branches(name, c, small):
    """S/ρ is a polynomial in ρ from where differences have digits down to 1e-7."""
    net = ft.ResidualNetwork(depth=1, activation=name)

    def over(rho):
        K0 = [[1.0, c * 0.8**0.5], [c * 0.8**0.5, 0.8]]
        found = ft.solve(net.replace(branch_scale=rho), K0)
        return found.mean_shift[2, 0, 1] / rho

    rho = 1e-3 * np.array([0.5, 1.0, 2.0, 3.0, 4.5, 6.0])
    limit = np.linalg.solve(np.vander(rho, increasing=True), [over(one) for one in rho])
    expected = np.polynomial.polynomial.polyval(small, limit)
    assert over(small) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "slopes", "c", "rho"),
    [("abs", (1, -1), 0.9999, 0.1), ("abs", (1, -1), 0.9999, 1e-3), ("relu", (1, 0), -1.0, 1e-3)],
)
def test_nearly_parallel_and_opposite_inputs_of_ramps(name, slopes, c, rho):
    """The shift over ρ² grows ten times where branches are smaller than the angle of the inputs."""
    net = ft.ResidualNetwork(depth=1, activation=name, branch_scale=rho, skip_scale=1.0, width=1)
    net = net.replace(weight_variance=1, bias_variance=0, readout_weight_variance=1)
    K0 = [[1.0, c], [c, 1.0]]
    with mpmath.workdps(50):
        expected = float(ramp_pairs.shift(*slopes, K0, rho))
    found = ft.solve(net, K0).mean_shift[2, 0, 1]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-10 * rho**2)


def clipped(rho, K0, low, high):
    """N (⟨C⟩ − C*) of layer 2 of φ = max(low, min(x, high)), low <= 0.

    (a/2) M''(K^(1)) N Var K^(1) + a² ∂_{K_xx} ⟨g(x) ; g(y)⟩ of the layers 1 and 0, with g = φ² and
    g'' 2 between the kinks κ and −2 |κ| δ at them.
    """
    ends = [mpmath.mpf(low), mpmath.mpf(high)]

    def mean(m, s, power=1):
        """⟨g(m + s z)^power⟩ by moments of the normal law between the kinks."""
        a, b = ((end - m) / s for end in ends)
        moments = [mpmath.ncdf(b) - mpmath.ncdf(a), mpmath.npdf(a) - mpmath.npdf(b)]
        for n in range(1, 2 * power):
            edge = a**n * mpmath.npdf(a) - b**n * mpmath.npdf(b)
            moments.append(n * moments[n - 1] + edge)
        inside = sum(
            mpmath.binomial(2 * power, n) * m ** (2 * power - n) * s**n * moments[n]
            for n in range(2 * power + 1)
        )
        beyond = zip(ends, (a, -b), strict=True)
        return inside + sum(end ** (2 * power) * mpmath.ncdf(z) for end, z in beyond)

    a, root = mpmath.mpf(rho) ** 2, mpmath.sqrt(K0)
    first = mean(0, root)
    K1 = K0 + a * first
    dev, noise = mpmath.sqrt(K1), mpmath.sqrt(K1 - K0)

    def moved(x):
        """The density of h^(1) times ⟨g(h^(0))⟩ given it, less ⟨g⟩."""
        return (mean(K0 / K1 * x, noise * root / dev) - first) * mpmath.npdf(x, 0, dev)

    cuts = {end + sign * noise * 4**k for end in ends for sign in (1, -1) for k in range(8)}
    cuts = sorted({*ends, *(cut for cut in cuts if ends[0] < cut < ends[1])})
    slope = mpmath.quad(moved, cuts) - sum(abs(end) * moved(end) for end in ends)
    curvature = mpmath.diff(lambda K: mean(0, mpmath.sqrt(K)), K1, 2)
    variance = a**2 * (mean(0, root, 2) - first**2)
    return a * curvature * variance / 2 + a**2 * slope


@pytest.mark.parametrize(
    ("name", "low", "high", "K0"),
    [
        ("hardtanh", -1, 1, 0.4),
        slow("hardtanh", -1, 1, 0.05),
        slow("relu6", 0, 6, 2.0),
        slow("relu6", 0, 6, 30.0),
    ],
)
@pytest.mark.parametrize("rho", [1e-3, slow(1e-4), slow(1e-5), 1e-8])
def test_kinks_away_from_zero(name, low, high, K0, rho):
    """Of kernels that agree to all digits a kink sees the root of what rounding leaves."""
    net = ft.ResidualNetwork(depth=2, activation=name, branch_scale=rho, width=1)
    found = ft.solve(net.replace(weight_variance=1, bias_variance=0), K0).mean_shift[2]
    with mpmath.workdps(30):
        expected = float(clipped(rho, mpmath.mpf(K0), low, high))
    assert found == pytest.approx(expected, rel=1e-9 if rho > 1e-8 else 2e-8, abs=0)


@pytest.mark.parametrize("rho", [0.3, 1e-3])
def test_opposite_inputs_with_kinks(rho):
    """φ = |x|: with h_2 = −h_1 in layer 0 all g_e are one square, of which Price's theorem counts.

    N (⟨C_12⟩ − C*) of layer 2 is a³ K0² Σ_ee' ∂_e∂_e' M + 2 a² K0² Σ_ee' s_e ∂_e∂_e' M with the
    s of e = 11, 22, 12 being 1, 1, −1 and M = ⟨|x| |y|⟩.
    """
    net = ft.ResidualNetwork(depth=2, activation="abs", branch_scale=rho, width=1)
    K0 = 0.4
    net = net.replace(weight_variance=1, bias_variance=0)
    found = ft.solve(net, [[K0, -K0], [-K0, K0]]).mean_shift[2, 0, 1]

    def moment(x, y, xy):
        c = xy / mpmath.sqrt(x * y)
        return 2 / mpmath.pi * mpmath.sqrt(x * y) * (mpmath.sqrt(1 - c * c) + c * mpmath.asin(c))

    with mpmath.workdps(40):
        a, K = mpmath.mpf(rho) ** 2, mpmath.mpf(K0)
        at = K + a * K, K + a * K, -K + a * K
        units = np.eye(3, dtype=int)
        twice = [[mpmath.diff(moment, at, tuple(e + f)) for f in units] for e in units]
        sums = [mpmath.fsum(row) for row in twice]
        expected = a**3 * K**2 * sum(sums) + 2 * a**2 * K**2 * (sums[0] + sums[1] - sums[2])
    assert found == pytest.approx(float(expected), rel=1e-6, abs=0)


@pytest.mark.parametrize("name", ["elu", slow("hardtanh")])
def test_equal_inputs_are_one(name):
    """Without averages, of which there would be hours, beside a third input as well."""
    net = ft.ResidualNetwork(depth=3, activation=name, branch_scale=0.1)
    two = np.array([[0.5, 0.15], [0.15, 0.4]])
    known = ft.solve(net, two).mean_shift
    again = [0, 1, 0]
    found = ft.solve(net, two[again][:, again]).mean_shift
    np.testing.assert_allclose(found, known[:, again][:, :, again], rtol=1e-12)
    same = ft.solve(net, np.full((2, 2), 0.5)).mean_shift
    np.testing.assert_allclose(same, np.broadcast_to(known[:, :1, :1], same.shape), rtol=1e-12)


@pytest.mark.parametrize("norms", [(0.05, 0.05), (0.1, 0.25)])
def test_nearly_opposite_inputs_of_two_kinks_without_skip_connections(norms):
    """ReLU6: exponents over the determinant had overflowed, as if inputs were parallel."""
    K0 = np.diag(norms) - 0.9 * np.sqrt(np.prod(norms)) * np.array([[0.0, 1.0], [1.0, 0.0]])
    settings = {"branch_scale": 1e-3, "skip_scale": 0.0, "readout_bias_variance": 0.0}
    net = ft.ResidualNetwork(depth=1, activation="relu6", **settings)
    s, layers = ft.solve(net, K0), layer_coefficients(net)
    (_, *a), (_, b, _) = layers.weights.ravel(), layers.biases.ravel()
    dense = ShallowPair(lambda h: np.clip(h, 0, 6), (0, 6), K0, 0.0, tuple(a), b, width=2.0)
    shift, order = net.width * s.mean_shift[2][[0, 1, 0], [0, 1, 1]], [0, 2, 1]
    np.testing.assert_allclose(shift, dense.shift, atol=1e-10 * np.abs(dense.shift).max())
    for G11, expected in zip((s.G11[2, 2], s.G11[1, 2]), dense.covariance, strict=True):
        value = net.width * G11[order][:, order]
        np.testing.assert_allclose(value, expected, atol=1e-11 * np.abs(expected).max())
    deep = ft.solve(net.replace(depth=3), K0)
    own = deep.G11[-1, -1].diagonal()
    # Biases make them one signal.
    np.testing.assert_allclose(deep.G11[-1, -1], own[0], rtol=1e-6)
    assert np.isfinite(deep.mean_shift).all()
