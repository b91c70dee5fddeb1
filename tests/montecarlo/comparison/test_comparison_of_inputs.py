"""Fluctuations of several inputs: right theories agree, a fault in any field or pair is found."""

from dataclasses import replace

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.montecarlo.comparison.extrapolation import compare
from fieldtheory.montecarlo.simulation import simulate
from tests.examples import K0_PAIR, network
from tests.montecarlo.comparison.test_comparison import drawn, entries


@pytest.fixture(scope="module")
def shallow_of_pairs():
    return network(1, "tanh", 0.0, width=4, weight_variance=3.0, branch_scale=1.0)


def drawn_across(net, samples):
    """What a wide network shows, and a few narrow ones that tell the terms in 1/N apart."""
    widths = (4, samples), (40, samples)
    return [
        simulate(net.replace(width=N), K0_PAIR, samples=n, seed=N, cross_inputs=True)
        for N, n in widths
    ]


@pytest.fixture(scope="module")
def across(shallow_of_pairs):
    return drawn_across(shallow_of_pairs, 40_000)


@pytest.fixture(scope="module")
def of_pairs(shallow_of_pairs):
    return ft.solve(shallow_of_pairs, K0_PAIR)


def verdicts_with(solution, pair, name, factor):
    """The quantities that disagree if a field is multiplied."""
    right = getattr(solution, name)
    vars(solution)[name] = factor * right
    try:
        rows = compare(solution, pair).rows
    finally:
        vars(solution)[name] = right
    return {row["quantity"] for row in rows if row["verdict"] == "disagrees"}


class TestSeveralInputs:
    """Fluctuations of several inputs, of every pair of inputs with every other."""

    NAMES = (
        "residual_kernels",
        "mean_shift",
        "kernels",
        "kernel_shift",
        "G11",
        "kernel_variance",
        "four_point",
    )

    def test_all_of_it_is_compared_unasked(self, of_pairs, across):
        found = compare(of_pairs, across)
        assert found.verdict == "agrees"
        assert tuple(field.name for field in found.extrapolated) == self.NAMES
        assert found.not_compared == ()
        for name, count in (("mean_shift", 6), ("G11", 6 + 6 + 9), ("four_point", 6 + 6)):
            field = entries(found, name)
            places = list(zip(*(at.tolist() for at in field.index.values()), strict=True))
            assert len(set(places)) == len(places) == count

    def test_entries_are_those_of_the_simulation(self, of_pairs, across):
        i, j = np.triu_indices(2)
        place = {(a, b): p for p, (a, b) in enumerate(zip(i, j, strict=True))}
        rows = [row for row in compare(of_pairs, across).rows if row["question"] == "width"]
        for name in ("G11", "four_point"):
            simulated = getattr(across[0], {"G11": "cross_covariance"}.get(name, f"cross_{name}"))
            for row in (row for row in rows if row["quantity"] == name):
                layers = (row["layer"], row["layer_"]) if name == "G11" else (row["layer"],)
                inputs = [row[key] for key in ("alpha", "beta", "gamma", "delta")]
                assert row["simulation"] == simulated[(*layers, *inputs)]
                pairs = place[tuple(inputs[:2])], place[tuple(inputs[2:])]
                assert row["theory"] == getattr(of_pairs, name)[layers + pairs]

    @pytest.mark.parametrize(
        ("name", "largest"),
        [
            ("residual_kernels", 0.02),
            ("kernels", 0.01),
            ("mean_shift", 4.0),
            ("G11", 0.08),
            ("kernel_variance", 0.1),
            ("four_point", 0.3),
        ],
    )
    def test_a_field_that_is_off_is_found(self, of_pairs, across, name, largest):
        fault = 2 * entries(compare(of_pairs, across), name).resolution
        assert fault < largest
        for factor in (1 - fault, 1 + fault):
            assert verdicts_with(of_pairs, across, name, factor) == {name}

    def test_the_fault_that_shows_is_one_of_the_theory(self, of_pairs, across):
        # Not of √(K_αα K_ββ): a covariance that is small against it shows little.
        field = entries(compare(of_pairs, across), "kernels")
        shown = (field.threshold * field.error + field.remainder) / np.abs(field.theory)
        assert field.resolution == shown.min()
        weak = np.where(field.index["alpha"] == field.index["beta"], 1.0, 1e-6)
        weaker = replace(field, theory=weak * field.theory)
        assert weaker.resolution == shown[weak == 1].min()

    @pytest.mark.slow
    def test_two_percent_are_found(self, of_pairs, shallow_of_pairs):
        many = drawn_across(shallow_of_pairs, 800_000)
        for name in ("residual_kernels", "kernels", "G11", "kernel_variance"):
            for factor in (0.98, 1.02):
                assert verdicts_with(of_pairs, many, name, factor) == {name}

    @pytest.mark.parametrize("name", ["G11", "four_point"])
    def test_a_fault_of_different_pairs_alone_is_found(self, of_pairs, across, name):
        off = np.where(np.eye(3) > 0, 1, 2)
        assert verdicts_with(of_pairs, across, name, off) == {name}

    def test_without_cross_covariances_they_are_named(self):
        net = network(1, width=100, branch_scale=0.5)
        pair = drawn(net, K0_PAIR, (50, 100), 400)
        found = compare(ft.solve(pair[0].network, K0_PAIR), pair)
        words = "G11 and four_point of different pairs of inputs (simulate with cross_inputs=True)"
        assert found.not_compared == (words,)
        assert "gamma" not in entries(found, "G11").index
        assert f"Not compared: {words}." in found.sentences[0]

    def test_many_averages_wait_until_they_are_asked_for(self, monkeypatch):
        monkeypatch.setattr("fieldtheory.montecarlo.comparison.layer_fields._MOST_AVERAGES", 400)
        net = network(6, width=50, branch_scale=0.3)
        pair, s = drawn(net, K0_PAIR, (50, 100), 40), ft.solve(net, K0_PAIR)
        found = compare(s, pair)
        assert [field.name for field in found.extrapolated] == ["residual_kernels", "kernels"]
        (words,) = found.not_compared
        names = "G11, kernel_variance, mean_shift, kernel_shift, four_point"
        assert words.startswith(f"{names} (441 averages of")
        _ = s.kernel_variance, s.G11, s.mean_shift
        (words, _) = compare(s, pair).not_compared
        assert words.startswith("four_point (441 averages of four signals, more than")

    def test_what_is_not_resolved_is_named(self, of_pairs, across, monkeypatch):
        def failing(solution):
            raise QuadratureError("it misses rtol")

        monkeypatch.delitem(vars(of_pairs), "mean_shift", raising=False)
        monkeypatch.setattr(ft.Solution, "mean_shift", property(failing))
        found = compare(of_pairs, across)
        assert "mean_shift" not in {field.name for field in found.extrapolated}
        assert found.sentences[0].endswith(
            "Not compared: mean_shift, kernel_shift (it misses rtol)."
        )
