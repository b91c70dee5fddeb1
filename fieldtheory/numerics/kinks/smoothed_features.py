"""Functions with kinks averaged over Gaussian noise, as functions of the mean.

    f_s(m) = ⟨f(m + s ζ)⟩,    sⁱ ∂ⁱ f_s(m) = ⟨f(m + s ζ) He_i(ζ)⟩

are smooth on the scale s near the kinks of f, and as f itself where these are out of sight. A
signal that is the sum of a part of another one and of noise needs them at many means: they are
Chebyshev series on panels that grow away from the kinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.numerics.interpolation import nodes, polynomials, transform
from fieldtheory.numerics.kinks.kinked_planes import BESIDE, ORDER, REACH, averages_seen, graded

# Nodes of a panel of means, where 16 would do for integrals.
_NODES = 24
# Step of the rule for noise that sees no kink, in deviations per width of a panel.
_STEP = 0.15
# Means at which series are summed at once.
_TOGETHER = 1 << 14
# Of a panel, what is no part of it but rounding.
_WHOLE = 1e-9

# Functions of a signal: an array to values (functions, *shape).
Functions = Callable[[np.ndarray], np.ndarray]


def averages(
    f: Functions,
    kinks: Sequence[float],
    s: float,
    means: np.ndarray,
    panel: float,
    orders: Sequence[int] = (0,),
) -> np.ndarray:
    """sⁱ ∂ⁱ f_s(m) at means that ascend, shape (functions, orders, len(means)).

    Parameters
    ----------
    f : callable
    kinks : sequence of float
    s : float
        Positive.
    means : ndarray
    panel : float
        The widest panel in deviations of the noise.
    orders : sequence of int
        The i.

    Examples
    --------
    >>> averages(lambda h: np.abs(h)[None], [0.0], 1.0, np.zeros(1), 3.4).ravel() ** 2 * np.pi / 2
    array([1.])
    """
    near = (np.abs(means[:, None] - np.asarray(kinks)) <= REACH * s).any(axis=1)
    (some,), (far,) = np.nonzero(near), np.nonzero(~near)
    found = np.empty((len(f(means[:1])), len(orders), len(means)))
    if len(some):
        h, weights = _around_kinks(kinks, s, means[some], panel)
        found[..., some] = averages_seen(f(h) * weights, h, means[some], s, orders)
    if len(far):
        step = _STEP * panel
        number = int(REACH / step) + 1
        zeta = step * np.arange(-number, number + 1)
        bell = step * np.exp(-zeta * zeta / 2) / np.sqrt(2 * np.pi)
        values = f(means[far, None] + s * zeta)
        polynomials = np.polynomial.hermite_e.hermevander(zeta, max(orders))
        found[..., far] = np.moveaxis(values @ (bell[:, None] * polynomials[:, list(orders)]), 2, 1)
    return found


def _around_kinks(
    kinks: Sequence[float], s: float, means: np.ndarray, panel: float
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights that serve all means in sight of a kink: panels that end at kinks."""
    width, places = panel * s, np.asarray(kinks)
    reach = int(2 * REACH / panel) + 2
    # Kinks that are near to each other share the cells of one lattice.
    cells = np.unique(np.floor(places / width)[:, None] + np.arange(-reach, reach + 1))
    low, high = means[0] - REACH * s, means[-1] + REACH * s
    cells = cells[(cells >= low / width - 1) & (cells <= high / width)]
    beside = graded(BESIDE, width)
    cuts = np.add.outer(places, np.concatenate([-beside, [0.0], beside])).ravel()
    edges = np.unique(np.concatenate([cells * width, (cells + 1) * width, cuts]))
    used = np.isin(np.floor((edges[1:] + edges[:-1]) / 2 / width), cells)
    used &= np.diff(edges) > _WHOLE * width
    h, weights = composite(np.stack([edges[:-1], edges[1:]], axis=1)[used], ORDER)
    return h.ravel(), weights.ravel()


@dataclass(frozen=True, eq=False)
class Smoothed:
    """sⁱ ∂ⁱ f_s as Chebyshev series.

    Parameters
    ----------
    edges : ndarray, shape (panels + 1,)
    coefficients : ndarray, shape (panels, functions * orders, n)
    """

    edges: np.ndarray
    coefficients: np.ndarray

    @classmethod
    def of(
        cls,
        f: Functions,
        kinks: Sequence[float],
        s: float,
        reach: float,
        widest: float,
        panel: float,
        orders: Sequence[int] = (0,),
    ) -> Smoothed:
        """Those of means up to the reach, on panels that are no wider than the widest."""
        # Means that all vanish take a panel too.
        edges = _edges(kinks, s, max(reach, s), widest, panel)
        half = np.diff(edges)[:, None] / 2
        means = edges[:-1, None] + half * (1 + nodes(_NODES))
        values = averages(f, kinks, s, means.ravel(), panel, orders)
        values = values.reshape(-1, len(half), _NODES) @ transform(_NODES).T
        return cls(edges, np.ascontiguousarray(np.swapaxes(values, 0, 1)))

    def __call__(self, means: np.ndarray) -> np.ndarray:
        """The values, shape (functions * orders, *means.shape)."""
        flat = means.ravel()
        found = np.empty((self.coefficients.shape[1], len(flat)))
        for start in range(0, len(flat), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            found[:, part] = self._at(flat[part])
        return found.reshape(-1, *means.shape)

    def _at(self, means: np.ndarray) -> np.ndarray:
        panel = np.searchsorted(self.edges[1:-1], means).astype(np.int16)
        # Panel by panel, so that series are products of matrices.
        order = np.argsort(panel, kind="stable")
        panel, means = panel[order], means[order]
        low, high = self.edges[panel], self.edges[panel + 1]
        T = polynomials((2 * means - low - high) / (high - low), _NODES)
        ends = np.searchsorted(panel, np.arange(len(self.edges)))
        summed = np.empty((self.coefficients.shape[1], len(means)))
        for series, (start, stop) in zip(self.coefficients, pairwise(ends.tolist()), strict=True):
            summed[:, start:stop] = series @ T[:, start:stop]
        found = np.empty_like(summed)
        found[:, order] = summed
        return found


def _edges(
    kinks: Sequence[float], s: float, reach: float, widest: float, panel: float
) -> np.ndarray:
    """Ends of panels that see the noise where kinks are in sight, and grow beyond."""
    width, sight = panel * s, REACH * s
    places = np.asarray(kinks)
    reached = int(REACH / panel) + 1
    near = np.unique(np.floor(places / width)[:, None] + np.arange(-reached, reached + 2)) * width
    edges = np.unique(np.concatenate([[-reach, reach], near[np.abs(near) < reach]]))
    while True:
        low, high = edges[:-1, None], edges[1:, None]
        gap = np.maximum(np.maximum(low - places, places - high), 0.0).min(axis=1)
        allowed = np.where(gap < sight * (1 - _WHOLE), 0.0, np.maximum(BESIDE, 2 * gap))
        allowed = np.maximum(np.minimum(allowed, widest), width) * (1 + _WHOLE)
        wide = np.diff(edges) > allowed
        if not wide.any():
            return edges
        edges = np.sort(np.concatenate([edges, (edges[1:] + edges[:-1])[wide] / 2]))
