"""Order 1/N of one input beyond G11: the variance and shift of kernels, and the vertex.

Functions of a `OneInput` that return lists over the layers, times N.
"""

from __future__ import annotations

from typing import Any

import mpmath

from fieldtheory.precision.layer_recursion import OneInput, transposed
from fieldtheory.theory.elementary_averages import K_XX


def kernel_variance(one: OneInput) -> list[Any]:
    """N Var K^(l) = N Σ_km A²_lk A²_lm G11^km for l = 0, ..., L."""
    half = [_accumulated(one, column) for column in transposed(one.fluctuations)]
    whole = [_accumulated(one, column) for column in transposed(half)]
    return [whole[l][l] for l in range(one.network.depth + 1)]


def kernel_shift(one: OneInput) -> list[Any]:
    """N (⟨K^(l)⟩ − K*^(l)) for l = 0, ..., L + 1, by K^(l) = γ_l² K^(l-1) + C^(l)."""
    return _accumulated(one, mean_shift(one))


def mean_shift(one: OneInput) -> list[Any]:
    """N (⟨C^(l)⟩ − C*^(l)) for l = 0, ..., L + 1: one loop.

    Σ_m N G12^lm a_m [ (1/2) M''(K^(m-1)) N Var K^(m-1)
                      + Σ_{k<m} a_k ∂_{K_xx} ⟨g(x) ; g(y)⟩^(m-1,k-1) ∂K^(m-1)/∂C^(k) ]
    """
    curvature = one.compiled(one.averages.moment.diff(K_XX, 2))
    weights = [coefficients.weight for coefficients in one.coefficients]
    slopes, variance = one.correlators.slopes, kernel_variance(one)
    sources = [mpmath.mpf(0)]
    for l, K in enumerate(one.kernels[:-1]):
        source = curvature(K) * variance[l] / 2
        for k in range(1, l + 1):
            source += weights[k] * slopes[k - 1][l] * one.kernel_derivatives[l][k]
        sources.append(weights[l + 1] * source)
    return one.propagated(sources)


def four_point(one: OneInput) -> list[Any]:
    """V^(l) = N Var K^(l) + 2 Σ_{k<=l} A²_lk Σ_m N G12^km β_m for l = 0, ..., L.

    One neuron adds a_m g(h^(m-1)) to N C^(m), β_m = 2 a_m M'(K^(m-1)) Cov(h^(l), h^(m-1))².
    """
    values = []
    for l, variance in enumerate(kernel_variance(one)):
        terms = (
            one.kernel_derivatives[l][m] * 2 * one.gains[m] * one.signals[l][m - 1] ** 2
            for m in range(1, l + 1)
        )
        values.append(variance + 2 * mpmath.fsum(terms))
    return values


def _accumulated(one: OneInput, rows: list[Any]) -> list[Any]:
    """Σ_m A²_lm rows_m for every l."""
    sums, kernel = [], mpmath.mpf(0)
    for row, coefficients in zip(rows, one.coefficients, strict=True):
        kernel = coefficients.skip**2 * kernel + row
        sums.append(kernel)
    return sums
