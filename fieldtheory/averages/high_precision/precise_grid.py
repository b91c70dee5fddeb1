"""Averages of products of one-variable functions over three and four variables with mpmath.

On a grid the Gaussian couples the variables two by two, Π_{i<j} exp(−P_ij x_i x_j) with P = K⁻¹,
so that the sum is a contraction of matrices. They hold integers, numbers times a power of two:
these are added and multiplied ten times faster than floating-point numbers of many digits. For
smooth functions the grid is even and the sum converges exponentially in its spacing; kinks take
Gauss-Legendre panels that end there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import prod
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from mpmath.libmp import to_fixed

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.high_precision.mp_rules import legendre, number, reach_of
from fieldtheory.averages.integrands.narrow import narrow_cuts
from fieldtheory.averages.integrands.simplification import parity
from fieldtheory.averages.integrands.steps import break_points, has_steps

# Digits beyond those asked for, and the ratio of the spacings of two rules that are compared.
_GUARD, _FINER = 4, 1.25
# How much farther the finer rule reaches, so that two differ if the tail matters after all.
_WIDER = 0.03
_MOST_PRODUCTS = 2 * 10**8
_MOST_BITS = 6000

Grid = list[tuple[Any, Any]]


def average(F: sp.Expr, variables: Sequence[sp.Expr], K: Any, digits: int) -> Any:
    """⟨F⟩ of three or four variables; see `fieldtheory.averages.high_precision.precise.average`.

    Raises
    ------
    ValueError
        If F is no sum of products of functions of one variable, or K is not positive definite.
    PrecisionError
        If two rules differ by more than the digits allow, or the variables are so strongly
        correlated that a rule takes more than 2e8 products.
    """
    products = separated(F, variables)
    if products is None:
        raise ValueError(
            f"an average over {len(variables)} variables must be of sums of products of functions "
            f"of one variable each, got {F}"
        )
    kinked = has_steps(F) or any(narrow_cuts(F, v) for v in variables)
    with mpmath.workdps(digits + _GUARD):
        matrix = mpmath.matrix(K)
        try:
            mpmath.cholesky(matrix)
        except ValueError:
            raise ValueError(
                f"K must be positive definite for an average over {len(variables)} variables"
            ) from None
        precision = matrix**-1
        norm = 1 / mpmath.sqrt(mpmath.det(matrix) * (2 * mpmath.pi) ** len(variables))
        points = [[number(p) for p in _kinks(F, v)] for v in variables]
        values = []
        for level in (1, 0):
            grids = (
                _panels(matrix, points, digits, level)
                if kinked
                else _even(matrix, precision, digits, level)
            )
            values.append(norm * _contracted(products, variables, grids, precision, digits))
        fine, coarse = values
        # The error falls exponentially with the number of nodes: that of the finer rule is the
        # difference to the power of the ratio.
        scale = max(abs(fine), mpmath.mpf(10) ** (-digits // 2))
        if abs(fine - coarse) > scale * mpmath.mpf(10) ** (-digits / _FINER):
            raise PrecisionError(f"the average of {F} did not reach {digits} digits")
        return +fine


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


def _kinks(F: sp.Expr, variable: sp.Expr) -> list[sp.Expr]:
    kinks = break_points(F, variable) if has_steps(F) and F.has(variable) else []
    return [*kinks, *map(sp.Float, narrow_cuts(F, variable))]


def _even(K: Any, precision: Any, digits: int, level: int) -> list[Grid]:
    # Nearest singularities at distance π/2 (tanh).
    exponent = mpmath.log(10) * (digits + _GUARD) * mpmath.mpf(_FINER) ** (level - 1)
    grids = []
    for i in range(K.rows):
        # The error is exp(−2πη/step + P_ii η²/2) for a shift by iη off the real axis.
        shift = min(mpmath.pi / 2, mpmath.sqrt(2 * exponent / precision[i, i]))
        step = 2 * mpmath.pi * shift / (exponent + precision[i, i] * shift**2 / 2)
        reach = mpmath.sqrt(2 * mpmath.log(10) * (digits + _GUARD)) * (1 + _WIDER * level)
        count = int(reach * mpmath.sqrt(K[i, i]) / step) + 1
        grids.append([(step * k, step) for k in range(-count, count + 1)])
    return grids


def _panels(K: Any, points: list, digits: int, level: int) -> list[Grid]:
    order = int((1.2 * digits + 10) * _FINER**level)
    reach = reach_of(digits + _GUARD, level)
    grids = []
    for i in range(K.rows):
        deviation = mpmath.sqrt(K[i, i])
        cuts = sorted({-reach * deviation, mpmath.mpf(0), reach * deviation, *points[i]})
        rule = legendre(order, mpmath.mp.prec)
        grids.append(
            [
                ((left + right) / 2 + (right - left) / 2 * x, (right - left) / 2 * w)
                for left, right in pairwise(cuts)
                for x, w in rule
            ]
        )
    return grids


def _contracted(
    products: list, variables: Sequence[sp.Expr], grids: list[Grid], precision: Any, digits: int
) -> Any:
    """Σ over the grids of all products times exp(−xᵀPx/2)."""
    size = len(grids)
    pairs = list(combinations(range(size), 2))
    ends = [max(abs(x) for x, _ in grid) for grid in grids]
    growth = sum(abs(precision[i, j]) * ends[i] * ends[j] for i, j in pairs)
    symmetric = all(grid[0][0] == -grid[-1][0] for grid in grids)
    bits = mpmath.mp.prec + int(growth / mpmath.log(2)) + 10
    work = prod(len(grid) for grid in grids)
    if bits > _MOST_BITS or work * len(products) > _MOST_PRODUCTS:
        raise PrecisionError(
            f"an average over {size} variables so strongly correlated takes {work:.1e} nodes: "
            f"ask for fewer digits than {digits}"
        )
    # Numbers of every size, between exp(−growth) and exp(growth), are kept to one precision.
    with mpmath.workprec(bits):
        couplings = {
            (i, j): np.array(
                [_row(-precision[i, j] * x, grids[j], bits) for x, _ in grids[i]], dtype=object
            )
            for i, j in pairs
        }
        bells = [
            [w * mpmath.exp(-precision[i, i] * x * x / 2) for x, w in grid]
            for i, grid in enumerate(grids)
        ]
        total = mpmath.mpf(0)
        for constant, functions in products:
            weights = []
            for i, F in enumerate(functions):
                f = sp.lambdify([variables[i]], F, modules="mpmath")
                values = [b * f(x) for b, (x, _) in zip(bells[i], grids[i], strict=True)]
                weights.append(np.array([_fixed(v, bits) for v in values], dtype=object))
            if symmetric and _is_even(functions, variables):
                weights[0] = _upper_half(weights[0])
            total += number(constant) * mpmath.ldexp(_sum(weights, couplings, bits), -bits)
    return +total


def _sum(weights: list, couplings: dict, bits: int) -> int:
    """The contraction for three or four variables in numbers times 2^bits."""
    first, *rest = weights
    total = 0
    for a, weight in enumerate(first):
        if weight == 0:
            continue
        inner = [(w * couplings[0, j][a]) >> bits for j, w in enumerate(rest, start=1)]
        between = couplings[1, 2]
        if len(rest) == 3:
            through = ((couplings[1, 3] * inner[2]) >> bits) @ couplings[2, 3].T >> bits
            between = between * through >> bits
        total += weight * int((inner[0] @ ((between @ inner[1]) >> bits)) >> bits) >> bits
    return int(total)


def _row(slope: Any, grid: Grid, bits: int) -> list[int]:
    """exp(slope y) on a grid; on an even one by a running product, which is much faster."""
    (first, step), *_ = grid
    if all(weight == step for _, weight in grid):
        value, factor, row = mpmath.exp(slope * first), mpmath.exp(slope * step), []
        for _ in grid:
            row.append(_fixed(value, bits))
            value *= factor
        return row
    return [_fixed(mpmath.exp(slope * y), bits) for y, _ in grid]


def _is_even(functions: Sequence[sp.Expr], variables: Sequence[sp.Expr]) -> bool:
    """Whether each function has a parity and the product is even."""
    return prod(parity(F, {v}) or 0 for F, v in zip(functions, variables, strict=True)) == 1


def _upper_half(weights: np.ndarray) -> np.ndarray:
    """Twice the weights of x > 0, where (x, y, ...) and (−x, −y, ...) contribute the same."""
    doubled = 2 * weights
    middle = len(weights) // 2
    doubled[:middle] = 0
    if len(weights) % 2:
        doubled[middle] = weights[middle]
    return doubled


def _fixed(value: Any, bits: int) -> int:
    return int(to_fixed(mpmath.mpf(value)._mpf_, bits))
