"""Correlators from sampled paths of a neuron, by z-scores against exact ones."""

from dataclasses import replace

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.routes import SETTINGS
from fieldtheory.numerics.several_inputs import pair_theory, sampled_paths
from fieldtheory.numerics.several_inputs.four_signals import WithinLayers
from fieldtheory.numerics.several_inputs.sampled_paths import sampled_sources, sampled_within_layers
from tests.numerics.pair_examples import THREE, network
from tests.tables import slow

# Standard errors of eight replicates have tails of Student's distribution with seven degrees.
SCATTER, FARTHEST = 1.7, 12.0


FOUR = np.pad(THREE, (0, 1), constant_values=0.1) + np.diag([0.0, 0.0, 0.0, 0.25])


def scores(name, factor=1.0, inputs=THREE):
    theory = ft.solve(network(name, 0.9, 2), inputs).chain.pairs
    exact = theory.sources[0] * factor
    found = sampled_sources(theory.layers, theory.gains, theory.signals, seed=1)
    error = np.sqrt((found[1:] ** 2).sum(axis=0))
    sampled = error > 1e-12 * error.max()
    return ((found[0] - exact) / np.where(sampled, error, 1.0))[sampled]


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    monkeypatch.setattr(sampled_paths, "_MOST", 13)


@pytest.mark.parametrize("name", [slow("relu"), slow("tanh"), "hard_tanh", slow("sign")])
def test_they_are_exact_within_their_errors(name):
    z = scores(name)
    assert np.sqrt((z**2).mean()) < SCATTER and np.abs(z).max() < FARTHEST


def test_averages_within_layers_are_exact_within_their_errors():
    signals = ft.solve(network("relu", 0.9, 2), THREE).chain.pairs.signals
    found, error = sampled_within_layers(signals)
    own = WithinLayers.of(signals)
    z = ((found - own.averages[:, own.which]) / error)[own.exact[:, own.which]]
    assert 0.3 < np.sqrt((z**2).mean()) < SCATTER and np.abs(z).max() < FARTHEST


def test_four_inputs_with_kinks_are_sampled_to_two_thousandths_by_few_points():
    z = scores("softsign", inputs=FOUR)
    assert np.sqrt((z**2).mean()) < SCATTER and np.abs(z).max() < FARTHEST
    theory = ft.solve(network("softsign", 0.9, 2), FOUR).chain.pairs
    found = sampled_sources(theory.layers, theory.gains, theory.signals)
    assert np.sqrt((found[1:] ** 2).sum(axis=0)).max() < 2e-3 * np.abs(found[0]).max()


def test_a_theory_that_is_wrong_by_two_percent_is_found_out():
    z = scores("relu", 1.02)
    assert np.sqrt((z**2).mean()) > 2 * SCATTER


def test_they_are_taken_where_hermite_coefficients_fall_off_too_slowly(monkeypatch):
    exact = ft.solve(network("hard_tanh", 0.9, 2), THREE)
    assert not exact.G11_error.any() and not exact.mean_shift_error.any()
    monkeypatch.setattr(pair_theory, "SETTINGS", replace(SETTINGS, sampled=0.0))
    sampled = ft.solve(network("hard_tanh", 0.9, 2), THREE)
    for name in ("G11", "four_point", "mean_shift"):
        error = getattr(sampled, f"{name}_error")
        apart = np.abs(getattr(sampled, name) - getattr(exact, name))
        assert error.max() > 0 and (apart <= 6 * error + 1e-3 * error.max()).all()
