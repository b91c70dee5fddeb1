"""Correlators of several inputs whose Hermite coefficients fall off slowly: wide, with kinks."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.tolerance import relative_tolerance
from fieldtheory.numerics.correlators import common_inputs, wide_correlators
from fieldtheory.numerics.observables import wide_observables
from fieldtheory.numerics.observables.pair_modes import packed_size
from fieldtheory.numerics.several_inputs import pair_fluctuations
from tests.oracles.several_inputs import kinked_nodes
from tests.tables import slow

NET = ft.ResidualNetwork(depth=3, activation="tanh", width=50)
KERNELS = {
    "usual": 12 * np.eye(3) + [[0, 4, -2], [4, 0, 1], [-2, 1, 0]],
    "very different": [[16.0, 2.0, 0.1], [2.0, 9.0, 0.2], [0.1, 0.2, 0.5]],
    "correlated": [[14.0, 12.0, 11.0], [12.0, 15.0, 12.5], [11.0, 12.5, 13.0]],
    "hardly correlated": 14 * np.eye(3) + 1e-7,
    "the same": [[12.0, 12.0, 3.0], [12.0, 12.0, 3.0], [3.0, 3.0, 13.0]],
    "opposite": [[12.0, -12.0, 3.0], [-12.0, 12.0, -3.0], [3.0, -3.0, 13.0]],
    "one that vanishes": [[12.0, 0.0, 3.0], [0.0, 0.0, 0.0], [3.0, 0.0, 13.0]],
}


def signals_of(K0, net=NET):
    return ft.solve(net, np.array(K0)).pair_theory.signals


def deviation(found, expected):
    """The largest difference, relative to deviations."""
    sizes = np.sqrt(np.einsum("lplp->lp", expected))
    product = sizes[:, :, None, None] * sizes
    return np.max(np.abs(found - expected)[product > 0] / product[product > 0])


@pytest.mark.parametrize(
    ("name", "rtol"),
    [*((name, 1e-5) for name in ("correlated", "one that vanishes"))]
    + [slow(name, 1e-5) for name in ("the same", "opposite")]
    + [slow(name, 1e-9) for name in KERNELS if name not in ("the same", "opposite")],
)
def test_the_same_as_averages(name, rtol):
    """Which take planes and grids of two signals each."""
    K0 = KERNELS[name]
    signals = signals_of(K0)
    with relative_tolerance(rtol):
        plan = wide_correlators.orders(signals)
        assert plan.error <= rtol
        found = wide_correlators.correlators(signals, plan)
    with relative_tolerance(1e-9):
        expected = pair_fluctuations._pair_by_pair(signals_of(K0))
    assert deviation(found, expected) < rtol
    np.testing.assert_allclose(found, found.transpose(2, 3, 0, 1), rtol=0, atol=1e-14)


def on_even_grid(covariance, step):
    """⟨tanh h_0 tanh h_1 ; tanh h_a tanh h_b⟩ with the last two of three or four signals."""
    z = step * (np.arange(-int(6.5 / step), int(6.5 / step)) + 0.5)
    w = np.exp(-(z**2) / 2)
    w /= w.sum()
    size, root = len(covariance), np.linalg.cholesky(covariance)
    signals, weights = [np.zeros((1,) * size)] * size, np.ones((1,) * size)
    for i in range(size):
        shape = [1] * size
        shape[i] = -1
        weights = weights * w.reshape(shape)
        signals = [h + r * z.reshape(shape) for h, r in zip(signals, root[:, i], strict=True)]
    h = [np.tanh(h) for h in signals]
    f, g = h[0] * h[1], (h[0] * h[2] if size == 3 else h[2] * h[3])
    return (weights * (f - (weights * f).sum()) * (g - (weights * g).sum())).sum()


@pytest.mark.parametrize(
    ("k", "l", "factor", "step", "rtol"),
    [(0, 0, 1.0, 0.16, 5e-9), (0, 1, 0.4, 0.26, 1e-7), slow(1, 3, 0.6, 0.22, 1e-7)],
)
def test_a_sum_over_three_and_four_signals(k, l, factor, step, rtol):
    """Of pairs of three inputs of which one is common."""
    K0 = factor * np.array([[6.0, 2.0, -1.0], [2.0, 5.0, 1.5], [-1.0, 1.5, 4.0]])
    signals = signals_of(K0)
    found = wide_correlators.correlators(signals, wide_correlators.orders(signals))
    K, early, late = signals.K, [0, 1], [0, 2]
    between = K[k][np.ix_(early, late)]
    four = [[K[k][np.ix_(early, early)], between], [between.T, K[l][np.ix_(late, late)]]]
    expected = on_even_grid(K[k] if k == l else np.block(four), step)
    np.testing.assert_allclose(found[k, 1, l, 2], expected, rtol=rtol)


SHAPES = {
    "arctan": 1e-5,
    "softsign": 1e-7,
    "elu": 1e-9,
    "hardtanh": 1e-5,
    "h*exp(-abs(h))": 1e-5,
    "sin(h) + heaviside(h - 0.3)": 1e-3,
    "exp(-h**2)": 1e-5,
}


@pytest.mark.parametrize(
    ("name", "rtol"),
    [(name, SHAPES[name]) for name in ("arctan", "softsign")]
    + [slow(*each) for each in SHAPES.items() if each[0] not in ("arctan", "softsign")],
)
def test_features_of_other_shape(name, rtol):
    """With kinks and without."""
    net = ft.ResidualNetwork(depth=2, activation=name, width=50, skip_scale=0.9)
    K0 = np.array([[5.0, 2.0, -1.5], [2.0, 4.0, 2.0], [-1.5, 2.0, 3.0]])
    with relative_tolerance(rtol):
        signals = signals_of(K0, net)
        plan = wide_correlators.orders(signals)
        assert plan.error <= rtol
        found = wide_correlators.correlators(signals, plan)
    with relative_tolerance(min(rtol, 1e-8)):
        expected = pair_fluctuations._pair_by_pair(signals_of(K0, net))
    assert deviation(found, expected) < rtol


@pytest.mark.parametrize(("name", "kinks"), [("elu", (0.0,)), ("hardtanh", (-1.0, 1.0))])
def test_kinks_of_three_signals(name, kinks):
    """Within a layer, by nodes between kinks."""
    net = ft.ResidualNetwork(depth=1, activation=name, width=50)
    K0 = np.array([[2.0, 0.6, -0.5], [0.6, 1.0, 0.4], [-0.5, 0.4, 1.5]])
    signals = signals_of(K0, net)
    found = common_inputs.correlators(signals, 0, 114)
    h, w = kinked_nodes(K0, 24, kinks)
    phi = np.where(h > 0, h, np.expm1(h)) if name == "elu" else np.clip(h, -1, 1)
    alpha, beta = np.triu_indices(3)
    g = phi[alpha] * phi[beta]
    g -= (g @ w)[:, None]
    expected = (g * w) @ g.T
    shared = ~np.isnan(found)
    np.testing.assert_allclose(found[shared], expected[shared], rtol=0, atol=1e-11)
    # All but αα with βγ.
    assert np.count_nonzero(~shared) == 6 + 6


@pytest.mark.parametrize(("name", "P"), [("elu", 4), slow("softsign", 6)])
def test_kinks_of_many_inputs(name, P):
    """Whose averages over four signals would take minutes."""
    inputs, two = np.random.default_rng(0).standard_normal((P, 9)) / 3, [1, 3]
    net, K0 = ft.ResidualNetwork(depth=P // 2, activation=name), inputs @ inputs.T
    found, expected = ft.solve(net, K0).G11, ft.solve(net, K0[np.ix_(two, two)]).G11
    alpha, beta = np.triu_indices(P)
    (chosen,) = np.nonzero(np.isin(alpha, two) & np.isin(beta, two))
    part = found[:, :, chosen[:, None], chosen]
    size = np.sqrt(np.einsum("llee->le", expected))
    assert (np.abs(part - expected) <= 1e-9 * size[:, None, :, None] * size[None, :, None]).all()


@pytest.mark.parametrize("name", ["softsign", "hardtanh", "sign(h - 0.3)"])
def test_what_is_left_out_of_kinks(name):
    """Is less than is said, and not by orders of magnitude."""
    signals = signals_of([[5.0, 2.0], [2.0, 4.0]], ft.ResidualNetwork(depth=1, activation=name))
    every = np.arange(3)
    squares = wide_observables.expanded(signals, 640, [1], every)[0, :, 1:] ** 2
    rest = squares[:, packed_size(160) - 1 :].sum(axis=1) / squares.sum(axis=1)
    said, missed = wide_observables.left_out(signals, 160)
    assert rest.max() < said < 100 * rest.max()
    assert missed < 1e-13


@pytest.mark.slow
def test_many_inputs_fluctuate_as_two_of_them():
    """Where rows correlate strongly, averages over four signals have not enough digits."""
    X = np.random.default_rng(0).normal(size=(7, 4))
    K0, two = 4 * X @ X.T, [1, 4]
    found = ft.solve(NET, K0, rtol=1e-6)
    expected = ft.solve(NET, K0[np.ix_(two, two)]).G11
    alpha, beta = np.triu_indices(7)
    (chosen,) = np.nonzero(np.isin(alpha, two) & np.isin(beta, two))
    part = found.G11[:, :, chosen[:, None], chosen]
    size = np.sqrt(np.einsum("llee->le", expected))
    assert (np.abs(part - expected) <= 1e-6 * size[:, None, :, None] * size[None, :, None]).all()


def test_more_orders_than_there_are():
    """Wider signals take them; the error says what can be asked for."""
    signals = signals_of(np.diag([400.0, 300.0, 200.0]) + 50)
    plan = wide_correlators.orders(signals)
    assert plan.error > signals.allowed
    assert plan.counts.max() == wide_correlators._COUNTS[-1]
