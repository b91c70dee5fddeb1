"""`solve` for any law of the parameters, exact at every width, against equations entry by entry."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.diffusions.exact_moments import law_moments
from tests.oracles import law_diffusions

RNG = np.random.default_rng(4)
D = 3


def covariance(size, rank):
    factor = RNG.normal(size=(size, rank))
    return factor @ factor.T / size


ROWS, COLUMNS, BIASES = covariance(D, 2), covariance(D, D), covariance(D, D)
WEIGHTS = covariance(D * D, 5)
MEAN_W, MEAN_B = RNG.normal(size=(D, D)), RNG.normal(size=D)
MEANS = {"weight_mean": MEAN_W, "bias_mean": MEAN_B}
# Arguments, Σ^W, Σ^b, μ^W, μ^b.
NORMAL = {"row_covariance": ROWS, "column_covariance": COLUMNS}
NOTHING = np.zeros((D, D)), np.zeros((D, D)), np.zeros(D)
LAWS = {
    "matrix normal": (NORMAL, np.kron(COLUMNS, ROWS), *NOTHING),
    "with biases and means": (
        NORMAL | MEANS | {"bias_covariance": BIASES},
        *(np.kron(COLUMNS, ROWS), BIASES, MEAN_W, MEAN_B),
    ),
    "full": (
        {"weight_covariance": WEIGHTS, "bias_covariance": BIASES} | MEANS,
        *(WEIGHTS, BIASES, MEAN_W, MEAN_B),
    ),
    "means alone": (
        {"weight_covariance": 0 * WEIGHTS} | MEANS,
        *(0 * WEIGHTS, np.zeros((D, D)), MEAN_W, MEAN_B),
    ),
}
LAYERS = RNG.normal(size=(2, D))


def network(law, **changes):
    values = {"depth": None, "width": D, "horizon": 0.8, "parameter_law": law}
    return ft.DiffusionNetwork(**(values | changes))


@pytest.mark.parametrize("depth, phi, slope", [
    (None, "tanh", 1.0), (None, "erf", 2 / np.sqrt(np.pi)), (4, "0.7*h", 0.7), (1, "linear", 1.0),
])  # fmt: skip
@pytest.mark.parametrize("name", LAWS)
def test_moments_are_those_of_the_entries(name, depth, phi, slope):
    arguments, *law = LAWS[name]
    net = network(ft.ParameterLaw(**arguments), depth=depth, activation=phi)
    found = ft.solve(net, LAYERS)
    every = law_moments(net, LAYERS, found.times)[-1]
    assert found.is_exact and len(found.times) == (21 if depth is None else depth + 1)
    for i in range(2):
        for j in range(2):
            x, y, product = law_diffusions.moments(*law, LAYERS[i], LAYERS[j], slope, 0.8, depth)
            spread = product - np.outer(x, y)
            size = np.abs(product).max()
            np.testing.assert_allclose(every.mean[i], x, rtol=1e-11, atol=1e-13)
            np.testing.assert_allclose(every.covariance[i, j], spread, rtol=0, atol=1e-11 * size)
            assert found.gram[-1, i, j] == pytest.approx(np.trace(product) / D, rel=1e-11)
            close = pytest.approx(np.trace(spread) / D, rel=1e-11, abs=1e-12 * size)
            assert found.covariance[-1, i, j] == close
        assert found.mean[-1, i] == pytest.approx(x.mean() if i else every.mean[0].mean())


def test_independent_parameters_are_one_of_the_laws():
    law = ft.ParameterLaw(
        row_covariance=0.6 * np.eye(D),
        column_covariance=np.eye(D) / D,
        bias_covariance=0.3 * np.eye(D),
    )
    independent = network(None, weight_variance=0.6, bias_variance=0.3)
    one, other = (ft.solve(net, LAYERS) for net in (network(law), independent))
    for name in ("mean", "covariance", "gram"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-11, atol=1e-14)
    for time in (0.0, 0.23):
        between, exact = one.at(time), other.at(time)
        np.testing.assert_allclose(between.covariance, exact.covariance, rtol=1e-11)


def test_simulated_networks_agree():
    arguments = LAWS["full"][0]
    net = network(ft.ParameterLaw(**arguments), depth=6, activation="linear")
    e = ft.simulate(net, LAYERS, samples=4000, method="weights")
    found = ft.compare(ft.solve(net, LAYERS), e)
    assert found.verdict == "agrees"
    wrong = arguments | {"weight_covariance": 1.2 * WEIGHTS}
    other = network(ft.ParameterLaw(**wrong), depth=6, activation="linear")
    with pytest.raises(ValueError, match="parameter_law .* in the theory"):
        ft.compare(ft.solve(other, LAYERS), e)
    with pytest.raises(ValueError, match="other must be a DiffusionEnsemble for networks with a"):
        e.distances(ft.solve(net, LAYERS))


def test_results_have_files_and_views(tmp_path):
    found = ft.solve(network(ft.ParameterLaw(**NORMAL)), [0.5, 1.0])
    found.save(tmp_path / "s.npz")
    loaded = ft.DiffusionSolution.load(tmp_path / "s.npz")
    assert loaded.network == found.network and (loaded.covariance == found.covariance).all()
    assert set(found.to_xarray()) == {"mean", "covariance", "gram", "inputs"}
    assert np.isinf(found.explosion_time).all() and "infinite" in found._repr_html_()
    assert found.gram_variance is None and found.kurtosis is None


@pytest.mark.parametrize("changes", [
    {"depth": 100, "activation": "linear"}, pytest.param({}, marks=pytest.mark.slow),
])  # fmt: skip
def test_what_grows_beyond_all_numbers(changes):
    steep = ft.ParameterLaw(row_covariance=1e6 * np.eye(D), column_covariance=np.eye(D))
    with pytest.raises(OverflowError, match="signals exceed the range of float64"):
        ft.solve(network(steep, **changes), [1.0])
