"""Loop corrections in numbers: exact networks, symbolic sums, simulation, bad input."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.numerics.one_input.loop_sums import loop_correction, mean_at_one_loop
from fieldtheory.numerics.one_input.vertex_numbers import VertexNumbers, joint_moments
from fieldtheory.theory.contraction import summed
from fieldtheory.theory.diagrams import diagrams
from fieldtheory.theory.evaluation import symbol_values
from tests.examples import network
from tests.oracles import linear_width, simulated_width
from tests.tables import crossed, slow

# Coefficients are compared, also at widths where the expansion does not hold.
pytestmark = pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
ORDERS = [(1, 1), (2, 0), (2, 1), (3, 0), (1, 2)]


def exact(number):
    return sp.Rational(str(round(number, 12)))


@pytest.mark.parametrize("legs, loops", ORDERS)
def test_deep_linear_networks(legs, loops):
    net = network(2, "linear", [0.7, -0.4], width=10)
    weights = [net.weight_variance * rho**2 for rho in net.branch_scales]
    biases = [net.bias_variance * rho**2 for rho in net.branch_scales]
    readout = net.readout_variances
    known = linear_width.kernel_cumulants(
        "1/2",
        [*map(exact, weights), exact(readout[0])],
        [*map(exact, biases), exact(readout[1])],
        [*map(exact, net.skip_scales)],
    )
    found, order = loop_correction(net, 0.5, legs, loops), loops + legs - 1
    for layers in np.ndindex(found.shape):
        value = float(known(*layers).coeff_monomial(linear_width.eps**order)) / 10**order
        assert found[layers] == pytest.approx(value, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("activation, gamma", [("relu", 1.0), slow("gelu", 0.7)])
def test_one_loop_is_what_the_symbols_say(activation, gamma):
    net = network(1, activation, gamma)
    th = ft.derive(net)
    saddle = ft.solve(net, 0.5).residual_kernels
    expression = sp.ImmutableMatrix(th.correction().expression.tolist())
    values = dict(zip(th.network_action.kernels, saddle, strict=True))
    numbers = symbol_values(net, 0.5) | values
    f = ft.lambdify(list(numbers), expression)
    shift = f(*map(float, numbers.values())).ravel()
    assert loop_correction(net, 0.5) == pytest.approx(shift, rel=1e-9, abs=1e-16)
    assert abs(shift[-1]) > 1e-5


@pytest.mark.parametrize("activation", ["erf", "tanh", "relu", "gelu"])
@pytest.mark.parametrize("gamma", [0.0, 0.7, 1.0])
def test_without_loops_it_is_the_propagator(activation, gamma):
    net = network(2, activation, gamma)
    known = ft.solve(net, 0.5).G11
    assert loop_correction(net, 0.5, 2, 0) == pytest.approx(known, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("activation", [slow("relu"), "tanh"])
def test_vertices_are_derivatives_of_each_other(activation):
    """By central differences in the kernel of the input, which all layers hold."""
    net, K0, step = network(2, activation), 0.5, 1e-4
    up, down, here = (VertexNumbers(net, K0 + s * step) for s in (1, -1, 0))
    # The saddle point of later layers moves too: dC^(l)/dC^(0) is the response.
    response = ft.solve(net, K0).residual_response
    move = np.append(response, ft.solve(net, K0).output_response)
    vertices = [(1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (3, 0)]
    for n, m in [*vertices, (3, 1)] if activation == "tanh" else vertices:
        slope = (up(n, m) - down(n, m)) / (2 * step)
        assert slope == pytest.approx(here(n, m + 1) @ move, rel=2e-6, abs=2e-6)


@pytest.mark.parametrize("order, activation", crossed(ORDERS, ["relu", "tanh"]))
def test_what_is_said_to_vanish_does(activation, order):
    legs, loops = order
    vertex = VertexNumbers(network(2, activation), 0.5)
    random = np.random.default_rng(0)
    lines = {"G12": np.tril(random.uniform(1, 2, (4, 4))), "G11": random.uniform(1, 2, (4, 4))}
    zero = [d.graph for d in diagrams(legs, loops) if d.vanishes]
    assert not summed(zero, legs, vertex, lines).any()


def test_averages_by_parts_where_derivatives_are_no_functions():
    """⟨∂^p x² θ(x) ∂^q y² θ(y)⟩ of ReLU from two derivatives and from one."""
    step = [lambda x: x * x * (x > 0), lambda x: 2 * x * (x > 0), lambda x: 2.0 * (x > 0)]
    K = np.array([[0.8, 0.5], [0.5, 1.1]])
    moments = [((1, p), (1, 4 - p)) for p in range(5)] + [((2, 3), (1, 1)), ((3, 2), (2, 2))]
    few = joint_moments(step[:2], (0.0,), (0.1, 0.2), K, moments)
    assert joint_moments(step, (0.0,), (0.1, 0.2), K, moments) == pytest.approx(few, rel=1e-9)
    # ⟨2δ'(x) ...⟩ without y: the mean of a derivative of x²θ(x) by K is constant.
    one = joint_moments(step, (0.0,), (0.1,), K[:1, :1], [((1, 2),), ((1, 4),)])
    assert one == pytest.approx([1.0, 0.0], abs=1e-9)


@pytest.mark.parametrize(
    "activation, gamma",
    [
        ("relu", 0.0),
        ("tanh", [0.7, -1.1, 1.0]),
        slow("erf", 0.0),
        slow("gelu", [0.7, -1.1, 1.0]),
        slow("relu", [0.7, -1.1, 1.0]),
    ],
)
def test_the_mean_in_few_steps_is_the_sum_of_its_diagrams(activation, gamma):
    net = network(3, activation, gamma)
    K0, vertex = 0.5, VertexNumbers(net, 0.5)
    S = ft.solve(net.replace(width=1), K0)
    kept = [d.graph for d in diagrams(1, 1) if not d.vanishes]
    total = summed(kept, 1, vertex, {"G12": S.G12, "G11": S.G11})
    assert mean_at_one_loop(net, K0) == pytest.approx(total, rel=1e-9, abs=1e-12)
    assert loop_correction(net, K0) == pytest.approx(total / net.width, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("activation", ["tanh", slow("erf"), slow("gelu")])
def test_the_mean_of_deep_networks_is_that_of_interacting_neurons(activation):
    net = ft.ResidualNetwork(depth=60, activation=activation, branch_scale=0.1, width=2000)
    known = ft.solve(net, 0.5).mean_shift
    assert loop_correction(net, 0.5) == pytest.approx(known, rel=1e-9, abs=1e-9 * abs(known).max())


@pytest.mark.parametrize(
    "activation, gamma, depth",
    [
        pytest.param("erf", 0.7, 2, marks=pytest.mark.slow),
        ("tanh", 1.0, 2),
        slow("gelu", 0.0, 2),
        pytest.param("relu", 0.7, 2, marks=pytest.mark.slow),
        pytest.param("tanh", [0.7, 1.0, -0.4, 1.1], 4, marks=pytest.mark.slow),
        pytest.param("gelu", 0.7, 4, marks=pytest.mark.slow),
        pytest.param("swish", 1.0, 3, marks=pytest.mark.slow),
    ],
)
def test_diagrams_and_interacting_neurons_agree(activation, gamma, depth):
    """Vertices and propagators of the action against the transfer of neurons on modes."""
    net = network(depth, activation, gamma, width=20)
    s = ft.solve(net, 0.5, order=2)
    same = {
        "mean_shift": loop_correction(net, 0.5, 1, 1),
        "mean_shift_2": loop_correction(net, 0.5, 1, 2),
        "variance_2": np.diag(loop_correction(net, 0.5, 2, 1)),
        "third_cumulant": np.einsum("lll->l", loop_correction(net, 0.5, 3, 0)),
    }
    for name, found in same.items():
        size = abs(found).max()
        assert found == pytest.approx(getattr(s, name), rel=1e-10, abs=1e-10 * size), name
        assert found[-1] != 0


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_wide_signals():
    net = network(1, "tanh", [0.0], width=100)
    found = np.diagonal(loop_correction(net, 1e3, legs=2, loops=1))
    np.testing.assert_allclose(found, ft.solve(net, 1e3, order=2).variance_2, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["erf", "tanh", "relu", "gelu"])
def test_simulations_see_the_second_order(activation):
    """Coefficients of 1/N² from two widths, so that what is left is of relative order 1/N²."""
    net = network(2, activation, width=1)
    lower = {
        1: (ft.solve(net, 0.5).residual_kernels, loop_correction(net, 0.5, 1, 1)),
        2: (0.0, np.diag(loop_correction(net, 0.5, 2, 0))),
        3: (0.0, 0.0),
    }
    known = {
        1: loop_correction(net, 0.5, 1, 2),
        2: np.diag(loop_correction(net, 0.5, 2, 1)),
        3: np.einsum("lll->l", loop_correction(net, 0.5, 3, 0)),
    }
    seen = {}
    for N in (16, 32):
        drawn = simulated_width.cumulants(
            net.replace(width=N), 0.5, samples=60_000_000 // N, seed=N
        )
        for legs, (value, error) in drawn.items():
            order = value - lower[legs][0] - lower[legs][1] / N
            seen[N, legs] = order * N**2, error * N**2
    for legs, second in known.items():
        (one, error), (two, other) = seen[16, legs], seen[32, legs]
        combined = np.hypot(2 * other, error)
        assert (np.abs(2 * two - one - second) < 4 * combined + 0.12 * np.abs(second))[1:].all()
    value, error = seen[16, 2]
    assert abs(value[-1]) > 10 * error[-1]


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"K0": np.eye(2)}, ValueError, "K0 must be the variance of one input"),
        ({"K0": -1.0}, ValueError, "K0"),
        ({"legs": True}, TypeError, "legs must be an integer >= 1, got True"),
        ({"loops": True}, TypeError, "loops must be an integer >= 1, got True"),
        ({"legs": 2, "loops": False}, TypeError, "loops must be an integer >= 0, got False"),
        ({"legs": [1]}, TypeError, r"legs must be an integer >= 1, got \[1\]"),
        ({"legs": 0}, ValueError, "legs must be an integer >= 1, got 0"),
        ({"loops": 0}, ValueError, "loops must be an integer >= 1, got 0"),
        ({"network": 3}, TypeError, "network must be"),
        ({"network": ft.ResidualNetwork(depth=2, branch_scale=[[1], [2]])}, ValueError, "batch"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        loop_correction(**({"network": network(2), "K0": 0.5} | arguments))
