"""Functions of wide signals without their waves.

Over signals that are wide against its length a wave averages out: what is left of a function of h,
sin(ah) and cos(ah) is its mean over the phase.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache, reduce
from typing import NamedTuple

import sympy as sp

from fieldtheory.averages.errors import QuadratureError

# Squared wave numbers times variances from which on nothing is left of waves times polynomials and
# exponentials, and of waves times functions that change over lengths of the order of one.
_OF_POLYNOMIALS, _OF_OTHERS = 200.0, 1e34

# The coefficients of e^{iah}, by a.
Spectrum = dict[sp.Expr, sp.Expr]


class Steady(NamedTuple):
    """What is left of a function, and the variance from which on it is left.

    Beside ``exponential`` waves other averages may be smaller than what is not left.
    """

    function: sp.Expr
    variance: float
    exponential: bool = False


@lru_cache(maxsize=256)
def without_waves(F: sp.Expr, h: sp.Symbol) -> Steady:
    """The mean of F over the phases of its waves.

    Parameters
    ----------
    F : sympy.Expr
    h : sympy.Symbol

    Returns
    -------
    Steady

    Raises
    ------
    QuadratureError
        Unless F is a polynomial in sines and cosines of linear functions of h.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> without_waves(sp.exp(h) * sp.sin(h) ** 2 + sp.cos(h + 1), h)
    Steady(function=exp(h)/2, variance=200.0, exponential=True)
    """
    kept, numbers, beside = [], set(), []
    for term in sp.Add.make_args(sp.expand(F)):
        moving = [factor for factor in sp.Mul.make_args(term) if factor.has(sp.sin, sp.cos)]
        if not moving:
            kept.append(term)
            continue
        steady = term / sp.Mul(*moving)
        spectrum = reduce(_product, [_spectrum(factor, h) for factor in moving])
        kept.append(steady * sp.re(spectrum.pop(sp.S.Zero, sp.S.Zero)))
        beside.append(steady)
        numbers |= {abs(number) for number in spectrum}
    if not numbers:
        return Steady(F, 0.0)
    exponential = any(steady.has(sp.exp) for steady in beside)
    known = all(_is_of_exponentials(steady, h) for steady in beside)
    least = _OF_POLYNOMIALS if known else _OF_OTHERS
    return Steady(sp.Add(*kept), least / float(min(numbers)) ** 2, exponential)


def _is_of_exponentials(steady: sp.Expr, h: sp.Symbol) -> bool:
    """Whether it is a product of powers of h and exponentials of linear functions."""
    factors = sp.Mul.make_args(steady)
    growing = [f for f in factors if isinstance(f, sp.exp) and f.exp.diff(h).is_number]
    return bool((steady / sp.Mul(*growing)).is_polynomial(h))


def _spectrum(factor: sp.Expr, h: sp.Symbol) -> Spectrum:
    """Of a power of one sine or cosine."""
    wave, power = factor.as_base_exp()
    line = wave.args[0].as_poly(h) if isinstance(wave, sp.sin | sp.cos) else None
    if line is None or line.degree() > 1 or not (power.is_Integer and power > 0):
        raise QuadratureError(f"the waves of {factor} at such large signals are not resolved")
    number, offset = line.coeff_monomial(h), line.coeff_monomial(1)
    half = sp.exp(sp.I * offset) / (2 if isinstance(wave, sp.cos) else 2 * sp.I)
    return reduce(_product, [{number: half, -number: sp.conjugate(half)}] * int(power))


def _product(first: Spectrum, second: Spectrum) -> Spectrum:
    found: Spectrum = defaultdict(lambda: sp.S.Zero)
    for a, p in first.items():
        for b, q in second.items():
            found[a + b] += p * q
    return found
