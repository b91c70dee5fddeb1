"""Several inputs whose signals are too wide for modes: averages, how long they take, errors."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.tolerance import relative_tolerance
from fieldtheory.numerics.layer_averages.entries import network_entries
from tests.numerics.pair_examples import OPPOSED, THREE, TWO, network, of_pairs
from tests.tables import slow

FEW = "fieldtheory.numerics.observables.pair_observables._COUNTS"


@pytest.mark.parametrize(
    ("name", "gamma", "K0"),
    [
        ("tanh", 0.7, TWO),
        slow("gelu", -0.7, TWO),
        slow("logistic", 1.0, OPPOSED),
        ("erf", 1.0, THREE),
    ],
)
def test_signals_that_modes_do_not_resolve(name, gamma, K0, monkeypatch):
    """Factors that two inputs have in common, and averages, agree with modes."""
    net = network(name, gamma, 3)
    known = ft.solve(net, K0)
    G11, shift = known.G11, known.mean_shift
    monkeypatch.setattr(FEW, (12,))
    s = ft.solve(net, K0)
    np.testing.assert_allclose(s.mean_shift, shift, rtol=0, atol=1e-9 * np.abs(shift).max())
    np.testing.assert_allclose(s.G11, G11, rtol=0, atol=1e-9 * G11.max())
    # Without G11.
    alone = ft.solve(net, K0).mean_shift
    np.testing.assert_allclose(alone, s.mean_shift, rtol=1e-12, atol=1e-18)


@pytest.mark.parametrize("name", [slow("tanh"), "erf"])
def test_wide_signals(name):
    """Deep networks whose signals grow: what is known of single inputs, and nothing impossible."""
    net, K0 = ft.ResidualNetwork(depth=14, activation=name), [[0.05, 0.03], [0.03, 0.05]]
    s, one = ft.solve(net, K0), ft.solve(net, 0.05)
    for at in (0, 2):
        np.testing.assert_allclose(s.G11[:, :, at, at], one.G11, rtol=1e-8, atol=1e-16)
    assert np.linalg.eigvalsh(of_pairs(s.G11)).min() > -1e-9 * s.G11.max()
    np.testing.assert_allclose(s.mean_shift[:, 0, 0], one.mean_shift, rtol=1e-9, atol=1e-16)


def test_steep_functions(monkeypatch):
    """Wide opposite signals: averages, and for many inputs an error that says so."""
    monkeypatch.setattr(FEW, (12, 56))
    net, K0 = ft.ResidualNetwork(depth=1, activation="tanh"), [[20.0, -19.0], [-19.0, 30.0]]
    s, one = ft.solve(net, K0), ft.solve(net, 20.0)
    np.testing.assert_allclose(s.G11[:, :, 0, 0], one.G11, rtol=1e-8, atol=1e-16)
    assert np.linalg.eigvalsh(of_pairs(s.G11)).min() > -1e-9 * s.G11.max()


@pytest.mark.parametrize(
    ("name", "scale", "off"),
    [
        ("tanh", 3.0, 1e-6),
        slow("tanh", 100.0, 1e-6),
        slow("tanh", 300.0, 0.0),
        slow("sin", 10.0, 1e-6),
        slow("arctan", 100.0, 0.0),
        slow("tanhshrink", 100.0, 1e-6),
    ],
)
def test_wide_inputs_and_the_opposite_of_one(name, scale, off, monkeypatch):
    """Odd φ: what four signals of which two are opposite do is known from those of two inputs."""
    monkeypatch.setattr(FEW, (12,))
    c = 1 - off
    K0 = scale * np.array([[1.0, c, -1.0], [c, 1.0, -c], [-1.0, -c, 1.0]])
    net = network(name, 0.7, 1, bias_variance=0.0, readout_bias_variance=0.0)
    s, two = ft.solve(net, K0), ft.solve(net, K0[:2, :2])
    # αα, αβ, ββ of every pair of the three, and the sign of its product.
    same = np.array([0, 1, 0, 2, 1, 0])
    signs = np.array([1, 1, -1, 1, -1, 1])
    expected = two.G11[:, :, same][..., same] * np.outer(signs, signs)
    np.testing.assert_allclose(s.G11, expected, rtol=0, atol=1e-9 * np.abs(two.G11).max())
    shift = two.mean_shift[:, [0, 0, 1], [1, 0, 1]]
    found = np.stack([s.mean_shift[:, 0, 1], -s.mean_shift[:, 0, 2], s.mean_shift[:, 1, 1]], axis=1)
    np.testing.assert_allclose(found, shift, rtol=0, atol=1e-8 * np.abs(shift).max())


@pytest.mark.parametrize("name", ["tanh", slow("softplus"), slow("mish"), slow("gaussian")])
def test_four_signals_on_grids_and_by_modes(name, monkeypatch):
    K0 = THREE + 0.2
    net = network(name, 0.7, 1)
    known = ft.solve(net, K0).G11
    monkeypatch.setattr(FEW, (12,))
    found = ft.solve(net, K0).G11
    np.testing.assert_allclose(found, known, rtol=0, atol=1e-9 * np.abs(known).max())


@pytest.mark.parametrize(
    ("name", "field", "instead"),
    [
        *((name, "G11", r"ft\.covariance_with") for name in ("tanh", "softsign")),
        *((name, "four_point", "rtol=") for name in ("tanh", "softsign")),
        ("softsign", "mean_shift", "its own two"),
    ],
)
def test_what_takes_too_long_says_so(name, field, instead, monkeypatch):
    """How long, and the way out."""
    monkeypatch.setattr(FEW, (12,))
    monkeypatch.setattr("fieldtheory.numerics.correlators.four_inputs.LONGEST", 1e-4)
    s = ft.solve(network(name, 0.7, 1), THREE)
    with pytest.raises(QuadratureError, match=f"of 3 inputs .* about .* hours.*{instead}"):
        getattr(s, field)


@pytest.mark.parametrize("name", ["erf", slow("gelu")])
def test_many_wide_inputs(name):
    """Four inputs with signals of hundreds, nearly equal ones among them, in closed form."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4, 3))
    X[3] = X[2] + 0.02 * X[1]
    net, K0 = network(name, 1.0, 2), 100 * X @ X.T
    s = ft.solve(net, K0)
    one = ft.solve(net, K0[2, 2])
    at = 7
    np.testing.assert_allclose(s.G11[:, :, at, at], one.G11, rtol=1e-8, atol=1e-16)
    assert np.linalg.eigvalsh(of_pairs(s.G11)).min() > -1e-9 * s.G11.max()


def test_layers_are_brought_back_together(monkeypatch):
    calls = []
    found = pair_observables.correlated
    monkeypatch.setattr(
        pair_observables, "correlated", lambda *a: calls.append(a[0].shape) or found(*a)
    )
    net = network("erf", 1.0, 20, branch_scale=0.1)
    assert np.isfinite(ft.solve(net, TWO).G11).all()
    # Once to bring them back, and in the last layers once to turn them towards either input.
    assert len(calls) == 21 + 2
    # Signals too wide for the chain of neurons.
    assert np.isfinite(ft.solve(net, 20 * TWO).mean_shift).all()
    # Three entries of either inputs in correlators and in slopes.
    assert len(calls) <= 21 * (1 + 3 + 3) + 2


def wide_nearly_parallel(variance):
    """g = tanh(x) tanh(y), and the covariance of two inputs in layers 1 and 0."""
    early = variance * np.array([[1.0, 0.9999], [0.9999, 1.0]])
    g = network_entries(network("tanh", 1.0, 1)).averages.observable
    return g, np.block([[early + 0.5, early], [early, early]])


def test_wide_nearly_parallel_inputs_in_words_of_the_user(monkeypatch):
    """No symbols of the integrand, but the signals and what can be done."""
    g, K = wide_nearly_parallel(200.0)
    what = (
        r"shift of means of two inputs, of signals of the variances 200\.5 and .* correlation 0\.99"
    )
    monkeypatch.setattr("fieldtheory.averages.integrals.tensor._MOST_POINTS", 1000)
    with pytest.raises(QuadratureError, match=rf"{what}.*, misses .*1e-09.*rtol=1e-6") as caught:
        four_inputs.slopes(g, K)
    assert "_c" not in str(caught.value) and "tanh" not in str(caught.value)
    monkeypatch.setattr("fieldtheory.numerics.correlators.four_inputs.LONGEST", 1e-4)
    with pytest.raises(QuadratureError, match=rf"{what}.*, takes about .* hours.*rtol=1e-6"):
        four_inputs.slopes(g, K)


def test_a_larger_error_of_wide_nearly_parallel_inputs_is_taken():
    """Fewer nodes, and the number to that error."""
    g, K = wide_nearly_parallel(20.0)
    found = []
    for rtol in (1e-12, 1e-5):
        with relative_tolerance(rtol):
            found.append(four_inputs.slopes(g, K))
    exact, rough = found
    np.testing.assert_allclose(rough, exact, rtol=1e-3, atol=1e-6 * np.abs(exact).max())
    assert not np.array_equal(rough, exact)


@pytest.mark.slow
def test_wide_nearly_parallel_inputs_by_two_routes(monkeypatch):
    K0 = 300 * np.array([[1.0, 0.999], [0.999, 1.0]])
    net = network("tanh", 1.0, 1)
    found = ft.solve(net, K0).mean_shift

    def none(self):
        raise QuadratureError("not asked for")

    monkeypatch.setattr(TwoInputs, "slopes", none)
    np.testing.assert_allclose(ft.solve(net, K0).mean_shift, found, rtol=1e-9)
