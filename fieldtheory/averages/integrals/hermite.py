"""Averages of products f(x) g(y) by the Mehler series.

With the coefficients f_n = ⟨f(√K z) He_n(z)⟩/√n! of a function and the correlation c,

    ⟨f(x) g(y)⟩ = Σ_{n>=0} f_n g_n c^n,    ⟨f(x) ; g(y)⟩ = Σ_{n>=1} f_n g_n c^n

(the expansion of the bivariate Gaussian in Hermite polynomials). The coefficients belong to one
variable each, so that P variables cost P integrals and not P². By Parseval, ⟨f²⟩ − Σ f_n² is the
weight left out and bounds the rest of the series; a pair that misses the tolerance is reported,
not returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.integrals.panels import breakpoints, evenly, graded_cuts
from fieldtheory.averages.integrals.quadrature import composite

# Hermite functions times √(Gaussian), the integrands at |f| = 1, are below rounding beyond this.
REACH = 12.5
# Orders kept and step of the trapezoidal rule (zero: graded panels; below: graded for cusps), tried
# one after the other.
LOW_ORDERS = ((64, 0.08), (64, 0.02), (64, 0.0))
HIGH_ORDERS = ((256, 0.02), (256, 0.0))
PANEL_ORDERS = ((64, 0.0), (256, 0.0))
CUSP_ORDERS = ((64, -1.0),)
# For steep functions, before integrals in two variables.
HIGHEST_ORDERS = ((256, 0.0), (512, 0.0))
# More halvings of the panels beside a cusp.
_TO_CUSPS = 40
# Nodes on each panel of the two rules for large variances, and for the highest orders.
_PANEL_ORDERS, _MORE_NODES = (24, 36), (36, 48)
# Largest spacing of the nodes in units of the function's argument.
_SPACING = 0.13
# Allowed rest of the series, relative to its value.
_REST = 3e-14
# Allowed difference between two rules, relative to √⟨f²⟩.
_GRID = 2e-14
# Most variances whose coefficients are kept.
_REMEMBERED = 128
# Pairs that are summed at once, few enough for the cache.
_BLOCK = 512


class _Coefficients(NamedTuple):
    values: np.ndarray
    rest: np.ndarray
    resolved: np.ndarray


def series(
    f: Callable,
    g: Callable,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
    lowest: int,
    stages: Sequence[tuple[int, float]] = LOW_ORDERS + HIGH_ORDERS,
    kinks: Sequence[Sequence[float]] = ((), ()),
    every: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Σ_{n >= lowest} f_n g_n c^n for arrays of (co)variances of one shape.

    Parameters
    ----------
    f, g : callable
        Vectorised functions of one variable.
    K_xx, K_yy, K_xy : ndarray, shape (m,)
        Variances and covariances.
    lowest : int
        0 for the average of the product, 1 for the connected correlator, or the first term of a
        parity.
    stages : sequence of (order, step)
        Of the series and of the grid for its coefficients, tried one after the other; the grids
        of functions with kinks are panels, whatever the step.
    kinks : pair of sequences of float
        Where f and g are not smooth.
    every : {1, 2}
        2 where one of them is odd or even: the other terms are rounding, which a small c would see.

    Returns
    -------
    values : ndarray, shape (m,)
    converged : ndarray of bool, shape (m,)
        Where both variances are positive and the rest of the series is below 3e-14 of the value.

    Examples
    --------
    >>> K = np.array([1.0])
    >>> values, converged = series(np.square, np.square, K, K, np.array([0.5]), lowest=1)
    >>> float(values[0].round(12)), bool(converged[0])
    (0.5, True)
    """
    limit = np.sqrt(K_xx * K_yy)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.where(limit > 0, np.clip(K_xy / limit, -1, 1), 0.0)
    values = np.zeros(len(limit))
    converged = np.zeros(len(limit), dtype=bool)
    for order, step in stages:
        (left,) = np.nonzero(~converged & (limit > 0))
        if not len(left):
            break
        sides = [
            _of_variances(function, K[left], order, step, tuple(cuts))
            for function, K, cuts in ((f, K_xx, kinks[0]), (g, K_yy, kinks[1]))
        ]
        terms = slice(lowest, None, every)
        values[left], converged[left] = _summed(sides, correlation[left], terms)
    return values, converged


def _of_variances(
    f: Callable, K: np.ndarray, order: int, step: float, kinks: tuple[float, ...]
) -> tuple[_Coefficients, np.ndarray]:
    """Coefficients for the different variances, and which of them belongs to each entry."""
    variances, index = np.unique(K, return_inverse=True)
    if len(variances) > _REMEMBERED:
        return _coefficients(f, variances, order, step, kinks), index
    return _coefficients_again(f, variances.tobytes(), order, step, kinks), index


@lru_cache(maxsize=64)
def _coefficients_again(
    f: Callable, variances: bytes, order: int, step: float, kinks: tuple[float, ...]
) -> _Coefficients:
    """Averages of one layer share functions: those of few variances are kept for a while."""
    return _coefficients(f, np.frombuffer(variances), order, step, kinks)


def _coefficients(
    f: Callable, K: np.ndarray, order: int, step: float, kinks: tuple[float, ...]
) -> _Coefficients:
    """On an even grid, for the variances it resolves, or on graded panels (step <= 0)."""
    step = min(step, 0.0) if kinks else step
    total, norm = np.zeros((len(K), order)), np.zeros(len(K))
    resolved = np.zeros(len(K), dtype=bool)
    level = np.ceil(np.log2(np.maximum(K, 1)) / 2) + (_TO_CUSPS if step < 0 else 0)
    if step > 0:
        # Beyond the spacing a grid may step over what an activation does within a distance of one.
        level = np.where(step * np.sqrt(K) <= _SPACING, 0.0, np.nan)
    for power in np.unique(level[np.isfinite(level)]):
        (index,) = np.nonzero(level == power)
        if any(kinks):
            counts = _node_counts(order)
            parts = [_of_kinked(f, K[index], order, int(power), kinks, n) for n in counts]
        else:
            rules = _even_basis(order, step) if step > 0 else _graded_basis(order, int(power))
            parts = [_projected(f, K[index], *rule) for rule in rules]
        (first, _), (second, square) = parts
        with np.errstate(invalid="ignore"):
            # Two rules differ by the error of either.
            close = np.abs(first - second) <= _GRID * np.sqrt(square)[:, None]
        total[index], norm[index] = second, square
        resolved[index] = close.all(axis=1) & np.isfinite(square)
    with np.errstate(invalid="ignore"):
        rest = np.maximum(norm - (total**2).sum(axis=1), 0.0)
    return _Coefficients(total, rest, resolved)


def _projected(f: Callable, K: np.ndarray, z: np.ndarray, basis: np.ndarray) -> tuple:
    """⟨f h_n⟩ for every n and ⟨f²⟩ by one rule."""
    with np.errstate(all="ignore"):
        values = np.broadcast_to(f(np.sqrt(K)[:, None] * z), (len(K), len(z)))
        return values @ basis.T, (values**2) @ basis[0]


def _of_kinked(
    f: Callable, K: np.ndarray, order: int, level: int, kinks: tuple[float, ...], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """⟨f h_n⟩ for every n and ⟨f²⟩ on panels that end at kinks beside zero, of each variance."""
    dev = np.sqrt(K)[:, None]
    near = graded_cuts(np.array([0.0, *kinks]) / dev, level, 1.0, REACH)
    even = np.tile(evenly(1.0, REACH), (len(K), 1))
    z, weights = composite(np.sort(np.concatenate([near, even], axis=1), axis=1), count)
    with np.errstate(all="ignore"):
        values = f(dev * z)
        found = [(values * h).sum(axis=1) for h in weighted_hermite(order, z, weights)]
        square = (values**2 * weights * np.exp(-z * z / 2)).sum(axis=1) / np.sqrt(2 * np.pi)
    return np.stack(found, axis=1), square


def _summed(sides: list, c: np.ndarray, terms: slice) -> tuple[np.ndarray, np.ndarray]:
    (f, at_f), (g, at_g) = sides
    order = f.values.shape[1]
    total = np.empty(len(c))
    for start in range(0, len(c), _BLOCK):
        part = slice(start, start + _BLOCK)
        powers = np.vander(c[part], order, increasing=True)[:, terms]
        both = f.values[at_f[part], terms] * g.values[at_g[part], terms]
        total[part] = np.einsum("ij,ij->i", both, powers)
    bound = np.abs(c) ** order * np.sqrt(f.rest[at_f] * g.rest[at_g])
    good = f.resolved[at_f] & g.resolved[at_g] & (bound <= _REST * np.abs(total))
    return np.where(good, total, 0.0), good


@lru_cache(maxsize=4)
def _even_basis(order: int, step: float) -> tuple:
    """Every other node of an even grid as one rule, all of them as another."""
    half = int(REACH / step)
    # Off the symmetric positions, where the halves of the grid are mirror images and always agree.
    z = step * (np.arange(-half, half) + 0.25)
    fine = basis(order, z, np.full(len(z), step))
    return (z[::2], 2 * fine[:, ::2]), (z, fine)


@lru_cache(maxsize=16)
def _graded_basis(order: int, level: int) -> tuple:
    """Two composite rules on panels refined towards zero down to a width of 2^-level."""
    cuts = np.array(breakpoints([0.0], 0.5**level, REACH))
    rules = (composite(cuts, count) for count in _node_counts(order))
    return tuple((z, basis(order, z, weights)) for z, weights in rules)


def _node_counts(order: int) -> tuple[int, int]:
    return _PANEL_ORDERS if order <= 256 else _MORE_NODES


def basis(order: int, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """h_n(z) N(z; 0, 1) times the weights, h_n orthonormal; shape (order, nodes)."""
    table, rows = np.empty((order, *np.shape(z))), weighted_hermite(order, z, weights)
    for place, row in zip(table, rows, strict=True):
        place[...] = row
    return table


def weighted_hermite(order: int, z: np.ndarray, weights: np.ndarray) -> Iterator[np.ndarray]:
    """h_0(z), h_1(z), ... times the Gaussian and the weights, one after the other."""
    before, now = np.zeros_like(z), weights * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    for n in range(order):
        yield now
        before, now = now, (z * now - np.sqrt(n) * before) / np.sqrt(n + 1)
