"""Schedules: their numbers, how they follow the depth, what they say of sums, and bad ones."""

import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.networks.schedules import SCHEDULES
from tests.rounding import assert_same

FORMULAS = {
    "uniform": lambda l, L: 1 / math.sqrt(L),
    "decreasing": lambda l, L: 1 / (math.sqrt(l) * math.log(l + 1)),
    "none": lambda l, L: 1.0,
}


def inverse_root(l, L):
    """1/√l."""
    return l**-0.5


def network(scale, depth=5, **parameters):
    return ft.ResidualNetwork(depth=depth, branch_scale=scale, **parameters)


def test_every_name_has_a_formula_here():
    assert set(FORMULAS) == set(SCHEDULES)


@pytest.mark.parametrize("depth", [1, 2, 7, 1000])
@pytest.mark.parametrize("name", FORMULAS)
def test_numbers_of_names(name, depth):
    expected = [FORMULAS[name](l, depth) for l in range(1, depth + 1)]
    net = network(name, depth)
    np.testing.assert_allclose(net.branch_scales, expected, rtol=4e-16)
    np.testing.assert_array_equal(net.parameters["branch_scale"], net.branch_scales)
    function = network(FORMULAS[name], depth)
    np.testing.assert_array_equal(function.branch_scales, expected)
    assert net.schedule.sum_of_squares == pytest.approx(math.fsum(r * r for r in expected))


def test_names_and_functions_follow_the_depth():
    for scale in ("uniform", FORMULAS["uniform"]):
        net = network(scale, 4)
        assert net.replace(depth=100).branch_scale is net.branch_scale is scale
        np.testing.assert_allclose(net.replace(depth=100).branch_scales, np.full(100, 0.1))
        assert net.replace(width=7).branch_scale is scale
        member = net.replace(skip_scale=[[0.9], [1.0]]).member((2,), (1,))
        assert member.branch_scale is scale and member.skip_scales.tolist() == [1.0] * 4


def test_a_function_is_asked_for_every_layer_once():
    asked = []

    def scale(l, L):
        asked.append((l, L))
        return 1.0

    net = network(scale, 3)
    for _ in range(3):
        ft.solve(net, 0.1).kernels  # noqa: B018
    assert asked == [(1, 3), (2, 3), (3, 3)]
    assert all(type(number) is int for pair in asked for number in pair)


@pytest.mark.parametrize(
    "number",
    [1, 0.5, np.float32(0.25), np.array(0.3), Fraction(1, 3), sp.sqrt(2) / 2, mpmath.mpf(2)],
    ids=repr,
)
def test_functions_may_return_any_real_number(number):
    net = network(lambda l, L: number, skip_scale=lambda l, L: -number)
    np.testing.assert_array_equal(net.branch_scales, [float(number)] * 5)
    np.testing.assert_array_equal(net.skip_scales, [-float(number)] * 5)


def test_solutions_are_those_of_the_numbers():
    K0 = [[0.4, 0.1], [0.1, 0.9]]
    for scale in ("decreasing", "uniform", inverse_root):
        net = network(scale, 6, skip_scale=lambda l, L: 1 - l / (2 * L), width=50)
        plain = net.replace(branch_scale=net.branch_scales, skip_scale=net.skip_scales)
        for name in ("kernels", "response", "output_response"):
            found, expected = (getattr(ft.solve(n, K0), name) for n in (net, plain))
            assert_same(found, expected)
        assert_same(*(ft.solve(n, 0.4).G11 for n in (net, plain)))
    drawn = [ft.simulate(n, 0.4, samples=20, seed=1).mean for n in (net, plain)]
    assert_same(*drawn)


def test_networks_with_schedules_are_values():
    net = network("uniform")
    assert net == network("uniform") != network("decreasing")
    assert len({net, network("uniform"), network(inverse_root), network(inverse_root)}) == 2
    assert network(inverse_root) == network(inverse_root) != network(lambda l, L: l**-0.5)
    assert "branch_scale='uniform'" in repr(net) and "inverse_root" in repr(network(inverse_root))
    again = pickle.loads(pickle.dumps(network(inverse_root)))
    assert again == network(inverse_root)
    net.branch_scales  # noqa: B018
    assert net == network("uniform")
    assert ft.derive(net).latex("hessian") == ft.derive(network(0.3)).latex("hessian")
    # One symbol for every layer, as they differ.
    assert ft.derive(network("decreasing", 2)).scales["branch_scale"][0].name == r"\rho_{1}"


@pytest.mark.parametrize(
    ("scale", "bounded"),
    [
        ("uniform", True),
        ("decreasing", True),
        ("none", False),
        (0.3, False),
        (0.0, True),
        ([0.3], False),
        ([0.1, 0.2, 0.3, 0.4, 0.5], None),
        ([[0.1], [0.3]], False),
        (lambda l, L: 1 / math.sqrt(L), True),
        (lambda l, L: 3 / L, True),
        (lambda l, L: 1 / (math.sqrt(l) * math.log(l + 1)), True),
        (lambda l, L: l**-0.7, True),
        (lambda l, L: 0.5**l, True),
        (lambda l, L: math.sqrt(2 * l / L) / math.sqrt(L), True),
        (lambda l, L: math.exp(-((l / L) ** 2)) / math.sqrt(L), True),
        (lambda l, L: l**-0.5, False),
        (lambda l, L: l**-0.4, False),
        (lambda l, L: L**-0.45, False),
        (lambda l, L: math.log(L + 1) / math.sqrt(L), False),
        (lambda l, L: 0.3, False),
        (lambda l, L: 1.01**l, False),
        # ln ln L, and one that converges at L = 10^50: no depth that can be tried tells.
        (lambda l, L: 1 / math.sqrt(l * math.log(l + 1)), None),
        (lambda l, L: l**-0.51, None),
        (lambda l, L: [0.1, 0.2, 0.3, 0.4, 0.5][l - 1], None),
    ],
)
def test_whether_the_sum_of_squares_stays_bounded(scale, bounded):
    found = network(scale).schedule
    assert found.bounded is bounded
    words = {True: "bounded as L grows", False: "not bounded", None: "not known whether"}
    assert words[bounded] in repr(found) and ("not bounded" in repr(found)) is (bounded is False)
    assert ("by its values up to L = 16384" in repr(found)) is (
        callable(scale) and bounded is not None
    )


def raising(l, L):
    return [0.3, 0.2][l - 1]


BAD = [
    ("unifrom", "one of uniform, decreasing, none, got 'unifrom'; did you mean uniform?"),
    ("Decreasing", "got 'Decreasing'; did you mean decreasing?"),
    ("1/sqrt(L)", "must be a number, an array, a function of .l, L. or one of .*got '1/sqrt"),
    ([0.1] * 4, "1 or depth=5 entries on its last axis, got shape .4,."),
    (raising, "at l=3, L=5 it raised IndexError: list index out of range"),
    (lambda l: 1 / l, "at l=1, L=5 it raised TypeError: .*takes 1 positional argument but 2"),
    (lambda l, L: 1 / math.log(l), "at l=1, L=5 it raised ZeroDivisionError"),
    (lambda l, L: math.nan if l == 2 else 1.0, "finite real numbers, got nan at l=2, L=5"),
    (lambda l, L: np.float64(np.inf), "finite real numbers, got np.float64.inf. at l=1, L=5"),
    (lambda l, L: 10**400, "finite real numbers, got 1000.* at l=1, L=5"),
    (lambda l, L: "0.3", "finite real numbers, got '0.3' at l=1, L=5"),
    (lambda l, L: 1j, "finite real numbers, got 1j at l=1, L=5"),
    (lambda l, L: [0.1], r"finite real numbers, got \[0.1\] at l=1, L=5"),
    (lambda l, L: np.ones(1), r"finite real numbers, got array\(\[1.\]\) at l=1, L=5"),
    (lambda l, L: sp.Symbol("l"), "finite real numbers, got l at l=1, L=5"),
    (lambda l, L: l - 2, "positive, got -1 at l=1, L=5"),
    (lambda l, L: (l - 1) / L, "positive, got 0 at l=1, L=5"),
    (lambda l, L: 1 - l / L, "positive, got 0 at l=5, L=5"),
    (-0.3, ">= 0 in every layer, got -0.3$"),
    ([0.1, 0.0, -0.2, 0.3, -0.4], ">= 0 in every layer, got -0.2 at l=3$"),
    ([-0.2], ">= 0 in every layer, got -0.2 at l=1$"),
    ([0.1, 1e200, 0.1, 0.1, 0.1], "have squares within the range of float64.*got 1e[+]200 at l=2$"),
    (lambda l, L: 1e200, "have squares within the range of float64.*got 1e[+]200 at l=1$"),
    ([[0.1], [-0.2]], r">= 0 in every layer, got -0.2 at l=1 of batch index \(1,\)$"),
]


@pytest.mark.parametrize(("scale", "message"), BAD)
def test_bad_schedules(scale, message):
    with pytest.raises(ValueError, match="^branch_scale must ") as caught:
        network(scale)
    caught.match(message)
    assert "\n" not in str(caught.value)


def test_squares_beyond_float64():
    """They were warnings of NumPy, and an error that spoke of φ."""
    with pytest.raises(ValueError, match="^skip_scale must have squares .* got -1e[+]160 at l=1$"):
        ft.ResidualNetwork(depth=2, skip_scale=-1e160)
    with pytest.raises(ValueError, match="times the variance 1e[+]20, at most 1.34e[+]144, got"):
        ft.ResidualNetwork(depth=2, branch_scale=1e150, weight_variance=1e20)
    net = ft.ResidualNetwork(depth=2, branch_scale=1e150, activation="relu", bias_variance=0.0)
    expected = 2 * np.log(1e300 * 1.25 / 2)
    assert ft.solve(net, 1.0).log_kernels[2] == pytest.approx(expected, rel=1e-14)


def test_bad_schedules_appear_where_the_depth_changes():
    net = network(lambda l, L: 1 / (L - 7), 8)
    with pytest.raises(ValueError, match="positive, got -0.5 at l=1, L=5"):
        net.replace(depth=5)
