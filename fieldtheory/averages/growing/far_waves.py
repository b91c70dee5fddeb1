"""Waves that a function becomes on one side, up to what does not grow there exponentially.

There e^{±h} is a power of u = e^{-q|h|}: tanh, sech and logistic functions are rational in u, and
the waves that grow are the negative powers of u: of e^{3h} sin(h) tanh(h) on the right
e^{3h} sin(h) − 2 e^h sin(h). What is left stands as one quotient, of which no digits cancel.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import sympy as sp

from fieldtheory.averages.integrands.exponentials import of_exponentials


class Far(NamedTuple):
    """What a function is on one side: the sum of the waves that grow there, and the rest."""

    waves: sp.Expr
    rest: sp.Expr


class _Masks:
    """Symbols for what is no power of u, and powers of u that it is not larger than."""

    def __init__(self) -> None:
        self.symbols: dict[sp.Expr, sp.Dummy] = {}
        self.powers: dict[sp.Dummy, sp.Expr] = {}

    def new(self, e: sp.Expr, power: sp.Expr = sp.S.Zero) -> sp.Dummy:
        """The symbol for e."""
        symbol = self.symbols.setdefault(e, sp.Dummy(real=True))
        self.powers[symbol] = sp.sympify(power)
        return symbol

    def undone(self, e: sp.Expr) -> sp.Expr:
        """With what the symbols in e stand for."""
        return e.xreplace({symbol: value for value, symbol in self.symbols.items()})

    def without_small(self, e: sp.Expr) -> sp.Expr:
        """With nothing for what is smaller than 1."""
        return e.xreplace({s: sp.S.Zero for s, power in self.powers.items() if power > 0})

    def bounded(self, e: sp.Expr, u: sp.Symbol) -> sp.Expr:
        """With the powers of u beside the symbols for what is smaller."""
        powers = self.powers.items()
        return e.xreplace({s: 0 if power == sp.oo else s * u**power for s, power in powers})


def far(F: sp.Expr, h: sp.Symbol, side: int) -> Far | None:
    """F for h → ±∞, as ``side`` is 1 or −1; None of functions that do not become waves.

    Parameters
    ----------
    F : sympy.Expr
        Without kinks on that side.
    h : sympy.Symbol
    side : {1, -1}

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> far(sp.exp(h) * sp.sin(h) * sp.tanh(h), h, 1)
    Far(waves=exp(h)*sin(h), rest=-2*exp(-h)*sin(h)/(1 + exp(-2*h)))
    >>> far(sp.exp(h) * sp.sin(h) / (1 + h**2), h, 1) is None
    True
    """
    x, u, masks = sp.Dummy(positive=True), sp.Dummy(positive=True), _Masks()
    G = of_exponentials(F.subs(h, side * x))
    rates = [rate for e in G.atoms(sp.exp) if (rate := e.exp.diff(x)).is_Rational and rate]
    if not rates:
        return None
    unit = abs(reduce(sp.gcd, rates))
    for kinds, function in (
        (sp.exp, lambda e: _power(e, x, u, unit, masks)),
        (sp.log, lambda e: _logarithm(e, x, u, unit, masks)),
        ((sp.erf, sp.erfc), lambda e: _error(e, x, masks)),
        ((sp.sin, sp.cos), masks.new),
    ):
        G = G.replace(lambda e, kinds=kinds: isinstance(e, kinds) and e.has(x, u), function)
    if not G.is_rational_function():
        return None
    parts = _parts(G, u, masks)
    if parts is None:
        return None
    back = {u: sp.exp(-unit * side * h), x: side * h}
    waves, rest = (masks.undone(part).xreplace(back) for part in parts)
    return Far(sp.expand(waves), rest) if waves else Far(waves, F)


def _power(e: sp.Expr, x: sp.Symbol, u: sp.Symbol, unit: sp.Rational, masks: _Masks) -> sp.Expr:
    """An exponential: e^{cx + d} as a power of u, e^{-x²} as smaller than all of them."""
    exponent = e.exp.as_poly(x)
    if exponent is None or (exponent.degree() > 1 and not exponent.LC().is_negative):
        return e
    if exponent.degree() > 1:
        return masks.new(e, sp.oo)
    slope, offset = exponent.coeff_monomial(x), exponent.coeff_monomial(1)
    return sp.exp(offset) * u ** (-slope / unit) if (slope / unit).is_Integer else e


def _logarithm(e: sp.Expr, x: sp.Symbol, u: sp.Symbol, unit: sp.Rational, masks: _Masks) -> sp.Expr:
    """ln(C u^m (1 + r)) as ln C − m q x and ln(1 + r), which is as small as r."""
    top, bottom = (sp.Poly(part, u) for part in sp.fraction(sp.together(e.args[0])))
    (m, C), (n, D) = (_lowest(part) for part in (top, bottom))
    limit = C / D * u ** (m - n)
    if not (C / D).is_positive:
        return e
    rest = sp.cancel(e.args[0] / limit - 1)
    if rest == 0:
        return sp.log(C / D) - (m - n) * unit * x
    small = masks.new(sp.log(1 + rest), _lowest(sp.Poly(sp.fraction(rest)[0], u))[0])
    return sp.log(C / D) - (m - n) * unit * x + small


def _error(e: sp.Expr, x: sp.Symbol, masks: _Masks) -> sp.Expr:
    """erf or erfc as its limit and a complement, smaller than all powers of u."""
    argument = e.args[0].as_poly(x)
    if argument is None or not argument.LC().is_extended_real:
        return e
    sign = sp.sign(argument.LC())
    small = sign * masks.new(sp.erfc(sign * e.args[0]), sp.oo)
    return sign - small if isinstance(e, sp.erf) else 1 - sign + small


def _lowest(polynomial: sp.Poly) -> tuple[int, sp.Expr]:
    """The lowest power and its coefficient."""
    (power,), coefficient = polynomial.terms()[-1]
    return power, coefficient


def _parts(G: sp.Expr, u: sp.Symbol, masks: _Masks) -> tuple[sp.Expr, sp.Expr] | None:
    """The negative powers of u in G, and the rest; None if coefficients are no polynomials."""
    top, bottom = sp.fraction(sp.together(G))
    plain = masks.without_small(top)
    small = sp.expand(top - plain)
    if masks.without_small(bottom) != bottom:
        return None
    below = sp.Poly(bottom, u)
    power, first = _lowest(below)
    if (bounded := masks.bounded(small, u)) != 0 and _lowest(sp.Poly(bounded, u))[0] < power:
        return None
    if first.free_symbols:
        return None
    left, waves = sp.Poly(plain, u), sp.S.Zero
    while left and _lowest(left)[0] < power:
        lowest, coefficient = _lowest(left)
        term = coefficient / first * u ** (lowest - power)
        waves += term
        left = sp.Poly(sp.expand(left.as_expr() - term * bottom), u)
    return waves, (sp.factor(left.as_expr()) + small) / bottom
