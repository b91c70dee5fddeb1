"""Exponentials and denominators as symbols, so that SymPy does not take them apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import reduce

import sympy as sp

# The highest powers of one exponential: of others polynomials would take SymPy minutes.
_HIGHEST = 24


def factored(F: sp.Expr) -> sp.Expr:
    """F factored, the exponentials in it and √π as symbols.

    Examples
    --------
    >>> h = sp.Symbol("h")
    >>> factored(sp.exp(2 * h) - 2 * sp.exp(h) + 1)
    (exp(h) - 1)**2
    """
    root = sp.Dummy(positive=True)
    factors = with_masks(F, lambda masked: sp.factor(masked.xreplace({sp.pi: root**2})))
    return factors.xreplace({root: sp.sqrt(sp.pi)})


def expanded(F: sp.Expr) -> sp.Expr:
    """Products multiplied out, but for denominators, whose sums cancel near their roots.

    Examples
    --------
    >>> h = sp.Symbol("h")
    >>> expanded((h + 1) * h / (1 + (h - 1) ** 2) ** 2)
    h**2/((h - 1)**2 + 1)**2 + h/((h - 1)**2 + 1)**2
    """
    quotients = (p for p in F.atoms(sp.Pow) if p.exp.is_negative and p.base.is_Add)
    masks = {p: sp.Dummy() for p in quotients if p.base.is_polynomial()}
    return sp.expand(F.xreplace(masks)).xreplace({mask: p for p, mask in masks.items()})


def merged(F: sp.Expr) -> sp.Expr:
    """F with one exponential in each product: apart they may be zero times infinity.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> merged(x * sp.exp(2 * x, evaluate=False) * sp.exp(-(x**2)))
    x*exp(-x**2 + 2*x)
    """

    def one(product: sp.Expr) -> sp.Expr:
        exponents = [e.exp for e in product.args if isinstance(e, sp.exp)]
        others = [e for e in product.args if not isinstance(e, sp.exp)]
        return sp.Mul(*others, sp.exp(sp.Add(*exponents)))

    return F.replace(lambda e: e.is_Mul and sum(isinstance(a, sp.exp) for a in e.args) > 1, one)


def with_masks(F: sp.Expr, function: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """``function`` of F with a symbol for each exponential, and integer powers of it.

    Else SymPy takes exp(h²/2500 + 29h/50) for powers of exp(h²/2500) and exp(h/50), polynomials of
    any degree where constants are decimal numbers.
    """
    symbols: dict[sp.Expr, sp.Dummy] = {}
    masks = {}
    for u, contents in _by_primitive(F).items():
        unit = reduce(sp.gcd, contents.values())
        for e, content in contents.items():
            power = content / unit
            base, power = (unit * u, power) if power <= _HIGHEST else (content * u, sp.S.One)
            masks[e] = symbols.setdefault(sp.exp(base), sp.Dummy(positive=True)) ** power
    back = {symbol: e for e, symbol in symbols.items()}
    return function(F.xreplace(masks)).xreplace(back)


def _by_primitive(F: sp.Expr) -> dict[sp.Expr, dict[sp.Expr, sp.Expr]]:
    """The exponentials e^{cu} of F and their numbers c, by u."""
    numbers: dict[sp.Expr, dict[sp.Expr, sp.Expr]] = defaultdict(dict)
    for e in F.atoms(sp.exp):
        content, primitive = e.exp.as_content_primitive()
        numbers[primitive][e] = content
    return numbers
