"""Two nearly parallel inputs of φ with kinks: brute force, closed forms, ramps at 50 digits."""

from itertools import product

import mpmath
import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks import ResidualNetwork
from fieldtheory.numerics.correlators import two_inputs
from fieldtheory.numerics.correlators.four_inputs import connected
from fieldtheory.numerics.correlators.two_inputs import TwoInputs
from fieldtheory.numerics.kinks.parallel_curvatures import covariance_curvature
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.observables.pair_observables import feature_expressions, kinked_features
from tests.oracles import ramp_pairs
from tests.oracles.several_inputs import kinked_nodes
from tests.tables import slow

# φ, φ', φ'' between the kinks, and the jump of φ' at each of them.
PHI = {
    "softsign": (
        lambda h: h / (1 + np.abs(h)),
        lambda h: (1 + np.abs(h)) ** -2.0,
        lambda h: -2 * np.sign(h) * (1 + np.abs(h)) ** -3.0,
        {0.0: 0.0},
    ),
    "elu": (
        lambda h: np.where(h > 0, h, np.expm1(np.minimum(h, 0))),
        lambda h: np.where(h > 0, 1.0, np.exp(np.minimum(h, 0))),
        lambda h: np.where(h > 0, 0.0, np.exp(np.minimum(h, 0))),
        {0.0: 0.0},
    ),
    "hard_tanh": (
        lambda h: np.clip(h, -1, 1),
        lambda h: 1.0 * (np.abs(h) < 1),
        lambda h: 0 * h,
        {-1.0: 1.0, 1.0: -1.0},
    ),
}


def two(name, C):
    """Layers that add C, without a skip scale."""
    size = len(C)
    psi = kinked_features(ResidualNetwork(depth=1, activation=name))
    return TwoInputs(psi, np.cumsum(C, axis=0), np.array(C), np.tril(np.ones((size, size))))


def equal(variance, c):
    return variance * np.array([[1, c], [c, 1]])


def gauss(edges, count):
    """Nodes and weights of a normal law on panels that end at edges (..., n)."""
    x, w = np.polynomial.legendre.leggauss(count)
    low, high = edges[..., :-1, None], edges[..., 1:, None]
    z = (low + high) / 2 + (high - low) / 2 * x
    weights = (high - low) / 2 * w * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    shape = (*edges.shape[:-1], -1)
    return z.reshape(shape), weights.reshape(shape)


def panels(places, width):
    """Ends of even panels, and places (..., n)."""
    even = np.linspace(-8.4, 8.4, 2 * round(8.4 / width) + 1)
    even = np.broadcast_to(even, (*places.shape[:-1], len(even)))
    return np.sort(np.clip(np.concatenate([even, places], axis=-1), -8.4, 8.4), axis=-1)


def brute_force(name, early, late, count):
    """⟨g_αβ^(0) ; g_αβ^(1)⟩, and ∂_e ⟨g_αβ^(1) ; g_αα^(0)⟩ by e = αα, ββ, αβ, of equal variances.

    In half sums and half differences of the signals, which are independent, panel by panel.

    Parameters
    ----------
    early, late : tuple
        The variance of signals and their correlation, in layer 0 and of what layer 1 adds.
    """
    phi, slope, curve, jumps = PHI[name]
    kinks = np.array(list(jumps))
    sums, differences = (
        [np.sqrt(variance * (1 + side * c) / 2) for variance, c in (early, late)]
        for side in (1, -1)
    )
    together, of_early, of_late = np.zeros((2, 4)), np.zeros(2), np.zeros(4)
    u, of_u = gauss(panels(np.zeros(1), 4.2), count)
    for w, of_w in zip(differences[0] * u, of_u, strict=True):
        z, of_z = gauss(panels(np.append(kinks - w, kinks + w) / sums[0], 0.84), 12)
        x, y = sums[0] * z + w, sums[0] * z - w
        g = np.array([phi(x) * phi(y), phi(x) ** 2]) * of_w * of_z
        of_early += g.sum(axis=1)
        v, of_v = gauss(panels(np.array([-w / differences[1]]), 4.2), count)
        for n, of_n in zip(w + differences[1] * v, of_v, strict=True):
            places = (np.append(kinks - n, kinks + n) - sums[0] * z[:, None]) / sums[1]
            m, of_m = gauss(panels(places, 2.8), 14)
            centre = sums[0] * z[:, None] + sums[1] * m
            x, y = centre + n, centre - n
            bent = curve(x) * phi(y) / 2, phi(x) * curve(y) / 2
            late = of_m * np.array([phi(x) * phi(y), *bent, slope(x) * slope(y)])
            given = late.sum(axis=-1) * of_n
            for (kink, jump), (e, side) in product(jumps.items(), ((1, 1), (2, -1))):
                # φ'' of a jump of φ', with the signal at the kink.
                at = (kink - side * n - sums[0] * z) / sums[1]
                bell = np.exp(-at * at / 2) / np.sqrt(2 * np.pi) / sums[1]
                given[e] += of_n * jump / 2 * bell * phi(kink - 2 * side * n)
            together += g @ given.T
            of_late += of_w * given @ of_z
    connected = together - np.outer(of_early, of_late)
    return np.array([connected[0, 0], *connected[1, 1:]])


@pytest.mark.parametrize(
    ("name", "early", "late", "count", "rtol"),
    [
        ("softsign", (1.0, 0.9999), (0.05, 0.9998), 7, 1e-5),
        slow("softsign", (1.0, 0.9999), (0.05, 0.9998), 14, 1e-9),
        slow("elu", (0.7, 0.99999), (0.03, 0.9999), 14, 1e-9),
        slow("hard_tanh", (1.0, 0.9999), (0.05, 0.9998), 14, 1e-9),
        slow("hard_tanh", (0.5, 0.999999), (0.1, 0.999998), 14, 1e-9),
    ],
)
def test_brute_force(name, early, late, count, rtol):
    layers = two(name, [equal(*early), equal(*late)])
    slopes = next(layers.slopes())[..., 0]
    found = [layers.of_layer(0)[2, 2, 1], *slopes[:, 0]]
    np.testing.assert_allclose(found, brute_force(name, early, late, count), rtol=rtol)


@pytest.mark.parametrize(
    ("name", "added", "c"),
    [
        ("softsign", 0.05, 0.99),
        *[slow(name, 0.05, c) for name in ("elu", "hard_tanh", "relu6") for c in (0.98, -0.99)],
        slow("softsign", 1e-6, 0.99),
        slow("heaviside(x)", 0.05, 0.98),
        slow("selu", 3.0, -0.98),
        slow("elu", 0.05, 0.3),
    ],
)
def test_nodes_on_panels_and_factors(name, added, c, monkeypatch):
    """Where few nodes of common factors do as well, also of inputs of different variances."""
    C = [[[1.0, 1.3 * c], [1.3 * c, 1.69]], added * np.array([[1.0, c], [c, 1.1]])]
    found = []
    for few in (np.inf, 0.0):
        for name_of in ("_MANY", "_MANY_TOGETHER"):
            monkeypatch.setattr(two_inputs, name_of, few)
        layers = two(name, C)
        found.append([*layers.of_layer(0).ravel(), *next(layers.slopes()).ravel()])
    scale = np.abs(found[0]).max()
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10, atol=1e-11 * scale)


@pytest.mark.parametrize("name", ["hard_tanh", slow("relu6"), slow("relu")])
@pytest.mark.parametrize("c", [1 - 1e-4, slow(1 - 1e-6), slow(-1 + 1e-5)])
def test_closed_forms(name, c):
    C = [equal(1.2, c), equal(0.1, c)]
    layers = two(name, C)
    K = np.block([[C[0], C[0]], [C[0], C[0] + C[1]]])
    pairs = [(0, 0), (1, 1), (0, 1)]
    g = network_entries(ResidualNetwork(depth=1, activation=name)).averages.observable
    for l in (0, 1):
        found = layers.of_layer(0)[..., l]
        for e, f in product(range(3), range(3)):
            if e != f or e == 2:
                four = np.array([*pairs[e], *(one + 2 * l for one in pairs[f])])[:, None]
                expected = connected(g, K, four)[0]
                assert found[e, f] == pytest.approx(expected, rel=1e-10)


# N (⟨C⟩ − C*) of one layer of σ_w² = 1, σ_b² = 0, as `ramp_pairs` finds it with 50 digits.
RAMPS = [
    ("relu", (1, 0), 0.9999, 1e-4, 2.4997500033770428e-09),
    ("relu", (1, 0), 0.9999, 1e-6, 2.4997500033774177e-13),
    ("relu", (1, 0), 1 - 1e-6, 1e-4, 2.499997499999963e-09),
    ("relu", (1, 0), -0.9999, 1e-3, -1.1252219100426362e-09),
    ("abs", (1, -1), 0.9999, 1e-4, -1.1949347046188503e-14),
    ("abs", (1, -1), -0.9999, 1e-6, -1.8004681135458523e-14),
]


@pytest.mark.parametrize(("name", "slopes", "c", "rho", "expected"), RAMPS)
def test_mean_shift_of_ramps(name, slopes, c, rho, expected):
    net = ResidualNetwork(depth=1, activation=name, branch_scale=rho, width=1)
    net = net.replace(weight_variance=1, bias_variance=0, readout_weight_variance=1)
    found = ft.solve(net, [[1.0, c], [c, 1.0]]).mean_shift[2, 0, 1]
    assert found == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "slopes", "c", "rho", "expected"), RAMPS)
def test_the_shifts_of_ramps_are_those_of_50_digits(name, slopes, c, rho, expected):
    with mpmath.workdps(50):
        shift = ramp_pairs.shift(*slopes, [[1.0, c], [c, 1.0]], rho)
    assert float(shift) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("c", [0.995, -0.9999, 1 - 1e-6, 1 - 1e-10])
def test_fourth_derivatives_of_relu(c):
    """⟨δ''(x) max(y, 0)⟩ in closed form, with 1 − c² to all digits."""
    K = np.array([0.7, 1.1])
    left = (1 - c) * (1 + c)
    share, s = c * np.sqrt(K[1] / K[0]), np.sqrt(K[1] * left)
    expected = (share**2 / s - s / K[0]) / (2 * np.pi * np.sqrt(K[0])) / 4
    psi = feature_expressions(ResidualNetwork(depth=1, activation="relu"))
    found = covariance_curvature(psi, *K[:, None], np.array([c * np.sqrt(K.prod())]))
    assert found[0] == pytest.approx(expected, rel=1e-12 + 3e-16 / left)


@pytest.mark.parametrize("c", [0.995, -0.9999, 1 - 1e-6, 1 - 1e-10])
@pytest.mark.parametrize("place", [0.0, 0.4])
def test_curvatures_of_steps(c, place):
    """⟨θ(x − t) θ(y − t)⟩ has the slope N_2(t, t) by K_xy, by K_xx the tail of y beyond x = t."""
    psi = feature_expressions(ResidualNetwork(depth=1, activation=f"heaviside(h-{place})"))
    x, y, xy = 0.7, 0.7, 0.7 * c
    found = covariance_curvature(psi, *np.array([[x], [y], [xy]]))[:, 0]
    with mpmath.workdps(50):
        t = mpmath.mpf(place)

        def density(a, b, r):
            det = a * b - r * r
            form = t**2 * (a + b - 2 * r) / det
            return mpmath.exp(-form / 2) / (2 * mpmath.pi * mpmath.sqrt(det))

        def by_own(a, b, r):
            """(1/2) ⟨δ'(x − t) θ(y − t)⟩ = −(1/2) ∂_t' p(t') P(y > t | x = t') at t' = t."""
            det = a * b - r * r
            bell = mpmath.exp(-(t**2) / (2 * a)) / mpmath.sqrt(2 * mpmath.pi * a)
            tail = mpmath.erfc((t - r * t / a) / mpmath.sqrt(2 * det / a)) / 2
            return (t / a * bell * tail - r / a * density(a, b, r)) / 2

        at = tuple(map(mpmath.mpf, (x, y, xy)))
        expected = [
            mpmath.diff(by_own, at, (1, 0, 0)),
            mpmath.diff(by_own, at, (0, 1, 0)),
            mpmath.diff(by_own, at, (0, 0, 1)),
            mpmath.diff(density, at, (0, 0, 1)),
        ]
    np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-9)


BENT = {
    "hard_swish": (lambda h: h * np.clip(h + 3, 0, 6) / 6, (-3.0, 3.0)),
    "(h-1)/(1+abs(h-1))": (lambda h: (h - 1) / (1 + np.abs(h - 1)), (1.0,)),
    "heaviside(h-0.7)*cos(h)": (lambda h: np.heaviside(h - 0.7, 0.5) * np.cos(h), (0.7,)),
}


@pytest.mark.parametrize("name", BENT)
@pytest.mark.parametrize("K", [1.0, 2.3])
@pytest.mark.parametrize("c", [0.0, 1e-4, 0.05, -0.1, 0.3])
def test_curvatures_of_functions_that_bend_at_kinks(name, K, c):
    """At small correlations too, where y given x has no kinks that x could see."""
    phi, kinks = BENT[name]
    kernel = K * np.array([[1.0, c], [c, 1.0]])
    h, w = kinked_nodes(kernel, 40, kinks)
    u, inverse = np.linalg.solve(kernel, h), np.linalg.inv(kernel)
    fourth = u[0] ** 4 - 6 * inverse[0, 0] * u[0] ** 2 + 3 * inverse[0, 0] ** 2
    third = u[0] ** 3 * u[1] - 3 * inverse[0, 1] * u[0] ** 2
    third += 3 * inverse[0, 0] * (inverse[0, 1] - u[0] * u[1])
    twice = (u[0] ** 2 - inverse[0, 0]) * (u[1] ** 2 - inverse[1, 1])
    twice += 2 * inverse[0, 1] ** 2 - 4 * inverse[0, 1] * u[0] * u[1]
    values = w * phi(h[0]) * phi(h[1])
    expected = [values @ fourth / 4, values @ twice / 4, values @ third / 2, values @ twice]
    psi = feature_expressions(ResidualNetwork(depth=1, activation=name))
    found = covariance_curvature(psi, *np.array([[K], [K], [c * K]]))[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


ANGLES = 1e-3 * np.array([2, 3, 5, 8, 13, 20, 30, 45, 60, 75, 90, 105, 120, 135])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softsign", "elu", "selu", "hard_tanh"])
@pytest.mark.parametrize("sign", [1, -1])
def test_analytic_in_the_angle(name, sign):
    """Polynomials of ten coefficients have the values at fourteen angles."""
    net = ResidualNetwork(depth=1, activation=name, branch_scale=0.3)
    basis = np.polynomial.legendre.legvander(ANGLES / 0.07 - 1, 9)
    values = []
    for angle in ANGLES:
        c = sign * np.cos(angle)
        s = ft.solve(net, [[1.0, c], [c, 1.0]])
        values.append([s.mean_shift[2, 0, 1], s.G11[2, 2, 1, 1], s.G11[2, 2, 0, 1]])
    fitted = basis @ np.linalg.lstsq(basis, np.array(values), rcond=None)[0]
    np.testing.assert_allclose(values, fitted, rtol=1e-9)
