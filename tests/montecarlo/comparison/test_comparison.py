"""Two questions: right theories agree and wrong ones do not; narrow networks are not described."""

import re
import warnings
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

import fieldtheory as ft
from fieldtheory.montecarlo.comparison.extrapolation import compare
from fieldtheory.montecarlo.comparison.measured import extrapolation_weights
from fieldtheory.montecarlo.perturbation import simulate_response
from fieldtheory.montecarlo.simulation import simulate
from tests.examples import K0_PAIR, network
from tests.montecarlo.statistics_of_draws import mistaken

K0 = 0.3


def drawn(net, kernel, widths, samples, simulator=simulate):
    """Independent simulations of one network at several widths."""
    return [simulator(net.replace(width=N), kernel, samples=samples, seed=N) for N in widths]


@pytest.fixture(scope="module")
def net():
    return network(4, width=100, branch_scale=0.5)


@pytest.fixture(scope="module")
def pair(net):
    return drawn(net, K0, (100, 200), 8000)


@pytest.fixture(scope="module")
def answers(net):
    return drawn(net, K0, (100, 200), 6000, simulate_response)


@pytest.fixture(scope="module")
def narrow(net):
    """So many samples at one small width that terms in 1/N are seen."""
    return simulate(net.replace(width=20), K0, samples=40_000, seed=3)


@pytest.fixture(scope="module")
def tiny(net):
    """A right theory of three neurons, and these beside six."""
    net = net.replace(branch_scale=1.0, width=3)
    return ft.solve(net, K0), drawn(net, K0, (3, 6), 4000)


@pytest.fixture(scope="module")
def shallow():
    """One hidden layer, of which the next order in 1/N is known."""
    net = network(1, "erf", 0.0, width=3, weight_variance=3.0, branch_scale=1.0)
    return net, drawn(net, 2.0, (3, 6), 40_000)


def entries(comparison, name):
    return next(field for field in comparison.extrapolated if field.name == name)


class TestVerdict:
    def test_the_theory_agrees(self, found):
        assert found.verdict == "agrees"
        assert [field.name for field in found.extrapolated] == [
            *("residual_kernels", "mean_shift", "kernels", "kernel_shift"),
            *("G11", "kernel_variance", "four_point"),
            *("residual_response", "residual_response_shift", "response", "response_shift"),
            *("output_response", "output_response_shift"),
        ]
        assert all(np.abs(field.z).max() > 0.1 for field in found.extrapolated)

    @pytest.mark.parametrize("factor", [0.98, 1.02])
    @pytest.mark.parametrize("name", ["weight_variance", "readout_weight_variance"])
    def test_a_parameter_that_is_two_percent_off_is_found(self, net, pair, factor, name):
        wrong = net.replace(**{name: factor * getattr(net, name)})
        assert compare(mistaken(wrong, net, K0), pair).verdict == "disagrees"

    @pytest.mark.parametrize("factor", [0.98, 1.02])
    @pytest.mark.parametrize("name", ["residual_kernels", "kernels", "response", "output_response"])
    def test_a_field_that_is_two_percent_off_is_found(self, net, pair, answers, name, factor):
        wrong = ft.solve(net, K0)
        vars(wrong)[name] = factor * getattr(wrong, name)
        found = compare(wrong, pair, responses=answers)
        assert {row["quantity"] for row in found.rows if row["verdict"] == "disagrees"} >= {name}
        assert found.verdict == "disagrees"

    @pytest.mark.parametrize("name", ["G11", "kernel_variance"])
    def test_fluctuations_that_are_off_are_found(self, net, pair, name):
        wrong = ft.solve(net, K0)
        vars(wrong)[name] = 1.4 * getattr(wrong, name)
        found = compare(wrong, pair)
        assert found.verdict == "disagrees"
        assert entries(found, "residual_kernels").verdicts.tolist() == ["agrees"] * 5

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"depth": 5}, "depth 5 in the theory, 4 in the simulation$"),
            ({"activation": "tanh"}, "activation tanh in the theory, erf in the simulation$"),
            ({"weight_variance": 1.4}, "weight_variance 1.4 in the theory, 1.25 in the sim"),
            ({"readout_bias_variance": 0.2}, "readout_bias_variance 0.2 in the theory, 0.1 in"),
            (
                {"branch_scale": "decreasing", "skip_scale": 0.5},
                "branch_scale decreasing .* skip_scale 0",
            ),
        ],
    )
    def test_other_networks_are_refused(self, net, pair, answers, change, words):
        other = ft.solve(net.replace(**change), K0)
        with pytest.raises(ValueError, match=words):
            compare(other, pair)
        with pytest.raises(ValueError, match="responses must be of the network and inputs"):
            compare(ft.solve(net, K0), pair, responses=replace(answers[0], network=other.network))

    def test_other_inputs_are_refused(self, net, pair):
        words = "K0 array.0.3000003. in the theory, array.0.3. in the simulation"
        with pytest.raises(ValueError, match=words):
            compare(ft.solve(net, K0 * (1 + 1e-6)), pair)
        with pytest.raises(ValueError, match="K0 array.* in the theory"):
            compare(ft.solve(net, K0_PAIR), pair)

    def test_what_makes_the_same_layers_is_the_same(self):
        net = ft.FeedForwardNetwork(depth=2, readout_weight_variance=1.25)
        scales = {"skip_scale": [0.0, 0.0], "branch_scale": 1.0, "readin_weight_variance": 0.7}
        other = ft.ResidualNetwork(depth=2, **scales)
        compare(ft.solve(net, K0), simulate(other, K0 * (1 + 1e-15), samples=20))

    @pytest.mark.slow
    def test_false_alarms_are_as_rare_as_stated(self):
        # The mean of a deep linear network is exact, of its covariance only 1/N² is left out.
        net = network(3, "linear", width=100, branch_scale=0.5)
        theory, alarms = ft.solve(net, K0), 0
        for seed in range(30):
            pair = [
                simulate(net.replace(width=N), K0, samples=400, seed=1000 * seed + N)
                for N in (50, 100)
            ]
            alarms += compare(theory, pair, false_alarm=0.3).verdict != "agrees"
        # At most 30 %, and fewer since the comparisons are correlated.
        assert stats.binomtest(alarms, 30, 0.3, "greater").pvalue > 1e-3
        assert alarms > 0


class TestLoops:
    """The mean shift and the vertex, resolved by control variates."""

    @staticmethod
    def simulated(samples):
        net = network(1, "tanh", 0.0, weight_variance=3.0, bias_variance=0.0, branch_scale=1.0)
        options = {"samples": samples, "variance_reduction": "control_variate"}
        return net, [simulate(net.replace(width=N), 2.0, seed=N, **options) for N in (800, 1600)]

    @staticmethod
    def found_faults(net, pair, factor):
        found = set()
        assert compare(ft.solve(net, 2.0), pair).verdict == "agrees"
        for name in ("mean_shift", "kernel_shift", "four_point"):
            wrong = ft.solve(net, 2.0)
            vars(wrong)[name] = factor * getattr(wrong, name)
            rows = compare(wrong, pair).rows
            found |= {row["quantity"] for row in rows if row["verdict"] == "disagrees"}
        return found

    @pytest.mark.slow
    def test_a_fault_of_two_percent_is_found(self):
        drawn = self.simulated(60_000)
        for factor in (0.98, 1.02):
            assert self.found_faults(*drawn, factor) == {"mean_shift", "kernel_shift", "four_point"}


class TestRemainders:
    def test_one_width_does_not_settle_what_may_be_a_term_in_1_over_n(self, net, narrow):
        found = compare(ft.solve(net, K0), narrow)
        assert found.verdict == "not resolved"
        assert "Simulate another width" in found.statement
        field = entries(found, "residual_kernels")
        open_ones = field.verdicts == "not resolved"
        assert np.abs(field.z[open_ones]).min() > field.threshold
        # The first layer is exact at any width.
        assert field.verdicts[0] == "agrees" and field.remainder[0] == 0

    def test_a_second_width_settles_it(self, net, narrow):
        wide = simulate(net.replace(width=40), K0, samples=40_000, seed=4)
        found = compare(ft.solve(net, K0), [narrow, wide])
        assert found.verdict == "agrees"
        shift = entries(compare(ft.solve(net, K0), wide), "residual_kernels").z
        assert np.abs(shift).max() > 5

    def test_faults_beyond_the_remainder_are_found_at_one_width(self, net, narrow):
        field = entries(compare(ft.solve(net, K0), narrow), "kernels")
        excess = 2 * (field.remainder / field.theory).max()
        wrong = ft.solve(net, K0)
        vars(wrong)["kernels"] = (1 + excess) * wrong.kernels
        assert compare(wrong, narrow).verdict == "disagrees"

    @pytest.mark.slow_but(1)
    @pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
    @pytest.mark.parametrize("activation", ["erf", "relu", "tanh"])
    @pytest.mark.parametrize("gamma", [0.0, 1.0])
    def test_their_size_covers_them(self, activation, gamma):
        net = network(4, activation, gamma, width=30, bias_variance=0.0)
        found = compare(
            ft.solve(net, K0),
            simulate(net, K0, samples=20_000, seed=5),
            responses=simulate_response(net, K0, samples=4000, seed=5),
        )
        assert found.verdict == "not resolved"

    def test_three_widths(self, net):
        weights = extrapolation_weights(np.array([10.0, 20.0, 40.0]))
        N = np.array([10.0, 20.0, 40.0])
        np.testing.assert_allclose(weights @ (3 + 5 / N - 7 / N**2), 3, rtol=1e-14)
        found = compare(ft.solve(net, K0), drawn(net, K0, (50, 100, 200), 1000))
        assert found.verdict == "agrees"
        assert "The theory neglects terms of order 1/N^3." in found.statement


class TestNumbers:
    def test_extrapolation_is_that_of_richardson(self, net, pair):
        theory = ft.solve(net, K0)
        found = compare(theory, pair[::-1])
        field = entries(found, "residual_kernels")
        assert field.index["layer"].tolist() == [1, 2, 3, 4, 5]
        expected = 2 * pair[1].mean - pair[0].mean
        error = np.hypot(2 * pair[1].mean_error, pair[0].mean_error)
        np.testing.assert_allclose(field.simulation, expected[1:], rtol=1e-13)
        np.testing.assert_allclose(field.error, error[1:], rtol=1e-13)
        np.testing.assert_allclose(
            field.z, (expected - theory.residual_kernels)[1:] / error[1:], rtol=1e-6
        )
        field = entries(found, "G11")
        expected = (400 * pair[1].covariance - 100 * pair[0].covariance) / net.width
        rows, columns = np.triu_indices(5)
        assert field.index["layer"].tolist() == (rows + 1).tolist()
        assert field.index["layer_"].tolist() == (columns + 1).tolist()
        np.testing.assert_allclose(field.simulation, expected[rows + 1, columns + 1], rtol=1e-12)

    def test_width_of_the_solution_does_not_matter(self, net, pair):
        one = entries(compare(ft.solve(net, K0), pair), "G11")
        other = entries(compare(ft.solve(net.replace(width=300), K0), pair), "G11")
        np.testing.assert_allclose(one.z, other.z, rtol=1e-10)
        np.testing.assert_allclose(one.theory, 3 * other.theory, rtol=1e-12)

    def test_threshold_counts_the_comparisons(self, net, pair):
        found = compare(ft.solve(net, K0), pair, false_alarm=0.01)
        # The shifts of the means are coefficients and no quantities; of the vertex of the inputs,
        # which is 0, there is no relative deviation.
        for fields, more in ((found.extrapolated, 5 + 5 + 5), (found.at_width, 4)):
            count = sum(field.theory.size for field in fields)
            assert count == 5 + 5 + 15 + 4 + more
            chance = 2 * count * stats.t.sf(fields[0].threshold, pair[0].batches - 1)
            np.testing.assert_allclose(chance, 0.01, rtol=1e-9)

    def test_constants_are_not_compared_unless_they_differ(self):
        net = network(2, width=50, weight_variance=0.0)
        found = compare(ft.solve(net, K0), simulate(net, K0, samples=40))
        # The vertex is simulated with an error even where it vanishes.
        shown = [row for row in found.rows if row["quantity"] != "four_point"]
        assert {row["layer"] for row in shown} == {3}


@pytest.fixture(scope="module")
def found(net, pair, answers):
    return compare(ft.solve(net, K0), pair, responses=answers)


@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
class TestWidth:
    """Does the theory describe this width? A right one need not."""

    def test_a_right_theory_does_not_describe_three_neurons(self, tiny):
        found = compare(*tiny)
        assert (found.verdict, found.description) == ("agrees", "does not describe")
        right, described = found.statement.splitlines()
        assert right.startswith("Is the theory right? Yes: extrapolated from the widths 3 and 6,")
        assert described.startswith("Does it describe width 3? No: the simulation deviates from")
        e, theory = tiny[1][0], tiny[0].residual_kernels
        field = found.at_width[0]
        np.testing.assert_array_equal(field.simulation, e.mean[1:])
        np.testing.assert_allclose(field.deviation, e.mean[1:] / theory[1:] - 1, rtol=1e-12)
        z = (e.mean - theory)[1:] / e.mean_error[1:]
        np.testing.assert_allclose(field.z, z, rtol=1e-12)
        assert field.deviation.min() < -0.1
        assert f"{100 * field.deviation[field.worst]:+.3g} % (residual_kernels" in described
        assert f"{field.z[field.worst]:+.3g} standard errors" in described

    def test_one_width_has_the_same_answer_to_it(self, tiny):
        solution, both = tiny
        alone, together = compare(solution, both[0]), compare(solution, both)
        assert alone.sentences[1] == together.sentences[1]
        assert alone.verdict == "not resolved"
        assert "Not decided: at width 3 alone" in alone.sentences[0]

    def test_wide_networks_are_described(self, net, pair):
        found = compare(ft.solve(net, K0), pair)
        assert (found.verdict, found.description, found.width) == ("agrees", "describes", 100)
        assert "Does it describe width 100? Yes, to 5 %: the largest" in found.statement

    def test_the_width_is_that_of_the_solution_or_the_narrowest(self, net, pair):
        for width, asked in ((100, 100), (200, 200), (500, 100)):
            solution = ft.solve(net.replace(width=width), K0)
            found = compare(solution, pair)
            assert found.width == asked
            field = next(f for f in found.at_width if f.name == "G11")
            e = pair[asked == 200]
            layers = field.index["layer"], field.index["layer_"]
            np.testing.assert_array_equal(field.simulation, e.covariance[layers])
            np.testing.assert_allclose(field.theory, solution.G11[layers] * width / asked)

    def test_the_tolerance_and_the_error_decide(self, net, pair):
        solution = ft.solve(net, K0)
        largest = max(abs(f.deviation).max() for f in compare(solution, pair).at_width[:2])
        assert 0.001 < largest < 0.02
        assert compare(solution, pair, tolerance=0.9 * largest).description == "not resolved"
        wrong = mistaken(net.replace(weight_variance=1.4), net, K0)
        assert compare(wrong, pair).description == "does not describe"
        few = simulate(net, K0, samples=20)
        found = compare(solution, few)
        assert found.description == "not resolved"
        assert "together more than 5 %. Simulate more networks." in found.statement

    def test_responses_speak_too(self, net, pair, answers):
        wrong = ft.solve(net, K0)
        vars(wrong)["response"] = 1.2 * wrong.response
        found = compare(wrong, pair, responses=answers)
        assert found.description == "does not describe"
        assert "(response, layer" in found.sentences[1]


class TestNextOrders:
    """Rows of the table that correct a field are compared without another line."""

    def test_the_next_order_is_a_column_and_a_coefficient(self, shallow):
        net, pair = shallow
        solution = ft.solve(net, 2.0)
        found = compare(solution, pair)
        # γ = 0 and one hidden layer: the output sees a N M''(C) Var C / 2 and nothing else.
        K, weight = solution.residual_kernels[1], net.readout_weight_variance
        second = float(mp.diff(lambda k: 2 / mp.pi * mp.atan2(2 * k, mp.sqrt(1 + 4 * k)), K, 2))
        shift = np.array([0, 0, weight * second * solution.G11[1, 1] / 2])
        (row,) = [row for row in found.summary if row["quantity"] == "mean_shift"]
        assert row["order"] == "1/N" and row["theory"] == pytest.approx(shift[2], rel=1e-9)
        first = 2 * (pair[0].mean - pair[1].mean)[2]
        assert row["simulation"] == pytest.approx(first, rel=1e-12)
        kernels = found.at_width[0]
        np.testing.assert_allclose(
            kernels.with_next[1], (solution.residual_kernels + shift)[1:], rtol=1e-14
        )
        leading, rest = kernels.deviation[1], kernels.to_order(1).deviation[1]
        assert abs(leading) > 0.01 and abs(rest) < abs(leading) / 2
        assert "With 1/N it is" in found.sentences[1]
        assert found.summary_at_width[0]["with 1/N"] is not None
        assert found.summary_at_width[-1]["with 1/N"] is None
        assert {"theory_to_order_1", "deviation_to_order_1", "z_to_order_1"} <= set(found.rows[0])


@pytest.fixture(scope="module")
def relu_pair():
    net = network(3, "relu", width=8)
    return net, drawn(net, K0, (8, 32), 30_000)


@pytest.fixture(scope="module")
def second(relu_pair):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ft.ValidityWarning)
        solution = ft.solve(relu_pair[0], K0, order=2)
        return solution, compare(solution, relu_pair[1])


class TestSecondOrder:
    def test_the_terms_are_coefficients(self, second):
        solution, found = second
        assert found.verdict == "agrees"
        field = entries(found, "variance_2")
        np.testing.assert_array_equal(field.index["layer"], [1, 2, 3, 4])
        np.testing.assert_array_equal(field.theory, solution.variance_2[1:])
        assert field.order == 2 and (field.simulation / field.error)[-1] > 5

    def test_they_come_from_the_diagonal(self, second, relu_pair):
        values = [e.covariance[4, 4] * e.network.width for e in relu_pair[1]]
        widths = [e.network.width for e in relu_pair[1]]
        fitted = np.polynomial.Polynomial.fit(1 / np.array(widths), values, 1, domain=[-1, 1])
        field = entries(second[1], "variance_2")
        np.testing.assert_allclose(field.simulation[-1], fitted.coef[1] / 8**2, rtol=1e-9)

    def test_three_widths_give_that_of_the_mean(self, second, relu_pair):
        net = relu_pair[0]
        found = compare(
            second[0], [*relu_pair[1], simulate(net.replace(width=16), K0, samples=8000)]
        )
        orders = {field.name: field.order for field in found.extrapolated}
        assert orders["mean_shift_2"] == orders["variance_2"] == 2
        assert found.verdict == "agrees"

    def test_a_wrong_one_is_found(self, second, relu_pair):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ft.ValidityWarning)
            wrong = ft.solve(relu_pair[0], K0, order=2)
            vars(wrong)["variance_2"] = -wrong.variance_2
            found = compare(wrong, relu_pair[1])
        rows = {row["quantity"] for row in found.rows if row["verdict"] == "disagrees"}
        assert rows == {"variance_2"}

    def test_the_width_is_described_better_with_them(self, second):
        solution, found = second
        (field,) = [field for field in found.at_width if field.name == "G11"]
        same = field.index["layer"] == field.index["layer_"]
        rest = field.to_order(2)
        expected = (np.diagonal(solution.G11) + solution.variance_2)[1:]
        np.testing.assert_allclose(rest.theory[same], expected, rtol=1e-14)
        assert np.isnan(rest.theory[~same]).all()
        last = np.flatnonzero(same)[-1]
        assert field.z[last] > 10 and abs(rest.z[last]) < 0.4 * field.z[last]
        row = next(row for row in found.rows if row["layer_"] == 2 and row["layer"] == 1)
        assert row["theory_to_order_2"] is None


class TestDisplay:
    def test_two_tables_with_an_answer_below_each(self, found):
        first, answer, second, other = re.split(r"\n(?=Is|theory|Does)", str(found))
        assert (answer.strip(), other) == found.sentences
        for text, fields in ((first, found.extrapolated), (second, found.at_width)):
            for field in fields:
                worst = field.worst
                # A wide table is folded.
                line = "".join(x for x in text.splitlines() if x.split()[:1] == [field.name])
                for values in (field.theory, field.simulation, field.error, field.z):
                    assert format(values[worst], ".6g") in line
        assert repr(found) == "Comparison(agrees, describes width 100, widths=(100, 200))"

    def test_rows_hold_all_entries(self, found):
        first, last = found.rows[0], found.rows[-1]
        assert (first["question"], first["layer"], first["verdict"]) == ("right", 1, "agrees")
        assert (last["question"], last["quantity"]) == ("width", "output_response")
        assert last["layer"] is last["remainder"] is None and last["order"] == 0
        for row in (first, last):
            difference = row["simulation"] - row["theory"]
            assert row["z"] == pytest.approx(difference / row["error"])
            assert row["deviation"] == pytest.approx(difference / row["size"])

    def test_plot_shows_values_deviations_and_scores(self, found):
        axes = np.reshape(found.plot().axes, (3, -1))
        shown = [field for field in found.at_width if "layer" in field.index]
        assert axes.shape == (3, len(shown)) == (3, 7)
        scores = {field.name: field.z for field in found.extrapolated}
        for field, (top, middle, bottom) in zip(shown, axes.T, strict=True):
            np.testing.assert_array_equal(bottom.lines[0].get_ydata(), scores[field.name])
            part = field.index["layer"] == field.index.get("layer_", field.index["layer"])
            drawn = np.concatenate([line.get_ydata() for line in top.lines[:2]])
            np.testing.assert_array_equal(drawn, field.theory[part])
            for ax, values in ((top, field.simulation), (middle, 100 * field.deviation)):
                points = ax.containers[0].lines[0].get_ydata()
                np.testing.assert_allclose(points, values[part], rtol=1e-12)


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"solution": 1.0}, "solution must be a Solution, got 1.0"),
            ({"ensemble": 1.0}, "ensemble must be of Ensemble or a sequence, got 1.0"),
            ({"ensemble": []}, "ensemble must be an Ensemble"),
            ({"responses": 1.0}, "responses must be of SimulatedResponse"),
            ({"false_alarm": 0}, "false_alarm must be a number between 0 and 1, got 0"),
            ({"tolerance": 1}, "tolerance must be a number between 0 and 1, got 1"),
            ({"false_alarm": "low"}, "false_alarm must be a number between 0 and 1, got 'low'"),
        ],
    )
    def test_of_arguments(self, net, pair, change, words):
        given = {"solution": ft.solve(net, K0), "ensemble": pair} | change
        solution, ensemble = given.pop("solution"), given.pop("ensemble")
        with pytest.raises((TypeError, ValueError), match=f"^{re.escape(words)}[^\n]*$"):
            compare(solution, ensemble, **given)

    def test_of_ensembles(self, net, pair):
        s = ft.solve(net, K0)
        wide = net.replace(width=200)
        with pytest.raises(ValueError, match="^ensemble must have different widths"):
            compare(s, [pair[0], pair[0]])
        with pytest.raises(ValueError, match="^ensemble must have different seeds"):
            compare(s, [pair[0], simulate(wide, K0, samples=20, seed=100)])
        with pytest.raises(ValueError, match="^ensemble must be of the network and inputs"):
            compare(s, [pair[0], simulate(wide, 0.4, samples=20)])
        answer = simulate_response(net, K0, samples=20, layer=1)
        with pytest.raises(ValueError, match="^responses must be those to layer 0, got layer 1"):
            compare(s, pair, responses=answer)
