"""Functions of one signal h ~ N(0, K) by their coefficients in Hermite polynomials.

With z = h/√K and orthonormal h_n, ⟨h_m h_n⟩ = δ_mn, a function F has the coefficients ⟨F h_n⟩. The
recursions over layers act on coefficients, products of functions are taken on nodes. Nodes are
those of the trapezoidal rule, which is exact to rounding for what is smooth, or of panels that end
where F is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, log2, sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
import sympy as sp
from numpy.polynomial import Polynomial, chebyshev

from fieldtheory.averages.integrals.panels import evenly, graded_cuts
from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.averages.integrals.vectorising import kinks_of, vectorised
from fieldtheory.averages.integrands.narrow import steep_places
from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.theory.elementary_averages import X

# Beyond its turning point 2√n the Hermite function of order n falls below rounding so soon.
_MARGIN = 9.0
# Spacing of the nodes times √n, at which products of three functions of order n are resolved.
_SPACING = 1.2
# What the coarser grid is, that shows whether the nodes see all of a function, and its end.
_COARSE, _REACH = 1.6, 10.0
# Nodes of a panel, and of a coarser one; the widest panel times √n, and halvings at a kink.
_NODES, _WIDEST, _HALVED = (18, 13), 8.0, 4
# Most orders found on panels; those beyond follow from the kinks.
HIGHEST_ON_PANELS = 1024
# Variance below which the coefficients from n = 4 on are those of the fourth derivative.
_SMALL = 0.05
_DERIVATIVES = 4
# By how much averages on nodes may differ from those of the saddle point.
_SEEN = 1e-7
# Layers whose observables are found at once.
_TOGETHER = 128
# Distance from a kink and number of points from which its jumps are found.
_BESIDE, _POINTS = 0.25, 10
# Relative error of sums over the orders left out, and of sums of squares by rounding.
_ROUGH, _ROUNDED = 0.1, 1e-14
# Hermite functions are rescaled on the way where they exceed this.
_LARGE = 1e120


class Modes(NamedTuple):
    """Orthonormal Hermite polynomials on nodes.

    Parameters
    ----------
    orders : ndarray, shape (n,)
        0, 1, 2, ..., or 0, 2, 4, ... where only even functions occur; there may be more than in
        the basis.
    nodes : ndarray, shape (m,)
        z.
    basis : ndarray, shape (n, m)
        h_n(z) times the square root of the Gaussian weight of the node.
    """

    orders: np.ndarray
    nodes: np.ndarray
    basis: np.ndarray

    @property
    def roots(self) -> np.ndarray:
        """Square roots of the weights of the nodes, which add up to one."""
        return self.basis[0]

    def project(self, values: np.ndarray) -> np.ndarray:
        """⟨F h_n⟩ of the values of functions on the nodes, the last axis."""
        return (values * self.roots) @ self.basis.T

    def functional(self, values: np.ndarray) -> np.ndarray:
        """The same: functions are orthogonal to one another."""
        return self.project(values)

    def multiply(self, values: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """The coefficients of the product of a function on the nodes and Σ_n u_n h_n."""
        return self.basis @ (values * (coefficients @ self.basis))

    def mean(self, values: np.ndarray) -> float:
        """⟨F⟩."""
        return float(values @ self.roots**2)

    def unit(self, order: int) -> np.ndarray:
        """The coefficients of h_n itself."""
        return _unit(len(self.orders), order // int(self.orders[1]))

    def second(self) -> np.ndarray:
        """What averages products with h_2."""
        return self.unit(2)

    def centred(self, coefficients: np.ndarray) -> np.ndarray:
        """Those of F − ⟨F⟩, in place."""
        coefficients[0] = 0.0
        return coefficients

    def windows(self, terms: np.ndarray) -> list[float]:
        """Sums of the sizes of the terms in the third and in the last quarter of the orders."""
        size = len(terms)
        return np.add.reduceat(np.abs(terms), [size // 2, 3 * size // 4]).tolist()


@lru_cache(maxsize=64)
def _unit(size: int, index: int) -> np.ndarray:
    found = np.zeros(size)
    found[index] = 1.0
    found.flags.writeable = False
    return found


class Space(Protocol):
    """Functions of z ~ N(0, 1) as vectors.

    The scalar product of the `functional` of one function with the vector of another is the
    average of the product.
    """

    def project(self, values: np.ndarray) -> np.ndarray:
        """The vector of the values of a function on the nodes."""

    def functional(self, values: np.ndarray) -> np.ndarray:
        """What averages products with the function of these values."""

    def multiply(self, values: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """The vector of the product of a function on the nodes and that of a vector."""

    def mean(self, values: np.ndarray) -> float:
        """⟨F⟩ of the values of a function on the nodes."""

    def unit(self, order: int) -> np.ndarray:
        """The vector of the Hermite polynomial h_n, n <= 8."""

    def second(self) -> np.ndarray:
        """What averages products with h_2."""

    def centred(self, coefficients: np.ndarray) -> np.ndarray:
        """The vector of F − ⟨F⟩."""

    def windows(self, terms: np.ndarray) -> list[float]:
        """What tells, of the terms of a scalar product, the error of their sum."""


class Jump(NamedTuple):
    """Where a function is not smooth, and by how much its derivatives 0, 1, 2, ... jump there."""

    place: float
    sizes: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Square:
    """The observable g(h, h) of a network, φ² for a residual one, as functions of arrays.

    Parameters
    ----------
    expression : sympy.Expr
        g of the signal ``X``.
    kinks : tuple of float
        Where it has kinks or jumps.
    """

    expression: sp.Expr
    kinks: tuple[float, ...]

    @cached_property
    def function(self) -> Callable[..., Any]:
        """g."""
        return _of_arrays(self.expression)

    @cached_property
    def derivatives(self) -> tuple[Callable[..., Any], ...]:
        """The first four derivatives; none if there are kinks."""
        found = [self.expression]
        for _ in range(0 if self.kinks else _DERIVATIVES):
            found.append(found[-1].diff(X))
        return tuple(_of_arrays(F) for F in found[1:])

    @cached_property
    def jumps(self) -> tuple[Jump, ...]:
        """What the derivatives do at the kinks."""
        return tuple(_jump(self.function, self.kinks, place) for place in self.kinks)

    @cached_property
    def steep(self) -> tuple[tuple[float, ...], float]:
        """Where g is steep beside its kinks, and within how much it changes there, one at most."""
        return steep_places(self.expression, X)

    @cached_property
    def even(self) -> bool:
        """Whether g is even."""
        h = np.concatenate([np.linspace(0.01, 3.0, 50), np.geomspace(1e-6, 30.0, 50)])
        with np.errstate(all="ignore"):
            right, left = self.function(h), self.function(-h)
        return bool(np.allclose(right, left, rtol=1e-14, atol=0))


class Observable(NamedTuple):
    """What a layer adds to the kernel of the next, D(h) = a (g(h, h) − ⟨g⟩), for h ~ N(0, K).

    Parameters
    ----------
    space : Space
        How functions of h are represented.
    values : ndarray, shape (m,)
        D on the nodes.
    coefficients : ndarray, shape (n,)
        D as a vector: of `Modes`, ⟨D h_n⟩.
    functional : ndarray, shape (n,)
        What averages products with D: of `Modes`, ⟨D h_n⟩.
    square : float
        ⟨D²⟩.
    missed : float
        By how much ⟨g⟩ and ⟨g²⟩ change with coarser nodes, relative to themselves.
    unseen : float
        Of `Modes`, the share of ⟨D²⟩ that neither the orders nor the kinks account for.
    """

    space: Space
    values: np.ndarray
    coefficients: np.ndarray
    functional: np.ndarray
    square: float
    missed: float
    unseen: float = 0.0


def square_of(network: LayeredNetwork) -> Square:
    """The observable of a network, compiled."""
    return _square(network_entries(network).averages.square)


@lru_cache(maxsize=64)
def _square(g: sp.Expr) -> Square:
    return Square(g, tuple(kinks_of(g, X)))


def _jump(g: Callable[..., Any], kinks: tuple[float, ...], place: float) -> Jump:
    """From the polynomials through points on either side."""
    others = [abs(place - kink) for kink in kinks if kink != place]
    width = min([_BESIDE, *(gap / 2 for gap in others)])
    x = (chebyshev.chebpts1(_POINTS) + 1) / 2
    sides = []
    for sign in (1.0, -1.0):
        fitted = Polynomial.fit(sign * width * x, g(place + sign * width * x), _POINTS - 1)
        sides.append([fitted.deriv(j)(0.0) for j in range(_DERIVATIVES + 1)])
    return Jump(place, tuple(float(right - left) for right, left in zip(*sides, strict=True)))


def _of_arrays(F: sp.Expr) -> Callable[..., Any]:
    compiled = vectorised([X], F)

    def of_arrays(h: np.ndarray) -> np.ndarray:
        # Branches that are not taken may overflow.
        with np.errstate(all="ignore"):
            return np.broadcast_to(compiled(h), np.shape(h))

    return of_arrays


def overlooks(
    layers: LayerCoefficients, C: np.ndarray, layer: int, g: np.ndarray, weights: np.ndarray
) -> bool:
    """Whether nodes are too far apart to see φ²: its average is not that of the kernel it adds.

    Parameters
    ----------
    layers : LayerCoefficients
    C : ndarray, shape (L + 2,)
    layer : int
        l, of the signals.
    g, weights : ndarray, shape (m,)
        φ² on the nodes, and the weights of averages.
    """
    a, b = (float(values[layer + 1]) for values in (layers.weights, layers.biases))
    kernel = float(C[layer + 1])
    return bool(abs(a * (g @ weights) + b - kernel) > _SEEN * kernel)


def observables(
    square: Square, weights: np.ndarray, K: np.ndarray, count: int
) -> Iterator[Observable]:
    """D of one layer after the other by the first ``count`` orders.

    Parameters
    ----------
    square : Square
    weights : ndarray, shape (L,)
        a.
    K : ndarray, shape (L,)
        The variances of the signals.
    count : int
        Orders 0, ..., count − 1.

    Yields
    ------
    Observable

    Examples
    --------
    >>> import fieldtheory as ft
    >>> square = square_of(ft.ResidualNetwork(depth=1, activation="linear"))
    >>> (found,) = observables(square, np.ones(1), np.array([2.0]), 8)
    >>> found.coefficients.round(12).tolist()
    [0.0, 2.828427124746, 0.0, 0.0]
    """
    for start in range(0, len(K), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        of_pieces = _of_kinked if square.kinks else _of_smooth
        yield from of_pieces(square, weights[part], K[part], count)


def _of_kinked(
    square: Square, weights: np.ndarray, K: np.ndarray, count: int
) -> Iterator[Observable]:
    on_panels = min(count, HIGHEST_ON_PANELS)
    tails = _of_kinks(square.jumps, K, np.arange(on_panels, count))
    left_out = _beyond(square.jumps, K, count)
    for a, variance, tail, beyond in zip(weights, K, tails, left_out, strict=True):
        dev = sqrt(variance)
        places = [jump.place / dev if jump.place and dev else 0.0 for jump in square.jumps]
        level = max(0, ceil(log2(max(dev, 1.0))))
        modes, coarse = (
            _panels(on_panels, square.even, tuple(places), level, nodes) for nodes in _NODES
        )
        g = square.function(dev * modes.nodes)
        missed = _missed(square, modes, g, coarse, dev)
        values = a * (g - modes.mean(g))
        coefficients = np.concatenate([modes.project(values), a * tail[:: modes.orders[1]]])
        coefficients[0] = 0.0
        space = modes._replace(orders=int(modes.orders[1]) * np.arange(len(coefficients)))
        square_mean = modes.mean(values**2)
        unseen = _unseen(coefficients, square_mean, a * a * modes.mean(g * g), a * a * beyond)
        yield Observable(
            *(space, values, coefficients, coefficients, square_mean, float(missed), unseen)
        )


def _of_kinks(jumps: tuple[Jump, ...], K: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """⟨F h_n⟩ = Σ_t Σ_j √((n−1−j)!/n!) K^{j/2} ΔF^(j)(t) h_{n−1−j}(t/√K) N(t/√K; 0, 1).

    The integral by parts; what remains falls off faster by the square root of n for every
    derivative taken into account. Shape (len(K), len(orders)).
    """
    found = np.zeros((len(K), len(orders)))
    if not len(orders):
        return found
    dev = np.sqrt(np.maximum(K, np.finfo(float).tiny))
    for jump in jumps:
        z = jump.place / dev
        lowest = int(orders[0]) - len(jump.sizes)
        hermite = np.stack(list(_at_points(z, lowest, int(orders[-1]))), axis=1)
        for j, size in enumerate(jump.sizes):
            factor = 1 / np.sqrt(np.prod([orders - i for i in range(j + 1)], axis=0, dtype=float))
            columns = orders - 1 - j - lowest
            found += size * dev[:, None] ** j * factor * hermite[:, columns]
    return found


def _beyond(jumps: tuple[Jump, ...], K: np.ndarray, count: int) -> np.ndarray:
    """Σ d_n² of the orders from ``count`` on and its error, as kinks tell; shape (len(K), 2).

    Beyond four times as many the sum goes on as a power.
    """
    squares = _of_kinks(jumps, K, np.arange(count, 4 * count)) ** 2
    near, far = squares[:, :count].sum(axis=1), squares[:, count:].sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where((far > 0) & (far < near), far**2 / (near - far), far)
    return np.stack([near + far + rest, _ROUGH * (near + far + rest)], axis=1)


def _unseen(
    coefficients: np.ndarray, square: float, whole: float, beyond: Sequence[float] = (0.0, 0.0)
) -> float:
    """The share of ⟨D²⟩ without its orders and what is known beyond; ``whole`` is a²⟨g²⟩."""
    if square <= 0:
        return 0.0
    rounding = _ROUNDED * sqrt(square * max(whole, square))
    gap = abs(square - float(coefficients @ coefficients) - float(beyond[0]))
    return max(gap - float(beyond[1]) - rounding, 0.0) / square


def _at_points(z: np.ndarray, first: int, last: int) -> Iterator[np.ndarray]:
    """h_n(z) N(z; 0, 1) for n = first, ..., last − 1."""
    before, now = np.zeros_like(z), np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    for n in range(last):
        if n >= first:
            yield now
        before, now = now, (z * now - sqrt(n) * before) / sqrt(n + 1)


def _of_smooth(
    square: Square, weights: np.ndarray, K: np.ndarray, count: int
) -> Iterator[Observable]:
    modes, dev = grid_modes(count, square.even), np.sqrt(K)[:, None]
    g = square.function(dev * modes.nodes)
    missed = _missed(square, modes, g, _coarse_grid(count), dev)
    values = weights[:, None] * (g - (g @ modes.roots**2)[:, None])
    coefficients = modes.project(values)
    small = K < _SMALL
    if small.any():
        # The integrals of g cancel in all orders that a polynomial in h of their size has not.
        for j, derivative in enumerate(square.derivatives, start=1):
            lowered = modes.project(weights[small, None] * derivative(dev[small] * modes.nodes))
            _by_parts(coefficients, small, lowered, modes, dev[small], j)
    coefficients[:, 0] = 0.0
    sizes = values**2 @ modes.roots**2
    wholes = weights**2 * (g**2 @ modes.roots**2)
    for row, d, size, error, whole in zip(values, coefficients, sizes, missed, wholes, strict=True):
        unseen = _unseen(d, float(size), float(whole))
        yield Observable(modes, row, d, d, float(size), float(error), unseen)


def _missed(
    square: Square, modes: Modes, g: np.ndarray, coarse: Modes, dev: np.ndarray | float
) -> np.ndarray:
    """What coarser nodes change, where those of the modes still resolve products with them."""
    other = square.function(dev * coarse.nodes)
    found = np.zeros(np.shape(g)[:-1])
    for power in (1, 2):
        fine, rough = g**power @ modes.roots**2, other**power @ coarse.roots**2
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(rough == fine, 0.0, np.abs(rough / fine - 1))
        found = np.maximum(found, change)
    return found


def _by_parts(
    coefficients: np.ndarray,
    rows: np.ndarray,
    lowered: np.ndarray,
    modes: Modes,
    dev: np.ndarray,
    j: int,
) -> None:
    """Orders from j on as ⟨F h_n⟩ = K^{j/2} √((n−j)!/n!) ⟨F^(j) h_{n−j}⟩, in place."""
    stride = int(modes.orders[1])
    if j % stride:
        return
    n = modes.orders[j // stride :]
    falling = np.prod([n - i for i in range(j)], axis=0, dtype=float)
    coefficients[rows, j // stride :] = dev**j * lowered[:, : len(n)] / np.sqrt(falling)


@lru_cache(maxsize=8)
def grid_modes(count: int, even: bool) -> Modes:
    """The first ``count`` orders on an even grid; the even ones alone on one half of it."""
    step = _SPACING / sqrt(count)
    number = int((2 * sqrt(count) + _MARGIN) / step) + 1
    z = step * (np.arange(number) + 0.5)
    if even:
        return modes_on(count, even, z, np.full(number, 2 * step))
    return modes_on(count, even, np.concatenate([-z[::-1], z]), np.full(2 * number, step))


@lru_cache(maxsize=8)
def _coarse_grid(count: int) -> Modes:
    """The Gaussian alone on nodes at which a function is seen with the products of two modes."""
    step = _COARSE * _SPACING / sqrt(count)
    number = int(_REACH / step) + 1
    z = step * (np.arange(-number, number) + 0.3)
    return modes_on(1, False, z, np.full(2 * number, step))


@lru_cache(maxsize=8)
def _panels(count: int, even: bool, kinks: tuple[float, ...], level: int, nodes: int) -> Modes:
    """On panels, those at a kink halved ``level`` times and more; the coarse ones alone."""
    reach = 2 * sqrt(count) + _MARGIN
    width = _WIDEST / sqrt(count)
    near = graded_cuts(np.array(kinks), _HALVED + level, width, reach)
    cuts = np.unique(np.concatenate([near, evenly(width, reach)]))
    z, weights = composite(cuts, nodes)
    if nodes != _NODES[0]:
        return modes_on(1, False, z, weights)
    if even:
        z, weights = z[z > 0], 2 * weights[z > 0]
    return modes_on(count, even, z, weights)


def modes_on(count: int, even: bool, z: np.ndarray, weights: np.ndarray) -> Modes:
    """The basis on nodes with the weights of a rule for integrals over z."""
    orders = np.arange(0, count, 2 if even else 1)
    basis = np.empty((len(orders), len(z)))
    exponent = -z * z / 4 - np.log(2 * np.pi) / 4 + np.log(weights) / 2
    before, now, scale = np.zeros_like(z), np.ones_like(z), np.exp(exponent)
    for n in range(count):
        if not even or n % 2 == 0:
            basis[n // 2 if even else n] = now * scale
        before, now = now, (z * now - sqrt(n) * before) / sqrt(n + 1)
        large = np.abs(now) > _LARGE
        if large.any():
            before[large] /= _LARGE
            now[large] /= _LARGE
            exponent[large] += np.log(_LARGE)
            scale = np.exp(exponent)
    return Modes(orders, z, basis)
