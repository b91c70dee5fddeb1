"""The bound variables of an average and their covariance: checks, substitutions, no captures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

# Allowed relative excess of a squared covariance over the product of the variances.
_ROUNDING = 1e-10


def as_variables(variables: Any) -> sp.Tuple:
    """The variables as a tuple of different symbols, or raise."""
    names = variables if isinstance(variables, list | tuple | sp.Tuple) else (variables,)
    for name in names:
        if not isinstance(name, sp.Symbol | sp.Indexed | sp.Function):
            raise TypeError(f"variables must be SymPy symbols, got {name!r}")
    if len(set(names)) != len(names):
        raise ValueError(f"variables must be different from each other, got {tuple(names)}")
    return sp.Tuple(*names)


def as_covariance(K: Any, size: int) -> sp.ImmutableMatrix:
    """K as a symmetric matrix of a size, or raise."""
    if isinstance(K, sp.ImmutableDenseMatrix):
        matrix = K
    elif hasattr(K, "__len__") or isinstance(K, sp.MatrixBase):
        try:
            matrix = sp.ImmutableMatrix(K)
        except (TypeError, ValueError):
            raise ValueError(f"K must be a symmetric matrix, got {K!r}") from None
    else:
        matrix = sp.ImmutableMatrix([[K]])
    if matrix.shape != (size, size):
        raise ValueError(
            f"K must have shape ({size}, {size}), one row for each variable, got {matrix.shape}"
        )
    _check(matrix)
    return matrix


@lru_cache(maxsize=4096)
def _check(K: sp.ImmutableMatrix) -> None:
    """Raise if K is not symmetric or the numbers among its entries rule out a covariance."""
    if K != K.T:
        raise ValueError(f"K must be symmetric, got {K.tolist()}")
    for value in K:
        if value is sp.S.NaN or value.is_extended_real is False or value.is_infinite:
            raise ValueError(f"K must be real and finite, got the entry {value}")
    for i in range(K.shape[0]):
        if K[i, i].is_negative:
            raise ValueError(f"K must be positive semidefinite, got the variance {K[i, i]}")
        for j in range(i):
            a, b, c = K[i, i], K[j, j], K[i, j]
            numbers = a.is_Number and b.is_Number and c.is_Number
            certain = (a == 0 or b == 0) and c.is_zero is False
            if certain or (numbers and c**2 > a * b * (1 + _ROUNDING)):
                raise ValueError(
                    f"K must be positive semidefinite, got the covariance {c} "
                    f"of variables of variance {a} and {b}"
                )


@lru_cache(maxsize=4096)
def covariance_symbols(K: sp.ImmutableMatrix) -> frozenset:
    """The free symbols of K."""
    return frozenset(K.free_symbols)


def substituted(node: sp.Expr, old: sp.Expr, new: sp.Expr) -> list[sp.Expr]:
    """The arguments of a node after a substitution, which does not see bound variables."""
    *inner, variables, K = node.args
    if old in covariance_symbols(K) or not old.is_Symbol:
        K = K.subs(old, new)
    if not old.has(*variables):
        if _captured(sp.sympify(new), variables):
            *inner, variables = _renamed((*inner, variables), variables)
        *inner, variables = (part.subs(old, new) for part in (*inner, variables))
    return [*inner, variables, K]


def replaced(node: sp.Expr, rule: Mapping) -> tuple[list[sp.Expr], bool]:
    """The arguments of a node after an exact replacement, and whether it changed any."""
    *inner, variables, K = node.args
    if any(_captured(new, variables) for old, new in rule.items() if old not in variables):
        *inner, variables = _renamed((*inner, variables), variables)
    # A joint covariance is large and most replacements touch the integrand alone.
    untouched = all(old.is_Symbol and old not in covariance_symbols(K) for old in rule)
    results = [part._xreplace(rule) for part in (*inner, variables)]
    results.append((K, False) if untouched else K._xreplace(rule))
    return [part for part, _ in results], any(changed for _, changed in results)


def _captured(new: sp.Expr, variables: sp.Tuple) -> bool:
    return not new.is_Number and new.has(*variables)


def _renamed(parts: Iterable[sp.Expr], variables: sp.Tuple) -> list[sp.Expr]:
    """The parts with new names for the bound variables."""
    fresh = {v: sp.Dummy(str(v), real=v.is_real) for v in variables}
    return [part.xreplace(fresh) for part in parts]
