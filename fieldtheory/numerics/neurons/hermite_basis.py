"""Functions of one neuron as Hermite coefficients, for φ that is analytic on the whole line.

With z = h/√K* and orthonormal h_n a function F is the vector ⟨F h_n⟩. Noise multiplies it by powers
of the correlation c of the signals of two layers; products of functions are taken on nodes of the
trapezoidal rule, which is exact to rounding for what is analytic and falls off.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.numerics.neurons.interacting_neurons import Observable, of_the_mean, raising

# Beyond its turning point 2√n the Hermite function of order n falls below rounding so soon.
_MARGIN = 9.0
# Spacing of the nodes times √n, at which products of three functions of order n are resolved.
_SPACING = 1.2
# Part of the square of ⟨φ²⟩ below which the variance of φ² is a small difference.
_STEADY = 1e-2
# Powers of z that would overflow are scaled by this.
_LARGE = 1e100


class HermiteBasis(NamedTuple):
    """Orthonormal Hermite polynomials on nodes.

    Parameters
    ----------
    orders : ndarray, shape (n,)
        0, 1, 2, ..., or 0, 2, 4, ... where only even functions occur.
    nodes : ndarray, shape (m,)
        z.
    table : ndarray, shape (n, m)
        h_n(z) times the square root of the weight of the node.
    """

    orders: np.ndarray
    nodes: np.ndarray
    table: np.ndarray

    def project(self, values: np.ndarray) -> np.ndarray:
        """⟨F h_n⟩ of the values of functions on the nodes, the last axis."""
        return (values * self.table[0]) @ self.table.T

    def multiply(self, values: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """The coefficients of the product of a function on the nodes and Σ_n u_n h_n."""
        return self.table @ (values * (vector @ self.table))

    def mean(self, values: np.ndarray) -> float:
        """⟨F⟩."""
        return float(values @ self.table[0] ** 2)

    def unit(self, order: int) -> np.ndarray:
        """The coefficients of h_n itself."""
        return _unit(len(self.orders), order // int(self.orders[1]))

    def centred(self, vector: np.ndarray) -> np.ndarray:
        """Those of F − ⟨F⟩, in place."""
        vector[0] = 0.0
        return vector


class HermiteStep(NamedTuple):
    """From the coefficients of one layer to those of the next.

    Parameters
    ----------
    basis : HermiteBasis
    correlation, variance : float
        See `interacting_neurons.Step`.
    powers : ndarray, shape (n,)
        cⁿ.
    """

    basis: HermiteBasis
    correlation: float
    variance: float
    powers: np.ndarray

    def unit(self, order: int) -> np.ndarray:
        """The Hermite polynomial of this order."""
        return self.basis.unit(order)

    def to_next(self, j: int, u: np.ndarray) -> np.ndarray:
        """P_jᵀ u, or of all columns of u: h_n to √((n+2j)!/n!) cⁿ/(j! (2K')^j) h_{n+2j}."""
        columns = (slice(None), *[None] * (u.ndim - 1))
        if j == 0:
            return self.powers[columns] * u
        orders = self.basis.orders
        shift = 2 * j // int(orders[1])
        factors = raising(len(orders), int(orders[1]), j) * self.powers[:-shift]
        found = np.zeros_like(u)
        found[shift:] = (of_the_mean(self, j) * factors)[columns] * u[:-shift]
        return found


def in_hermite_coefficients(
    square: Function,
    weights: np.ndarray,
    K: np.ndarray,
    correlations: np.ndarray,
    count: int,
) -> Iterator[tuple[Observable, HermiteStep | None]]:
    """The observable of every layer l = 0, ..., L and the step to the next one.

    Parameters
    ----------
    square : Function
        φ², without breakpoints.
    weights, K, correlations : ndarray, shapes (L + 1,), (L + 1,), (L,)
        a_{l+1}, K*^(l) of the signals, and the correlations of h^(l) and h^(l+1).
    count : int
        Orders 0, ..., count − 1.
    """
    vectors, values, means, basis = coefficients(square, K, count)
    for l, a in enumerate(weights):
        D = a * (values[l] - means[l])
        own = Observable(basis, D, a * vectors[l], basis.mean(D**2), float(means[l]))
        if l == len(K) - 1:
            yield own, None
        else:
            c = float(correlations[l])
            yield own, HermiteStep(basis, c, float(K[l + 1]), c**basis.orders)


def coefficients(
    square: Function, K: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, HermiteBasis]:
    """⟨φ² h_n⟩ without n = 0, φ² on the nodes, ⟨φ²⟩ and the basis, for variances (m,)."""
    basis = hermite_basis(count, square.parity == 1)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(square(np.sqrt(K)[:, None] * basis.nodes), dtype=float)
        vectors = basis.project(values)
    if not np.isfinite(vectors).all():
        layer = int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise QuadratureError(f"φ² exceeds float64 on the nodes of layer {layer}")
    means = vectors[:, 0].copy()
    vectors[:, 0] = 0.0
    steady = (K > 0) & ((vectors**2).sum(axis=1) < _STEADY * means**2)
    if steady.any():
        # Where φ² hardly varies, by parts: √n ⟨φ² h_n⟩ = √K ⟨(φ²)' h_{n-1}⟩.
        every, root = hermite_basis(count, False), np.sqrt(K[steady])[:, None]
        slopes = every.project(np.asarray(square.slope(root * every.nodes), dtype=float))
        vectors[steady, 1:] = (root * slopes[:, :-1] / np.sqrt(every.orders[1:]))[
            :, basis.orders[1:] - 1
        ]
    return vectors, values, means, basis


@lru_cache(maxsize=64)
def _unit(size: int, index: int) -> np.ndarray:
    found = np.zeros(size)
    found[index] = 1.0
    found.flags.writeable = False
    return found


@lru_cache(maxsize=32)
def hermite_basis(count: int, even: bool) -> HermiteBasis:
    """The first ``count`` orders on an even grid; the even ones alone on one half of it."""
    step = _SPACING / sqrt(count)
    number = int((2 * sqrt(count) + _MARGIN) / step) + 1
    z = step * (np.arange(number) + 0.5)
    weights = np.full(number, 2 * step)
    if not even:
        z, weights = np.concatenate([-z[::-1], z]), np.full(2 * number, step)
    orders = np.arange(0, count, 2 if even else 1)
    table = np.empty((len(orders), len(z)))
    exponent = -z * z / 4 - np.log(2 * np.pi) / 4 + np.log(weights) / 2
    before, now, scale = np.zeros_like(z), np.ones_like(z), np.exp(exponent)
    for n in range(count):
        if not even or n % 2 == 0:
            table[n // 2 if even else n] = now * scale
        before, now = now, (z * now - sqrt(n) * before) / sqrt(n + 1)
        large = np.abs(now) > _LARGE
        if large.any():
            before[large] /= _LARGE
            now[large] /= _LARGE
            exponent[large] += np.log(_LARGE)
            scale = np.exp(exponent)
    return HermiteBasis(orders, z, table)
