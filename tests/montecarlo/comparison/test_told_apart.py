"""Values that would agree as well if the theory were wrong by as much as they are."""

import re

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.comparison.compared import Compared
from tests.tables import slow


def coefficient(error, theory=(1.0, 2.0), remainder=(0.0, 0.0), simulation=None):
    theory = np.array(theory)
    return Compared(
        question="right",
        name="mean_shift",
        index={"layer": np.array([1, 2])},
        order=1,
        theory=theory,
        simulation=theory if simulation is None else np.array(simulation),
        error=np.full(2, error),
        size=np.abs(theory),
        threshold=4.0,
        tolerance=0.05,
        remainder=np.array(remainder),
    )


def test_what_shows_no_fault_of_its_size_does_not_agree():
    field = coefficient(0.45)
    assert field.verdicts.tolist() == ["too noisy", "agrees"]
    np.testing.assert_allclose(field.more_networks, [1.8**2, 0.9**2])
    # A fault of 100 % is as far from the simulation as the theory itself, and is not seen.
    doubled = coefficient(0.45, 2 * field.theory, simulation=field.simulation)
    assert doubled.verdicts[0] != "disagrees" and doubled.verdicts[1] == "disagrees"


def test_as_many_more_networks_tell_it_apart():
    more = coefficient(0.45).more_networks[0]
    assert coefficient(0.45 / np.sqrt(1.01 * more)).verdicts.tolist() == ["agrees", "agrees"]
    assert coefficient(0.45 / np.sqrt(0.99 * more)).verdicts.tolist()[0] == "too noisy"


def test_terms_left_out_are_no_matter_of_networks():
    assert coefficient(1e-6, remainder=(1.5, 1.5)).more_networks.tolist()[0] == np.inf


def test_zeros_are_told_by_the_size_of_the_others():
    assert coefficient(0.4, (0.0, 2.0)).verdicts.tolist() == ["agrees", "agrees"]
    assert coefficient(0.6, (0.0, 2.0)).verdicts.tolist() == ["too noisy"] * 2
    zeros = coefficient(0.6, (0.0, 0.0), simulation=(0.5, -0.5))
    assert zeros.verdicts.tolist() == ["zero in both"] * 2
    assert coefficient(0.1, (0.0, 0.0), simulation=(0.5, 0.0)).verdicts[0] == "disagrees"


@pytest.fixture(scope="module")
def found():
    net = ft.ResidualNetwork(depth=5, activation="erf", skip_scale=0.7, width=20)
    several = [ft.simulate(net.replace(width=N), 0.5, seed=N, samples=1000) for N in (20, 40)]
    return ft.compare(ft.solve(net, 0.5, order=2), several)


def test_they_are_not_counted_and_named(found):
    assert found.verdict == "agrees"
    verdicts = {field.name: set(field.verdicts.tolist()) for field in found.extrapolated}
    assert verdicts["variance_2"] == {"too noisy"} and verdicts["kernels"] == {"agrees"}
    told = sum(np.count_nonzero(field.verdicts == "agrees") for field in found.extrapolated)
    for text in (found.statement, str(found)):
        assert f"all {told} values that can be tested agree" in text
        assert re.search(r"Too noisy to test are \d+ values, where chance hides 100 %", text)
        assert re.search(
            r"all of mean_shift \(it needs \d+ times as many networks\), kernel_shift", text
        )


def test_nothing_is_told_apart():
    net = ft.ResidualNetwork(depth=2, activation="erf", skip_scale=0.0)
    few = [ft.simulate(net.replace(width=N), 0.5, seed=N, samples=20) for N in (2, 3)]
    found = ft.compare(ft.solve(net.replace(width=2), 0.5), few)
    assert found.verdict == "not resolved"
    assert "Not decided: extrapolated from the widths 2 and 3, none of" in found.statement


@pytest.mark.parametrize("variance_reduction", [None, slow("control_variate")])
def test_what_is_zero_everywhere_is_no_agreement(variance_reduction):
    """Without branches nothing shifts the means, and pairs of neurons are independent."""
    net = ft.ResidualNetwork(depth=2, activation="erf", width=50, branch_scale=0.0)
    several = [
        ft.simulate(
            net.replace(width=N), 0.3, samples=400, seed=N, variance_reduction=variance_reduction
        )
        for N in (50, 100)
    ]
    found = ft.compare(ft.solve(net, 0.3), several)
    assert found.description == "describes"
    agreeing = {f.name for f in found.extrapolated if "agrees" in f.verdicts}
    zeros = {"mean_shift", "kernel_shift", "four_point", "kernel_variance"}
    assert agreeing and not agreeing & zeros
    # Named, be it that nothing fluctuates or that it does by chance.
    said = found.statement[found.statement.index("The theory neglects") :]
    assert all(name in said for name in zeros)
    assert "(zero in theory and simulation)" in said
