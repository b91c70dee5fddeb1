"""Correlators of signals with kinks by common factors: dense rules, singular and near signals."""

import numpy as np
import pytest
from scipy.special import ndtr

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks import ResidualNetwork
from fieldtheory.numerics.correlators.common_factors import FourSignals
from fieldtheory.numerics.correlators.four_inputs import connected
from fieldtheory.numerics.layer_averages.entries import network_entries
from tests.oracles.several_inputs import in_a_plane, kinked_nodes
from tests.tables import slow

PHI = {
    "abs": np.abs,
    "softsign": lambda h: h / (1 + np.abs(h)),
    "elu": lambda h: np.where(h > 0, h, np.expm1(np.minimum(h, 0))),
    "selu": lambda h: 1.0507 * np.where(h > 0, h, 1.6733 * np.expm1(np.minimum(h, 0))),
    "falling": lambda h: h * np.exp(-np.abs(h)),
    "step": lambda h: np.where(h > 0, 1.0, 0.2),
    "hard_tanh": lambda h: np.clip(h, -1, 1),
    "shifted": lambda h: np.abs(h - 0.7) / (1 + np.abs(h + 0.4)),
}
KINKS = {"hard_tanh": (-1.0, 0.0, 1.0), "shifted": (-0.4, 0.0, 0.7)}


def correlator(name, X, four=(0, 1, 2, 3)):
    return FourSignals([PHI[name]], KINKS.get(name, (0.0,)), X @ X.T).connected(four)


def factors(kind, rank, scale, seed=0):
    """Of four signals, shape (4, rank)."""
    X = np.random.default_rng(seed).normal(size=(4, rank))
    if kind == "near":
        X[1] = X[0] + 1e-3 * X[1]
        X[3] = -X[2] + 1e-3 * X[3]
    if kind == "layers":
        X[2:] = X[:2] + 0.3 * X[2:]
    return np.sqrt(scale) * X


@pytest.mark.parametrize("name", ["softsign", "elu", slow("selu"), slow("falling"), slow("step")])
@pytest.mark.parametrize("kind", ["any", "near", "layers"])
@pytest.mark.parametrize("scale", [0.3, slow(0.01), slow(30.0)])
def test_four_signals_in_a_plane(name, kind, scale):
    """All directions are shared: in planes of any two signals, too."""
    X = factors(kind, 2, scale)
    exact, size = in_a_plane(PHI[name], X)
    assert abs(correlator(name, X) - exact) < 1e-10 * size


@pytest.mark.parametrize(
    ("name", "seed", "count"),
    [
        ("softsign", 1, 14),
        *[
            slow(name, seed, 26)
            for name in ("softsign", "elu", "selu", "falling", "step", "abs")
            for seed in (2, 3)
        ],
        slow("hard_tanh", 2, 18),
        slow("shifted", 2, 18),
    ],
)
def test_against_one_signal_after_the_other(name, seed, count):
    """Of correlations that the dense rule resolves."""
    X = 0.7 * (np.eye(4) + factors("any", 4, 0.1, seed))
    kinks = tuple(sorted({*KINKS.get(name, (0.0,))}))
    h, w = kinked_nodes(X @ X.T, count, kinks)
    a, b, c, d = PHI[name](h)
    f, g = a * b - w @ (a * b), c * d - w @ (c * d)
    exact, size = w @ (f * g), np.sqrt((w @ f**2) * (w @ g**2))
    assert abs(correlator(name, X) - exact) < (1e-9 if count > 14 else 1e-6) * size


@pytest.mark.parametrize("kind", ["shared", "squares", "equal"])
@pytest.mark.parametrize("name", ["abs", slow("softsign"), slow("elu")])
def test_signals_that_occur_twice(kind, name):
    four = {"shared": (0, 1, 0, 2), "squares": (0, 0, 1, 2), "equal": (0, 1, 0, 1)}[kind]
    X = factors("any", 4, 0.5, seed=1)[:3]
    h, w = kinked_nodes(X @ X.T, 24)
    a, b, c, d = PHI[name](h)[list(four)]
    exact = w @ (a * b * c * d) - (w @ (a * b)) * (w @ (c * d))
    assert abs(correlator(name, X, four) - exact) < 1e-10


def test_on_a_line():
    """|h| of multiples of one signal."""
    x = np.array([[0.3], [-2.0], [1.1], [0.7]])
    product = np.prod(np.abs(x))
    assert abs(correlator("abs", x) - 2 * product) < 1e-12 * product


@pytest.mark.parametrize("order", [(2, 3, 0, 1), (1, 0, 2, 3), (3, 2, 1, 0)])
def test_order_of_the_signals(order):
    X = factors("layers", 4, 0.5)
    assert correlator("elu", X, order) == pytest.approx(correlator("elu", X), rel=1e-10)


@pytest.mark.parametrize(
    ("c", "added", "four"),
    [
        (0.9999, 1e-6, (0, 1, 3, 5)),
        *[slow(1 - 1e-5, 1e-3, four) for four in ((0, 1, 0, 2), (0, 1, 3, 5), (0, 0, 4, 5))],
        slow(1 - 1e-6, 1e-6, (0, 2, 4, 5)),
        slow(1 - 1e-6, 1e-6, (0, 1, 3, 5)),
    ],
)
def test_nearly_parallel_inputs_beside_a_third(c, added, four):
    """Of hard tanh in closed form, in layers that add little."""
    C = np.array([[1.0, c, 0.5], [c, 1.0, 0.5], [0.5, 0.5, 1.0]])
    K = np.block([[C, C], [C, (1 + added) * C]])
    g = network_entries(ResidualNetwork(depth=1, activation="hard_tanh")).averages.observable
    found = FourSignals([PHI["hard_tanh"]], KINKS["hard_tanh"], K, True).connected(four)
    expected = connected(g, K, np.array(four)[:, None])[0]
    assert found == pytest.approx(expected, rel=1e-10)


def test_what_is_too_steep_is_an_error():
    steep = FourSignals([lambda h: np.sin(500 * h)], (0.0,), np.eye(4) + 1)
    with pytest.raises(QuadratureError, match="did not converge"):
        steep.connected((0, 1, 2, 3))


def test_signals_that_nearly_depend_on_each_other_are_an_error():
    X = factors("any", 3, 1.0)
    X = np.hstack([X, 1e-4 * np.eye(4)[:, :1]])
    with pytest.raises(QuadratureError, match="nearly dependent"):
        correlator("elu", X)


@pytest.mark.parametrize("variance", [0.05, 0.025])
def test_signals_that_hardly_reach_a_jump(variance):
    """Θ(h − 1): ∫∫ over what is beyond of the bell times that of the later layer, nested."""
    first = variance * np.array([[1.0, 0.5], [0.5, 1.0]])
    noise = 0.0045 * np.array([[1.0, 0.6], [0.6, 1.0]])
    K = np.block([[first, first], [first, first + noise]])
    four = FourSignals([lambda h: np.heaviside(h - 1, 0.5)], (0.0, 1.0), K)
    x, w = np.polynomial.legendre.leggauss(40)

    def beyond(means, K):
        """P(h_1 > 1, h_2 > 1) of the means (..., 2)."""
        low = (1 - means[..., 0]) / np.sqrt(K[0, 0])
        high = np.maximum(low, 0) + 9
        z = (low + high)[..., None] / 2 + (high - low)[..., None] / 2 * x
        bell = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * w * (high - low)[..., None] / 2
        share, rest = K[0, 1] / np.sqrt(K[0, 0]), K[1, 1] - K[0, 1] ** 2 / K[0, 0]
        return (bell * ndtr((means[..., 1, None] + share * z - 1) / np.sqrt(rest))).sum(axis=-1)

    step = 0.5 * (1 + x)
    h = np.stack(np.meshgrid(1 + step, 1 + step, indexing="ij"), axis=-1)
    form = np.einsum("...i,ij,...j->...", h, np.linalg.inv(first), h)
    weights = np.multiply.outer(w, w) / 4 * np.exp(-form / 2)
    weights /= 2 * np.pi * np.sqrt(np.linalg.det(first))
    of_layers = [beyond(np.zeros(2), each) for each in (first, first + noise)]
    expected = np.sum(weights * beyond(h, noise)) - np.prod(of_layers)
    np.testing.assert_allclose(four.connected((0, 1, 2, 3)), expected, rtol=3e-10)
    p = ndtr(-1 / np.sqrt(variance))
    np.testing.assert_allclose(four.connected((0, 0, 0, 0)), p * (1 - p), rtol=1e-12)
