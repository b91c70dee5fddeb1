"""`compare` of a solution for wide networks and simulated ones."""

from dataclasses import replace

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from tests.tables import slow

Z = [0.0, 1.0]
LINEAR = DiffusionNetwork(depth=10, width=4, activation="linear", bias_variance=0.5)


def test_an_exact_theory_agrees_at_every_width():
    for method in ("kernel", "weights", "sde", "gram"):
        e = ft.simulate(LINEAR, Z, samples=4000, method=method)
        found = ft.compare(ft.solve(LINEAR, Z), e)
        assert found.verdict == "agrees" and found.neglected == ""
        assert len(set(found.at_width[0].index["time"])) == 10


def test_a_theory_that_is_wrong_by_two_per_cent_disagrees():
    net = LINEAR.replace(width=60)
    e = ft.simulate(net, Z, samples=20_000)
    assert ft.compare(ft.solve(net, Z), e).verdict == "agrees"
    for factor in (0.98, 1.02):
        wrong = net.replace(weight_variance=factor, bias_variance=0.5 * factor)
        found = ft.compare(replace(ft.solve(wrong, Z), network=net), e)
        assert found.verdict == "disagrees" and found.description == "describes"
        assert "do not explain it" in found.statement


def test_infinite_depth_is_compared_on_its_grid():
    net = DiffusionNetwork(depth=200, width=5, horizon=0.5)
    limit = ft.solve(net.replace(depth=None), Z)
    e = ft.simulate(net, Z, samples=10_000, method="gram", seed=1)
    found = ft.compare(limit, e)
    # No width takes the depth out.
    assert found.verdict == "not resolved" and found.neglected == "finite depth"
    assert np.abs(np.concatenate([field.z for field in found.extrapolated])).max() < 4
    assert {field.name for field in found.at_width} >= {"gram_variance", "kurtosis"}
    assert len(set(found.at_width[0].index["time"])) == len(limit.times) - 1
    law = e.distances(limit)
    # A narrow network is no Gaussian.
    assert law.p_value.min() < 1e-3


def test_narrow_networks_are_not_described():
    net = DiffusionNetwork(depth=20, width=2, activation="swish", weight_variance=8.0)
    found = ft.compare(ft.solve(net, [2.0]), ft.simulate(net, [2.0], samples=4000))
    assert found.verdict != "agrees" and found.description == "does not describe"
    assert found.neglected == "finite width"


@pytest.mark.parametrize("factor", [slow(1.0), 1.1])
def test_two_widths_separate_a_wrong_theory_from_finite_width(factor):
    net = DiffusionNetwork(depth=10, width=10, activation="swish")
    drawn = [ft.simulate(net.replace(width=N), Z, samples=20_000, seed=N) for N in (10, 20)]
    theory = ft.solve(net.replace(weight_variance=factor, bias_variance=factor), Z)
    found = ft.compare(replace(theory, network=net), drawn)
    assert found.verdict == ("agrees" if factor == 1.0 else "disagrees")
    assert ft.compare(replace(theory, network=net), drawn[0]).verdict != "agrees"


def test_several_ensembles_have_different_widths_and_one_depth():
    limit = ft.solve(LINEAR.replace(depth=None), Z)
    first, deep = (ft.simulate(LINEAR.replace(depth=L), Z, samples=20) for L in (10, 20))
    other = ft.simulate(LINEAR.replace(width=8), Z, samples=20, seed=1)
    deep = replace(deep, network=deep.network.replace(width=8), seed=1)
    with pytest.raises(ValueError, match="one depth"):
        ft.compare(limit, [first, deep])
    assert ft.compare(limit, [first, other]).widths == (4, 8)
