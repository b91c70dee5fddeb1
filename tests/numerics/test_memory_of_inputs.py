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
