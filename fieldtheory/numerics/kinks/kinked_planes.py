"""Averages of functions with kinks over a plane of signals, given factors common to others.

Signals h = A z of a plane z share the factor ξ_i with other signals along either direction,

    z_i = √t_i ξ_i + √(1 − t_i) ζ_i,        ⟨z_i w_i⟩ = t_i,

and F(ξ) = ⟨f(A z)⟩_ζ is smooth on the scale √(1 − t), whatever f is, so that few nodes ξ of the
trapezoidal rule do, with an error of exp(−(2π/step)² / (2 + 4t/(1 − t))) for products of two F. Of
a small t the coefficients F_n = ⟨f h_n(z)⟩ stand for the nodes and tⁿ for their weights, so that
what hardly correlates has its digits.

The averages over ζ take Gauss-Legendre panels. Those of z_1 end where kinks meet; those of z_2 are
the same for all z_1, so that all Gaussians of ξ are one matrix: what a panel with a moving kink has
is integrated on either side of it against Legendre polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import composite, legendre

# Nodes of a panel, radius of the planes, and by how much that of the factors is less.
ORDER, REACH, _LESS = 16, 8.6, 0.4
# First panels beside a kink in units of the signals, and how they grow.
BESIDE, _GROWTH = 1.5, 3.0
# Width of what is averaged at once over noise, in deviations of it.
_TOGETHER_SEEN = 5.0
# Of a panel, what is no part of it but rounding.
_WHOLE = 1e-12
# Nodes of a plane, and those that are held at once.
_MOST_NODES, _TOGETHER = 1 << 26, 1 << 19

# Functions of the signals: arrays of one shape to values (functions, *shape).
Functions = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Resolution:
    """How fine the rules are.

    Parameters
    ----------
    step : float
        Of the factors, in units of what products of two averages need for an error of 1e-12.
    panel : float
        The widest panel in deviations of what it has to resolve.
    """

    step: float
    panel: float


# Tried one after the other.
RESOLUTIONS = (Resolution(1.2, 4.5), Resolution(1.05, 3.4), Resolution(0.85, 2.4))


@dataclass(frozen=True, eq=False)
class Factor:
    """Nodes of a common factor of the share t, none if nothing is shared.

    Parameters
    ----------
    t : float
    xi, weights : ndarray, shape (n,)
    """

    t: float
    xi: np.ndarray
    weights: np.ndarray

    @property
    def noise(self) -> float:
        """√(1 − t)."""
        return float(np.sqrt(1 - self.t))

    @property
    def one(self) -> np.ndarray:
        """What stands for a function that is 1, shape (n,)."""
        return np.ones_like(self.weights)

    def averaged(
        self, values: np.ndarray, z: np.ndarray, orders: Sequence[int] = (0,)
    ) -> np.ndarray:
        """Σ_z p(z | ξ) values, shape (..., orders, n), of values times weights (..., z).

        Of an order i > 0 the i-th derivative by the mean of z times √(1 − t)^i is in place of p.
        """
        return averages_seen(values, z, np.sqrt(self.t) * self.xi, self.noise, orders)


def averages_seen(
    values: np.ndarray,
    z: np.ndarray,
    centres: np.ndarray,
    noise: float,
    orders: Sequence[int] = (0,),
) -> np.ndarray:
    """Σ_z p(z) He_i(u) values with bells p around centres, shape (..., orders, centres).

    Of values times weights (..., z), with u = (z − centre)/noise; z and the centres ascend.
    """
    highest = max(orders)
    found = np.zeros((*values.shape[:-1], len(orders), len(centres)))
    for some, near in _near(z, centres, noise):
        u = (z[some, None] - centres[near]) / noise
        seen = np.exp(-u * u / 2) / (np.sqrt(2 * np.pi) * noise)
        below = np.zeros_like(seen)
        for order in range(highest + 1):
            if order in orders:
                found[..., orders.index(order), near] += values[..., some] @ seen
            seen, below = u * seen - order * below, seen
    return found


def _near(z: np.ndarray, centres: np.ndarray, noise: float) -> list[tuple[slice, slice]]:
    """Blocks of z with the centres that see them."""
    # Between nodes that are far apart there may be more blocks than memory holds.
    block = np.floor((z - z[0]) / (_TOGETHER_SEEN * noise))
    ends = np.concatenate([[0], np.flatnonzero(np.diff(block)) + 1, [len(z)]])
    found = []
    for start, stop in pairwise(ends.tolist()):
        if start < stop:
            between = [z[start] - REACH * noise, z[stop - 1] + REACH * noise]
            first, last = np.searchsorted(centres, between).tolist()
            found.append((slice(start, stop), slice(first, last)))
    return found


class WeakFactor(Factor):
    """Orders 0, 1, ... of Hermite polynomials of z in place of ξ, and tⁿ in place of weights."""

    @property
    def one(self) -> np.ndarray:
        """1, 0, 0, ..."""
        return np.eye(len(self.weights))[0]

    def averaged(
        self, values: np.ndarray, z: np.ndarray, orders: Sequence[int] = (0,)
    ) -> np.ndarray:
        """⟨f h_n(z)⟩, and of an order i > 0 ⟨f^(i) h_n⟩ √(1 − t)^i, shape (..., orders, n)."""
        count = len(self.weights)
        n = np.arange(count)
        h = hermite(count + max(orders), z) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        found = np.zeros((*values.shape[:-1], len(orders), count))
        for place, order in enumerate(orders):
            raised = np.prod([n + i for i in range(1, order + 1)], axis=0) ** 0.5
            found[..., place, :] = values @ h[order : order + count].T
            found[..., place, :] *= raised * self.noise**order
        return found


def hermite(count: int, z: np.ndarray) -> np.ndarray:
    """Orthonormal h_n(z), n < count, shape (count, len(z))."""
    found = np.ones((count, len(z)))
    for n in range(count - 1):
        below = np.sqrt(n) * found[n - 1] if n else 0.0
        found[n + 1] = (z * found[n] - below) / np.sqrt(n + 1)
    return found


# Steps between nodes for 1e-12 where nothing is shared.
_STEP = 0.845
# Shares of which orders are taken; powers left out beside the lowest order of an observable.
WEAK, _LEFT_OUT, _LOWEST = 0.1, 1e-17, 4


def factor(t: float, resolution: Resolution, weak: float = WEAK, reach: float = REACH) -> Factor:
    """The common factor of two variables of the correlation t, 0 <= t < 1; of orders if weak."""
    if t <= weak:
        orders = 1 if t == 0 else 1 + _LOWEST + int(np.log(_LEFT_OUT) / np.log(t))
        return WeakFactor(t, np.zeros(orders), t ** np.arange(orders))
    step = resolution.step * _STEP / np.sqrt(1 + 2 * t / (1 - t))
    number = int((reach - _LESS) / step) + 1
    xi = step * (np.arange(-number, number) + 0.25)
    return Factor(t, xi, step * np.exp(-xi * xi / 2) / np.sqrt(2 * np.pi))


def factor_size(t: float) -> float:
    """About how many nodes a factor has."""
    return float(2 * (REACH - _LESS) / _STEP * np.sqrt(1 + 2 * t / max(1 - t, 1e-300)))


@dataclass(frozen=True, eq=False)
class Plane:
    """Signals h = A z with kinks.

    Parameters
    ----------
    A : ndarray, shape (m, 2)
    kinks : tuple of float
        Where functions of any of the signals are not smooth, or change fastest.
    reach : float
        Its radius.
    """

    A: np.ndarray
    kinks: Sequence[float]
    reach: float = REACH

    def cuts(self, noise: tuple[float, float], panel: float) -> np.ndarray:
        """Ends of the panels of z_1, where the average over z_2 is seen with the noise."""
        widest = panel * noise[0]
        cuts = [_even(-self.reach, self.reach, widest)]
        for along, across in self.A:
            if not along:
                continue
            ratio = abs(across / along)
            half, width = self.reach * ratio, panel * noise[1] * ratio
            beside = half + graded(BESIDE / abs(along), widest)
            for kink in self.kinks:
                centre = kink / along
                low, high = max(-self.reach, centre - half), min(self.reach, centre + half)
                if width < widest and low < high:
                    cuts.append(_even(low, high, width))
                if width < widest:
                    cuts += [np.array([centre]), centre + beside, centre - beside]
        return distinct(np.concatenate([*cuts, *self._meetings(widest)]), self.reach)

    def _meetings(self, widest: float) -> list[np.ndarray]:
        """z_1 where two signals are at kinks, and panels beside as wide as those of both."""
        found = []
        for (a, b), (c, d) in combinations(self.A, 2):
            determinant = a * d - b * c
            if determinant:
                beside = graded(BESIDE * (abs(b) + abs(d)) / abs(determinant), widest)
                around = np.concatenate([-beside, [0.0], beside])
                found += [
                    (k * d - l * b) / determinant + around for k in self.kinks for l in self.kinks
                ]
        return found

    @property
    def is_line(self) -> bool:
        """Whether z_2 is in no signal."""
        return not self.A[:, 1].any()

    def size(self, noise: tuple[float, float], panel: float) -> float:
        """About how many nodes it takes."""
        columns = 1.0 if self.is_line else 2 * self.reach / (panel * noise[1]) * ORDER
        return len(self.cuts(noise, panel)) * ORDER * columns

    def given(
        self,
        functions: Functions,
        z: np.ndarray,
        second: Factor,
        panel: float,
        orders: Sequence[int] = (0,),
    ) -> np.ndarray:
        """⟨f⟩ over z_2 at z_1 = z given its factor, shape (functions, orders, len(z), n).

        The orders are those of `Factor.seen`.
        """
        if self.is_line:
            values = functions(*(along * z for along in self.A[:, 0]))
            return values[:, None, :, None] * second.one
        edges = _even(-self.reach, self.reach, panel * second.noise)
        nodes, _ = composite(edges, ORDER)
        if len(nodes) * len(z) > _MOST_NODES:
            raise QuadratureError(
                f"signals with kinks that are nearly parallel take {len(nodes) * len(z)} nodes"
            )
        rows = max(1, _TOGETHER // len(nodes))
        parts = []
        for start in range(0, len(z), rows):
            part = z[start : start + rows]
            values = self._on_nodes(functions, part, edges)
            parts.append(second.averaged(values, nodes, orders))
        return np.swapaxes(np.concatenate(parts, axis=1), 1, 2)

    def _on_nodes(self, functions: Functions, z: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """f times weights at the nodes of z_2, as if it had no kinks, (functions, z, nodes)."""
        widest = edges[1] - edges[0]
        moving = [np.empty((len(z), 0))]
        for along, across in self.A:
            if across:
                beside = graded(BESIDE / abs(across), widest)
                around = np.concatenate([-beside, [0.0], beside])
                for kink in self.kinks:
                    moving.append((kink - along * z[:, None]) / across + around)

        def of_rows(row: np.ndarray, other: np.ndarray) -> np.ndarray:
            return functions(*(along * z[row] + across * other for along, across in self.A))

        return on_panels(of_rows, edges, np.concatenate(moving, axis=1))


def on_panels(
    f: Callable[[np.ndarray, np.ndarray], np.ndarray], edges: np.ndarray, cuts: np.ndarray
) -> np.ndarray:
    """f times weights at the nodes of panels, as if it had no kinks at the cuts of its row.

    What a panel with cuts has is integrated between these against Legendre polynomials.

    Parameters
    ----------
    f : callable
        Of numbers of rows and of places, arrays that broadcast, to (functions, *shape).
    edges : ndarray, shape (panels + 1,)
    cuts : ndarray, shape (rows, n)

    Returns
    -------
    ndarray, shape (functions, rows, panels * ORDER)
    """
    nodes, weights = composite(edges, ORDER)
    count, rows = len(edges) - 1, np.arange(len(cuts))
    row, panel, low, high = _pieces(edges, cuts)
    found = f(rows[:, None], nodes) * weights
    found = found.reshape(len(found), len(cuts) * count, ORDER)
    if len(row):
        x, w = legendre(ORDER)
        half = (high - low) / 2
        own = (low + high)[:, None] / 2 + half[:, None] * x
        values = f(row[:, None], own) * (half[:, None] * w)
        middle, width = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        polynomials = np.polynomial.legendre.legvander(
            (own - middle[panel, None]) / width[panel, None], ORDER - 1
        )
        moments = values.transpose(1, 0, 2) @ polynomials @ _on_panel()
        places, first = np.unique(row * count + panel, return_index=True)
        found[:, places] = np.add.reduceat(moments, first).transpose(1, 0, 2)
    return found.reshape(len(found), len(cuts), -1)


def _pieces(edges: np.ndarray, cuts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of all panels that are cut, the parts: row, panel, and ends, in this order."""
    cuts = np.concatenate([cuts, np.tile(edges, (len(cuts), 1))], axis=1)
    cuts = np.sort(np.clip(cuts, edges[0], edges[-1]), axis=1)
    low, high = cuts[:, :-1], cuts[:, 1:]
    panel = np.clip(np.searchsorted(edges, (low + high) / 2) - 1, 0, len(edges) - 2)
    share = (high - low) / np.diff(edges)[panel]
    row, place = np.nonzero((share > _WHOLE) & (share < 1 - _WHOLE))
    return row, panel[row, place], low[row, place], high[row, place]


def _on_panel() -> np.ndarray:
    """Integrals against Legendre polynomials as values at the nodes times weights, (n, nodes)."""
    x, w = legendre(ORDER)
    n = np.arange(ORDER)[:, None]
    return (n + 0.5) * np.polynomial.legendre.legvander(x, ORDER - 1).T * w


def _even(low: float, high: float, width: float) -> np.ndarray:
    return np.linspace(low, high, int(np.ceil((high - low) / width)) + 1)


def graded(first: float, reach: float) -> np.ndarray:
    """Distances from a kink that grow to the reach."""
    if first >= reach:
        return np.zeros(0)
    return first * _GROWTH ** np.arange(int(np.ceil(np.log(reach / first) / np.log(_GROWTH))) + 1)


def distinct(cuts: np.ndarray, reach: float = REACH) -> np.ndarray:
    """Ends of panels in ascending order, inside of the plane and none twice."""
    cuts = np.unique(np.clip(cuts, -reach, reach))
    return cuts[np.concatenate([[True], np.diff(cuts) > _WHOLE])]
