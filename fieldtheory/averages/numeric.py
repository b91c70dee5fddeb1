"""Averages of one and two variables as NumPy functions: which rule for which integrand.

One variable: composite Gauss-Legendre rules. Two variables: the Mehler series where it converges
fast, Fourier transforms where the variables are strongly correlated, and two-dimensional panels
where both give up or the integrand has kinks. Connected correlators whose inner average has a
closed form: Price's theorem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import chain

import numpy as np
import sympy as sp

from fieldtheory.averages import (
    bells,
    exact_differences,
    hermite,
    narrow_pairs,
    plateaus,
    price,
    quadrature,
    ramps,
    sectors,
    size_logarithms,
    spectral,
    two_variables,
    wide_waves,
)
from fieldtheory.averages.connected import ConnectedCorrelator
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.exponentials import expanded, factored
from fieldtheory.averages.gaussian import GaussianAverage
from fieldtheory.averages.narrow import cuts_of, has_short_waves, narrow_cuts
from fieldtheory.averages.precise import separated
from fieldtheory.averages.rules import PRICE, Rule
from fieldtheory.averages.stable_forms import NUMPY, determinant, stable
from fieldtheory.averages.steps import has_cusp, has_steps, polynomial_pieces
from fieldtheory.averages.tails import fades
from fieldtheory.averages.vanishing import narrow, narrow_alone
from fieldtheory.averages.vectorising import centres_of, increment, kinks_of, vectorised
from fieldtheory.averages.waves import has_waves

_x = sp.Dummy("x", real=True)
_PAIRS_PER_VARIANCE = 4
# Correlations below which a series of 64 orders converges at once.
_WEAK = 0.1
# Terms of an integrand up to which a closed form is looked for.
_LONGEST = 30
# Variances of which two have a product in float64.
_WIDEST = 1e150
# How small a correlator may be, relative to the standard deviations, that is a sum in float64.
_VISIBLE = 1e-3
# Variances from which on the logarithms of radius and angle are tried, and those from which on
# smooth functions are seen in the logarithms of signals alone.
_ANGLES, _SIZES = 0.05, 1e14
# Larger ones, and 1 − c², of which panels see nothing narrow.
_FARTHEST, _PARALLEL = 1e20, 1e-2
# Variances from which on logarithms of signals do not resolve waves.
_FEW_WAVES = 300.0
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
# Bells as wide as this are seen by nodes that know nothing of them.
_WIDE = 0.05
# Variances and correlations from which on Fourier transforms are tried before series.
_SPREAD, _CLOSE = 4.0, 0.8
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
                    return Rule(_POLAR, _CUSPS, partial(_at_cusps, first, second, integral))
                # Logarithms of signals resolve few waves, of which series of weak ones take more.
                f_part, g_part = _of_equal_parity(*products[0], x, y)
                series = _pairs(f_part, g_part, (x, y), False, integral, cusps=True)
                compute: Callable = partial(_at_cusps_with_waves, first, second, series)
                compute = wide_waves.pair(products, (x, y), of_steady, compute)
                return Rule(_POLAR, _CUSPS, compute)
    else:
        centres = [_places(F, v) for v in variables]
        integral = partial(two_variables.average_2d, vectorised(variables, F), kinks=centres)
    if products is None or len(products) > 1:
        reason = "no product of a function of each variable: two nested integrals"
        return Rule(_PANELS, reason, wide_waves.pair(products or (), (x, y), of_steady, integral))
    f_part, g_part = _of_equal_parity(*products[0], x, y)
    compute = _pairs(f_part, g_part, (x, y), False, integral)
    compute = wide_waves.pair(products, (x, y), of_steady, compute)
    for row, as_ramps in enumerate((ramps.ramps_of, ramps.ramps_of_slopes)):
        one, other = (as_ramps(part, v) for part, v in zip(products[0], (x, y), strict=True))
        if one and other:
            return Rule(PRICE, _RAMPS, partial(_of_ramps, one, other, row, compute))
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
    if slope is not None:
        name, reason = PRICE, "⟨F'G'⟩ has a closed form: one integral over the covariance"
        compute: Callable = partial(price.connected_by_price, *_inner(slope, K))
        terms = len(sp.Add.make_args(sp.expand(slope)))
        if terms > 1 and not (kinks_of(F, x) or kinks_of(G, y)):
            f, g = (
                _increment_of_one(_without_constant(part, v).xreplace({v: _x}))
                for part, v in ((F, x), (G, y))
            )
            compute = partial(_weak_by_series, f, g, compute)
    else:
        kinks = kinks_of(F, x), kinks_of(G, y)
        F, G = _without_constant(F, x), _without_constant(G, y)
        f, g = increment(F, x), increment(G, y)
        centres = tuple(
            sorted({*centres_of(E, v), *narrow_cuts(E, v)}) for E, v in ((F, x), (G, y))
        )
        integral = partial(two_variables.connected_2d, f, g, kinks=centres)
        name, reason = _SERIES, _KINKED if any(kinks) else _SMOOTH
        cusps = set(chain(*kinks)) == {0.0} and (has_cusp(F, x) or has_cusp(G, y))
        if cusps:
            integral = partial(_connected_at_cusps, f, g, integral)
        compute = _pairs(F, G, (x, y), True, integral, cusps)
    if len(node.variables) == 1:
        return Rule(name, reason, lambda K: compute(K, K, K))
    return Rule(name, reason, compute)


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
    """⟨F'(x) G'(y)⟩, the derivative of ⟨F;G⟩ by the covariance, if it has a short closed form."""
    product = sp.expand(F.diff(variables[0])) * sp.expand(G.diff(variables[1]))
    if len(sp.Add.make_args(sp.expand(product))) > _LONGEST:
        return None
    slope = GaussianAverage(product, variables, K).doit()
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
        function, scale = increment(_without_constant(f, x), x), 1.0
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


@lru_cache(maxsize=256)
def _of_one(F: sp.Expr) -> Callable:
    """`vectorised` for one variable; one function for one expression, as `hermite` needs it."""
    return vectorised([_x], F)


@lru_cache(maxsize=256)
def _increment_of_one(F: sp.Expr) -> Callable:
    """F(x) − F(0), again one function for one expression."""
    return increment(F, _x)


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
    return F if F.subs(x, 0) == 0 else expanded(F).as_independent(x, as_Add=True)[1]


def _of_equal_parity(F: sp.Expr, G: sp.Expr, x: sp.Symbol, y: sp.Symbol) -> tuple:
    """F(x) and G(y) without the parts that do not contribute to ⟨FG⟩.

    Where F is odd, ⟨F⟩ = 0 would come out as rounding times the mean of G.
    """
    sign = _parity(F, x) or _parity(G, y)
    return (_part(F, x, sign), _part(G, y, sign)) if sign else (F, G)


def _parity(F: sp.Expr, x: sp.Symbol) -> int:
    """1 of an even function, −1 of an odd one, 0 of others."""
    return next((sign for sign in (1, -1) if _part(F, x, -sign) == 0), 0)


def _part(F: sp.Expr, x: sp.Symbol, sign: int) -> sp.Expr:
    """The even (sign 1) or odd (−1) part of F; F as it stands where there is no other."""
    mirrored = sign * F.subs(x, -x)
    return F if mirrored == F else sp.expand((F + mirrored) / 2)


def _pairs(
    F: sp.Expr,
    G: sp.Expr,
    variables: tuple,
    without_means: bool,
    otherwise: Callable,
    cusps: bool = False,
) -> Callable:
    """⟨F(x) G(y)⟩ or ⟨F(x) ; G(y)⟩, each pair by the first rule that holds."""
    make = _increment_of_one if without_means else _of_one
    sides = [part.xreplace({v: _x}) for v, part in zip(variables, (F, G), strict=True)]
    f, g = (make(side) for side in sides)
    kinks = tuple(tuple(cuts_of(side, _x)) for side in sides)
    first = not any(kinks) or any(side.has(sp.sin, sp.cos) for side in sides)
    first |= any(narrow_cuts(side, _x) for side in sides)

    def means(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return two_variables.means(f, a, kinks[0]), two_variables.means(g, b, kinks[1])

    subtracted = means if without_means else None
    otherwise = narrow_pairs.beside(otherwise, f, g, kinks, subtracted, first)
    parity = _parity(sides[0], _x) or _parity(sides[1], _x)
    lowest, every = int(without_means), 1
    if parity:
        lowest, every = 1 if parity < 0 else 2 * lowest, 2

    def series(stages: tuple, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple:
        return hermite.series(f, g, a, b, c, lowest, stages, kinks, every)

    def high(stages: tuple, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple:
        # The coefficients belong to the variances, so that it takes many pairs to pay.
        if len(c) < _PAIRS_PER_VARIANCE * (len(np.unique(a)) + len(np.unique(b))):
            return np.zeros(len(c)), np.zeros(len(c), dtype=bool)
        return series(stages, a, b, c)

    def transforms(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple:
        if not without_means:
            return spectral.average(f, g, a, b, c)
        try:
            known = means(a, b)
        except QuadratureError:
            return np.zeros(len(c)), np.zeros(len(c), dtype=bool)
        return spectral.average(f, g, a, b, c, known)

    def transforms_of_wide(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple:
        # Their series hardly ever converge.
        wide = (np.minimum(a, b) >= _SPREAD) & (c >= _CLOSE * np.sqrt(a) * np.sqrt(b))
        values, good = np.zeros(len(c)), np.zeros(len(c), dtype=bool)
        if wide.any():
            values[wide], good[wide] = transforms(a[wide], b[wide], c[wide])
        return values, good

    waves = any(side.has(sp.sin, sp.cos) for side in sides)
    away_from_zero = any(place for cuts in kinks for place in cuts)
    of_sizes = not (without_means or away_from_zero or waves)
    if any(kinks) or any(has_short_waves(side, _x) for side in sides):
        stages = hermite.CUSP_ORDERS if cusps else hermite.PANEL_ORDERS
        rules: list[Callable] = [partial(series, stages)]
    else:
        many, more = (partial(high, s) for s in (hermite.HIGH_ORDERS, hermite.HIGHEST_ORDERS))
        rules = [partial(series, hermite.LOW_ORDERS), many, transforms, more]
        if not without_means:
            rules = [transforms_of_wide, *rules]

    def compute(*K: np.ndarray) -> np.ndarray:
        a, b, c = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
        flat = [np.atleast_1d(k).ravel() for k in (a, b, c)]
        if max(np.max(flat[0], initial=0), np.max(flat[1], initial=0)) > _WIDEST:
            raise QuadratureError(
                f"an average of two variables needs variances below {_WIDEST:.0e}, whose products "
                f"float64 holds, got {max(flat[0].max(), flat[1].max()):.6g}"
            )
        values, good = np.zeros(len(flat[0])), np.zeros(len(flat[0]), dtype=bool)
        grows = ~fades(f, g, flat[0], flat[1], flat[2], hermite.REACH)
        if grows.any() and not without_means and not any(kinks):
            values[grows], good[grows] = (
                size_logarithms.pairs(f, g, *(k[grows] for k in flat)),
                True,
            )
        for rule in rules:
            left = ~(good | grows)
            if left.any():
                values[left], good[left] = rule(*(k[left] for k in flat))
        if of_sizes and not good.all():
            left = ~good
            values[left], good[left] = sectors.average(f, g, *(k[left] for k in flat))
            left = ~good & (np.minimum(*flat[:2]) >= _ANGLES)
            values[left], good[left] = size_logarithms.by_angles(f, g, *(k[left] for k in flat))
        wide = ~good & (np.minimum(*flat[:2]) >= _SIZES) & of_sizes
        for pair in np.nonzero(wide)[0]:
            given = [k[[pair]] for k in flat]
            try:
                values[pair] = size_logarithms.pairs(f, g, *given)[0]
                good[pair] = True
            except QuadratureError:
                if _is_unresolved(*given):
                    raise
        if not good.all():
            values[~good] = _once(otherwise, *(k[~good] for k in flat))
        return values.reshape(a.shape)

    return compute


def _once(rule: Callable, *K: np.ndarray) -> np.ndarray:
    """A rule of arrays (m,), of equal entries once: deep layers may have reached a fixed point."""
    different, places = np.unique(np.stack(K), axis=1, return_inverse=True)
    return rule(*different)[places.ravel()]


def _is_unresolved(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> bool:
    """Whether panels of signals that are wide and nearly parallel miss what is narrow in them."""
    size = K_xx * K_yy
    narrow = exact_differences.determinant(K_xx, K_yy, K_xy) < _PARALLEL * size
    return bool((narrow & (np.minimum(K_xx, K_yy) > _FARTHEST)).any())


def _weak_by_series(f: Callable, g: Callable, strong: Callable, *K: np.ndarray) -> np.ndarray:
    """⟨f(x) ; g(y)⟩ of weak correlations c by the Mehler series, of others by another rule.

    The terms of a closed form of ⟨F'G'⟩ cancel where it is of order c.
    """
    a, b, c = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
    flat = [np.atleast_1d(k).ravel() for k in (a, b, c)]
    found, known = np.zeros(len(flat[0])), np.zeros(len(flat[0]), dtype=bool)
    weak = np.abs(flat[2]) < _WEAK * np.sqrt(flat[0] * flat[1])
    if weak.any():
        first, second, mixed = (k[weak] for k in flat)
        of_orders = hermite.series(f, g, first, second, mixed, 1, hermite.LOW_ORDERS)
        found[weak], known[weak] = of_orders
    if not known.all():
        found[~known] = strong(*(k[~known] for k in flat))
    return found.reshape(a.shape)


def _of_ramps(
    f: ramps.Ramps, g: ramps.Ramps, row: int, otherwise: Callable, *K: np.ndarray
) -> np.ndarray:
    """⟨FG⟩ (row 0) or ⟨F'G'⟩ (row 1) of ramps; where their terms cancel, by another rule."""
    a, b, c = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
    flat = [np.atleast_1d(k).ravel() for k in (a, b, c)]
    found, known = ramps.average(f, g, flat[0], flat[1], flat[2])
    values, left = found[row], ~known[row]
    if left.any():
        values[left] = otherwise(*(k[left] for k in flat))
    return values.reshape(a.shape)


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


def _at_cusps(f: Callable, g: Callable, otherwise: Callable, *K: np.ndarray) -> np.ndarray:
    K_xx, K_yy, K_xy = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
    if (K_xx > 0).all() and (K_yy > 0).all():
        pairs = partial(size_logarithms.pairs, f, g)
        return _once(pairs, K_xx.ravel(), K_yy.ravel(), K_xy.ravel()).reshape(K_xx.shape)[()]
    return otherwise(*K)


def _at_cusps_with_waves(f: Callable, g: Callable, series: Callable, *K: np.ndarray) -> np.ndarray:
    """By `_at_cusps`, which resolves few waves, or by a series; the other where one fails."""
    given = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
    found, logarithms = np.empty(given[0].shape), partial(_at_cusps, f, g, series)
    for at in np.ndindex(found.shape):
        one = [k[at] for k in given]
        rules = (logarithms, series) if max(one[:2]) < _FEW_WAVES else (series, logarithms)
        try:
            found[at] = rules[0](*one)
        except QuadratureError:
            found[at] = rules[1](*one)
    return found[()]


def _connected_at_cusps(
    F: Callable, G: Callable, otherwise: Callable, *K: np.ndarray
) -> np.ndarray:
    """⟨F(x);G(y)⟩ with the means subtracted, as long as their products do not cancel."""
    K_xx, K_yy, K_xy = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
    found, exact = np.empty(K_xx.shape), (K_xx > 0) & (K_yy > 0)
    for at in zip(*np.nonzero(exact), strict=True):
        (f, of_f), (g, of_g) = _centred(F, float(K_xx[at])), _centred(G, float(K_yy[at]))
        found[at] = size_logarithms.pairs(f, g, K_xx[at], K_yy[at], K_xy[at])
        exact[at] = abs(found[at]) >= _VISIBLE * of_f * of_g
    if not exact.all():
        found[~exact] = otherwise(K_xx[~exact], K_yy[~exact], K_xy[~exact])
    return found[()]


def _centred(f: Callable, variance: float) -> tuple[Callable, float]:
    """f − ⟨f⟩, and its standard deviation."""
    mean = float(quadrature.average_1d(f, np.asarray(variance), (0.0,)))

    def centred(x: np.ndarray) -> np.ndarray:
        return f(x) - mean

    square = quadrature.average_1d(lambda x: centred(x) ** 2, np.asarray(variance), (0.0,))
    return centred, math.sqrt(square)


def _of_each(function: Callable, K: np.ndarray) -> np.ndarray:
    """``function`` of the different variances only, where most are shared by several pairs."""
    values = np.asarray(K, dtype=float)
    if values.size < 2:
        return function(values)
    variances, index = np.unique(values, return_inverse=True)
    if 2 * len(variances) > values.size:
        return function(values)
    return function(variances)[index].reshape(values.shape)


def _inner(slope: sp.Expr, K: sp.ImmutableMatrix) -> tuple[Callable, Callable | None]:
    """⟨F'G'⟩ of (K_xx, K_yy, t, det) and where it diverges, for `price.connected_by_price`."""
    a, t, _, b = K
    det = sp.Symbol("det", nonnegative=True)
    form = stable(slope, K).subs(determinant(a, b, t), det)
    compiled = sp.lambdify([a, b, t, det], form, modules=[NUMPY, "scipy", "numpy"], cse=True)
    for power in slope.atoms(sp.Pow):
        base, exponent = sp.expand(power.base), power.exp
        if exponent.is_negative and not exponent.is_integer and base.is_polynomial(a, b, t):
            coefficients = sp.Poly(base, t).all_coeffs()
            if len(coefficients) == 3 and coefficients[0].is_negative and coefficients[1] == 0:
                offset = -coefficients[2] / coefficients[0] - a * b
                return compiled, sp.lambdify([a, b], sp.expand(offset), "numpy")
    return compiled, None
