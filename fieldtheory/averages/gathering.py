"""Expressions in averages: expanded, and gathered into connected correlators."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from fieldtheory.averages.base import AverageNode
from fieldtheory.averages.connected import ConnectedCorrelator
from fieldtheory.averages.gaussian import GaussianAverage
from fieldtheory.averages.partitions import partitions

_HIGHEST = 4

Coefficients = dict[tuple[sp.Expr, ...], sp.Expr]


def expand_averages(expr: sp.Expr) -> sp.Expr:
    """Expand products around averages and sums inside them, not what stands further inside.

    Examples
    --------
    >>> h, p = sp.symbols("h p", real=True)
    >>> expand_averages(p * (GaussianAverage(sp.cos(h) + sp.cos(2 * h), h, 1) + 1))
    p*<cos(h)>_(1) + p*<cos(2*h)>_(1) + p
    """
    nodes = expr.atoms(AverageNode)
    linear = {a: a._eval_expand_basic() for a in nodes if isinstance(a, GaussianAverage)}
    expr = expr.xreplace({a: new for a, new in linear.items() if new != a})
    masks = {a: sp.Dummy() for a in expr.atoms(AverageNode)}
    expanded = sp.expand(expr.xreplace(masks))
    return expanded.xreplace({mask: a for a, mask in masks.items()})


def gather_connected(expr: sp.Expr) -> sp.Expr:
    """Write averages as connected correlators where they form one, up to four functions.

        ⟨FG⟩ − ⟨F⟩⟨G⟩ = ⟨F;G⟩
        ⟨FGH⟩ − ⟨F⟩⟨GH⟩ − ⟨G⟩⟨FH⟩ − ⟨H⟩⟨FG⟩ + 2⟨F⟩⟨G⟩⟨H⟩ = ⟨F;G;H⟩

    and so on: the derivatives of ln⟨exp Σ C̃g⟩ at C̃ = 0 are of this form (F25 eq. (39)).

    Parameters
    ----------
    expr : sympy.Expr
        A polynomial in Gaussian averages.

    Returns
    -------
    sympy.Expr
        Equal to ``expr``; what is not of that form is left as it stands.

    Examples
    --------
    >>> h, K = sp.Symbol("h", real=True), sp.Symbol("K", positive=True)
    >>> F = sp.tanh(h) ** 2
    >>> gather_connected(GaussianAverage(F**2, h, K) - GaussianAverage(F, h, K) ** 2)
    <tanh(h)**2 ; tanh(h)**2>_[[K]]
    """
    coefficients: Coefficients = {}
    rest = []
    for term in sp.Add.make_args(expand_averages(expr)):
        averages, others = _split(term)
        if 1 <= len(averages) <= _HIGHEST:
            key = tuple(sorted(averages, key=sp.default_sort_key))
            coefficients[key] = coefficients.get(key, sp.S.Zero) + sp.Mul(*others)
        else:
            rest.append(term)
    gathered = [node for size in range(_HIGHEST, 1, -1) for node in _gather(coefficients, size)]
    remaining = [c * sp.Mul(*key) for key, c in coefficients.items() if c != 0]
    return sp.Add(*rest, *remaining, *gathered)


def _split(term: sp.Expr) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """The averages among the factors of a term, powers repeated, and the other factors."""
    averages: list[sp.Expr] = []
    others: list[sp.Expr] = []
    for factor in sp.Mul.make_args(term):
        base, power = factor.as_base_exp()
        if isinstance(base, GaussianAverage) and power.is_Integer and 0 < power <= _HIGHEST:
            averages += [base] * int(power)
        else:
            others.append(factor)
    return averages, others


def _gather(coefficients: Coefficients, size: int) -> list[sp.Expr]:
    """Move the cumulants of ``size`` functions out of ``coefficients``.

    The product of ``size`` averages names the functions; all other partitions must be there too.
    """
    single = [key[0] for key in coefficients if len(key) == 1]
    gathered = []
    for apart in [key for key in coefficients if len(key) == size]:
        functions = [average.integrand for average in apart]
        for joint in single:
            if joint.integrand != sp.Mul(*functions) or not _marginals(joint, apart):
                continue
            # The weight of the finest partition is (−1)^(size−1) (size−1)!.
            unit = coefficients[apart] * (-1) ** (size - 1) / sp.factorial(size - 1)
            needed = _by_averages(functions, joint, unit)
            if unit != 0 and all(_equal(coefficients.get(k), v) for k, v in needed.items()):
                coefficients.update(dict.fromkeys(needed, sp.S.Zero))
                measure = joint.variables, joint.covariance
                gathered.append(unit * ConnectedCorrelator(*functions, *measure))
                break
    return gathered


def _by_averages(
    functions: Sequence[sp.Expr], joint: GaussianAverage, unit: sp.Expr
) -> Coefficients:
    """``unit`` times the cumulant as products of averages with their coefficients."""
    needed: Coefficients = {}
    for weight, blocks in partitions(functions):
        product = sp.Mul(
            *[GaussianAverage(sp.Mul(*b), joint.variables, joint.covariance) for b in blocks]
        )
        averages, others = _split(product)
        key = tuple(sorted(averages, key=sp.default_sort_key))
        needed[key] = needed.get(key, sp.S.Zero) + weight * unit * sp.Mul(*others)
    return needed


def _equal(first: sp.Expr | None, second: sp.Expr) -> bool:
    return first is not None and (first == second or sp.expand(first - second) == 0)


def _marginals(joint: GaussianAverage, apart: Sequence[GaussianAverage]) -> bool:
    """Whether the averages are over the measure of ``joint``."""
    measure = joint.variables, joint.covariance
    return all(GaussianAverage(part.integrand, *measure) == part for part in apart)
