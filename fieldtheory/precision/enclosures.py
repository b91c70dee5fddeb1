"""Gaussian averages in ball arithmetic: an interval that contains the value, by Arb (python-flint).

The working precision is that of ``flint.ctx``. Every average is taken at exact variances, the
midpoints of the balls that are given, and widened by what the radii of these can change it:

* closed forms, if the average has one, in ball arithmetic;
* one variable: `acb.integral` over |h| <= R between breakpoints; the tails are bounded by a
  polynomial P >= |F|, whose tail is an incomplete gamma function, and |d⟨F⟩/dK| by
  √⟨F²⟩/(√2 K) (Cauchy-Schwarz, as K enters through the density alone);
* two variables, ⟨f(x) g(y)⟩: Price's theorem as an integral over the covariance where ⟨f'g'⟩ is
  closed, else Mehler's series with Parseval's remainder, see `hermite`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sympy as sp

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.integrands.breakpoints import has_steps, pieces_of
from fieldtheory.averages.nodes.gaussian import GaussianAverage
from fieldtheory.averages.precise import separated
from fieldtheory.precision.balls import acb, arb, compiled, ctx, exact, has_known_cuts, power_tail
from fieldtheory.precision.balls import power as power_of
from fieldtheory.precision.hermite import coefficients
from fieldtheory.precision.majorants import majorant

# Bits of bounds that only have to be above what they bound, and guard bits of tails.
_ROUGH, _GUARD = 64, 24
# ln 2, rounded up.
_LN_2 = 0.694
# Orders of Mehler's series that are tried.
_ORDERS = (32, 128, 512, 1024, 2048)

_A, _B = sp.symbols("a b", positive=True)
_C = sp.Symbol("c", real=True)


def average(F: sp.Expr, variables: Sequence[sp.Symbol], K: Sequence[Sequence[Any]]) -> Any:
    """An enclosure of ⟨F⟩_{N(0,K)}.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> value = average(sp.tanh(x) ** 2, [x], [[arb(1)]])
    >>> value.overlaps(arb("0.394294490397841 +/- 1e-15"))
    True
    """
    variables = tuple(variables)
    entries = [K[0][0]] if len(variables) == 1 else [K[0][0], K[1][1], K[0][1]]
    form = _closed_form(F, variables)
    if form is not None:
        return compiled(form, (_A, _B, _C)[: len(entries)])(*entries)
    if F.has(sp.DiracDelta):
        raise ValueError(f"{F} has jumps that do not integrate in closed form")
    if len(variables) == 1:
        (variable,), (variance,) = variables, entries
        value = integral(F, variable, variance.mid())
        if variance.is_exact():
            return value
        slope = norm(F, variable, variance) / (arb(2).sqrt() * variance.lower())
        return value + _ball(slope * variance.rad())
    products = separated(F, *variables)
    if products is None:
        raise ValueError(f"the integrand must be a sum of products f(x) g(y), got {F}")
    return sum((_product(f, g, variables, entries, False) for f, g in products), arb(0))


def correlator(F: sp.Expr, G: sp.Expr, variables: Sequence[sp.Symbol], K: Any) -> Any:
    """An enclosure of ⟨F(x) ; G(y)⟩ of two variables, without the cancellation of ⟨FG⟩ − ⟨F⟩⟨G⟩.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> K = [[arb(1), arb("0.5")], [arb("0.5"), arb(1)]]
    >>> correlator(x**2, y**2, (x, y), K).contains(arb("0.5"))
    True
    """
    x, y = variables
    entries = [K[0][0], K[1][1], K[0][1]]
    form = _closed_form(F * G, (x, y))
    if form is not None:
        product_of_means = average(F, [x], [[entries[0]]]) * average(G, [y], [[entries[1]]])
        return compiled(form, (_A, _B, _C))(*entries) - product_of_means
    return _product(F, G, (x, y), entries, True)


@lru_cache(maxsize=256)
def _closed_form(F: sp.Expr, variables: tuple[sp.Symbol, ...]) -> sp.Expr | None:
    K = [[_A]] if len(variables) == 1 else [[_A, _C], [_C, _B]]
    form = GaussianAverage(F, variables, K).doit()
    return None if form.has(GaussianAverage) else form


# One variable ----------------------------------------------------------------------------------


def norm(F: sp.Expr, variable: sp.Symbol, K: Any) -> Any:
    """A bound of √⟨F²⟩ for all variances in the ball, as N(h; K) <= √(K_hi/K_lo) N(h; K_hi)."""
    low, high = K.lower(), K.upper()
    with ctx.workprec(_ROUGH):
        square = integral(F, variable, exact(high), 2) * (high / low).sqrt()
        return square.sqrt().upper() if square > 0 else square.abs_upper().sqrt()


def integral(F: sp.Expr, variable: sp.Symbol, K: Any, power: int = 1) -> Any:
    """⟨F^power⟩ for an exact K."""
    return _integral(F, variable, K.man_exp(), power, ctx.prec)


@lru_cache(maxsize=4096)
def _integral(
    F: sp.Expr, variable: sp.Symbol, variance: tuple[Any, Any], power: int, precision: int
) -> Any:
    K = arb(variance[0]) * arb(2) ** int(variance[1])
    parts = pieces_of(F, variable)
    bound = sum(majorant(branch, variable) ** power for branch in parts.branches)
    # The tail is below 2^(−precision) of ⟨F⟩ also where that is as small as K².
    exponent = _LN_2 * (precision + _GUARD) + 2 * abs(float(K.log()))
    reach = exact((2 * K * exponent).sqrt())
    points = [exact(_dyadic(point)) for point in parts.points]
    cuts = [-reach, *(p for p in points if abs(p) < reach), reach]
    functions = [compiled(branch, (variable,)) for branch in parts.branches]
    used = functions[sum(bool(p <= -reach) for p in points) :]
    total, rate = arb(0), -1 / (2 * K)
    for low, high, function in zip(cuts, cuts[1:], used, strict=False):
        total += _integrated(
            lambda h, _, f=function: power_of(f(h), power) * (h * h * rate).exp(), low, high
        )
    total /= (2 * arb.pi() * K).sqrt()
    return total + _ball(power_tail(bound, K, reach))


def _integrated(function: Any, low: Any, high: Any) -> Any:
    """To the precision of the integral; the intervals with the largest errors first."""
    return acb.integral(function, low, high, abs_tol=arb(0), use_heap=True).real


def _dyadic(point: sp.Expr) -> sp.Rational:
    """A breakpoint that a ball holds exactly."""
    if not (point.is_Rational and (point.q & (point.q - 1)) == 0):
        raise ValueError(f"kinks must be at multiples of a power of 1/2, got one at {point}")
    return point


def _ball(radius: Any) -> Any:
    return arb(0, radius.abs_upper())


# Two variables ---------------------------------------------------------------------------------


def _product(
    f: sp.Expr, g: sp.Expr, variables: tuple[Any, ...], entries: Sequence[Any], connected: bool
) -> Any:
    """⟨f(x) g(y)⟩, or ⟨f(x) ; g(y)⟩, for covariances in balls."""
    x, y = variables
    if has_steps(f) or has_steps(g):
        raise ValueError(f"{f * g} has a kink and no closed form for two variables")
    a, b, c = entries
    at = [k.mid() for k in entries]
    r, r_at = c / (a * b).sqrt(), at[2] / (at[0] * at[1]).sqrt()
    if not abs(r_at) <= 1:
        # Parallel as far as the precision tells.
        return arb.nan()
    value = _price(f, g, variables, at) if connected else None
    if value is None:
        # The remainder is a difference of numbers near one.
        with ctx.workprec(ctx.prec + _GUARD):
            value = _mehler((f, x, at[0]), (g, y, at[1]), at[2], int(connected))
    if all(k.is_exact() for k in entries):
        return value
    spread = (norm(x * f.diff(x), x, a) * norm(g, y, b) * a.rad() / a.lower()) / 2
    spread += (norm(y * g.diff(y), y, b) * norm(f, x, a) * b.rad() / b.lower()) / 2
    slopes = norm(f.diff(x), x, a) * norm(g.diff(y), y, b)
    spread += slopes * (a * b).sqrt() * (r - r_at).abs_upper()
    return value + _ball(spread)


def _price(f: sp.Expr, g: sp.Expr, variables: tuple[Any, ...], at: Sequence[Any]) -> Any | None:
    """∫_0^c ⟨f'g'⟩_t dt over the covariance t, where ⟨f'g'⟩ is closed."""
    x, y = variables
    form = _closed_form(f.diff(x) * g.diff(y), (x, y))
    if form is None or not has_known_cuts(form):
        return None
    a, b, c = at
    function = compiled(form, (_A, _B, _C), True)
    return _integrated(lambda t, analytic: function(a, b, t, analytic), arb(0), c)


def _mehler(f: tuple[Any, ...], g: tuple[Any, ...], c: Any, first: int) -> Any:
    """Σ_n r^n f_n g_n + |r|^(n+1) √((⟨f²⟩ − Σ f_k²)(⟨g²⟩ − Σ g_k²))."""
    squares = [integral(F, v, K, 2) for F, v, K in (f, g)]
    least, r = arb(2) ** (_GUARD // 2 - ctx.prec), c / (f[2] * g[2]).sqrt()
    for order in _ORDERS:
        parts = [coefficients(F, v, K, order) for F, v, K in (f, g)]
        remainders, total, power = list(squares), arb(0), arb(1)
        for n, (u, v) in enumerate(zip(*parts, strict=True)):
            remainders = [left - part * part for left, part in zip(remainders, (u, v), strict=True)]
            if n >= first:
                total += power * u * v
            power *= r
            left = (remainders[0].abs_upper() * remainders[1].abs_upper()).sqrt()
            remainder = (power.abs_upper() * left).upper()
            if remainder <= least * total.abs_lower():
                return total + _ball(remainder)
    raise PrecisionError(
        f"Mehler's series of {f[0]} needs more than {_ORDERS[-1]} terms at the variances "
        f"{float(f[2]):.3g} and {float(g[2]):.3g} of signals with the correlation {float(r):.4g}"
    )
