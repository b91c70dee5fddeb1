"""Breakpoints and smooth pieces: found whatever the spelling, merged where kinks cancel."""

import pytest
import sympy as sp
from sympy import Abs, Heaviside, Max, Min, Piecewise, sign

from fieldtheory.averages.integrands.breakpoints import canonical, pieces_of
from fieldtheory.averages.quadrature.compiled import function_of

h = sp.Symbol("h", real=True)
y = sp.Symbol("y", real=True)
HALF, GOLDEN = sp.Rational(1, 2), (1 + sp.sqrt(5)) / 2

# φ, its breakpoints, and its parity.
FUNCTIONS = [
    (Max(0, 1 - Abs(h)), [-1, 0, 1], 1),
    (Max(0, Min(h + 1, 1 - h)), [-1, 0, 1], 1),
    (sign(h) * Min(Abs(h), 1), [-1, 1], -1),
    (Min(Abs(h), 1), [-1, 0, 1], 1),
    (Max(0, Min(1, Abs(h))), [-1, 0, 1], 1),
    (Max(0, h**2 - h - 1), [1 - GOLDEN, GOLDEN], 0),
    (Max(0, h**2 + h - 1), [-GOLDEN, GOLDEN - 1], 0),
    (Min(h**2 - h, 1), [1 - GOLDEN, GOLDEN], 0),
    (
        Max(-sp.Rational(1, 10), Min(1, h**2 - h)),
        [1 - GOLDEN, HALF - sp.sqrt(15) / 10, HALF + sp.sqrt(15) / 10, GOLDEN],
        0,
    ),
    (Abs(h**2 - 2), [-sp.sqrt(2), sp.sqrt(2)], 1),
    (Abs(sp.tanh(h) - HALF), [sp.atanh(HALF)], 0),
    (Max(h, h**3), [-1, 0, 1], 0),
    (Piecewise((sp.tanh(h), h > 1), (0, True)), [1], 0),
    (Piecewise((sp.sin(h), h > 1), (h, True)), [1], 0),
    (Piecewise((sp.tanh(h), Abs(h) > HALF), (0, True)), [-HALF, HALF], -1),
    (Piecewise((h, (h > -1) & (h < 1)), (sign(h), True)), [-1, 1], -1),
    (Min(h, 0) + Max(h, 0), [], -1),
    (Max(-1, Min(1, sp.tanh(h))), [], -1),
    (Max(0, (1 + sp.tanh(h / 2)) / 2), [], 0),
    (sp.tanh(Abs(h)) * sign(h), [], -1),
    (sign(h) ** 2 * h, [], -1),
    (h / (1 + Abs(h)), [0], -1),
    (Max(0, h, 2 * h - 1), [0, 1], 0),
    (Abs(Abs(Abs(h) - 1) - 1), [-2, -1, 0, 1, 2], 1),
    (h * sp.log(Abs(h)), [0], -1),
]


@pytest.mark.slow_but(1, 2, 4, 12, 16, 19, 21, 22)
@pytest.mark.parametrize(("f", "points", "parity"), FUNCTIONS, ids=str)
def test_pieces(f, points, parity):
    found = pieces_of(f, h)
    assert [sp.simplify(a - b) for a, b in zip(found.points, points, strict=True)] == [0] * len(
        points
    )
    assert function_of(f, h).parity == parity
    for place in (sp.Rational(k, 7) for k in range(-25, 26) if k % 7):
        value = f.subs(h, place).evalf(20)
        for same in (found.at(place), found.expression, canonical(f, h)):
            assert abs(same.subs(h, place).evalf(20) - value) < 1e-18
    # It is its own normal form, and φ(−h) has the mirrored breakpoints.
    again = pieces_of(found.expression, h)
    assert (again.points, again.branches) == (found.points, found.branches)
    mirrored = pieces_of(f.subs(h, -h), h).points
    assert all(sp.simplify(a + b) == 0 for a, b in zip(mirrored, found.points[::-1], strict=True))


def test_jumps_are_measured():
    assert pieces_of(Max(0, h**2 - h - 1), h).jumps == (0, 0)
    found = pieces_of(Piecewise((sp.tanh(h), h > 1), (0, True)), h)
    assert found.jumps == (sp.tanh(1),)


def test_roots_without_closed_form():
    """cos h = h and h³ = h + 1, to 40 digits; the function is continuous there."""
    for f, text in (
        (Max(0, sp.cos(h) - h), "0.7390851332151606416553120876738734040134"),
        (Abs(h**3 - h - 1), "1.324717957244746025960908854478097340734"),
    ):
        (point,), found = pieces_of(f, h).points, pieces_of(f, h)
        assert abs(point - sp.Rational(text)) < sp.Rational(1, 10**38)
        assert found.jumps == (0,)
        assert canonical(f, h) == found.expression


@pytest.mark.parametrize(
    "f", [Max(0, h), Abs(h), sign(h), Heaviside(h), Max(-1, Min(1, h)), h / (1 + Abs(h))]
)
def test_what_is_typed_stands_where_it_is_consistent(f):
    assert canonical(f, h) == f


def test_what_cannot_be_located():
    for f in (Abs(sp.sin(h)), Max(h, y), Max(0, sp.Function("f")(h))):
        with pytest.raises(ValueError, match="cannot locate the kinks"):
            pieces_of(f, h)
    assert pieces_of(Abs(y) * Abs(h), h).branches == (-h * Abs(y), h * Abs(y))
