"""Responses and tangent kernels are derivatives of the kernels that are computed beside them.

In one layer with ρ = γ = 1, σ_w² = 1 and σ_b² = 0 the residual kernels are ⟨φφ⟩. Their derivatives
by kernels are taken of Chebyshev interpolants, which see φ alone and no rule for φ'.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev

import fieldtheory as ft
from fieldtheory.networks.activations import ACTIVATIONS
from tests.tables import slow, some

DEGREE = 14
NODES = chebyshev.chebpts1(DEGREE + 1)
JUMPS = ("sign", "heaviside", "hardshrink")


def network(activation):
    return ft.ResidualNetwork(
        depth=1,
        activation=activation,
        branch_scale=1.0,
        skip_scale=1.0,
        weight_variance=1.0,
        bias_variance=0.0,
    )


def slope(values, width):
    """The derivative at 0 of a function, analytic within some 3 widths, from its values."""
    terms = chebyshev.chebfit(NODES, values, DEGREE)
    return chebyshev.chebval(0.0, chebyshev.chebder(terms)) / width


def covariance(a, b, t):
    """Covariance matrices of two inputs, (..., 2, 2)."""
    a, b, t = np.broadcast_arrays(a, b, t)
    return np.stack([np.stack([a, t], axis=-1), np.stack([t, b], axis=-1)], axis=-1)


def check_one(activation, K, rtol=1e-9):
    """χ of one input."""
    net = network(activation)

    solution = ft.solve(net, K)
    size = abs(solution.residual_kernels[1]) / K
    moments = ft.solve(net, K * np.exp(0.3 * NODES)).residual_kernels[:, 1]
    expected = 1 + slope(moments, 0.3) / K
    assert solution.response[1] == pytest.approx(expected, abs=rtol * (1 + size))


def check_two(activation, a, b, c, rtol=1e-9, jumps=False):
    """⟨φ'φ'⟩, ⟨φ''φ⟩/2 of two inputs, and the tangent kernel, which has ⟨φ'φ'⟩ in it."""
    net, t = network(activation), c * np.sqrt(a * b)

    solution = ft.solve(net, covariance(a, b, t))
    kernels = solution.residual_kernels[1]
    size = np.sqrt(kernels[0, 0] * kernels[1, 1]) / np.array([a, b, np.sqrt(a * b)])
    moved, root = np.exp(0.2 * NODES), np.sqrt(a * b)
    K = np.stack(
        [
            covariance(a * moved, b, t),
            covariance(a, b * moved, t),
            covariance(a, b, t + 0.2 * root * NODES),
        ]
    )
    products = ft.solve(net, K).residual_kernels[..., 1, 0, 1]
    by_a, by_b, by_t = (
        slope(values, 0.2 * scale) for values, scale in zip(products, (a, b, root), strict=True)
    )
    found = solution.full_response[1, 0, 1] - [0, 0, 1]
    assert (np.abs(found - [by_a, by_b, by_t]) <= rtol * (1 + size)).all()
    if not jumps:
        tangent = t + kernels[0, 1] + t * by_t
        found = solution.tangent_kernels[1, 0, 1]
        assert found == pytest.approx(tangent, abs=rtol * (abs(t) + abs(t) * size[2]) + 1e-10)


@pytest.mark.slow_but(0, 2, 3, 6, 11, 32, 33, 36)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation(name):
    for K in (0.03, 0.8, 20.0) if name not in ("exp", "sinh") else (0.03, 0.8):
        check_one(name, K)
    check_two(name, 0.6, 1.1, 0.3, jumps=name in JUMPS)
    check_two(name, 0.02, 0.05, -0.6, jumps=name in JUMPS)


# Jumps; and an average that has a closed form, whose derivative has none.
TYPED = [
    *("where(h>1,tanh(h),0)", "where(h>1,sin(h),h)", "where(abs(h)>0.5,tanh(h),0)"),
    "h**2*exp(-h**2/3) + cos(h)/5",
]


@pytest.mark.parametrize("text", some(TYPED, TYPED[-1:]))
def test_responses_of_what_is_typed(text):
    check_one(text, 0.5)


@pytest.mark.parametrize("name", ["erf", "gelu", "relu", "elu", slow("sin"), slow("hard_tanh")])
@pytest.mark.parametrize("skip", [0.0, 0.9])
def test_mean_shifts(name, skip):
    """The order 1/N of responses, of one input and of two."""
    net = network(name).replace(depth=2, branch_scale=0.7, skip_scale=skip, bias_variance=0.1)
    nodes, a, b, t = chebyshev.chebpts1(7), 0.6, 1.1, 0.25

    def slopes(kernels, width):
        moved = [ft.solve(net, K).kernel_shift for K in kernels]
        terms = chebyshev.chebfit(nodes, np.array(moved).reshape(7, -1), 6)
        return chebyshev.chebval(0.0, chebyshev.chebder(terms)) / width

    one, two = ft.solve(net, a), ft.solve(net, covariance(a, b, t))
    found = np.append(one.response_shift, one.output_response_shift)
    expected = slopes(a * np.exp(0.2 * nodes), 0.2 * a)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    found = np.append(two.response_shift[:, 0, 1], two.output_response_shift[0, 1])
    expected = slopes(covariance(a, b, t + 0.15 * nodes), 0.15).reshape(-1, 2, 2)[:, 0, 1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)
    assert not two.response_shift_error.any()
    # Terms of the shift of sin cancel.
    np.testing.assert_allclose(
        two.response_shift[:, 0, 0], one.response_shift, rtol=1e-9, atol=1e-12
    )


def test_mean_shifts_that_are_known():
    """Those of ReLU without bias are proportional to K0, linear networks have none."""
    net = network("relu").replace(depth=3, branch_scale=0.7)
    s, same = ft.solve(net, 0.4), ft.solve(net, np.full((2, 2), 0.4))
    np.testing.assert_allclose(s.response_shift, s.kernel_shift[:-1] / 0.4, rtol=1e-9)
    np.testing.assert_allclose(s.output_response_shift, s.kernel_shift[-1] / 0.4, rtol=1e-9)
    # Of identical inputs, whose covariance has one side alone, it is the same.
    np.testing.assert_allclose(same.response_shift[:, 0, 1], s.response_shift, rtol=1e-6)
    linear = ft.solve(network("linear"), covariance(0.6, 1.1, 0.2))
    assert np.abs(linear.response_shift).max() < 1e-15


@pytest.mark.parametrize("K0", [0.0, [[1.0, 0.0], [0.0, 0.0]]])
def test_variances_that_vanish_do_not_move(K0):
    with pytest.raises(ValueError, match="K0 must have positive variances for response_shift"):
        ft.solve(network("erf"), K0).response_shift  # noqa: B018


NUMBERS = st.sampled_from(["0.5", "1", "1.5", "2", "0.3", "-0.7", "-1", "0"])
SCALES = st.sampled_from(["1", "2", "0.5", "-1", "1.5"])
NAMES = st.sampled_from(
    ["tanh", "relu", "abs", "erf", "sin", "sigmoid", "softsign", "hard_tanh", "elu", "gaussian"]
)
SHIFTED = st.builds(lambda name, s, b: f"{name}({s}*h+({b}))", NAMES, SCALES, NUMBERS)
LEAVES = st.one_of(SHIFTED, st.just("h"), st.builds(lambda s: f"({s})", NUMBERS))


def combined(parts):
    two = st.tuples(parts, parts)
    return st.one_of(
        two.map("({0[0]}+{0[1]})".format),
        two.map("({0[0]}-{0[1]})".format),
        two.map("({0[0]})*({0[1]})".format),
        two.map("max({0[0]},{0[1]})".format),
        two.map("min({0[0]},{0[1]})".format),
        parts.map("clip({0},-0.5,1)".format),
        parts.map("abs({0})".format),
        st.tuples(NUMBERS, two).map("where(h>{0[0]},{0[1][0]},{0[1][1]})".format),
        st.tuples(parts, two).map("where({0[0]}>0.2,{0[1][0]},{0[1][1]})".format),
    )


EXPRESSIONS = st.recursive(LEAVES, combined, max_leaves=4)
RULES = {"deadline": None, "derandomize": True, "database": None}
RULES["suppress_health_check"] = list(HealthCheck)


@pytest.mark.slow
@settings(max_examples=200, **RULES)
@given(EXPRESSIONS)
def test_piecewise_expressions(text):
    try:
        net = network(text)
    except ValueError as error:
        # No h in it, or infinitely many kinks.
        assume("must" not in str(error))
        raise
    check_one(text, 0.7, 1e-8)
    jumps = any(net.activation.pieces.jumps)
    check_two(text, 0.6, 1.1, 0.3, 1e-8, jumps)
