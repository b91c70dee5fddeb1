"""Enclosed solutions against exact cases, mpmath and float64."""

import subprocess
import sys

import mpmath
import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages.errors import PrecisionError
from fieldtheory.precision.balls import arb, ctx
from tests.tables import slow

ONE = ("kernels", "residual_kernels", "response", "residual_response", "G12", "S22", "G11")
TWO = ONE[:4]


def enclosed(network, K0, digits=20):
    return ft.solve(network, K0, digits=digits, proven=True)


def test_linear_networks_are_exact():
    """K' = (γ² + a) K + c, ⟨h²;h²⟩ = 2 Cov², as fractions."""
    net = ft.ResidualNetwork(
        depth=2, activation="linear", branch_scale=0.5, weight_variance=0.75, width=10
    )
    s = enclosed(net, 0.5)
    a, c = sp.Rational(0.5) ** 2 * sp.Rational(0.75), sp.Rational(0.5) ** 2 * sp.Rational(0.05)
    K = [sp.Rational(0.5)]
    K += [(1 + a) * K[0] + c, (1 + a) * ((1 + a) * K[0] + c) + c]
    variance = 2 * (a * K[0]) ** 2 / 10
    with ctx.workprec(200):
        found = [*s.kernels[:3], s.G11[1, 1]]
        exact = [arb(int(k.p)) / int(k.q) for k in (*K, variance)]
        assert all(ball.contains(k) for ball, k in zip(found, exact, strict=True))
        assert not s.G11[1, 1].contains(exact[3] * (1 + arb(10) ** -18))


@pytest.mark.parametrize(
    "name", [slow("erf"), slow("tanh"), slow("gelu"), "relu", slow("hard_tanh")]
)
def test_float64_lies_in_one_input(name):
    net = ft.ResidualNetwork(depth=3, activation=name, branch_scale=[0.5, 0.3, 1.0], skip_scale=0.9)
    s, float64 = enclosed(net, 0.5), ft.solve(net, 0.5)
    for field in ONE if name != "hard_tanh" else TWO:
        found = getattr(s, field)
        if field != "S22":
            expected = getattr(float64, field)
            assert found.shape == expected.shape
            scale = np.abs(expected).max()
            np.testing.assert_allclose(found.astype(float), expected, rtol=0, atol=1e-12 * scale)
        largest = max(abs(value).upper() for value in found.ravel())
        assert max(value.rad() for value in found.ravel()) <= 1e-20 * largest
    assert float(s.output_response) == pytest.approx(float(float64.output_response), rel=1e-13)
    assert s.output_kernel is s.kernels[-1]


@pytest.mark.parametrize("name", [slow("erf"), "relu", slow("gelu"), slow("tanh")])
def test_float64_lies_in_two_inputs(name):
    net = ft.ResidualNetwork(depth=2, activation=name, branch_scale=0.5)
    K0 = np.array([[0.5, -0.2], [-0.2, 0.75]])
    s, float64 = enclosed(net, K0), ft.solve(net, K0)
    for field in TWO:
        found, expected = getattr(s, field), getattr(float64, field)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.astype(float), expected, rtol=1e-13)
    with pytest.raises(ValueError, match="G11 is proven for one input"):
        _ = s.G11


def test_identical_inputs():
    K0 = np.full((2, 2), 0.5)
    s = enclosed(ft.ResidualNetwork(depth=2, activation="relu"), K0)
    assert (s.kernels[:, 0, 1] == s.kernels[:, 0, 0]).all()


def test_digits_that_are_not_reached(monkeypatch):
    net = ft.ResidualNetwork(depth=2, activation="tanh")
    monkeypatch.setattr("fieldtheory.precision.enclosed_solution.attempts", lambda digits: [60])
    with pytest.raises(PrecisionError, match="did not reach 30 digits"):
        _ = enclosed(net, 0.5, 30).kernels


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"digits": None}, "digits must be given with proven=True"),
        ({"digits": 0}, "digits must be an integer >= 1"),
        ({"order": 2}, "order must be left out with digits"),
        ({"convention": "F25"}, "convention must be 'derivative'"),
        ({"K0": 0.0}, "K0 must have variances > 0"),
        ({"K0": np.eye(3)}, "K0 must be of one input or"),
        ({"network": ft.ResidualNetwork(depth=1, branch_scale=[[0.1], [0.2]])}, "one network"),
    ],
)
def test_bad_arguments(arguments, words):
    given = {"network": ft.ResidualNetwork(depth=1), "K0": 0.5, "digits": 20, "proven": True}
    with pytest.raises(ValueError, match=words):
        ft.solve(**given | arguments)


@pytest.mark.parametrize("name", ["softsign", "mish", "softplus"])
def test_activations_that_are_not_offered(name):
    with pytest.raises(ValueError, match="no bound in a strip"):
        _ = enclosed(ft.ResidualNetwork(depth=1, activation=name), 0.5).kernels


def test_mpmath_lies_inside():
    net = ft.ResidualNetwork(depth=2, activation="tanh", branch_scale=0.5)
    balls, numbers = enclosed(net, "0.1", 20), ft.solve(net, "0.1", digits=20)
    for field in ("kernels", "response", "G11"):
        found, expected = getattr(balls, field), getattr(numbers, field)
        scale = max(abs(value) for value in expected.ravel())
        for ball, value in zip(found.ravel(), expected.ravel(), strict=True):
            with mpmath.workdps(30):
                distance = abs(mpmath.mpf(ball.mid()) - value)
                assert distance <= mpmath.mpf(ball.rad()) + scale * mpmath.mpf(10) ** -20


def test_python_flint_is_named_where_it_is_missing():
    program = (
        "import sys; sys.modules['flint'] = None; import fieldtheory as ft\n"
        "try: ft.solve(ft.ResidualNetwork(depth=1), 0.5, digits=20, proven=True)\n"
        "except ImportError as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'fieldtheory-networks[proven]'" in found.stdout
