"""The propagator G = −(S^(2))^{-1}, by forward substitution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.theory.hessian import Hessian
from fieldtheory.theory.typesetting.latex import Typeset


@dataclass(frozen=True, repr=False)
class Propagator(Typeset):
    """The blocks of G = −(S^(2))^{-1} (F25 eqs. (45)-(48)); each is computed when asked for.

    G12 = −S21^{-1} is the response of the kernels, G21 its transpose, G11 = G12 S22 G21 the
    covariance of the kernels, and G22 = 0. All scale as 1/N.
    """

    hessian: Hessian

    @cached_property
    def G12(self) -> sp.ImmutableMatrix:
        """−S21^{-1}, lower triangular; G12[l, m] responds in layer l to a source in layer m."""
        return forward_substitution(self.hessian.S21)

    @cached_property
    def G21(self) -> sp.ImmutableMatrix:
        """G12 transposed."""
        return self.G12.T

    @cached_property
    def G11(self) -> sp.ImmutableMatrix:
        """G12 S22 G21, the covariance of the residual kernels to order 1/N."""
        half = self.G12 * self.hessian.S22
        size = half.shape[0]
        upper = [
            [half[l, :].dot(self.G12[m, :]) if l <= m else None for m in range(size)]
            for l in range(size)
        ]
        return sp.ImmutableMatrix(size, size, lambda l, m: upper[min(l, m)][max(l, m)])

    @cached_property
    def G22(self) -> sp.ImmutableMatrix:
        """The propagator of the conjugates, −(S12)^{-1} S11 (S21)^{-1} = 0."""
        return sp.ImmutableMatrix(self.G21 * self.hessian.S11 * self.G12)


def forward_substitution(S21: sp.ImmutableMatrix) -> sp.ImmutableMatrix:
    """−S21^{-1} of a lower triangular matrix, keeping products of layers as products."""
    size = S21.shape[0]
    if any(S21[k, l] != 0 for k in range(size) for l in range(k + 1, size)):
        raise ValueError("S21 must be lower triangular")
    growth = [_growth(S21, row) for row in range(size)]
    columns = []
    for m in range(size):
        column = [sp.S.Zero] * size
        column[m] = -1 / S21[m, m]
        total = sp.S.Zero
        for l in range(m + 1, size):
            factor = growth[l]
            if factor is not None and l > m + 1:
                total *= factor
            else:
                total = sp.Add(*[S21[l, k] * column[k] for k in range(m, l)])
            column[l] = -total / S21[l, l]
        columns.append(column)
    return sp.ImmutableMatrix(size, size, lambda l, m: columns[m][l])


def _growth(S21: sp.ImmutableMatrix, row: int) -> sp.Expr | None:
    """The factor from the sum of the row above to that of a row, None if rows are not multiples."""
    above = [S21[row - 1, k] for k in range(row - 1)]
    here = [S21[row, k] for k in range(row - 1)]
    if any(a == 0 != b for a, b in zip(above, here, strict=True)):
        return None
    ratios = {b / a for a, b in zip(above, here, strict=True) if a != 0}
    if len(ratios) > 1:
        return None
    ratio = ratios.pop() if ratios else sp.S.Zero
    factor = ratio - S21[row, row - 1] / S21[row - 1, row - 1]
    masks = {average: sp.Dummy() for average in factor.atoms(GaussianAverage)}
    product = sp.factor_terms(sp.together(factor.xreplace(masks)))
    return product.xreplace({mask: average for average, mask in masks.items()})
