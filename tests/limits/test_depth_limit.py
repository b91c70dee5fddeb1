"""`depth_limit` against exact solutions, plain Python and deep networks."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest

import fieldtheory as ft
from tests.oracles import depth_limit as oracle
from tests.tables import crossed, slow

PAIR = (1.0, 0.7, 0.3)


def matrix(p, q, r):
    return np.array([[p, r], [r, q]])


def network(activation="relu", schedule="uniform", weight=2.0, bias=0.1, **others):
    return ft.ResidualNetwork(
        depth=1,
        activation=activation,
        branch_scale=schedule,
        weight_variance=weight,
        bias_variance=bias,
        **others,
    )


def as_state(kernel, tangent):
    """Kernels and tangent kernels of two inputs in the order of the oracle."""
    where = (0, 0), (1, 1), (0, 1)
    return np.array([values[index] for values in (kernel, tangent) for index in where])


def end_of(limit):
    return as_state(limit.kernels[-1], limit.tangent_kernels[-1])


def corrections(limit, place=-1):
    found = limit.first_correction
    return as_state(found.kernels[place], found.tangent_kernels[place])


def extrapolated(values):
    """The limit of values at depths that double, with powers of 1/L removed one by one."""
    rows = list(values)
    for power in range(1, len(rows)):
        factor = 2**power
        rows = [(factor * fine - coarse) / (factor - 1) for coarse, fine in pairwise(rows)]
    return rows[-1]


@pytest.mark.parametrize(
    "K0, bias, c",
    [slow(1.0, 0.0, 1.0), (0.05, 0.3, 0.6), slow(30.0, 0.3, 2.0), slow(0.05, 0.0, 2.0)],
)
def test_variance_of_relu_grows_exponentially(K0, bias, c):
    weight = 1.7
    limit = ft.depth_limit(network(schedule=lambda l, L: c / L**0.5, weight=weight, bias=bias), K0)
    a, b, t = c**2 * weight / 2, c**2 * bias, limit.places
    grown = np.exp(a * t)
    q = (K0 + b / a) * grown - b / a
    theta = grown * (K0 + t * (a * K0 + b))
    e = -(a**2) * t / 2 * (K0 + b / a) * grown
    np.testing.assert_allclose(limit.kernels, q, rtol=3e-12)
    np.testing.assert_allclose(limit.tangent_kernels, theta, rtol=3e-12)
    np.testing.assert_allclose(limit.first_correction.kernels, e, rtol=1e-11, atol=1e-14 * q[-1])
    np.testing.assert_allclose(limit.remaining, c**2 * (1 - t), rtol=1e-12, atol=1e-15)
    out = weight * q[-1] / 2 + bias
    assert limit.output_kernel == pytest.approx(out, rel=3e-12)
    assert limit.output_tangent_kernel == pytest.approx(out + weight / 2 * theta[-1], rel=3e-12)


@pytest.mark.parametrize("r", [slow(0.3), 0.0, slow(-0.8)])
def test_linear_networks(r):
    limit = ft.depth_limit(network("linear", bias=0.0), matrix(1.0, 0.7, r))
    t = limit.places[:, None, None]
    start = matrix(1.0, 0.7, r)
    np.testing.assert_allclose(limit.kernels, start * np.exp(2 * t), rtol=1e-11, atol=1e-15)
    exact = start * np.exp(2 * t) * (1 + 2 * t)
    np.testing.assert_allclose(limit.tangent_kernels, exact, rtol=1e-11, atol=1e-15)
    # (1 + 2/L)^L and its L-th part, to first order.
    e = limit.first_correction
    np.testing.assert_allclose(e.kernels[-1], -2 * start * math.e**2, rtol=1e-11, atol=1e-15)
    exact = -2 * start * math.e**2 * (1 + 2) - 4 * start * math.e**2
    np.testing.assert_allclose(e.tangent_kernels[-1], exact, rtol=1e-11, atol=1e-15)


@pytest.mark.slow_but(12)
@pytest.mark.parametrize(
    "activation, case",
    crossed(
        ["relu", "erf"],
        [
            (PAIR, 0.1),
            ((1.0, 0.7, 0.0), 0.0),
            ((1.0, 1.0, 1 - 1e-6), 0.0),
            ((1.0, 1.0, -1.0), 0.1),
            ((1e-3, 20.0, -0.1), 0.1),
            ((1.0, 0.7, 0.0), 0.1),
            ((1.0, 1.0, -1.0), 0.0),
        ],
    ),
)
def test_flow_of_pairs(activation, case):
    pair, bias = case
    moments = getattr(oracle, activation)
    v = oracle.rates(moments, 2.0, bias)
    limit = ft.depth_limit(network(activation, bias=bias), matrix(*pair))
    expected = oracle.flow(v, oracle.start(*pair), 1.0, power=4)
    size = np.sqrt(expected[0] * expected[1])
    np.testing.assert_allclose(end_of(limit) / size, np.array(expected) / size, atol=2e-11)
    out = as_state(limit.output_kernel, limit.output_tangent_kernel)
    expected = np.array(oracle.readout(moments, expected, 2.0, bias))
    size = np.sqrt(expected[0] * expected[1])
    np.testing.assert_allclose(out / size, expected / size, atol=3e-11)


@pytest.mark.slow_but(4)
@pytest.mark.parametrize(
    "activation, case",
    crossed(["relu", "erf"], [((1.0, 1.0, 0.999), 0.0), (PAIR, 0.1), ((1.0, 0.7, 0.0), 0.0)]),
)
def test_coefficients_of_one_over_depth(activation, case):
    pair, bias = case
    v = oracle.rates(getattr(oracle, activation), 2.0, bias)
    limit = ft.depth_limit(network(activation, bias=bias), matrix(*pair))
    depths = 50 * 2 ** np.arange(5)
    ends = [np.array(oracle.layers(v, oracle.start(*pair), [1 / L] * L)) for L in depths]
    found = extrapolated([L * (end - end_of(limit)) for L, end in zip(depths, ends, strict=True)])
    np.testing.assert_allclose(corrections(limit), found, rtol=1e-5, atol=1e-7)
    # What is left falls as 1/L².
    errors = [
        end - end_of(limit) - corrections(limit) / L for L, end in zip(depths, ends, strict=True)
    ]
    np.testing.assert_allclose(errors[-1], np.array(errors[-2]) / 4, rtol=0.03, atol=1e-10)


@pytest.mark.slow
def test_coefficients_from_opposite_inputs_fall_short_by_a_root():
    """⟨φ'φ'⟩ starts as √t, with infinite slope: the next order is L^(-3/2)."""
    v = oracle.rates(oracle.relu, 2.0, 0.0)
    limit = ft.depth_limit(network(bias=0.0), matrix(1.0, 1.0, -1.0))
    depths = 200 * 4 ** np.arange(3)
    ends = [np.array(oracle.layers(v, oracle.start(1.0, 1.0, -1.0), [1 / L] * L)) for L in depths]
    scaled = [L * (end - end_of(limit)) for L, end in zip(depths, ends, strict=True)]
    # Powers of L^(-1/2), removed one by one.
    np.testing.assert_allclose(corrections(limit), extrapolated(scaled), atol=2e-3)


BLOCKS = {
    "pre": {"activation": "relu", "inner_bias_variance": 0.2, "outer_bias_variance": 0.1},
    "no norm": {"activation": "erf", "normalization": None, "readout_weight_variance": 0.7},
    "gate, ε": {"activation": "erf", "gated": True, "inner_bias_variance": 0.3, "epsilon": 0.1},
    "post": {"activation": "erf", "norm_position": "post", "gated": True},
    "layer": {"activation": "gelu", "normalization": "layer"},
}


@pytest.mark.slow_but(1)
@pytest.mark.parametrize(
    "activation",
    [
        "relu",
        "erf",
        *map(slow, ("tanh", "gelu", "softplus", "hardtanh")),
        "pre",
        *map(slow, list(BLOCKS)[1:]),
    ],
)
def test_deep_networks_of_any_activation(activation):
    if activation in BLOCKS:
        net = ft.BlockNetwork(depth=1, branch_scale="uniform", **BLOCKS[activation])
    else:
        net = network(activation, weight=1.3, bias=0.05)
    K0 = np.array([[1.0, 0.0, 0.3], [0.0, 0.7, -0.2], [0.3, -0.2, 1.4]])
    limit = ft.depth_limit(net, K0)
    depths = (25, 50, 100)
    solved = [ft.solve(net.replace(depth=L), K0) for L in depths]
    pairs = zip(depths, solved, strict=True)
    scaled = [
        L * np.stack([s.kernels[-2:], s.tangent_kernels[-2:]])
        - L
        * np.stack(
            [
                [limit.kernels[-1], limit.output_kernel],
                [limit.tangent_kernels[-1], limit.output_tangent_kernel],
            ]
        )
        for L, s in pairs
    ]
    e = limit.first_correction
    found = [
        [e.kernels[-1], e.output_kernel],
        [e.tangent_kernels[-1], e.output_tangent_kernel],
    ]
    np.testing.assert_allclose(found, extrapolated(scaled), rtol=1e-3, atol=1e-3)
    middle = limit.at(0.5)
    np.testing.assert_allclose(
        solved[-1].kernels[50] - middle.kernel, e.kernels[10] / 100, atol=2e-4 * K0.max()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pre", "gate, ε", "post"])
def test_decreasing_scales_of_blocks(name):
    """Layer by layer, and what is left behind the last of them, to first order."""
    net = ft.BlockNetwork(depth=100, branch_scale="decreasing", **BLOCKS[name])
    K0 = matrix(*PAIR)
    limit, s = ft.depth_limit(net, K0), ft.solve(net, K0)
    found = limit.at(100)
    np.testing.assert_allclose(found.kernel, s.kernels[100], rtol=1e-11)
    np.testing.assert_allclose(found.tangent_kernel, s.tangent_kernels[100], rtol=1e-11)
    deep = ft.solve(net.replace(depth=4000), K0)
    left = limit.remaining[limit.places == 4096] * limit.first_correction.kernels
    np.testing.assert_allclose(deep.kernels[4000] - limit.kernels[-1], left, rtol=0.3, atol=1e-3)


@pytest.mark.parametrize("schedule", ["uniform", "decreasing"])
def test_variances_behind_a_norm(schedule):
    """Branches add ρ² to the stream, and ρ² (2 + θ/K) to its tangent kernel for ReLU."""
    net = ft.BlockNetwork(depth=1, activation="relu", branch_scale=schedule)
    limit = ft.depth_limit(net, 0.7)
    time = limit.remaining[0] - limit.remaining
    K = 0.7 + time
    np.testing.assert_allclose(limit.kernels, K, rtol=1e-10)
    if schedule == "uniform":
        theta = K * (1 + 2 * np.log(K / 0.7))
        np.testing.assert_allclose(limit.tangent_kernels, theta, rtol=1e-10)
    assert limit.output_kernel == pytest.approx(1.0, rel=1e-14)


def test_scales_that_vary_over_the_depth():
    net = network("erf", lambda l, L: (0.5 + l / L) / L**0.5)
    limit = ft.depth_limit(net, matrix(*PAIR))
    v = oracle.rates(oracle.erf, 2.0, 0.1)
    depths = 50 * 2 ** np.arange(5)
    ends = []
    for L in depths:
        squares = [(0.5 + l / L) ** 2 / L for l in range(1, L + 1)]
        ends.append(np.array(oracle.layers(v, oracle.start(*PAIR), squares)))
    np.testing.assert_allclose(end_of(limit), extrapolated(ends), rtol=1e-9)
    found = extrapolated([L * (end - end_of(limit)) for L, end in zip(depths, ends, strict=True)])
    np.testing.assert_allclose(corrections(limit), found, rtol=1e-5)
    half = oracle.flow(v, oracle.start(*PAIR), (1.0 - 0.125) / 3)
    np.testing.assert_allclose(as_state(*limit.at(0.5)), half, rtol=1e-11)
    assert limit.remaining[0] == pytest.approx(13 / 12, rel=1e-12)


@pytest.mark.parametrize(
    "activation, last",
    [slow("relu", 20000), ("erf", 20000), slow("relu", 10**6), slow("erf", 10**6)],
)
def test_decreasing_scales_layer_by_layer(activation, last):
    """As many as can be summed, and the flow of those that are left with its first change."""
    v = oracle.rates(getattr(oracle, activation), 2.0, 0.1)
    state = oracle.layers(v, oracle.start(*PAIR), map(oracle.decreasing, range(1, last + 1)))
    remaining = float(oracle.decreasing_tail(last))
    # An Euler step s adds −(s²/2) (Dv) v to the flow: the tail adds as much with s² = Σ λ⁴.
    fourth = float(oracle.decreasing_square_tail(last))
    step = math.sqrt(fourth)
    stepped = oracle.flow(v, oracle.layers(v, state, [step]), -step)
    expected = np.array(oracle.flow(v, stepped, remaining))
    limit = ft.depth_limit(network(activation, "decreasing"), matrix(*PAIR))
    np.testing.assert_allclose(end_of(limit), expected, rtol=1e-10)
    assert limit.error < 5e-11
    np.testing.assert_allclose(as_state(*limit.at(last)), state, rtol=1e-11)
    assert limit.remaining[-1] == 0 and limit.places[-1] == math.inf
    for layers in (1, 100, 1000):
        some = oracle.layers(v, oracle.start(*PAIR), map(oracle.decreasing, range(1, layers + 1)))
        np.testing.assert_allclose(as_state(*limit.at(layers)), some, rtol=1e-11)


SCALES = {
    "1/l": (lambda l, L: 1 / l, lambda l: l**-2),
    "geometric": (lambda l, L: 0.5**l, lambda l: mpmath.mpf("0.25") ** l),
}


@pytest.mark.slow_but(3)
@pytest.mark.parametrize("schedule, weight", crossed(SCALES, [0.4, 2.0]))
def test_infinite_products_of_linear_layers(schedule, weight):
    """K_∞ = K0 Π (1 + a_l), Θ_∞ = K_∞ (1 + Σ a_l/(1 + a_l)) without biases, a_l = σ²_w λ_l²."""
    scale, square = SCALES[schedule]
    with mpmath.workdps(25):
        terms = [1, mpmath.inf]
        log = mpmath.nsum(lambda l: mpmath.log1p(weight * square(mpmath.mpf(l))), terms)
        ratios = mpmath.nsum(lambda l: 1 / (1 + 1 / (weight * square(mpmath.mpf(l)))), terms)
        product, ratios = float(mpmath.exp(log)), float(ratios)
    limit = ft.depth_limit(network("linear", scale, weight, bias=0.0), 0.3)
    assert limit.kernels[-1] == pytest.approx(0.3 * product, rel=2e-11)
    assert limit.tangent_kernels[-1] == pytest.approx(0.3 * product * (1 + ratios), rel=2e-11)


@pytest.mark.parametrize("schedule", [slow("uniform"), lambda l, L: 0.5**l])
def test_identical_inputs(schedule):
    K0 = np.array([[1.0, 0.2, 1.0], [0.2, 2.0, 0.2], [1.0, 0.2, 1.0]])
    limit = ft.depth_limit(network(schedule=schedule), K0)
    single = ft.depth_limit(network(schedule=schedule), np.array([1.0, 2.0]))
    for name in ("kernels", "tangent_kernels"):
        values = getattr(limit, name)
        assert (values[:, 0, 2] == values[:, 0, 0]).all()
        assert (values[:, 2, 2] == values[:, 0, 0]).all()
        assert (values[:, 0, 1] == values[:, 1, 2]).all()
        assert (values == values.swapaxes(1, 2)).all()
        own = np.diagonal(values, axis1=1, axis2=2)[:, :2]
        np.testing.assert_allclose(own, getattr(single, name), rtol=1e-11)
    e = limit.first_correction.output_kernel
    assert e[0, 2] == e[0, 0]


def test_inputs_without_variance():
    limit = ft.depth_limit(network(), matrix(1.0, 0.0, 0.0))
    alone = ft.depth_limit(network(), 0.0)
    assert limit.kernels[-1, 1, 1] == pytest.approx(0.1 * (math.e - 1), rel=1e-11)
    assert alone.kernels[-1] == pytest.approx(0.1 * (math.e - 1), rel=1e-11)
    assert ft.depth_limit(network("erf", bias=0.0), 0.0).kernels[-1] == 0


BLOCK = {"depth": 2, "branch_scale": "uniform"}


@pytest.mark.parametrize(
    "changes, K0, match",
    [
        ({"schedule": "none"}, 1.0, "bounded Σ ρ_l², got none"),
        ({"schedule": lambda l, L: l**-0.5}, 1.0, "bounded"),
        ({"schedule": lambda l, L: (l * math.log(l + 1)) ** -0.5}, 1.0, "bounded"),
        ({"schedule": lambda l, L: (1 + l % 2) / l}, 1.0, "smooth"),
        ({"schedule": 0.3}, 1.0, "must be a schedule"),
        ({"schedule": [0.3]}, 1.0, "must be a schedule"),
        ({"schedule": lambda l, L: (L + 1) ** -0.5}, 1.0, "λ\\(l/L\\)/√L or the same"),
        ({"schedule": lambda l, L: [1, 0.5][l - 1]}, 1.0, "raised IndexError"),
        ({"skip_scale": 0.9}, 1.0, "skip_scale=1"),
        ({"skip_scale": [[1.0], [1.0]]}, 1.0, "no batch axes"),
        ({}, np.ones((2, 2, 2)), "one matrix"),
        ({"bias": 0.0}, matrix(1.0, 0.0, 0.0), "variances > 0"),
        ({}, -1.0, "K0 must be"),
        (BLOCK | {"norm_position": "post", "epsilon": 0.1}, 1.0, "epsilon must be 0 behind the"),
        (BLOCK | {"inner_weight_variance": [1, 2]}, 1.0, "that are the same for all layers"),
        (BLOCK | {"skip_scale": 0.9}, 1.0, "skip_scale=1"),
        (BLOCK, 0.0, "variances > 0 where there is no bias, or a norm"),
    ],
)
def test_what_has_no_limit(changes, K0, match):
    family = ft.BlockNetwork if "depth" in changes else network
    with pytest.raises(ValueError, match=match):
        ft.depth_limit(family(**changes), K0)


def test_kernels_that_grow_beyond_all_bounds():
    """dK/dt = 15 σ²_w K³ ends at 1/(30 σ²_w K0²)."""
    with pytest.raises(ArithmeticError, match=r"0\.0666667 only: it grows beyond all bounds"):
        ft.depth_limit(network("x**3", bias=0.0), 0.5)


@pytest.mark.parametrize("activation", ["x**2", "x**3", "exp", "sinh"])
def test_sums_over_layers_that_grow_beyond_all_bounds(activation):
    with pytest.raises(ArithmeticError, match="no limit: kernels grow beyond all bounds.* layer"):
        ft.depth_limit(network(activation, schedule="decreasing"), 0.5)


@pytest.mark.parametrize("K0", [0.3, [[0.3, 0.1], [0.1, 0.3]]])
def test_shifts_of_exp_that_exceed_float64_say_so(K0):
    solution = ft.solve(ft.ResidualNetwork(depth=2, activation="exp"), K0)
    with pytest.raises(OverflowError, match="covariance of the kernels exceeds the range"):
        _ = solution.mean_shift


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(
    "schedule, place", [("uniform", 1.2), ("uniform", -0.1), ("decreasing", 1.5)]
)
def test_places_that_do_not_exist(schedule, place):
    limit = ft.depth_limit(network(schedule=schedule), 1.0)
    with pytest.raises(ValueError, match="place must be"):
        limit.at(place)


@pytest.mark.parametrize(
    "schedule, K0, ending",
    [
        ("uniform", 0.5, "npz"),
        slow("decreasing", 0.5, "nc"),
        slow("uniform", np.array([0.5, 1.0]), "nc"),
        slow("uniform", matrix(*PAIR), "npz"),
        slow("decreasing", matrix(*PAIR), "nc"),
    ],
)
def test_files(tmp_path, schedule, K0, ending):
    limit = ft.depth_limit(network("erf", schedule), K0)
    _ = limit.first_correction
    limit.save(tmp_path / f"limit.{ending}")
    loaded = ft.DepthLimit.load(tmp_path / f"limit.{ending}")
    assert loaded.network == limit.network and loaded.last == limit.last
    for name in ("places", "remaining", "kernels", "tangent_kernels", "output_tangent_kernel"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(limit, name))
    assert "first_correction" in vars(loaded)
    for one, two in zip(loaded.first_correction, limit.first_correction, strict=True):
        np.testing.assert_array_equal(one, two)
    place = 0.33 if schedule == "uniform" else 77
    np.testing.assert_array_equal(loaded.at(place).kernel, limit.at(place).kernel)


@pytest.mark.parametrize("schedule", ["uniform", slow("decreasing")])
def test_shown(schedule):
    limit = ft.depth_limit(network("erf", schedule), matrix(*PAIR))
    labelled = limit.to_xarray()
    assert labelled.kernels.dims == ("place", "input", "input_")
    assert labelled.place.values[-1] == (1.0 if schedule == "uniform" else math.inf)
    assert "tangent kernels" in limit._repr_html_()
    figure = limit.plot()
    assert [len(ax.lines) for ax in figure.axes] == [3, 3]
