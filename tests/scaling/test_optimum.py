"""The optimal residual scaling against a scalar optimiser, the deep limit and exact cases."""

import math
import re
import warnings
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy import optimize

import fieldtheory as ft
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.pair_maps.pair_averages import pair_functions
from fieldtheory.scaling import exact, few_pairs, mean_scaling, responses
from tests.tables import slow

K0 = np.array([[0.05, 0.03], [0.03, 0.05]])


def response(network, kernel, rho, entry=()):
    return float(ft.solve(network.replace(branch_scale=rho), kernel).output_response[entry])


def by_scalar_optimiser(network, kernel, bounds, entry=()):
    found = optimize.minimize_scalar(
        lambda rho: -response(network, kernel, rho, entry),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-10},
    )
    return found.x


@pytest.mark.parametrize(
    "parameters",
    [
        {"depth": 1},
        {"depth": 10},
        slow({"depth": 200}),
        {"depth": 20, "bias_variance": 0.0, "weight_variance": 3.0},
        {"depth": 10, "skip_scale": 0.95},
        {"depth": 5, "activation": "tanh"},
        {"depth": 12, "readout_weight_variance": 0.3},
    ],
)
def test_variance_optimum_is_where_a_scalar_optimiser_finds_it(parameters):
    network = ft.ResidualNetwork(**parameters)
    found = ft.optimal_scaling(network, 0.05)
    # A maximum is located to the square root of the rounding of its value.
    assert found == pytest.approx(by_scalar_optimiser(network, 0.05, (0.01, 3)), rel=2e-7)


@pytest.mark.parametrize("depth", [10, slow(50)])
def test_covariance_optimum_is_where_a_scalar_optimiser_finds_it(depth):
    network = ft.ResidualNetwork(depth=depth)
    found = ft.optimal_scaling(network, K0)
    assert found[0, 1] == pytest.approx(
        by_scalar_optimiser(network, K0, (0.05, 3), (0, 1)), rel=2e-7
    )
    assert found[0, 0] == pytest.approx(ft.optimal_scaling(network, 0.05), rel=1e-12)


def test_matrix_of_optima_is_symmetric_and_each_entry_is_that_of_its_pair():
    X = np.random.default_rng(3).normal(size=(4, 9))
    kernel = 0.05 * X @ X.T / 9
    network = ft.ResidualNetwork(depth=6)
    found = ft.optimal_scaling(network, kernel)
    assert (found == found.T).all()
    for i in range(4):
        for j in range(i + 1, 4):
            pair = kernel[np.ix_([i, j], [i, j])]
            np.testing.assert_allclose(
                found[np.ix_([i, j], [i, j])], ft.optimal_scaling(network, pair), rtol=1e-10
            )


@pytest.mark.slow_but(0, 2)
@pytest.mark.parametrize("method", ["response", "deep_limit"])
@pytest.mark.parametrize("norm", [1.0, 0.3])
def test_pairs_of_equal_inputs_have_no_optimum_and_are_left_out_of_the_mean(method, norm):
    network = ft.ResidualNetwork(depth=10)
    X = np.array([[0.1, 0.2, 0.05], [0.2, -0.1, 0.1], [0.1, 0.2, 0.05], [0.1, 0.2, 0.05]])
    kernel = norm * X @ X.T / 0.7
    kernel[2, 0] = kernel[0, 2] = kernel[0, 0] * (1 - 2e-13)
    words = r"^K0 has 3 of 6 pairs of inputs without ρ\*, the first of inputs 0 and 2, .* are equal"
    with pytest.warns(UserWarning, match=words) as said:
        found = ft.optimal_scaling(network, kernel, method=method)
    assert len(said) == 1 and Path(said[0].filename) == Path(__file__)
    expected = ft.optimal_scaling(network, kernel[:2, :2], method=method)
    same = np.array([0, 1, 0, 0])
    equal = (same[:, None] == same) & ~np.eye(4, dtype=bool)
    np.testing.assert_array_equal(np.isnan(found), equal & (same == 0))
    np.testing.assert_allclose(found[~equal], expected[np.ix_(same, same)][~equal], rtol=1e-12)
    means = mean_scaling(found)
    np.testing.assert_allclose(means[1], expected[0, 1], rtol=1e-12)
    np.testing.assert_allclose(means[0], found.diagonal().mean(), rtol=1e-14)


def test_optimum_of_a_pair_grows_without_bound_as_the_inputs_become_identical():
    network = ft.ResidualNetwork(depth=50)
    scaled = [
        ft.optimal_scaling(network, [[0.05, r], [r, 0.05]])[0, 1] * math.sqrt(network.depth)
        for r in (0.05 * 0.99, 0.05 * 0.999, 0.05 * 0.9999, 0.05 * 0.99999)
    ]
    assert (np.diff(scaled) > 1.5).all()
    kernels = [[[0.05, 0.03], [0.03, 0.05]], [[0.05, 0.0499], [0.0499, 0.05]]]
    words = (
        r"1 of 2 pairs .*, the first of inputs 0 and 1 of kernel 1, .* whose correlation is 0.998:"
    )
    with pytest.warns(UserWarning, match=words):
        found = ft.optimal_scaling(ft.ResidualNetwork(depth=2), kernels)
    assert np.isnan(found[1, 0, 1]) and np.isfinite(found[[0, 1], 0, [1, 0]]).all()


def test_few_pairs_that_carry_the_mean_are_counted():
    even = np.full((5, 5), 1.0)
    assert few_pairs(even) == ""
    one = even.copy()
    one[0, 1] = one[1, 0] = 12.55
    # (9 + 12.55)²/(9 + 12.55²) = 2.79 of 10.
    assert few_pairs(one).startswith("about 3 of 10 pairs carry the mean ρ* = 2.155 of pairs")
    assert few_pairs(one).endswith("their median is 1")
    one[2:, :] = one[:, 2:] = np.nan
    one[2, 0] = one[0, 2] = 12.55
    assert few_pairs(one).startswith("about 2 of 10 pairs carry")
    assert few_pairs(np.zeros((3, 3))) == ""
    with pytest.raises(ValueError, match="scaling must have a pair of inputs with ρ"):
        mean_scaling(np.array([[0.1, np.nan], [np.nan, 0.1]]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, r"1 of 1 entries with ρ\* = 0: .* below K\*_out = 0.2511, .* rescale the inputs"),
        ({"method": "deep_limit"}, r"below K\*_out = 0.2511, .* rescale the inputs"),
        ({"method": "saturation"}, r"below \(V/2\)² = 0.25, .* rescale the inputs"),
    ],
)
def test_saturated_inputs_have_their_optimum_at_zero_and_it_is_said_why(options, words):
    network = ft.ResidualNetwork(depth=20)
    with pytest.warns(UserWarning, match=words):
        assert ft.optimal_scaling(network, 0.3, **options) == 0
    assert response(network, 0.3, 0.01) < response(network, 0.3, 0.0)


def test_reasons_of_a_scaling_of_zero_name_what_there_is():
    large, small = (ft.ResidualNetwork(depth=9, bias_variance=bias) for bias in (1.0, 0.05))
    with pytest.warns(UserWarning, match=r"K\*_out = 0, .* take a smaller bias_variance"):
        assert ft.optimal_scaling(large, 0.1) == 0
    with pytest.warns(UserWarning, match=r"3 of 8 entries .* below K\*_out = 0 to 0.2511"):
        ft.optimal_scaling([large, small], [[[0.4, 0.1], [0.1, 0.05]]])
    with pytest.warns(UserWarning, match="largest without a residual branch$"):
        ft.optimal_scaling(small.replace(skip_scale=0.95), 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ft.optimal_scaling(small, 0.2)


@pytest.mark.parametrize("method", ["response", "deep_limit"])
@pytest.mark.parametrize("activation", ["sign", "Heaviside(h)"])
def test_jumps_between_constants_do_not_respond(activation, method):
    network = ft.ResidualNetwork(depth=10, activation=activation)
    with pytest.raises(ValueError, match=f"that of {re.escape(activation)} vanishes"):
        ft.optimal_scaling(network, 0.05, method=method)


@pytest.mark.parametrize("method", ["response", slow("deep_limit")])
def test_maximum_before_the_response_grows_without_bound(method):
    network = ft.ResidualNetwork(depth=100, activation="tanh(h) + h/10")
    options = {"order": 2} if method == "deep_limit" else {}
    found = ft.optimal_scaling(network, 0.05, method=method, **options)
    heights = [response(network, 0.05, found * factor) for factor in (0.98, 1, 1.02)]
    assert heights[1] > max(heights[0], heights[2])
    assert response(network, 0.05, 30 * found) > heights[1]


@pytest.mark.slow
def test_maximum_at_the_end_of_the_search():
    K0 = np.array([[0.0312, 0.0340], [0.0340, 0.0374]])
    network = ft.ResidualNetwork(depth=50, activation="sigmoid")
    with pytest.warns(UserWarning, match="2 of 4 entries with ρ\\* = 0"):
        found = ft.optimal_scaling(network, K0)[0, 1]
    scales = found * np.array([1e-4, 0.98, 1, 1.02])
    heights = [ft.solve(network.replace(branch_scale=s), K0).output_response[0, 1] for s in scales]
    assert heights[2] > max(heights[0], heights[1], heights[3])


@pytest.mark.parametrize("activation", ["relu", "linear", "leaky_relu"])
def test_unbounded_response_has_no_optimum(activation):
    network = ft.ResidualNetwork(depth=10, activation=activation)
    with pytest.raises(ValueError, match="must have a response with a maximum"):
        ft.optimal_scaling(network, 0.05)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"method": "guess"}, "method must be one of response, saturation, large_depth"),
        ({"K0": K0, "method": "saturation"}, "K0 must be a variance"),
        ({"K0": -1.0}, "K0 must be a variance >= 0"),
        ({"K0": float("nan")}, "K0 must be finite"),
        ({"K0": [[1.0, 2.0], [2.0, 1.0]]}, "positive semidefinite"),
        ({"method": "saturation", "dynamic_range": -1.0}, "dynamic_range must be"),
        *(
            ({"method": method, name: value}, f"{name} must be left out but for .*, got {value}")
            for name, value, methods in (
                ("dynamic_range", 1.0, ("response", "deep_limit")),
                ("slope", 1.0, ("response", "deep_limit")),
                ("order", 1, ("response", "saturation", "large_depth")),
            )
            for method in methods
        ),
    ],
)
def test_bad_arguments(arguments, match):
    with pytest.raises(ValueError, match=match):
        ft.optimal_scaling(ft.ResidualNetwork(depth=3), **{"K0": 0.05, **arguments})


@pytest.mark.parametrize(
    ("parameters", "method"),
    [
        ({"weight_variance": 0.0}, "response"),
        ({"readout_weight_variance": 0.0}, "response"),
        ({"skip_scale": 0.9}, "saturation"),
        ({"activation": sp.Symbol("x") ** 2}, "saturation"),
    ],
)
def test_networks_without_an_answer(parameters, method):
    with pytest.raises(ValueError, match="network must have"):
        ft.optimal_scaling(ft.ResidualNetwork(depth=3, **parameters), 0.05, method=method)


def test_networks_of_any_depth_and_skip_are_solved_at_once():
    networks = [
        ft.ResidualNetwork(depth=4, weight_variance=0.8),
        ft.ResidualNetwork(depth=6, skip_scale=[1.0, 0.9, 1.0, 0.8, 1.0, 1.0]),
        ft.ResidualNetwork(depth=15, bias_variance=0.0),
    ]
    found = ft.optimal_scaling(networks, K0)
    assert found.shape == (3, 2, 2)
    for network, one in zip(networks, found, strict=True):
        np.testing.assert_allclose(one, ft.optimal_scaling(network, K0), rtol=1e-10)


def test_kernels_may_be_stacked():
    network = ft.ResidualNetwork(depth=5)
    kernels = np.stack([K0, [[0.1, 0.02], [0.02, 0.05]], np.full((2, 2), 0.07)])
    found = ft.optimal_scaling(network, kernels)
    assert found.shape == (3, 2, 2)
    for kernel, one in zip(kernels, found, strict=True):
        np.testing.assert_allclose(one, ft.optimal_scaling(network, kernel), rtol=1e-10)
    both = ft.optimal_scaling([network, network.replace(depth=8)], kernels[:2])
    np.testing.assert_allclose(both[0], found[:2], rtol=1e-10)


def test_means_over_variances_and_covariances():
    found = ft.optimal_scaling(ft.ResidualNetwork(depth=10), K0)
    variances, covariances = mean_scaling(np.stack([found, 2 * found]))
    np.testing.assert_allclose(variances, [found[0, 0], 2 * found[0, 0]], rtol=1e-12)
    np.testing.assert_allclose(covariances, [found[0, 1], 2 * found[0, 1]], rtol=1e-12)
    for wrong in (found[0], [[0.1]], np.ones((2, 3))):
        with pytest.raises(ValueError, match=r"scaling must be a matrix \(P, P\)"):
            mean_scaling(wrong)


@pytest.mark.parametrize(
    ("network", "error", "match"),
    [
        (0.3, TypeError, "network must be a ResidualNetwork"),
        ([], TypeError, "network must be one network or a sequence"),
        (["net"], TypeError, "network must be a ResidualNetwork"),
        (
            [ft.ResidualNetwork(depth=2), ft.ResidualNetwork(depth=2, activation="tanh")],
            ValueError,
            "network must be of one activation, got erf, tanh",
        ),
        (
            [ft.ResidualNetwork(depth=2), ft.ResidualNetwork(depth=2, weight_variance=0.0)],
            ValueError,
            "network must have weight variances > 0",
        ),
    ],
)
def test_what_is_not_a_stack_of_networks(network, error, match):
    with pytest.raises(error, match=match):
        ft.optimal_scaling(network, 0.05)


def test_optimum_is_that_of_mpmath():
    network = ft.ResidualNetwork(depth=12)
    best = ft.optimal_scaling(network, 0.05)

    def log_response(s):
        K, chi = mpmath.mpf(0.05), mpmath.mpf(1)
        for _ in range(network.depth):
            gain = 4 / mpmath.pi / ((1 + 2 * K) * mpmath.sqrt(1 + 4 * K))
            chi *= 1 + s * mpmath.mpf(1.25) * gain
            K += s * (mpmath.mpf(1.25) * 2 / mpmath.pi * mpmath.asin(2 * K / (1 + 2 * K)) + 0.05)
        return mpmath.log(chi / ((1 + 2 * K) * mpmath.sqrt(1 + 4 * K)))

    with mpmath.workdps(40):
        root = mpmath.findroot(lambda s: mpmath.diff(log_response, s), best**2)
        assert best == pytest.approx(float(mpmath.sqrt(root)), rel=1e-12)


@pytest.mark.parametrize("activation", ["erf", "sin"])
def test_slopes_are_those_of_the_heights(activation):
    """Of a variance, and of a covariance, of two networks at once."""
    networks = [
        ft.ResidualNetwork(depth=d, activation=activation, weight_variance=w, skip_scale=0.9)
        for d, w in ((3, 1.7), (2, 0.6))
    ]
    stack = responses.stacked(networks, pair_functions(network_functions(networks[0])))
    s, d = np.array([0.3, 0.5]), 1e-4
    for r in (0.4, 0.2):
        fields = (*np.full((2, 2), 0.4), np.full(2, r))
        less, more = stack.height(np.stack([s - d, s + d]), *fields)
        np.testing.assert_allclose(stack.slope(s, *fields), (more - less) / (2 * d), rtol=1e-6)


def test_maxima_that_polynomials_do_not_resolve_are_bracketed():
    class Cusps:
        """Heights −|ln s/m|^(3/2)."""

        def __init__(self, middle):
            self.middle = middle

        def of(self, index):
            return Cusps(self.middle[index])

        def height(self, s, p):
            return -(np.abs(np.log(s / self.middle)) ** 1.5)

        def slope(self, s, p):
            distance = np.log(s / self.middle)
            return -1.5 * np.sign(distance) * np.abs(distance) ** 0.5 / s

    middle = np.array([0.3, 1.1])
    grid = np.repeat(np.geomspace(0.01, 20.0, 26)[:, None], 2, axis=1)
    cusps = Cusps(middle)
    found = exact.maxima(cusps, grid, cusps.height(grid, middle), False, middle[None])
    np.testing.assert_allclose(found, middle, rtol=1e-12)


def test_a_scaling_of_zero_warns_at_the_line_of_the_user():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        ft.optimal_scaling(ft.ResidualNetwork(depth=5), 3.0)
    assert [Path(warning.filename).name for warning in given] == [Path(__file__).name]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", module="fieldtheory")
        warnings.filterwarnings("ignore", module=__name__)
        ft.optimal_scaling(ft.ResidualNetwork(depth=5), 3.0)


def test_tolerance_of_the_integrals():
    network = ft.ResidualNetwork(depth=3, activation="tanh")
    found = [ft.optimal_scaling(network, 0.05, rtol=rtol) for rtol in (1e-6, 1e-12)]
    np.testing.assert_allclose(*found, rtol=1e-6)
    with pytest.raises(ValueError, match="rtol must be a number from 1e-14 to 0.1, got 1"):
        ft.optimal_scaling(network, 0.05, rtol=1)


def test_gains_of_many_layers_at_once_are_those_of_one_after_the_other(monkeypatch):
    networks = [ft.ResidualNetwork(depth=d, skip_scale=s) for d, s in ((7, 0.9), (4, 1.0))]
    found = ft.optimal_scaling(networks, K0)
    monkeypatch.setattr(responses, "_TOGETHER", 200)
    np.testing.assert_allclose(ft.optimal_scaling(networks, K0), found, rtol=1e-12)
    monkeypatch.setattr(responses, "_FEW", 0)
    np.testing.assert_allclose(ft.optimal_scaling(networks, K0), found, rtol=1e-12)
