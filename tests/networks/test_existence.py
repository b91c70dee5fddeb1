"""Functions without real, finite averages are refused, all others pass, and quickly."""

import re

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.networks.activation import h
from fieldtheory.networks.activations import ACTIVATIONS
from fieldtheory.networks.existence import require_averages
from tests.tables import slow

NAMES = {**vars(sp), "h": h, "third": sp.Rational(1, 3)}

GOOD = """
2+9*cos(3*h/2)/5   sin(h)/h   tanh(h)/h   h/(exp(h)-1)   (1-cos(h))/h**2   sin(pi*h)/(pi*h)
(h**2-2)/(h-sqrt(2))   sin(h-third)/(h-third)   h/Abs(h)   (h-1)*(h+1)*h/(h**2-1)
exp(-h**2)   exp(-h**4)   exp(-1/h**2)   exp(h)   exp(100*h)   exp(Abs(h))   exp(h)-exp(-2*h)*h
h**7   h**2*exp(h)   cosh(3*h)   exp(h**2)*erfc(Abs(h))   exp(h**2/2)/(1+exp(h**2/2))
sqrt(Abs(h))   sqrt(h**2)   (h**2)**third   sign(h)*Abs(h)**third   h*log(Abs(h))
log(1+h**2)   log(2+sin(h))   log(1+exp(h))   log(cosh(h))   log(h**2+1e-6)
asin(tanh(h))   sqrt(1-cos(h))   atanh(tanh(h)/2)   acosh(1+h**2)   tan(tanh(h))
1/(1+h**2)   1/(h**2+0.001)   1/(2+cos(h))   1/(1.0001-cos(h))   1/cosh(h)   1/(1+exp(h**3))
exp(-h**2)*sqrt(1+h**2)   tanh(1000*h)   erf(10*h-15)   exp(-1000*h**2)   sin(h**2)   Si(h)
Max(-1,Min(1,h))   Piecewise((0,h<0),(h**2,h<1),(2*h-1,True))   Heaviside(h-1)*(h-1)
Piecewise((1,Eq(h,0)),(sin(h)/h,True))   sign(h)+Abs(h-2)   besselj(0,h)
""".split()

NOT_REAL = """
sqrt(h)   log(h)   h**0.5   h**third   h**-third   asin(h)   acos(h)   atanh(h)   acosh(h)
sqrt(1-h**2)   sqrt(h**2-1)   sqrt(h**2-h/2)   log(1+h)   sqrt(h-5000)   log(h**2-2)   I*h   h**h
erf(sqrt(h))   Max(0,h)+sqrt(h+3)
""".split()

UNBOUNDED = """
1/h   1/(h-1)   1/(h-1)**2   1/(h**2-2)   1/(h-100)   1/(h-cos(h))
tan(h)   tan(h/100)   1/sin(h)   coth(h)   1/(1-exp(h))   gamma(h)
1/sqrt(Abs(h))
exp(1/h)   exp(1/h**2)   Heaviside(h)/h   1/(h**2-h/3)   Piecewise((1/h,h>0),(0,True))
""".split()

TOO_FAST = """
exp(h**2)@0.25   exp(h**2/10)@2.5   exp(h**2/1000)@250   cosh(h**2)@0.25   h*exp(h**2/4)*sin(h)@1
exp(h**2)*Heaviside(-h)@0.25   h**3*exp(0.5*h**2-h)@0.5   erfi(h)@0.25
exp(h**3)   exp(-h**3)   sinh(h**3)   exp(h**4)*tanh(h)   exp(exp(h))   exp(exp(exp(h)))
""".split()

EXPONENTIAL = """
exp(h)*sin(h)   exp(Abs(h)**1.5)   exp(h)*sqrt(1+h**2)   exp(h)*tanh(h)   (exp(h)-1-h)/h**2
sinh(h)+sin(h)*cosh(h)   Heaviside(h)*exp(h)*cos(h)   exp(h-sin(h))
""".split()

HIDDEN = """
atan(1/h)@0   1/(1+exp(-1/h))@0   acot(h-2)@2   tanh(1/(h-third))@0.333333   h+atan(2/(h+1.5))@-1.5
tanh(1e9*h)@0   erf(1e9*h-1e9)@1
1+h*atan(1/h)@0   asin(sin(h))@1.5708   atan(tan(h))@1.5708   sqrt(1-cos(h))+1@0
""".split()


def function(text):
    return eval(text, NAMES)


@pytest.mark.parametrize("text", GOOD)
def test_legitimate_functions_pass(text):
    require_averages(function(text), h)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_table_of_names_passes(name):
    """Its rows are not probed when a network is built."""
    require_averages(ACTIVATIONS[name].expression, h)


@pytest.mark.parametrize("text", NOT_REAL)
def test_not_real(text):
    with pytest.raises(ValueError, match=r"^activation must be real for .*, which is .* at h = "):
        ft.Activation(function(text))


@pytest.mark.parametrize("text", UNBOUNDED)
def test_without_a_second_moment(text):
    """Poles are refused as jumps, or by the first average."""
    with pytest.raises((ValueError, ft.QuadratureError)) as caught:
        net = ft.ResidualNetwork(depth=1, activation=function(text))
        _ = ft.solve(net, 1.0).kernels
    assert re.match("activation must (have its jumps|grow)|an average", str(caught.value))


def test_logarithms_have_a_second_moment():
    """⟨ln²|h|⟩ = (ln K/2 − (γ + ln 2)/2)² + π²/8."""
    net = ft.ResidualNetwork(depth=1, activation=sp.log(sp.Abs(h)), bias_variance=0.0)
    mean = (np.log(0.7) - np.euler_gamma - np.log(2)) / 2
    expected = 1.25 * (mean**2 + np.pi**2 / 8)
    assert ft.solve(net, 0.7).residual_kernels[1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("case", TOO_FAST)
def test_averages_that_diverge(case):
    """⟨exp(2 c h²)⟩ is finite for variances below 1/(4c)."""
    text, _, variance = case.partition("@")
    with pytest.raises(ValueError, match="^activation must grow more slowly") as caught:
        ft.Activation(function(text))
    limit = f"; ⟨φ²⟩ is infinite from the variance {variance} on"
    assert str(caught.value).endswith(limit) == bool(variance)


@pytest.mark.parametrize("text", EXPONENTIAL)
def test_exponential_growth_without_closed_forms(text):
    with pytest.raises(ValueError, match="^activation must grow as a power of h, or be made of"):
        ft.Activation(function(text))


@pytest.mark.parametrize("text", ["sin(sinh(h**2))", "cos(exp(h**2) - 1)", "h*sin(exp(h))"])
def test_phases_that_grow_exponentially(text):
    with pytest.raises(ValueError, match="activation must oscillate on scales"):
        require_averages(sp.sympify(text, {"h": h}), h)


@pytest.mark.parametrize("case", HIDDEN)
def test_hidden_jumps(case):
    """SymPy's derivative of atan(1/h) has no δ-function, so that ⟨φ'²⟩ would come out finite."""
    text, point = case.split("@")
    with pytest.raises(ValueError, match="^activation must have its jumps and kinks") as caught:
        ft.Activation(function(text))
    assert f"at h = {point}, from " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("elliptic_k(tanh(h)/2)", "functions that NumPy or SciPy has, got elliptic_k in elli"),
        ("h*expint(2,h**2+1)", "functions that NumPy or SciPy has, got expint in h"),
        ("hyper([1],[2],h)", "functions that NumPy or SciPy has, got hyper in hyper"),
        ("DiracDelta(h)", "functions that NumPy or SciPy has, got DiracDelta in Dirac"),
        ("zeta(h**2+2)", "a derivative that SymPy knows, got zeta"),
        ("floor(h)", "a derivative that SymPy knows, got floor"),
        ("Function('f')(h)", "made of known functions, got f(h)"),
    ],
)
def test_functions_that_cannot_be_put_in_numbers(text, words):
    expression = function(text)
    for door in (ft.Activation, lambda phi: ft.ResidualNetwork(depth=2, activation=phi)):
        with pytest.raises(ValueError, match="^activation must ") as caught:
            door(expression)
        assert words in str(caught.value) and caught.type is ValueError


@pytest.mark.parametrize("text", [slow("besselj(0,h)"), "loggamma(h**2+1)", slow("airyai(h)")])
def test_special_functions_have_numbers(text):
    net = ft.ResidualNetwork(depth=2, activation=function(text), branch_scale=0.5)
    solution = ft.solve(net, 0.5)
    step = 1e-5
    sides = [ft.solve(net, 0.5 + side).output_kernel for side in (step, -step)]
    slope = (sides[0] - sides[1]) / (2 * step)
    assert solution.output_response == pytest.approx(slope, rel=1e-8)
    assert (np.linalg.eigvalsh(solution.G11[1:, 1:]) > 0).all()
