"""Exponentials as symbols, so that SymPy does not take them apart."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp


def factored(F: sp.Expr) -> sp.Expr:
    """F factored, the exponentials in it and √π as symbols.

    Examples
    --------
    >>> h = sp.Symbol("h")
    >>> factored(sp.exp(2 * h) - 2 * sp.exp(h) + 1)
    (exp(h) - 1)**2
    """
    root = sp.Dummy(positive=True)
    found = with_masks(F, lambda masked: sp.factor(masked.xreplace({sp.pi: root**2})))
    return found.xreplace({root: sp.sqrt(sp.pi)})


def with_masks(F: sp.Expr, function: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """``function`` of F with a symbol for each exponential, and integer powers of it.

    Else SymPy takes exp(h²/2500 + 29h/50) for powers of exp(h²/2500) and exp(h/50), polynomials of
    any degree where constants are decimal numbers.
    """
    symbols: dict[sp.Expr, sp.Dummy] = {}
    masks = {}
    for e in F.atoms(sp.exp):
        content, primitive = e.exp.as_content_primitive()
        power, u = (content, primitive) if content.is_Integer else (sp.S.One, e.exp)
        masks[e] = symbols.setdefault(sp.exp(u), sp.Dummy(positive=True)) ** power
    back = {symbol: e for e, symbol in symbols.items()}
    return function(F.xreplace(masks)).xreplace(back)
