"""Sums of products of functions of one variable each."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp


def separated(
    F: sp.Expr, variables: Sequence[sp.Expr]
) -> list[tuple[sp.Expr, tuple[sp.Expr, ...]]] | None:
    """F as a sum of a number times a product of one function of each variable, or None.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> separated(2 * sp.tanh(x) * (y + sp.cos(y)), (x, y))
    [(2, (tanh(x), y + cos(y)))]
    """
    found = []
    for term in sp.Add.make_args(F):
        split = _product(term, variables)
        if split is None:
            parts = sp.Add.make_args(sp.expand(term))
            if len(parts) == 1:
                return None
            splits = [_product(part, variables) for part in parts]
            if None in splits:
                return None
            found += [part for part in splits if part is not None]
        else:
            found.append(split)
    return found


def _product(
    term: sp.Expr, variables: Sequence[sp.Expr]
) -> tuple[sp.Expr, tuple[sp.Expr, ...]] | None:
    factors: dict[sp.Expr, list] = {v: [] for v in variables}
    constant = sp.S.One
    for factor in sp.Mul.make_args(term):
        inside = [v for v in variables if factor.has(v)]
        if len(inside) > 1:
            return None
        if inside:
            factors[inside[0]].append(factor)
        else:
            constant *= factor
    return constant, tuple(sp.Mul(*factors[v]) for v in variables)
