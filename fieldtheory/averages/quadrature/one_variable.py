"""Hermite coefficients f_n(K) = ⟨φ(√K z) h_n(z)⟩ of one variable, and moments from them.

They are analytic in ln K in the strip |Im ln K| < π/2, whatever breakpoints φ has: few Chebyshev
nodes per factor of four of K give them everywhere in between. By Price's theorem they contain the
derivatives of averages with respect to K,

    d⟨φ⟩/dK = f_2 / (√2 K),    d²⟨φ⟩/dK² = √24 f_4 / (4K²),

so that kinks and jumps of φ need no δ-functions.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import sqrt

import numpy as np

from fieldtheory.averages import routes
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.panelled_functions import NEGLIGIBLE, WEIGHTS, Function
from fieldtheory.averages.quadrature.panels import (
    DENSITY,
    FALLS,
    averages_about,
    error_of,
    nodes,
    nodes_of,
    subdivided,
    summed,
    transform,
)

# One table covers this factor of K.
_FACTOR = 4.0
# The variance, relative to the square of the mean, below which coefficients come from the slope.
_STEADY = 1e-2
# Where polynomials are evaluated at most: beyond it the Gaussian is zero.
_FARTHEST = 38.0
# Panels times orders that are integrated at once.
_TOGETHER = 1 << 16
# Rounding of h, and what it adds to the last coefficients of φ on a panel.
_ROUNDING = 1e-14
# Errors, relative to √⟨φ²⟩, up to which the panels of the widest signal serve a table.
_SHARED = 1e-14
# Factor by which ⟨φ²⟩ varies at most in a table: beyond it φ is in the tail of the Gaussian alone.
VARIES = 1e4


def hermite_polynomials(z: np.ndarray, order: int) -> np.ndarray:
    """The orthonormal h_0, ..., h_order at z, shape (order + 1, *z.shape).

    >>> hermite_polynomials(np.array([2.0]), 2)[:, 0].round(6).tolist()
    [1.0, 2.0, 2.12132]
    """
    values = np.ones((order + 1, *z.shape))
    if order:
        values[1] = z
    for n in range(1, order):
        values[n + 1] = (z * values[n] - sqrt(n) * values[n - 1]) / sqrt(n + 1)
    return values


def integrated(
    function: Function, K: float, order: int, halvings: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """f_0, ..., f_order and ⟨φ²⟩ at one variance, and their errors, shapes (order + 2,)."""
    values, errors = integrated_together(function, np.array([K]), order, halvings=halvings)
    return values[0], errors[0]


def integrated_together(
    function: Function,
    K: np.ndarray,
    order: int,
    mean: np.ndarray | float = 0.0,
    halvings: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """f_0, ..., f_order and ⟨φ²⟩ of variances (m,), and their errors, shapes (m, order + 2)."""
    sigma, mean = np.sqrt(K), np.zeros(len(K)) + mean
    # h_n times the Gaussian falls off like exp(−z²/4), with √n oscillations per 2π.
    least, share = (10.5, NEGLIGIBLE) if order < 8 else (13.0, 72.0)
    reach = max(least, float(function.extent(sigma, mean, share).max()))
    width = min(1.75, 10 / sqrt(order + 1), 1.75 if reach == least else FALLS / reach)
    width /= 2**halvings
    kinks = ((function.kinks[:, None] - mean) / sigma).ravel()
    extremes = {int(pick(each)) for each in (sigma, mean) for pick in (np.argmax, np.argmin)}
    sides = [(mean[i], sigma[i]) for i in extremes]
    ends = [(function.edges(abs(m) + reach * each) - m) / each for m, each in sides]
    edges = subdivided(np.unique(np.concatenate([*ends, kinks])), -reach, reach, width)
    checked = [0, order // 2, order]
    values, errors = np.zeros((len(K), order + 2)), np.zeros((4, len(K)))
    step = max(1, _TOGETHER // (order + 2))
    for start in range(0, len(edges) - 1, step):
        some = edges[start : start + step + 1]
        z, half = nodes_of(some[:-1], some[1:])
        rows = hermite_polynomials(z, order) * np.exp(-(z**2) / 2) * DENSITY
        phi = function(mean[:, None, None] + np.multiply.outer(sigma, z))
        # Panel by panel, which keeps more digits than one sum over all nodes.
        weighted = phi * (half[:, None] * WEIGHTS)
        values[:, :-1] += (weighted.swapaxes(0, 1) @ rows.transpose(1, 2, 0)).sum(axis=0)
        values[:, -1] += (phi * weighted * rows[0]).sum(axis=-1).sum(axis=-1)
        tested = [*(rows[n] * phi for n in checked), rows[0] * phi**2]
        for error, each in zip(errors, tested, strict=True):
            tails = summed(each, half)[1]
            error += error_of(tails, np.abs(each) @ WEIGHTS @ half)
    # Errors of orders between those that are checked are at most those of the higher one.
    upper = np.searchsorted(checked, np.arange(order + 1))
    spread = np.maximum.accumulate(errors[:3])[upper]
    return values, np.concatenate([spread, errors[3:]]).T


def integrated_each(
    function: Function, K: np.ndarray, order: int, mean: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """`integrated_together`, or each alone where the shared panels miss an average."""
    values, errors = integrated_together(function, K, order, mean)
    # Steep places away from zero are elsewhere for other signals.
    if len(K) > 1 and (errors[:, 0] > _SHARED * np.sqrt(values[:, -1])).any():
        mean = np.zeros(len(K)) + mean
        alone = [integrated_together(function, K[i : i + 1], order, mean[i]) for i in range(len(K))]
        values, errors = (np.concatenate(each) for each in zip(*alone, strict=True))
    return values, errors


class Coefficients:
    """f_n(K) of a function up to an order, from tables that are made where they are needed.

    Where φ is in the far tail of the Gaussian, so that averages vary by orders of magnitude, every
    variance is integrated.

    Examples
    --------
    >>> square = Function(np.square)
    >>> values, errors = Coefficients(square, 2)(np.array([3.0]))
    >>> values[0].round(9).tolist()
    [3.0, 0.0, 4.242640687, 27.0]
    """

    def __init__(self, function: Function, order: int) -> None:
        self.function, self.order = function, order
        self._tables: dict[int, tuple[np.ndarray, np.ndarray] | None] = {}
        # h_n of √K z oscillates √n times over a factor of K.
        self._count = 24 + int(2.2 * sqrt(order))

    def __call__(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f_0, ..., f_order and ⟨φ²⟩ of variances (m,), shape (m, order + 2), and their errors."""
        K = np.asarray(K, dtype=float)
        routes.record(routes.PANELS, K.size)
        values, errors = self._direct(K)
        # The variance of φ is a small part of the square of its mean.
        mean, square = values[:, 0], values[:, -1]
        steady = (K > 0) & (square - mean**2 < _STEADY * mean**2)
        if steady.any() and self.order:
            self._by_slope(K, steady, values, errors)
        return values, errors

    def _direct(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, errors = np.zeros((2, len(K), self.order + 2))
        if (K == 0).any():
            sides = self.function.at_zero()
            values[K == 0, 0], values[K == 0, -1] = sides.mean(), (sides**2).mean()
        (some,) = np.nonzero(K > 0)
        logs = np.log(K[some]) / np.log(_FACTOR)
        power = np.floor(logs)
        shares = interpolation(2 * (logs - power) - 1, nodes(self._count))
        for each in set(power.tolist()):
            rows = power == each
            if table := self._table(int(each)):
                values[some[rows]], errors[some[rows]] = shares[rows] @ table[0], table[1]
                continue
            for variance in np.unique(K[some[rows]]):
                integrals = integrated(self.function, float(variance), self.order)
                values[K == variance], errors[K == variance] = integrals
        return values, errors

    def _table(self, power: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Coefficients and errors at Chebyshev nodes of ln K between powers of four, if smooth."""
        if power not in self._tables:
            K = _FACTOR ** (power + (nodes(self._count) + 1) / 2)
            table, errors = integrated_each(self.function, K, self.order)
            varies = table[:, -1].max() > VARIES * table[:, -1].min()
            tail = np.abs(transform(self._count)[-2:] @ table).max(axis=0)
            error = errors.max(axis=0)
            error[:-1] += tail[:-1].max()
            error[-1] += tail[-1]
            self._tables[power] = None if varies else (table, error)
        return self._tables[power]

    @cached_property
    def _slopes(self) -> Coefficients:
        return Coefficients(self.function.slope, self.order - 1)

    def _by_slope(
        self, K: np.ndarray, some: np.ndarray, values: np.ndarray, errors: np.ndarray
    ) -> None:
        """f_n = √(K/n) ⟨φ' h_{n−1}⟩ where φ is nearly constant, which would hide its variations."""
        # A jump at p adds jump · h_{n−1}(p/√K) times the density at p to ⟨φ' h_{n−1}⟩.
        K = K[some]
        slopes, missed = (each[:, :-1].copy() for each in self._slopes._direct(K))
        for place, jump in zip(self.function.kinks, self.function.jumps, strict=True):
            z = np.clip(place / np.sqrt(K), -_FARTHEST, _FARTHEST)
            density = jump * DENSITY * np.exp(-(z**2) / 2) / np.sqrt(K)
            slopes += (density * hermite_polynomials(z, self.order - 1)).T
        scale = np.sqrt(K[:, None] / np.arange(1, self.order + 1))
        values[some, 1:-1], errors[some, 1:-1] = scale * slopes, scale * missed


# Tables that are kept, of functions and orders.
coefficients_of = lru_cache(maxsize=256)(Coefficients)


def interpolation(points: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """The matrix that takes values at Chebyshev nodes to points (m,): the barycentric formula."""
    count = len(nodes)
    weights = np.sin(np.pi * (2 * np.arange(count) + 1) / (2 * count)) * (-1.0) ** np.arange(count)
    shares = points[:, None] - nodes
    shares[shares == 0] = 1e-300
    np.divide(weights, shares, out=shares)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


class Means:
    """⟨F(h)⟩ of variances, and of variances and means; errors relative to ⟨|F|⟩ are checked.

    >>> means = Means(Function(np.square))
    >>> float(means(np.array([3.0]), 1e-12)[0].round(9))
    3.0
    >>> float(means.about(np.array([3.0]), np.array([2.0]), 1e-12)[0].round(9))
    7.0
    """

    def __init__(self, function: Function) -> None:
        self.function, self.coefficients = function, Coefficients(function, 0)

    def __call__(self, K: np.ndarray, rtol: float) -> np.ndarray:
        """⟨F(h)⟩ of h ~ N(0, K) for variances (m,)."""
        f, errors = self.coefficients(K)
        unsure = ~(errors[:, 0] <= rtol * np.abs(f[:, 0]))
        if unsure.any():
            sizes = self._modulus(K[unsure])[0][:, 0]
            _require(errors[unsure, 0], sizes, K[unsure], rtol)
        return f[:, 0]

    @cached_property
    def _modulus(self) -> Coefficients:
        value, kinks = self.function.value, tuple(self.function.kinks)
        return Coefficients(Function(lambda h: np.abs(value(h)), None, kinks), 0)

    def about(self, K: np.ndarray, mean: np.ndarray, rtol: float) -> np.ndarray:
        """⟨F(h)⟩ of h ~ N(mean, K) for variances and means (m,)."""
        deviation, pair = np.sqrt(np.maximum(K, 0.0)), [self.function, self.function.slope]
        values, errors, sizes = averages_about(pair, mean, deviation)
        # The rounding of h next to a kink is no error.
        rounding = _ROUNDING * np.abs(mean) * sizes[1]
        _require(errors[0] - rounding, sizes[0], K, rtol)
        return values[0]


def _require(errors: np.ndarray, sizes: np.ndarray, K: np.ndarray, rtol: float) -> None:
    missed = ~(errors <= rtol * sizes)
    if missed.any():
        raise QuadratureError(
            f"an average at the variance {K[missed].min():.6g} did not reach the relative "
            f"tolerance {rtol:g}: the function varies too fast, or is too large, for panels at "
            "signals of that variance; ask for a larger tolerance (rtol=)"
        )
