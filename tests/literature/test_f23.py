"""The claims of F23: their verdicts, and that another printed equation would change them."""

from dataclasses import replace

import pytest
import sympy as sp

from fieldtheory.literature import f23
from fieldtheory.scaling import saturation

# What was found by hand; the verdicts of the package are computed.
HOLD = [
    ("(7)", "φ'(0) = 1"),
    ("(8)", "φ'(0) = 1, K^(0) < (V/2)²"),
    ("section 3.1", "φ'(0) = 1"),
    ("Fig. 5(b), caption", "σ_b² of Fig. 5(b)"),
    ("Fig. 5(c)", "σ_w² from 1 to 2, σ_b²/σ_w² = 0.04"),
]
FAIL = {
    ("(7)", "φ = erf"): "pi",
    ("(8)", "φ = erf, K^(0) < (V/2)²"): "pi",
    ("(9)", "L → ∞"): "printed/derived = 2/3",
    ("section 3", "the network and depths of Fig. 4"): "0.3265 at L = 10",
    ("Fig. 5(b), caption", "σ_w² of Fig. 5(a)"): "0 at σ_w² = 1.25",
    ("Fig. 5(c)", "σ_w² from 1 to 2, σ_b² = 0.05"): "0 printed, 0.1845 derived",
    ("appendix B", "every σ²"): "printed − derived = 1/(2*σ²)",
    ("appendix B", "φ = erf"): "0.25 printed, 0.5 derived: largest deviation 0.25",
}


def only(equation, region):
    (found,) = [c for c in f23.CLAIMS if (c.equation, c.region) == (equation, region)]
    return found


def test_every_claim_has_its_verdict_here():
    places = [(claim.equation, claim.region) for claim in f23.CLAIMS]
    assert len(set(places)) == len(places)
    assert {*places} == {*HOLD, *FAIL}


@pytest.mark.parametrize(("equation", "region"), HOLD)
def test_claims_that_hold(equation, region):
    assert only(equation, region).verdict(20).text == "holds"


@pytest.mark.parametrize(("equation", "region"), FAIL)
def test_claims_that_do_not_hold(equation, region):
    found = only(equation, region).verdict(20)
    assert found.text == "does not hold"
    assert FAIL[equation, region] in found.evidence


def test_the_slope_of_erf_is_what_eq_8_lacks():
    formula = saturation.saturation_formula().rhs.subs(saturation.SLOPE, 2 / sp.sqrt(sp.pi))
    assert replace(only("(8)", "φ = erf, K^(0) < (V/2)²"), printed=formula).verdict(20).holds


@pytest.mark.parametrize(
    ("equation", "region", "wrong"),
    [
        ("(8)", "φ'(0) = 1, K^(0) < (V/2)²", f23._SCALING * (1 + sp.Rational(1, 10**15))),
        ("section 3.1", "φ'(0) = 1", f23._GROWTH),
        ("Fig. 5(b), caption", "σ_b² of Fig. 5(b)", (0.0, 0.16)),
        ("Fig. 5(c)", "σ_w² from 1 to 2, σ_b²/σ_w² = 0.04", sp.Rational(1, 10**10)),
    ],
)
def test_a_wrong_equation_does_not_hold(equation, region, wrong):
    assert not replace(only(equation, region), printed=wrong).verdict(20).holds
