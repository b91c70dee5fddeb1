"""Correlators of several inputs whose φ or layers once needed a rule of their own."""

from dataclasses import replace

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.numerics.several_inputs import feature_correlators
from tests.numerics.pair_examples import THREE, TWO, network


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("min(h,0)+max(h,0)", "linear"),
        ("clip(tanh(h),-1,1)", "tanh"),
        ("relu(sigmoid(h))", "logistic"),
        ("sign(h)*min(abs(h),1)", "hard_tanh"),
    ],
)
def test_kinks_that_cancel(text, same):
    found, expected = (ft.solve(network(name, 0.7, 2), TWO) for name in (text, same))
    for field in ("G11", "mean_shift", "four_point"):
        value = getattr(expected, field)
        np.testing.assert_allclose(getattr(found, field), value, atol=1e-9 * np.abs(value).max())


def test_what_misses_most_is_computed_first(monkeypatch):
    """Of two correlators of three signals, where only one may be computed on panels."""
    settings = replace(feature_correlators.SETTINGS, three_signals_count=1)
    monkeypatch.setattr(feature_correlators, "SETTINGS", settings)
    signals = ft.solve(network("hard_tanh", 0.9, 2), THREE).chain.pairs.signals
    values, left_out = np.zeros((2, 3, 6, 3, 6))
    # φ_1² in the first layer with φ_2² and with φ_2φ_3 in the second.
    left_out[0, 0, 1, [3, 4]] = -0.2, 0.1
    found = feature_correlators._refined(
        signals, feature_correlators.Truncated(9, values, left_out)
    )
    assert found.values[0, 0, 1, 3] != 0 == found.left_out[0, 0, 1, 3]
    assert found.values[0, 0, 1, 4] == 0 and found.left_out[0, 0, 1, 4] == 0.1
