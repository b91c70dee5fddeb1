"""Averages of one and two variables as NumPy functions: which rule for which integrand.

One variable: composite Gauss-Legendre rules. Two variables: `pair_rules`, and two-dimensional
panels where those give up or the integrand has kinks; see `cusps` for cusps at zero. Connected
correlators whose inner average has a closed form: Price's theorem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

import numpy as np
import sympy as sp

from fieldtheory.averages import bells, cusps, pair_rules
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals import price, quadrature, spectral, two_variables
from fieldtheory.averages.integrals.vectorising import centres_of, increment, kinks_of, vectorised
from fieldtheory.averages.integrands.exponentials import expanded, factored
from fieldtheory.averages.integrands.narrow import cuts_of, narrow_cuts, steep_places
from fieldtheory.averages.integrands.simplification import separated
from fieldtheory.averages.integrands.steps import has_cusp, has_steps, polynomial_pieces
from fieldtheory.averages.integrands.tails import fades
from fieldtheory.averages.nodes.cancelling_forms import (
    MODERATE,
    cancels,
    either,
    is_lost,
    without_signs,
)
from fieldtheory.averages.nodes.closed_forms import is_transcendental_in
from fieldtheory.averages.nodes.connected import ConnectedCorrelator
from fieldtheory.averages.nodes.gaussian import GaussianAverage
from fieldtheory.averages.nodes.stable_forms import NUMPY, determinant, difference_variance, stable
from fieldtheory.averages.oscillating import wide_waves
from fieldtheory.averages.oscillating.waves import has_waves
from fieldtheory.averages.polynomial_pieces import plateaus, ramps
from fieldtheory.averages.rules import PRICE, Rule
from fieldtheory.averages.sizes import size_logarithms
from fieldtheory.averages.vanishing import narrow, narrow_alone

# Terms of an integrand up to which a closed form is looked for.
_LONGEST = 30
# Standard deviations at which panels end.
_PANELS_END = 13.6
# Beside zero, and by how much functions that do not jump may change there.
_BESIDE, _STEADY = 1e-50, 1e-9
# Rules and reasons.
_POLAR = "polar coordinates"
_CUSPS = "cusps at zero: one quadrant in the logarithms of the radius and of the angle"
_PANELS = "panels"
_SERIES = "Mehler series"
_ONE = "one variable: Gauss-Legendre panels{}"
_KINKED = (
    "functions of one variable each, with kinks; nested integrals whose panels end there where "
    "the correlation is strong"
)
_RAMPS = (
    "piecewise linear functions of one variable each: one integral over the covariance of the "
    "densities where both are at kinks; nested integrals where its terms cancel"
)
_STEPS = "piecewise constant functions: one integral over the covariance of densities at jumps"
# What is left of a constant at zero in a tail.
_TAIL = 1e-3
# Bells as wide as this are seen by nodes that know nothing of them.
_WIDE = 0.05
_BELLS = "sums of exponentials of squares; their differences by a closed form that keeps its digits"
_SMOOTH = (
    "smooth functions of one variable each; Fourier transforms where the correlation is strong, "
    "panels where neither converges"
)


def average(node: GaussianAverage) -> Rule:
    """⟨F⟩ of one or two variables as a function of K, or of (K_xx, K_yy, K_xy).

    Where F jumps at zero a variance of zero is the limit of small ones.
    """
    return _with_narrow_limit(_average(node), node)


def _average(node: GaussianAverage) -> Rule:
    F, variables = node.integrand, node.variables
    kinks = [kinks_of(F, v) for v in variables]
    if len(variables) == 1:
        of_one = partial(_of_one_variable, vectorised(variables, F), cuts_of(F, variables[0]))
        of_waves = wide_waves.single(F, variables[0], of_one)
        return Rule(_PANELS, _ONE.format(_located(kinks[0])), partial(_of_each, of_waves))
    products = separated(F, *variables)
    if products and len(products) > 1:
        # Derivatives of a product come multiplied out.
        products = _as_one(products) or separated(factored(F), *variables)
    x, y = variables
    of_steady = partial(_of_steady, node=node)
    if products and len(products) == 1 and has_steps(F):
        first, second = vectorised([x], products[0][0]), vectorised([y], products[0][1])
        integral = partial(two_variables.average_2d, lambda x, y: first(x) * second(y), kinks=kinks)
        if set(chain(*kinks)) == {0.0}:
            if has_cusp(products[0][0], x) or has_cusp(products[0][1], y):
                if not has_waves(F):
                    return Rule(_POLAR, _CUSPS, partial(cusps.at_cusps, first, second, integral))
                # Logarithms of signals resolve few waves, of which series of weak ones take more.
                f_part, g_part = pair_rules.of_equal_parity(*products[0], x, y)
                series = pair_rules.pairs(f_part, g_part, (x, y), False, integral, cusps=True)
                compute: Callable = partial(cusps.at_cusps_with_waves, first, second, series)
                compute = wide_waves.pair(products, (x, y), of_steady, compute)
                return Rule(_POLAR, _CUSPS, compute)
    else:
        centres = [_places(F, v) for v in variables]
        integral = partial(two_variables.average_2d, vectorised(variables, F), kinks=centres)
    if products is None or len(products) > 1:
        reason = "no product of a function of each variable: two nested integrals"
        return Rule(_PANELS, reason, wide_waves.pair(products or (), (x, y), of_steady, integral))
    f_part, g_part = pair_rules.of_equal_parity(*products[0], x, y)
    compute = pair_rules.pairs(f_part, g_part, (x, y), False, integral)
    compute = wide_waves.pair(products, (x, y), of_steady, compute)
    for row, as_ramps in enumerate((ramps.ramps_of, ramps.ramps_of_slopes)):
        one, other = (as_ramps(part, v) for part, v in zip(products[0], (x, y), strict=True))
        if one and other:
            return Rule(PRICE, _RAMPS, partial(pair_rules.of_ramps, one, other, row, compute))
    return Rule(_SERIES, _KINKED if has_steps(F) else _SMOOTH, compute)


def _as_one(products: Sequence[tuple[sp.Expr, sp.Expr]]) -> list[tuple[sp.Expr, sp.Expr]] | None:
    """Σ f(x) g(y) as one product, if all f are multiples of one of them term by term."""
    (f, total), *others = products
    first = sp.expand(f).as_coefficients_dict()
    for other, g in others:
        terms = sp.expand(other).as_coefficients_dict()
        ratios = {terms[term] / first[term] for term in first}
        if len(ratios) > 1 or set(terms) != set(first):
            return None
        total += ratios.pop() * g
    return [(f, total)]


def connected(node: ConnectedCorrelator) -> Rule:
    """⟨F(x);G(y)⟩ as a function of K, or of (K_xx, K_yy, K_xy), at zero as in `average`."""
    return _with_narrow_limit(_connected(node), node)


def _connected(node: ConnectedCorrelator) -> Rule:
    found = apart(node)
    if found is None:
        raise ValueError(f"node must correlate two functions of one variable each, got {node}")
    F, G, x, y = found
    if (of_bells := bells_in(node)) is not None:
        exact = partial(bells.connected, *of_bells)
        if len(node.variables) == 1:
            return Rule("bells", _BELLS, lambda K: exact(K, K, K))
        return Rule("bells", _BELLS, exact)
    one, other = ramps.ramps_of_slopes(F, x), ramps.ramps_of_slopes(G, y)
    if one and other and any((*one.points, *other.points)):
        densities = plateaus.connected(one, other)
        if len(node.variables) == 1:
            return Rule(PRICE, _STEPS, lambda K: densities(K, K, K))
        return Rule(PRICE, _STEPS, densities)
    a, b = sp.symbols("a b", positive=True)
    t = sp.Symbol("t", real=True)
    K = sp.ImmutableMatrix([[a, t], [t, b]])
    # Moments of bells cancel.
    slope = None if _has_bells(F) or _has_bells(G) else inner_average(F, G, (x, y), K)
    if slope is None:
        name, reason, compute = _by_pairs(F, G, x, y)
    else:
        name, reason = PRICE, "⟨F'G'⟩ has a closed form: one integral over the covariance"
        compute = partial(price.connected_by_price, *_inner(slope, K))
        if len(sp.Add.make_args(sp.expand(slope))) > 1:
            compute = _with_digits(F, G, (x, y), slope, K, compute)
    if len(node.variables) == 1:
        return Rule(name, reason, lambda K: compute(K, K, K))
    return Rule(name, reason, compute)


def _by_pairs(F: sp.Expr, G: sp.Expr, x: sp.Symbol, y: sp.Symbol) -> Rule:
    """⟨F(x);G(y)⟩ by the rules for pairs of signals."""
    kinks = kinks_of(F, x), kinks_of(G, y)
    F, G = _without_constant(F, x), _without_constant(G, y)
    f, g = increment(F, x), increment(G, y)
    centres = tuple(sorted({*centres_of(E, v), *narrow_cuts(E, v)}) for E, v in ((F, x), (G, y)))
    integral = partial(two_variables.connected_2d, f, g, kinks=centres)
    has_cusps = set(chain(*kinks)) == {0.0} and (has_cusp(F, x) or has_cusp(G, y))
    if has_cusps:
        integral = partial(cusps.connected_at_cusps, f, g, integral)
    compute = pair_rules.pairs(F, G, (x, y), True, integral, has_cusps)
    return Rule(_SERIES, _KINKED if any(kinks) else _SMOOTH, compute)


def _with_narrow_limit(rule: Rule, node: GaussianAverage | ConnectedCorrelator) -> Rule:
    """The rule with variances of zero as limits where functions jump at zero."""
    variables = tuple(node.variables)
    jumps = [any(_jumps_at_zero(F, x, variables) for F in node.functions) for x in variables]
    if not any(jumps):
        return rule

    def everywhere(*K: np.ndarray) -> np.ndarray:
        if all(np.all(k) for k in K[: len(jumps)]):
            return rule.function(*K)
        if len(jumps) == 1:
            return rule.function(narrow_alone(K[0]))
        return rule.function(*narrow(K[0], K[1], K[2], (jumps[0], jumps[1])))

    return rule._replace(function=everywhere)


def _jumps_at_zero(F: sp.Expr, x: sp.Symbol, variables: tuple) -> bool:
    """Whether F is another below zero, at it or above it, and finite."""
    if not has_steps(F):
        return False
    function, others = vectorised(variables, F), np.linspace(-3.1, 3.0, 8)
    with np.errstate(all="ignore"):
        values = [
            function(*(np.full(8, place) if v == x else others for v in variables))
            for place in (-_BESIDE, 0.0, _BESIDE)
        ]
    finite = bool(np.isfinite(values).all())
    return finite and not np.allclose(values[:-1], values[1:], 0, _STEADY)


def bells_in(node: ConnectedCorrelator) -> tuple[list[bells.Bell], list[bells.Bell]] | None:
    """The bells whose sums a node correlates, if one is narrow; None for other nodes."""
    found = apart(node)
    if found is None:
        return None
    F, G, x, y = found
    first = bells.bells_of(F, x)
    second = bells.bells_of(G, y) if first else None
    if not (first and second) or min(bell.square for bell in (*first, *second)) > _WIDE**2:
        return None
    return first, second


def _has_bells(F: sp.Expr) -> bool:
    """Whether exponentials of squares occur."""
    powers = [p for e in F.atoms(sp.exp) for p in e.exp.atoms(sp.Pow)]
    return any(power.base.free_symbols and power.exp == 2 for power in powers)


def _places(F: sp.Expr, x: sp.Symbol) -> list[float]:
    """Where panels of nested integrals end."""
    return sorted({*centres_of(F, x), *narrow_cuts(F, x)})


def _located(kinks: Sequence[float]) -> str:
    return f", which end at the kinks {', '.join(f'{k:g}' for k in kinks)}" if kinks else ""


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


def by_parts(forms: Sequence[sp.Expr], h: sp.Symbol, K: sp.Symbol, otherwise: Callable) -> Callable:
    """A quantity given as averages of several integrands in h and K, as a function of K.

    A factor of an integrand that depends on K alone is taken out. See `quadrature.by_parts_1d`.
    """
    compiled = []
    for form in forms:
        prefactor, F = form.as_independent(h, as_Add=False)
        compiled.append((vectorised([h, K], F), sp.lambdify([K], prefactor, "numpy")))
    kinks = sorted({kink for form in forms for kink in cuts_of(form, h)})
    return wide_waves.by_parts(
        forms, h, K, lambda K: quadrature.by_parts_1d(compiled, otherwise, K, kinks)
    )


def _of_steady(F: sp.Expr, G: sp.Expr, node: GaussianAverage) -> Callable:
    """⟨F(x) G(y)⟩ of two functions without waves."""
    x, y = node.variables
    f, g = vectorised([x], F), vectorised([y], G)
    if not (F.has(x) and G.has(y)):
        sides = (f, cuts_of(F, x)), (g, cuts_of(G, y))
        return lambda K_xx, K_yy, _: math.prod(
            quadrature.average_1d(lambda h, side=side: side(h) + 0 * h, K, places)
            for (side, places), K in zip(sides, (K_xx, K_yy), strict=True)
        )
    (scale, F), (other, G) = (part.as_independent(x, y, as_Add=False) for part in (F, G))
    a, b = sp.symbols("a b", positive=True)
    t = sp.Symbol("t", real=True)
    K = sp.ImmutableMatrix([[a, t], [t, b]])
    closed = GaussianAverage(F * G, (x, y), K).doit()
    if closed.has(GaussianAverage):
        rule = average(GaussianAverage(F * G, (x, y), node.covariance))
        both = wide_waves.either(rule.function, vectorised([x], F), vectorised([y], G))
    else:
        both = sp.lambdify([a, b, t], stable(closed, K), [NUMPY, "scipy", "numpy"], cse=True)
    return lambda *K: float(scale * other) * both(*K)


def apart(node: ConnectedCorrelator) -> tuple[sp.Expr, sp.Expr, sp.Expr, sp.Expr] | None:
    """F(x), G(y), x and y; one shared variable counts as two equal ones. None for other nodes."""
    variables = tuple(node.variables)
    if len(node.functions) != 2 or len(variables) > 2:
        return None
    F, G = node.functions
    if len(variables) == 1:
        x, y = variables[0], sp.Dummy("y", real=True)
        return F, G.xreplace({x: y}), x, y
    x, y = variables
    if F.has(y) or G.has(x):
        F, G = G, F
    return None if F.has(y) or G.has(x) else (F, G, x, y)


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


def _of_one_variable(f: Callable, kinks: Sequence[float], K: np.ndarray) -> np.ndarray:
    try:
        return quadrature.average_1d(f, K, kinks)
    except QuadratureError as error:
        flat = K.ravel()
        grows = (flat > 0) & ~fades(f, np.ones_like, flat, flat, flat, _PANELS_END)
        if any(kinks) or not grows.any():
            raise
        values = np.empty(len(flat))
        try:
            values[grows] = size_logarithms.singles(f, flat[grows])
        except QuadratureError:
            raise error from None
    values[~grows] = quadrature.average_1d(f, flat[~grows], kinks)
    return values.reshape(K.shape)


def _of_each(function: Callable, K: np.ndarray) -> np.ndarray:
    """``function`` of the different variances only, where most are shared by several pairs."""
    values = np.asarray(K, dtype=float)
    if values.size < 2:
        return function(values)
    variances, index = np.unique(values, return_inverse=True)
    if 2 * len(variances) > values.size:
        return function(values)
    return function(variances)[index].reshape(values.shape)


def _with_digits(
    F: sp.Expr,
    G: sp.Expr,
    variables: tuple,
    slope: sp.Expr,
    K: sp.ImmutableMatrix,
    compute: Callable,
) -> Callable:
    """⟨F(x);G(y)⟩ by Price's theorem, by other rules where ⟨F'G'⟩ is a small difference."""
    symbols, form = (K[0, 0], K[1, 1], K[0, 1]), stable(slope, K)
    both = sp.lambdify(symbols, [form, without_signs(form)], modules=[NUMPY, "scipy", "numpy"])
    if not any(kinks_of(part, v) for part, v in zip((F, G), variables, strict=True)):
        f, g = (_without_constant(part, v) for part, v in zip((F, G), variables, strict=True))
        compute = pair_rules.weak_by_series(
            f, g, variables, compute, lambda *of: is_lost(*both(*of))
        )
    if not cancels(form, symbols, both, MODERATE):
        return compute

    def at_variances(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        # A weak correlation may make it small too, in a part of the integral alone.
        return is_lost(*both(p, q, np.copysign(MODERATE[0] * np.sqrt(p * q), r)))

    return either(compute, at_variances, _by_pairs(F, G, *variables).function)


def _inner(slope: sp.Expr, K: sp.ImmutableMatrix) -> tuple[Callable, Callable | None]:
    """⟨F'G'⟩ and where it diverges, for `price.connected_by_price`."""
    a, t, _, b = K
    exact = {
        determinant(a, b, t): sp.Symbol("det", nonnegative=True),
        difference_variance(a, b, t): sp.Symbol("apart", nonnegative=True),
        difference_variance(a, b, -t): sp.Symbol("together", nonnegative=True),
    }
    form = stable(slope, K).xreplace(exact)
    given = [a, b, t, *exact.values()]
    compiled = sp.lambdify(given, form, modules=[NUMPY, "scipy", "numpy"], cse=True)
    for power in slope.atoms(sp.Pow):
        base, exponent = sp.expand(power.base), power.exp
        if exponent.is_negative and not exponent.is_integer and base.is_polynomial(a, b, t):
            coefficients = sp.Poly(base, t).all_coeffs()
            if len(coefficients) == 3 and coefficients[0].is_negative and coefficients[1] == 0:
                offset = -coefficients[2] / coefficients[0] - a * b
                return compiled, sp.lambdify([a, b], sp.expand(offset), "numpy")
    return compiled, None
