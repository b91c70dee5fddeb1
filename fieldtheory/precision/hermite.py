"""Enclosures of Hermite coefficients by the trapezoidal rule and its bound in a strip."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import sympy as sp

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.precision.balls import arb, arb_mat, compiled, ctx, exact
from fieldtheory.precision.majorants import majorant

# |He_n(x)| <= 1.0865 √n! e^(x²/4) (Abramowitz, Stegun 22.14.17).
_CRAMER = "1.0865"
# Widths of strips in z that are tried, bits of their bounds, and the most products of nodes and
# orders.
_STRIPS = [2.0 ** (3 - k / 3) for k in range(40)]
_ROUGH, _GUARD = 64, 24
# ln 2, rounded up.
_LN_2 = 0.694
_MOST = 4_000_000


def coefficients(f: sp.Expr, variable: sp.Symbol, K: Any, order: int) -> list[Any]:
    """f_n = ⟨f(√K z) He_n(z)⟩/√n! for n = 0..order, at an exact K.

    With |f(x + iy)| <= P(|x|) in the strip |y| <= √K d, and

        |He_n(x + iy)|²/n! <= r^(−n) (1 − r²)^(−1/2) exp[x² r/(1 + r) + y² r/(1 − r)],   0 < r < 1,

    which is one term of Mehler's sum at z and its conjugate, the trapezoidal rule of step s is
    wrong by at most 2M/(e^(2πd/s) − 1) for

        M = r^(−n/2) (1 − r²)^(−1/4) e^(d²/(2(1−r))) √(1+r) ⟨P(√((1+r)K) |z|)⟩

    (Trefethen, Weideman, SIAM Review 56, 385 (2014), theorem 5.1).

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> values = coefficients(h**2, h, arb(3), 3)
    >>> [value.overlaps(arb(exact)) for value, exact in zip(values, (3, 0, arb(18).sqrt(), 0))]
    [True, True, True, True]
    """
    return list(_coefficients(f, variable, K.man_exp(), order, ctx.prec))


@lru_cache(maxsize=512)
def _coefficients(
    f: sp.Expr, variable: sp.Symbol, K: tuple[Any, Any], order: int, precision: int
) -> tuple[Any, ...]:
    variance = arb(K[0]) * arb(2) ** int(K[1])
    step, error = _step(f, variable, variance, order, precision)
    # Beyond the reach e^(−z²/4) P adds less than the precision.
    reach = math.sqrt(4 * _LN_2 * (precision + _GUARD))
    count = math.ceil(reach / step) + 1
    if count * order > _MOST:
        raise PrecisionError(
            f"the Hermite coefficients of {f} need {2 * count} nodes at the variance "
            f"{float(variance):.3g}"
        )
    tail = _tail(majorant(f, variable), variance, arb(step) * (count - 1))
    wrong = arb(0, (error + tail).upper())
    # The recursion of He_n in balls widens as |He_n(i|z|)| at most.
    extra = int(1.5 * reach * math.sqrt(order)) + _GUARD
    with ctx.workprec(precision + extra):
        deviation, function = variance.sqrt(), compiled(f, (variable,))
        scale, rows = arb(step) / (2 * arb.pi()).sqrt(), []
        for j in range(count + 1):
            z = arb(step) * j
            up, down = function(deviation * z), function(-deviation * z)
            weight = scale * (-z * z / 2).exp() / (1 if j else 2)
            rows.append([weight * (up + down), weight * (up - down)])
        sums = _polynomials(step, count, order, precision + extra) * arb_mat(rows)
    return tuple(+sums[n, n % 2] + wrong for n in range(order + 1))


@lru_cache(maxsize=4)
def _polynomials(step: float, count: int, order: int, precision: int) -> Any:
    """He_n(z)/√n! at the nodes z = 0, s, 2s, ..., a row for every n."""
    nodes = [arb(step) * j for j in range(count + 1)]
    roots = [arb(n).sqrt() for n in range(order + 2)]
    previous, rows = [arb(0)] * len(nodes), [[arb(1)] * len(nodes)]
    for n in range(order):
        up, down = 1 / roots[n + 1], roots[n]
        triples = zip(nodes, rows[-1], previous, strict=True)
        previous = rows[-1]
        rows.append([(z * u - down * v) * up for z, u, v in triples])
    return arb_mat(rows)


def _step(f: sp.Expr, variable: sp.Symbol, K: Any, order: int, precision: int) -> tuple[float, Any]:
    """The largest step for which the rule is exact to 2^(−precision) √⟨f²⟩, and its error."""
    best: tuple[float, Any] = (0.0, None)
    with ctx.workprec(_ROUGH):
        size = abs(compiled(f, (variable,))(K.sqrt())).upper()
        wanted = exact(size * arb(2) ** -precision)
        for d in _STRIPS:
            bound = _bound(f, variable, K, order, arb(d))
            if bound is None:
                continue
            step = 2 * math.pi * d / float((1 + 2 * bound / wanted).log().upper())
            # Few different steps, whose polynomials serve many variances.
            fraction, power = math.frexp(step)
            step = math.ldexp(math.floor(8 * fraction), power - 3)
            if step > best[0]:
                error = 2 * bound / ((2 * arb.pi() * d / step).exp() - 1)
                best = step, error
    if not best[0]:
        raise PrecisionError(f"{f} is not known to be analytic in a strip at the variance {K}")
    return best


def _bound(f: sp.Expr, variable: sp.Symbol, K: Any, order: int, d: Any) -> Any | None:
    """M of `coefficients` for all n up to the order."""
    try:
        powers = majorant(f, variable, K.sqrt() * d)
    except ValueError:
        return None
    r = 1 - arb(min(0.9, float(d) / math.sqrt(order + 1)))
    scale = ((1 + r) * K).sqrt()
    mean = arb(0)
    for k, p in enumerate(powers.coeffs()):
        # ⟨|z|^k⟩ of a normal z.
        moment = arb(2).sqrt() ** k * (arb(k + 1) / 2).gamma() / arb.pi().sqrt()
        mean += p * scale**k * moment
    growth = (-order * r.log() / 2 + d * d / (2 * (1 - r))).exp()
    return mean * growth * (1 + r).sqrt() / (1 - r * r).root(4)


def _tail(bound: Any, K: Any, reach: Any) -> Any:
    """Bound of the nodes beyond the reach and one step: the integral, as terms fall for z² > 2k."""
    total = arb(0)
    for k, factor in enumerate(bound.coeffs()):
        if not reach * reach > 2 * k:
            raise PrecisionError("the integrand grows too fast for the trapezoidal rule")
        # 2 ∫ z^k e^(−z²/4) dz/√(2π) from the reach on.
        gamma = (reach * reach / 4).gamma_upper(arb(k + 1) / 2)
        total += factor * K.sqrt() ** k * arb(2) ** k * 2 * gamma / (2 * arb.pi()).sqrt()
    return arb(_CRAMER) * total
