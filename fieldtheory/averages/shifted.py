"""Averages of one variable whose mean is an expression, which δ-functions at kinks leave.

Given h_1 = κ the other variable is Gaussian of the mean m = κ K_12/K_11, so that kinks away from
zero leave ⟨F(h + m)⟩ with a mean in the entries of the covariance.
"""

from __future__ import annotations

from typing import NamedTuple

import mpmath
import sympy as sp

from fieldtheory.averages import precise
from fieldtheory.averages.choosing import mean_about
from fieldtheory.averages.nodes.gaussian import GaussianAverage
from fieldtheory.averages.rules import Rule


class Shifted(NamedTuple):
    """Σ factor ⟨F(h)⟩ of one variable with a mean.

    Parameters
    ----------
    mean : sympy.Expr
    variable : symbol
    terms : tuple of (factor, F)
        F without other symbols.
    """

    mean: sp.Expr
    variable: sp.Expr
    terms: tuple[tuple[sp.Expr, sp.Expr], ...]


def shifted(node: sp.Expr) -> Shifted | None:
    """An average ⟨F(h + m)⟩ as one of a variable with the mean m; None if it is no such average.

    Examples
    --------
    >>> y, m = sp.symbols("y m", real=True)
    >>> found = shifted(GaussianAverage((y + m) * sp.tanh(y + m - 1), y, 2))
    >>> found.mean, found.terms
    (m, ((1, y*tanh(y - 1)),))
    """
    if not isinstance(node, GaussianAverage) or len(node.variables) != 1:
        return None
    F, (h,) = node.integrand, node.variables
    unknown = F.free_symbols - {h}
    for mean in sorted(_means(F, h, unknown), key=sp.default_sort_key):
        centred = F.xreplace({h: h - mean}).replace(lambda e: e.is_Add, sp.expand)
        terms = []
        for term in sp.Add.make_args(sp.expand(centred, deep=False)):
            factor, function = term.as_independent(h, as_Add=False)
            terms.append((factor, function))
        if not any(function.has(*unknown) for _, function in terms):
            return Shifted(mean, h, tuple(terms))
    return None


def _means(F: sp.Expr, h: sp.Expr, unknown: set) -> set[sp.Expr]:
    """Summands of the variable in sums of it and symbols."""
    means = set()
    for total in F.atoms(sp.Add):
        slope = total.diff(h)
        if slope != 0 and slope.is_number:
            _, offset = sp.expand(total - slope * h).as_independent(*unknown, as_Add=True)
            means.add(sp.expand(offset / slope))
    return means - {sp.S.Zero}


def rule(F: sp.Expr, variable: sp.Expr) -> Rule:
    """⟨F⟩ in float64 as a function of the variance and the mean."""
    return mean_about(F, variable)


def precise_rule(F: sp.Expr, variable: sp.Expr) -> Rule:
    """⟨F⟩ with mpmath as a function of the variance and the mean."""

    def function(K: mpmath.mpf, mean: mpmath.mpf) -> mpmath.mpf:
        digits = mpmath.mp.dps
        integrand = F.xreplace({variable: variable + sp.Float(mean, digits + 10)})
        return precise.average(integrand, (variable,), [[K]], digits)

    return Rule("panels", "one variable with a mean: Gauss-Legendre panels", function)
