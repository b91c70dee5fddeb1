"""Averages of functions of two layers given what two nearly parallel inputs share of them.

With the signals and nodes of `parallel_nodes` these are F(ξ, η) = ⟨f(x) g(y)⟩. Where no kink of f
is in sight of the noise, f is a polynomial there, and with the shared parts u of x and v of y
(Mehler's series)

    F = Σ_n ϱⁿ/n! ⟨f(u + σζ) He_n(ζ)⟩ ⟨g(v + sζ) He_n(ζ)⟩,        s² = A²σ² + τ²,  ϱ = Aσ/s.

Where one is in sight x takes panels, the same for all ξ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np

from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.numerics.kinks.kinked_planes import BESIDE, ORDER, averages_seen, graded, on_panels
from fieldtheory.numerics.kinks.parallel_nodes import SIGHT, Centre, Signals, Strip, beside, strips
from fieldtheory.numerics.kinks.smoothed_features import Smoothed

# Numbers of orders of Mehler's series, whose nodes reach less far than the sight, and what they may
# leave out; orders that finer rules take beside these.
_COUNTS, _LEFT_OUT, _MORE, _FINE = (8, 12, 16, 20, 24, 28), 1e-14, 2, 4.0
# Panels in units of those of planes, where integrands have kinks.
_WIDER = 1.25
# Nodes at once, so that the work arrays stay in the cache.
_BLOCK = 1 << 12
# Of a panel, what is no part of it but rounding.
_WHOLE = 1e-12

# Functions of a signal: an array to values (functions, *shape).
Functions = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class NearlyParallel:
    """What two inputs share as nodes and weights, and averages of either input given that.

    Parameters
    ----------
    inputs : sequence of Signals
    kinks : sequence of float
        Of all functions.
    centres : sequence of float
        The kinks, and where functions change fastest.
    panel : float
        The widest panel in deviations of what it has to resolve, as in planes.
    """

    inputs: Sequence[Signals]
    kinks: Sequence[float]
    centres: Sequence[float]
    panel: float

    @property
    def early_weights(self) -> np.ndarray:
        """Of ξ, shape (n,)."""
        return np.concatenate([strip.xi_weights for strip in self._strips])

    @property
    def weights(self) -> np.ndarray:
        """Of ξ and η, shape (nodes,)."""
        return np.concatenate([strip.weights for strip in self._strips])

    @property
    def shared(self) -> tuple[np.ndarray, np.ndarray]:
        """ξ and η, each of the shape (nodes,)."""
        xi, eta = zip(*(strip.shared for strip in self._strips), strict=True)
        return np.concatenate(xi), np.concatenate(eta)

    def of_first(self, f: Functions) -> np.ndarray:
        """⟨f(x)⟩ of either input given ξ, shape (2, functions, n)."""
        found = [[self._of_first(strip, one, f) for strip in self._strips] for one in self.inputs]
        return np.array([np.concatenate(parts, axis=1) for parts in found])

    def of_both(
        self, f: Functions, g: Functions, orders: Sequence[int] = (0,), given_first: bool = False
    ) -> np.ndarray:
        """⟨f(x) g⁽ⁱ⁾(y)⟩ of either input, shape (2, functions f, functions g, orders, nodes).

        Parameters
        ----------
        f, g : callable
        orders : sequence of int
            The i, of derivatives by the mean of y; 0 where there is no noise beside that of x.
        given_first : bool
            Given ξ, whatever η is, with n in place of the nodes.
        """
        parts, inputs = self._strips, self.inputs
        if given_first:
            parts = [strip.given_first for strip in parts]
            inputs = [one.given_first for one in inputs]
        found = []
        for one in inputs:
            values = [self._of_both(strip, one, f, g, orders) for strip in parts]
            found.append(np.concatenate(values, axis=3))
        return np.array(found)

    @cached_property
    def _strips(self) -> list[Strip]:
        centres = [Centre(place, place in self.kinks) for place in self.centres]
        return strips(self.inputs, centres, self._widest)

    @property
    def _widest(self) -> float:
        return _WIDER * self.panel

    def _noise(self, sigma: float) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights for functions whose poles are further away than their kinks by 1."""
        share = sigma / (SIGHT * sigma + 1)
        enough = [n for n in _COUNTS if factorial(n) ** 0.5 * share**n < _LEFT_OUT]
        count = min([*enough, _COUNTS[-1]]) + _MORE * (self.panel < _FINE)
        zeta, weights = np.polynomial.hermite_e.hermegauss(count)
        return zeta, weights / weights.sum()

    def _of_first(self, strip: Strip, one: Signals, f: Functions) -> np.ndarray:
        if strip.near:
            none = np.empty((1, 0))
            return self._seen(strip, one, lambda _, x: f(x), none)[:, 0]
        zeta, weights = self._noise(one.sigma)
        return f(one.e * strip.xi[:, None] + one.sigma * zeta) @ weights

    def _of_both(
        self, strip: Strip, one: Signals, f: Functions, g: Functions, orders: Sequence[int]
    ) -> np.ndarray:
        if not len(strip.row):
            # All that is there has no weight.
            none = np.zeros(1)
            return np.empty((len(f(none)), len(g(none)), len(orders), 0))
        if one.tau:
            return (self._near if strip.near else self._far)(strip, one, f, g, orders)

        def product(x: np.ndarray) -> np.ndarray:
            return (f(x)[:, None] * g(one.A * x)).reshape(-1, *x.shape)

        found = self._of_first(strip, one, product)
        return found.reshape(len(f(np.zeros(1))), -1, 1, len(strip.xi))

    def _far(
        self, strip: Strip, one: Signals, f: Functions, g: Functions, orders: Sequence[int]
    ) -> np.ndarray:
        """Where no kink of f is in sight."""
        zeta, weights = self._noise(one.sigma)
        count, more = len(zeta), max(orders)
        polynomials = np.polynomial.hermite_e.hermevander(zeta, count - 1)
        powers = np.cumprod([1.0, *(one.A * one.sigma / one.s / np.arange(1, count))])
        at = one.e * strip.xi[:, None] + one.sigma * zeta
        of_f = np.moveaxis(f(at) @ (weights[:, None] * polynomials * powers), 2, 1)
        v = one.A * one.e * strip.xi[strip.row] + one.m * strip.eta
        table = self._table(g, one.s, v, range(count + more))
        found = []
        for start in range(0, len(v), _BLOCK):
            some = slice(start, start + _BLOCK)
            of_g = table(v[some]).reshape(-1, count + more, len(v[some]))
            early = of_f[..., strip.row[some]]
            met = [np.einsum("fkn,gkn->fgn", early, of_g[:, i : i + count]) for i in orders]
            found.append(np.stack(met, axis=2))
        return np.concatenate(found, axis=3) / one.s ** np.array(orders)[:, None]

    def _near(
        self, strip: Strip, one: Signals, f: Functions, g: Functions, orders: Sequence[int]
    ) -> np.ndarray:
        """Where one is."""
        furthest = abs(one.e) * np.abs(strip.xi).max() + 2 * SIGHT * one.sigma
        reach = abs(one.A) * furthest + abs(one.m) * np.abs(strip.eta).max()
        table = self._table_up_to(g, one.tau, float(reach), orders)

        def of_rows(row: np.ndarray, x: np.ndarray) -> np.ndarray:
            x, mean = np.broadcast_arrays(x, one.m * strip.eta[row])
            return (f(x)[:, None] * table(one.A * x + mean)).reshape(-1, *x.shape)

        cuts = self._cuts(one, one.m * strip.eta[:, None])
        found = np.swapaxes(self._seen(strip, one, of_rows, cuts), 1, 2)
        found = found.reshape(len(f(np.zeros(1))), -1, len(orders), len(strip.row))
        return found / one.tau ** np.array(orders)[:, None]

    def _cuts(self, one: Signals, mean: np.ndarray) -> np.ndarray:
        """Places x where y is near a kink or centre, of means (rows, 1) of the rest of y."""
        noise, widest = one.tau / abs(one.A), self._widest * one.sigma
        of_kink = np.zeros(1)
        if noise < one.sigma:
            of_kink = beside(self._widest * noise, SIGHT * noise, widest)
        of_centre = graded(BESIDE / abs(one.A), widest)
        found = [np.empty((len(mean), 0))]
        for place in self.centres:
            around = of_kink if place in self.kinks else of_centre
            found.append((place - mean) / one.A + np.concatenate([-around, around]))
        return np.concatenate(found, axis=1)

    def _seen(
        self,
        strip: Strip,
        one: Signals,
        of_rows: Callable[[np.ndarray, np.ndarray], np.ndarray],
        cuts: np.ndarray,
    ) -> np.ndarray:
        """Averages over the noise of functions of x with cuts, shape (functions, rows, n)."""
        u, width = one.e * strip.xi, self._widest * one.sigma
        low, high = u.min() - SIGHT * one.sigma, u.max() + SIGHT * one.sigma
        around = graded(BESIDE, width)
        edges = [np.linspace(low, high, int(np.ceil((high - low) / width)) + 1)]
        edges += [place + np.concatenate([-around, [0.0], around]) for place in self.centres]
        ends = np.unique(np.clip(np.concatenate(edges), low, high))
        ends = ends[np.concatenate([[True], np.diff(ends) > _WHOLE * width])]
        values = on_panels(of_rows, ends, cuts)
        x, _ = composite(ends, ORDER)
        ascending = slice(None, None, -1 if one.e < 0 else 1)
        return averages_seen(values, x, u[ascending], one.sigma)[..., 0, ascending]

    def _table(
        self, g: Functions, noise: float, means: np.ndarray, orders: Sequence[int]
    ) -> Smoothed:
        return self._table_up_to(g, noise, float(np.abs(means).max()), orders)

    def _table_up_to(
        self, g: Functions, noise: float, reach: float, orders: Sequence[int]
    ) -> Smoothed:
        return Smoothed.of(g, self.centres, noise, reach, np.inf, self.panel, orders)
