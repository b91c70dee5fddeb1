"""Hermite coefficients f_n(K) = ⟨φ(√K z) h_n(z)⟩ of one variable, and the moments they give.

They are analytic in ln K in the strip |Im ln K| < π/2, whatever kinks φ has, so that few Chebyshev
nodes for every factor of four of K give them everywhere between.
"""

from __future__ import annotations

from math import factorial, sqrt

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.functions import REACH, Function
from fieldtheory.averages.quadrature.nested import conditional
from fieldtheory.averages.quadrature.panels import error_of, nodes_of, subdivided, summed

# Factor of variances that share an interpolant.
_FACTOR = 4.0
# Fewer variances than these are not worth one.
_FEW = 4
# Up to this order coefficients of narrow signals are integrals too.
_SURE = 40


def hermite_polynomials(z: np.ndarray, order: int) -> np.ndarray:
    """The orthonormal h_0 ... h_order at z, shape (order + 1, *z.shape)."""
    found = np.ones((order + 1, *z.shape))
    if order:
        found[1] = z
    for n in range(1, order):
        found[n + 1] = (z * found[n] - sqrt(n) * found[n - 1]) / sqrt(n + 1)
    return found


def integrated(function: Function, K: float, order: int) -> tuple[np.ndarray, np.ndarray]:
    """f_0 ... f_order and ⟨φ²⟩ at one variance, and their errors."""
    sigma = sqrt(K)
    # h_n falls off as exp(−z²/4), with √n waves per 2π.
    reach = 10.5 if order < 8 else 13.0
    width = min(1.75, 10 / sqrt(order + 1))
    edges = subdivided(function.edges(reach * sigma), -reach * sigma, reach * sigma, width * sigma)
    h, half = nodes_of(edges[:-1], edges[1:])
    z = h / sigma
    weighted = function(h) * np.exp(-(z**2) / 2) / (sqrt(2 * np.pi) * sigma)
    polynomials = hermite_polynomials(z, order)
    rows = np.concatenate([polynomials, function(h)[None]]) * weighted
    found, tails = summed(rows, half)
    few = [0, order // 2, order, order + 1]
    sizes = summed(np.abs(rows[few]), half)[0].sum(axis=-1)
    errors = error_of(tails[few], sizes)
    return found.sum(axis=-1), np.append(np.full(order + 1, errors[:3].max()), errors[3])


def _powers(order: int, degree: int) -> np.ndarray:
    """⟨z^k h_n⟩, shape (order + 1, degree + 1)."""
    found = np.zeros((order + 1, degree + 1))
    for n in range(min(order, degree) + 1):
        for k in range(n, degree + 1, 2):
            j = (k - n) // 2
            found[n, k] = factorial(k) / (2**j * factorial(j) * sqrt(factorial(n)))
    return found


class Coefficients:
    """f_n(K) of a function, from tables that are filled where they are asked for."""

    def __init__(self, function: Function, order: int) -> None:
        self.function, self.order = function, order
        self._tables: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        # At n oscillations of the kernel in ln K over √n.
        self._count = 24 + int(2.2 * sqrt(order))

    def __call__(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f_0 ... f_order of variances (m,), shape (m, order + 1), and their errors.

        A last column is ⟨φ²⟩.
        """
        K = np.asarray(K, dtype=float)
        found, errors = np.zeros((2, len(K), self.order + 2))
        near = self.is_near(K)
        place = np.floor(np.log(np.where(K > 0, K, 1.0)) / np.log(_FACTOR)).astype(int)
        # Polynomials give the higher coefficients all their digits, the others are surer.
        direct = (K > 0) & (~near | (self.order <= _SURE))
        for power in np.unique(place[direct]):
            rows = np.nonzero(direct & (place == power))[0]
            found[rows], errors[rows] = self._integrated(K[rows], int(power))
        if near.any():
            values, missed = self._of_polynomial(K[near])
            better = (missed < errors[near]) | ~direct[near, None]
            found[near] = np.where(better, values, found[near])
            errors[near] = np.where(better, missed, errors[near])
            found[near, -1] = values[:, -1]
        return found, errors

    def _integrated(self, K: np.ndarray, power: int) -> tuple[np.ndarray, np.ndarray]:
        if len(K) < _FEW and power not in self._tables:
            values = [integrated(self.function, each, self.order) for each in K]
            return tuple(np.array(each) for each in zip(*values, strict=True))
        table, error = self._table(power)
        x = 2 * (np.log(K) / np.log(_FACTOR) - power) - 1
        rows = interpolation(x, chebyshev.chebpts1(self._count))
        return rows @ table, np.broadcast_to(error, (len(K), len(error)))

    def _of_polynomial(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        radius, terms, missed = self.function.polynomial
        # All orders that the polynomial has count in ⟨φ²⟩.
        powers = _powers(max(self.order, len(terms) - 1), len(terms) - 1).T
        scale = (np.sqrt(K) / radius)[:, None] ** np.arange(len(terms))
        values, errors = (scale * terms) @ powers, (scale * missed) @ powers[:, : self.order + 1]
        square = (values**2).sum(axis=1, keepdims=True)
        values = np.append(values[:, : self.order + 1], square, axis=1)
        return values, np.append(errors, 4e-16 * square, axis=1)

    def is_near(self, K: np.ndarray) -> np.ndarray:
        """Whether all that a variance sees of φ is a polynomial."""
        return (K * REACH**2 < self.function.polynomial[0] ** 2) & (self.function.polynomial[0] > 0)

    def _table(self, power: int) -> tuple[np.ndarray, np.ndarray]:
        if power not in self._tables:
            nodes = chebyshev.chebpts1(self._count)
            K = _FACTOR ** (power + (nodes + 1) / 2)
            found = [integrated(self.function, each, self.order) for each in K]
            table = np.array([each[0] for each in found])
            tail = last_terms(table, nodes)
            error = np.max([each[1] for each in found], axis=0)
            error[:-1] += tail[:-1].max()
            error[-1] += tail[-1]
            self._tables[power] = table, error
        return self._tables[power]


def interpolation(places: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """What takes values at Chebyshev nodes to places (m,): the barycentric formula."""
    count = len(nodes)
    weights = np.sin(np.pi * (2 * np.arange(count) + 1) / (2 * count)) * (-1.0) ** np.arange(count)
    apart = places[:, None] - nodes
    apart[apart == 0] = 1e-300
    shares = weights / apart
    return shares / shares.sum(axis=1, keepdims=True)


def last_terms(values: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """The size of the last two Chebyshev coefficients of values (count, ...) at the nodes."""
    rows = chebyshev.chebvander(nodes, len(nodes) - 1)[:, -2:].T * (2 / len(nodes))
    return np.abs(np.tensordot(rows, values, 1)).max(axis=0)


class Moments:
    """M(K) = ⟨φ²⟩, M'(K) and M''(K)."""

    def __init__(self, function: Function) -> None:
        self.coefficients = Coefficients(function.square, 4)

    def __call__(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M, M' and M'' of variances (m,), shape (3, m), and their errors."""
        K = np.asarray(K, dtype=float)
        f, error = self.coefficients(K)
        scale = np.stack([np.ones(len(K)), 1 / (sqrt(2) * K), sqrt(24) / (4 * K**2)])
        return f[:, :5:2].T * scale, error[:, :5:2].T * scale


class Means:
    """⟨F(h)⟩ of variances, and of variances and means, with errors that are checked.

    Errors are relative to √⟨F²⟩.
    """

    def __init__(self, function: Function) -> None:
        self.function, self.coefficients = function, Coefficients(function, 0)

    def __call__(self, K: np.ndarray, rtol: float) -> np.ndarray:
        """⟨F(h)⟩ of h ~ N(0, K) for variances (m,) above zero."""
        f, errors = self.coefficients(K)
        _require(errors[:, 0], np.sqrt(f[:, 1]), K, rtol)
        return f[:, 0]

    def about(self, K: np.ndarray, mean: np.ndarray, rtol: float) -> np.ndarray:
        """⟨F(h)⟩ of h ~ N(mean, K) for variances (m,)."""
        found, errors, sizes = conditional([self.function], mean, np.sqrt(np.maximum(K, 0.0)))
        _require(errors[0], sizes[0], K, rtol)
        return found[0]


def _require(errors: np.ndarray, sizes: np.ndarray, K: np.ndarray, rtol: float) -> None:
    missed = ~(errors <= rtol * sizes)
    if missed.any():
        raise QuadratureError(
            f"an average at the variance {K[missed].min():.6g} did not reach the relative "
            f"tolerance {rtol:g}: "
            "the function varies too fast, or is too large, for panels at signals of that variance"
        )
