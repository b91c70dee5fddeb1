"""A claim: its verdict is what its check finds, and a wrong equation or derivation flips it."""

from dataclasses import replace

import mpmath
import pytest
import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.literature.claim import Claim
from fieldtheory.literature.evidence import (
    UndecidedError,
    at_least,
    in_float64,
    inside,
    not_here,
    numerically,
    symbolically,
)

a, b = sp.symbols("a b", positive=True)
n = sp.Symbol("n", integer=True, positive=True)
h = sp.Symbol("h", real=True)
phi = sp.Function("phi")
MOMENT = GaussianAverage(phi(h) ** 2, h, a)


def made(printed, derived, check=symbolically, **more):
    return Claim("F25", "(1)", "a quantity", printed, derived, "everywhere", check, **more)


class TestSymbolically:
    @pytest.mark.parametrize(
        ("printed", "derived"),
        [
            (sp.log(a * b), sp.log(a) + sp.log(b)),
            (sp.sqrt(a**2 * b), a * sp.sqrt(b)),
            (sp.sin(a) ** 2, 1 - sp.cos(a) ** 2),
            ((a**n) ** 2, a ** (2 * n)),
            (MOMENT * (a + b), a * MOMENT + b * MOMENT),
            (sp.S.Zero, sp.S.Zero),
            (sp.Matrix([[a, 0], [a - a, b]]), sp.Matrix([[a, 0], [0, b]])),
        ],
    )
    def test_the_same_in_another_form(self, printed, derived):
        found = made(printed, lambda: derived).verdict()
        assert (found.text, found.holds, found.evidence) == (
            "proved",
            True,
            "printed − derived = 0",
        )

    @pytest.mark.parametrize(
        ("printed", "derived", "evidence"),
        [
            (2 * a, a, "printed/derived = 2"),
            (a, sp.S.Zero, "printed − derived = a"),
            (sp.S.Zero, a, "printed/derived = 0"),
            (a + b, a, "printed − derived = b"),
            (a**2 * MOMENT, a * MOMENT, "printed/derived = a"),
            (sp.Rational(1, 3), sp.Float(1 / 3, 15), None),
            (sp.Matrix([[a, b], [b, 2 * a]]), sp.Matrix([[a, b], [b, a]]), "derived = 2 at [1,1]"),
        ],
    )
    def test_a_difference_is_the_evidence(self, printed, derived, evidence):
        found = made(printed, lambda: derived).verdict()
        assert (found.text, found.holds) == ("does not hold", False)
        assert evidence is None or found.evidence.endswith(evidence)

    def test_averages_of_an_open_function_are_independent(self):
        other = GaussianAverage(phi(h) ** 2, h, b)
        found = made(MOMENT, lambda: other).verdict()
        assert not found.holds
        assert "printed − derived = " in found.evidence

    def test_points_are_where_the_sides_are_compared(self):
        # sqrt(x²) is x for a ratio larger than one alone.
        x = sp.Symbol("x", real=True)
        equation = made(sp.sqrt((x - 1) ** 2), lambda: x - 1)
        assert not equation.verdict().holds
        with pytest.raises(UndecidedError, match=r"neither the same nor different: .*x"):
            replace(equation, points=({x: 2},)).verdict()

    def test_printed_may_be_a_function(self):
        assert made(lambda: 2 * a, lambda: a + a).verdict().holds
        # A symbol can be called, too, and is none.
        assert made(a, lambda: a).verdict().holds

    def test_names_are_those_of_a_terminal(self):
        weight, scale = sp.Symbol(r"\sigma_{w,\mathrm{out}}", positive=True), sp.Symbol(r"\rho")
        found = made(weight * scale, lambda: scale).verdict()
        assert found.evidence == "printed/derived = σ_w,out"
        assert found.found.printed == "ρ*σ_w,out"

    def test_long_formulas_are_shortened(self):
        long = sp.Symbol("x" * 200, positive=True)
        found = made(long, lambda: a).verdict()
        assert found.found.printed == str(long)
        for text in (found.row["printed"], found.evidence):
            assert len(text) == 160 and text.endswith("…")
        entry = made(sp.Matrix([long]), lambda: sp.Matrix([a])).verdict().evidence
        assert len(entry) == 169 and entry.endswith("… at [0,0]")


class TestAtLeast:
    @pytest.mark.parametrize(
        ("bound", "found"),
        [(a, a), (a, a + b), (sp.S.Zero, (a - b) ** 2), (sp.Matrix([a, 1]), sp.Matrix([2 * a, 1]))],
    )
    def test_bounds_that_hold(self, bound, found):
        claimed = made(bound, lambda: found, at_least).verdict()
        assert (claimed.text, claimed.row["check"]) == ("proved", "in symbols")

    @pytest.mark.parametrize(
        ("bound", "found", "evidence"),
        [
            (a + b, a, "derived − printed = -b"),
            (sp.Matrix([a, b, 0]), sp.Matrix([a, b - 1, 2]), "derived − printed = -1 at [1,0]"),
        ],
    )
    def test_the_margin_is_the_evidence(self, bound, found, evidence):
        claimed = made(bound, lambda: found, at_least).verdict()
        assert (claimed.text, claimed.evidence) == ("does not hold", evidence)

    def test_many_bounds_are_counted(self):
        claimed = made(sp.zeros(3, 1), lambda: sp.Matrix([a, b, 0]), at_least).verdict()
        assert claimed.evidence == "derived − printed >= 0 in all 3 entries"

    def test_an_unknown_sign_is_an_error(self):
        with pytest.raises(UndecidedError, match="the sign is not known: a - b"):
            made(b, lambda: a, at_least).verdict()


class TestWord:
    @pytest.mark.parametrize(
        ("more", "text"),
        [
            ({}, "does not hold"),
            ({"meant": ("a", a)}, "misprint: a"),
            ({"meant": ("3a", 3 * a)}, "does not hold"),
            ({"meant": ("2b", 2 * b, lambda: 2 * b)}, "misprint: 2b"),
            ({"convention": ("a twice", lambda: 2 * a)}, "holds with a convention: a twice"),
            ({"convention": ("a twice", lambda: a)}, "does not hold"),
        ],
    )
    def test_of_what_does_not_hold_as_printed(self, more, text):
        found = made(2 * a, lambda: a, **more).verdict()
        assert (found.text, found.holds) == (text, False)

    @pytest.mark.parametrize(
        ("region", "text"),
        [
            ("every L", "proved"),
            ("σ = 2", "proved"),
            ("L = 2, every row", "holds on 1 instance"),
            ("l = 2, 3", "holds on 2 instances"),
            ("N = 1 to 40", "holds on 40 instances"),
            ("d_in = N", "proved"),
        ],
    )
    def test_of_sizes_that_the_region_fixes(self, region, text):
        found = replace(made(a, lambda: a), region=region)
        assert found.verdict().text == text
        assert replace(found, instances=0).verdict().text == "proved"

    def test_of_points_and_instances(self):
        points = ({a: 1}, {a: 2})
        found = made(2 * a, lambda point, digits: 2 * point[a], numerically, points=points)
        assert found.verdict().text == "holds at 2 points"
        assert found.verdict().found.quantifier == "at a = 1; a = 2"
        found = made((0, 1), lambda: {"L = 1": 0.5}, inside).verdict()
        assert (found.text, found.found.quantifier) == ("holds on 1 instance", "for L = 1")

    def test_what_cannot_be_checked_says_why(self):
        found = made("a number", lambda: "it takes data", not_here).verdict()
        assert (found.text, found.holds) == ("not checkable here: it takes data", False)


class TestControl:
    @pytest.mark.parametrize(
        ("printed", "derived", "check"),
        [
            (a, lambda: a, symbolically),
            (sp.zeros(2), lambda: sp.zeros(2), symbolically),
            (a, lambda: a, at_least),
            (sp.Rational(1, 3), lambda point, digits: mpmath.mpf(1) / 3, numerically),
            (sp.Rational(1, 3), lambda point: 1 / 3, in_float64),
            ((0.0, 1.0), lambda: {"L = 1": 0.25, "L = 2": 0.5}, inside),
        ],
    )
    def test_a_slightly_wrong_version_is_rejected(self, printed, derived, check):
        found = made(printed, derived, check)
        assert found.verdict(20).holds and found.control().agrees is False

    def test_a_wrong_version_of_its_own(self):
        assert made(a, lambda: a, wrong=2 * a).control().text == "printed/derived = 2"
        assert made(a, lambda: a, wrong=a).control().agrees

    def test_of_what_does_not_hold_it_is_the_printed_one(self):
        assert made(3 * a, lambda: a, wrong=a).control().text == "printed/derived = 3"


class TestNumerically:
    def quarter(self, point, digits):
        with mpmath.workdps(digits + 5):
            return mpmath.mpf(1) / 4 + mpmath.sqrt(mpmath.mpf(int(point[a])))

    @pytest.mark.parametrize("digits", [20, 60])
    def test_to_all_digits(self, digits):
        points = ({a: 1}, {a: 2})
        printed = sp.Rational(1, 4) + sp.sqrt(a)
        assert made(printed, self.quarter, numerically, points=points).verdict(digits).holds
        off = printed + sp.Rational(1, 10 ** (digits - 2)) * (a - 1)
        found = made(off, self.quarter, numerically, points=points).verdict(digits)
        assert not found.holds
        assert found.evidence.startswith("1.664 printed, 1.664 derived: largest deviation ")
        assert found.evidence.endswith(" at a = 2")

    def test_expressions_are_shown_with_their_numbers(self):
        found = made(sp.sqrt(2) * a, lambda point: 2 * point[a], in_float64, points=({a: 3},))
        evidence = found.verdict(20).found
        assert evidence.printed == "sqrt(2)*a = 4.242640687" and evidence.derived == "6.0"
        assert evidence.formulas == (
            r"\sqrt{2} a = 4.242640687",
            "6.0",
            r"\mathrm{printed} - \mathrm{derived} = -1.757,\quad a = 3",
        )
        # Averages are integrated, by no closed form.
        moment = GaussianAverage(sp.erf(h) ** 2, h, sp.Rational(1, 2))
        exact = 2 / sp.pi * sp.asin(sp.Rational(1, 2))
        assert made(moment, lambda *_: exact, numerically).verdict(20).found.quantifier == (
            "at one point"
        )
        assert made(moment, lambda *_: exact, numerically).verdict(20).holds

    def test_printed_may_be_a_function_of_the_same_arguments(self):
        assert made(self.quarter, self.quarter, numerically, points=({a: 3},)).verdict(20).holds

    def test_what_is_not_defined_does_not_hold(self):
        found = made(sp.sin(a - 1) / (a - 1), self.quarter, numerically, points=({a: 1},)).verdict()
        assert not found.holds
        assert found.evidence == "undefined as printed, 1.25 derived at a = 1"

    def test_float64_is_held_to_its_rounding(self):
        third = made(sp.Rational(1, 3), lambda point: 1 / 3, in_float64)
        assert third.verdict(50).holds
        assert not replace(third, derived=lambda point: 1 / 3 + 1e-11).verdict(50).holds


class TestInside:
    def test_of_an_open_interval(self):
        found = made((0.0, 1.0), lambda: {"L = 1": 0.25, "L = 2": 0.5}, inside).verdict()
        assert found.holds
        assert found.evidence == "0.25 at L = 1, 0.5 at L = 2"

    def test_the_interval_may_be_computed(self):
        assert not made(lambda: (0.0, 0.4), lambda: {"L = 1": 0.5}, inside).verdict().holds

    @pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 7.0])
    def test_what_lies_outside_is_the_evidence(self, value):
        found = made((0.0, 1.0), lambda: {"L = 1": value, "L = 2": 0.5}, inside).verdict()
        assert not found.holds
        assert found.evidence == f"{value:.4g} at L = 1"
        assert "0.5 at L = 2" in found.found.derived


@pytest.mark.parametrize("digits", [5, 0, 20.0])
def test_bad_digits(digits):
    with pytest.raises((ValueError, TypeError), match="digits must be an integer >= 20"):
        made(a, lambda: a).verdict(digits)
