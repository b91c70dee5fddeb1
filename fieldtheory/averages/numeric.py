"""Connected averages of signals that add up from layer to layer."""

from __future__ import annotations

import math
from collections.abc import Callable

import sympy as sp

from fieldtheory.averages.integrals import quadrature, spectral, two_variables
from fieldtheory.averages.integrals.vectorising import increment, vectorised
from fieldtheory.averages.integrands.exponentials import expanded
from fieldtheory.averages.integrands.narrow import cuts_of, steep_places
from fieldtheory.averages.integrands.steps import polynomial_pieces
from fieldtheory.averages.nodes.closed_forms import is_transcendental_in
from fieldtheory.averages.nodes.gaussian import GaussianAverage

# Terms of an integrand up to which a closed form is looked for.
_LONGEST = 30
# What is left of a constant at zero in a tail.
_TAIL = 1e-3


def inner_average(F: sp.Expr, G: sp.Expr, variables: tuple, K: sp.Matrix) -> sp.Expr | None:
    """⟨F'(x) G'(y)⟩, the derivative of ⟨F;G⟩ by the covariance, if it has a short closed form.

    None for jumps away from zero: that of two of them is a bell that narrows without bound towards
    equal signals.
    """
    slopes = [side.diff(v) for side, v in zip((F, G), variables, strict=True)]
    # Expanded, those that are quotients may have many terms.
    if any(is_transcendental_in(slope, variables) for slope in slopes):
        return None
    slopes = [sp.expand(slope) for slope in slopes]
    centre = dict.fromkeys(variables, 0)
    deltas = (delta for slope in slopes for delta in slope.atoms(sp.DiracDelta))
    if any(delta.args[0].subs(centre) != 0 for delta in deltas):
        return None
    if math.prod(len(sp.Add.make_args(slope)) for slope in slopes) > _LONGEST:
        return None
    slope = GaussianAverage(sp.Mul(*slopes), variables, K).doit()
    return None if slope.has(GaussianAverage) else slope


def connected_steps(f: sp.Expr, x: sp.Symbol) -> Callable:
    """⟨f(x) ; f(x + w)⟩ of a smooth f as a function of variances (n,) of x and (m,) of w."""
    function = vectorised([x], _without_constant(f, x))
    return lambda K, steps: spectral.connected_steps(
        function, quadrature.average_1d(function, K), K, steps
    )


def connected_layers(f: sp.Expr, x: sp.Symbol) -> Callable:
    """⟨f(x_k) ; f(x_l)⟩ of signals that add up, as a function of their variances (n,)."""
    kinks, polynomials = cuts_of(f, x), polynomial_pieces(f, x)
    if polynomials is None:
        function, (steep, scale) = increment(_without_constant(f, x), x), steep_places(f, x)
        kinks = sorted({*kinks, *steep})
    else:
        # What is subtracted from expanded polynomials leaves the digits of the central one.
        constant, scale = polynomials.subs(x, 0), math.inf
        shifted = [(value - constant, condition) for value, condition in polynomials.args]
        function = vectorised([x], sp.Piecewise(*shifted))
    return lambda K: two_variables.connected_layers(function, K, kinks, scale)


def _without_constant(F: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """F up to a constant, which would hide what is left of it for small variances.

    One that vanishes at zero has none, and (eˣ − 1)² would lose its digits written out.
    """
    value = F.subs(x, 0)
    if value == 0:
        return F
    constant, rest = expanded(F).as_independent(x, as_Add=True)
    # The terms of a distant tail cancel, written out.
    known = value.is_number and value.is_finite and constant.is_number and constant.is_finite
    lost = known and abs(value.evalf()) < _TAIL * abs(constant.evalf())
    return F if lost else rest
