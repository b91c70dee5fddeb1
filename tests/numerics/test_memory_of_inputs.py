"""How much memory and time fluctuations of many inputs take, and what is said before."""

import tracemalloc
from time import process_time

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError


def network(name, gamma, depth):
    scales = {"branch_scale": 0.6, "weight_variance": 1.3, "bias_variance": 0.07}
    return ft.ResidualNetwork(depth=depth, activation=name, skip_scale=gamma, **scales)


@pytest.mark.parametrize("name", ["G11", "kernel_variance", "four_point", "output_kurtosis"])
def test_too_many_inputs_for_the_memory(monkeypatch, name):
    """How much G11 needs is said before anything of that size is made."""
    monkeypatch.setattr("fieldtheory.numerics.memory.memory_available", lambda: 10**6)
    s = ft.solve(network("erf", 1.0, 10), 0.3 * np.eye(40))
    _ = s.pair_theory
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"40 inputs needs about .* GB .*ft\.covariance_with"):
        getattr(s, name)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6


def test_memory_that_mean_shifts_need(monkeypatch):
    s = ft.solve(network("erf", 1.0, 10), 0.3 * np.eye(8))
    monkeypatch.setattr("fieldtheory.numerics.memory.memory_available", lambda: 10**5)
    with pytest.raises(ValueError, match=r"mean_shift of 8 inputs needs about 0\.00116 GB"):
        _ = s.mean_shift
    monkeypatch.setattr("fieldtheory.numerics.memory.memory_available", lambda: 2 * 10**6)
    with pytest.raises(ValueError, match=r"8 inputs in \d+ Hermite orders needs .*rtol="):
        _ = s.kernel_shift


def test_the_memory_of_the_vertex_is_what_it_says(monkeypatch):
    """Four arrays of the size of G11, besides constants that are small for many inputs."""
    net, K = network("erf", 0.0, 4), 0.3 * np.eye(15) + 0.1
    four = 4 * 8 * (6 * 120) ** 2
    monkeypatch.setattr("fieldtheory.numerics.memory.memory_available", lambda: int(1.001 * four))
    _ = ft.solve(net, K[:2, :2], rtol=1e-3).four_point
    tracemalloc.start()
    _ = ft.solve(net, K, rtol=1e-3).four_point
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.6 * four < peak < 1.3 * four


def test_mean_shifts_of_many_pairs_in_parts(monkeypatch):
    K = np.array([[0.5, 0.1, 0.2], [0.1, 0.4, 0.0], [0.2, 0.0, 0.6]])
    net = network("tanh", 0.7, 3)
    whole = ft.solve(net, K).mean_shift
    monkeypatch.setattr("fieldtheory.numerics.several_inputs.pair_blocks._TOGETHER", 1)
    np.testing.assert_allclose(ft.solve(net, K).mean_shift, whole, rtol=1e-13)


def test_correlators_of_many_pairs_in_parts(monkeypatch):
    K = np.array([[0.5, 0.1, 0.2], [0.1, 0.4, 0.0], [0.2, 0.0, 0.6]])
    net = network("relu", 0.7, 3)
    whole = ft.solve(net, K).G11
    monkeypatch.setattr("fieldtheory.numerics.correlators.four_inputs._TOGETHER", 5)
    np.testing.assert_allclose(ft.solve(net, K).G11, whole, rtol=1e-13)


def test_mean_shifts_that_take_long_say_so_before_they_start(monkeypatch):
    s = ft.solve(network("erf", 1.0, 4), 0.3 * np.eye(4) + 0.1)
    monkeypatch.setattr("fieldtheory.numerics.correlators.four_inputs._LONG", 1e-3)
    with pytest.warns(UserWarning, match=r"mean_shift of 4 .* minutes of sums, as .* orders"):
        _ = s.mean_shift
    monkeypatch.setattr("fieldtheory.numerics.correlators.four_inputs.LONGEST", 1e-2)
    with pytest.raises(QuadratureError, match=r"mean_shift of 4 inputs .* hours of sums"):
        _ = ft.solve(s.network, s.input_kernel).kernel_shift


def test_fluctuations_that_take_long_say_so_before_they_start(monkeypatch):
    """By Hermite coefficients as by integrals."""
    s = ft.solve(network("erf", 1.0, 4), 0.3 * np.eye(4) + 0.1)
    monkeypatch.setattr("fieldtheory.numerics.correlators.four_inputs._LONG", 1e-3)
    with pytest.warns(UserWarning, match=r"G11 of all pairs of 4 .* minutes of sums, as .* orders"):
        _ = s.G11
    monkeypatch.setattr("fieldtheory.numerics.correlators.four_inputs.LONGEST", 1e-2)
    with pytest.raises(QuadratureError, match=r"G11 of .* hours of sums.*covariance_with"):
        _ = ft.solve(s.network, s.input_kernel).four_point


def test_the_error_that_takes_less_time_is_named(monkeypatch):
    monkeypatch.setattr("fieldtheory.numerics.correlators.four_inputs.LONGEST", 1e-2)
    net, K = network("tanh", 1.0, 2), 5 * np.eye(3) + 95
    with pytest.raises(QuadratureError, match=r"not resolved .*solve\(\.\.\., rtol=\S+\), wh") as e:
        _ = ft.solve(net, K).G11
    rtol = float(str(e.value).split("rtol=")[1].split(")")[0])
    monkeypatch.setattr("fieldtheory.numerics.correlators.four_inputs.LONGEST", 60.0)
    assert np.isfinite(ft.solve(net, K, rtol=rtol).G11).all()


def test_the_time_of_fluctuations_is_about_what_is_said():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((6, 20))
    s = ft.solve(network("erf", 0.0, 8), inputs @ inputs.T / 100)
    signals = s.pair_theory.signals
    assert signals.resolved
    start = process_time()
    _ = s.G11
    assert 0.1 < pair_correlators.seconds_needed(signals) / (process_time() - start) < 10
