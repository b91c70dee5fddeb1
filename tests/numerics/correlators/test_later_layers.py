"""Rows of layers from few of them against all of them."""

import numpy as np
import pytest

from fieldtheory.networks import ResidualNetwork
from fieldtheory.numerics.correlators.later_layers import from_few
from fieldtheory.numerics.correlators.two_inputs import TwoInputs
from fieldtheory.numerics.observables.pair_observables import kinked_features
from tests.tables import slow

WIDTHS = np.sqrt(np.arange(1.0, 121.0))


def counted(values):
    asked = []

    def f(number):
        asked.append(number)
        return values[..., number]

    return f, asked


@pytest.mark.parametrize(
    "values",
    [
        np.exp(-WIDTHS / 3),
        np.stack([1 / (200 + WIDTHS**2), WIDTHS**3 * 1e-9, 0 * WIDTHS]),
        1e-12 / (9 + WIDTHS),
    ],
)
def test_analytic_functions(values):
    f, asked = counted(values)
    np.testing.assert_allclose(from_few(f, WIDTHS), values, rtol=1e-11, atol=0)
    assert len(asked) < 50


@pytest.mark.parametrize("place", [2, 17, 60, 118])
def test_steps_and_kinks_are_seen(place):
    """Of one part in 10⁸: all layers are asked for."""
    for values in (
        1 + 1e-8 * (np.arange(120) >= place),
        1 + 1e-8 * np.abs(np.arange(120) - place),
    ):
        f, asked = counted(values)
        np.testing.assert_array_equal(from_few(f, WIDTHS), values)
        assert len(asked) == 120


def test_widths_that_do_not_grow():
    f, asked = counted(np.ones(60))
    np.testing.assert_array_equal(from_few(f, np.ones(60)), np.ones(60))
    assert len(asked) == 60


def deep(name, gains, c):
    """Two inputs whose kernels gain the same in every layer, or not."""
    C = np.concatenate([[[[0.5, c], [c, 0.7]]], gains[:, None, None] * [[0.3, 0.1], [0.1, 0.4]]])
    size = len(C)
    psi = kinked_features(ResidualNetwork(depth=1, activation=name))
    return TwoInputs(psi, np.cumsum(C, axis=0), C, np.tril(np.ones((size, size))))


@pytest.mark.parametrize(
    ("name", "gains", "most"),
    [
        ("elu", np.full(50, 0.02), 35),
        slow("softsign", np.full(80, 0.01), 50),
        slow("hard_swish", np.full(80, 0.05), 50),
        slow("elu", 0.02 + 0.01 * np.random.default_rng(3).random(60), 60),
    ],
)
def test_correlators_of_two_inputs(name, gains, most, monkeypatch):
    two, asked = deep(name, gains, 0.2), []
    direct = TwoInputs._converged
    monkeypatch.setattr(
        TwoInputs,
        "_converged",
        lambda self, k, l, *others: asked.append(l) or direct(self, k, l, *others),
    )
    found = two.of_layer(0)
    assert len(asked) <= most
    for l in (1, 2, 5, 11, 23, 37, 48):
        np.testing.assert_allclose(
            found[..., l],
            TwoInputs(two.psi, two.K[[0, l]], *between(two, l)).of_layer(0)[..., 1],
            rtol=1e-11,
        )


def between(two, l):
    """What layers 1, ..., l add, as if one layer added it."""
    return np.stack([two.C[0], two.C[1 : l + 1].sum(axis=0)]), np.tril(np.ones((2, 2)))
