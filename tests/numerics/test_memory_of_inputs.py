"""How much memory and time fluctuations of many inputs take, and what is said before."""

import tracemalloc

import numpy as np
import pytest

import fieldtheory as ft


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
