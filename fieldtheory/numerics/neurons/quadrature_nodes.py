"""Functions of one neuron as values on quadrature nodes, for φ with breakpoints or narrow features.

Nodes are those of Gauss-Legendre panels in z = h/√K*. The panels of φ² end at its breakpoints. What
noise makes of a breakpoint of an earlier layer is smooth on the scale of the noise: panels are as
narrow as that where it is, and grow with the distance from it.

    (P_jᵀ u)(z') = (1/j!) (2C)^{-j} ⟨u(c z' + s w) He_2j(s z' − c w)⟩,   w ~ N(0, 1)

with the correlation c of the signals of two layers and s² = 1 − c² = C/K'. The integral over a
panel is a sum over its nodes if it is narrower than a few s, else over subdivisions, on which u is
the polynomial through the nodes of the panel.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import comb, factorial, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import hermite_e, legendre
from scipy import sparse

from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.numerics.neurons.interacting_neurons import Observable, of_the_mean, raising
from fieldtheory.numerics.neurons.node_panels import (
    NODES,
    Nodes,
    agree,
    gauss,
    layer_nodes,
    smoothed_features,
)


class NodeStep(NamedTuple):
    """From the nodes of one layer to those of the next."""

    # Of the next layer.
    nodes: Nodes
    # c of the signals of the two layers, and K* in the next one.
    correlation: float
    variance: float
    # P_jᵀ, j = 0, 1, ...
    matrices: list[Any]
    # (n, k) and (n', k + 6): Hermite polynomials on the nodes of the two layers.
    low: np.ndarray
    raised: np.ndarray
    factors: None = None

    def unit(self, order: int) -> np.ndarray:
        """The Hermite polynomial of this order."""
        return self.raised[:, order // self.nodes.stride]

    def to_next(self, j: int, u: np.ndarray) -> np.ndarray:
        """P_jᵀ u, or of all columns of u."""
        if j == 0:
            return self.matrices[j] @ u
        stride, count, parts = self.nodes.stride, self.low.shape[1], self.low.T @ u
        first = 2 * j // stride
        factors = of_the_mean(self, j) * raising(count + first, stride, j)
        factors = factors * self.correlation ** (stride * np.arange(count))
        exact = self.raised[:, first : count + first] @ (factors * parts.T).T
        return self.matrices[j] @ (u - self.low @ parts) + exact


def on_nodes(
    square: Function,
    weights: np.ndarray,
    K: np.ndarray,
    correlations: np.ndarray,
    noise: np.ndarray,
    count: int,
    highest: int,
) -> Iterator[tuple[Observable, NodeStep | None]]:
    """The observable of every layer l = 0, ..., L and the step to the next one."""
    stride, smoothed = 2 if square.parity == 1 else 1, np.zeros((2, 0))
    here, own = layer_nodes(square, float(K[0]), smoothed, count, stride)
    step, stays, previous = None, False, np.zeros(4)
    for l in range(len(K)):
        g = np.asarray(square(np.sqrt(K[l]) * here.z), dtype=float)
        a, mean = weights[l], here.mean(g)
        D = a * (g - mean)
        vector = here.project(D)
        observable = Observable(here, D, vector, vector, here.mean(D**2), mean)
        if l == len(K) - 1:
            yield observable, None
            return
        c, s, variance = float(correlations[l]), float(noise[l]), float(K[l + 1])
        # Layers at a fixed point of the kernel share nodes and steps.
        parameters = np.array([K[l], variance, c, s])
        if step is None or not stays or np.abs(parameters - previous).max() > NODES.equal:
            smoothed = smoothed_features(np.concatenate([smoothed, own], axis=1), c, s)
            there, own = layer_nodes(square, variance, smoothed, count, stride)
            stays = agree(here, there)
            there = here if stays else there
            matrices = _matrices(here, there, c, s, variance, highest)
            step = NodeStep(
                there,
                c,
                variance,
                matrices,
                here.units(NODES.low),
                there.units(NODES.low + 6),
            )
            previous = parameters
        yield observable, step
        here = step.nodes


def _matrices(
    here: Nodes, there: Nodes, c: float, s: float, variance: float, highest: int
) -> list[Any]:
    """P_jᵀ, j <= highest."""
    edges, count = here.edges, len(here.z) // (len(here.edges) - 1)
    if here.stride == 2:
        edges = np.concatenate([-edges[:0:-1], edges])
    centres, reach = c * there.z, NODES.noise * s
    first = np.clip(np.searchsorted(edges, centres - reach, side="right") - 1, 0, len(edges) - 2)
    last = np.clip(np.searchsorted(edges, centres + reach, side="left") - 1, first, len(edges) - 2)
    sizes = last - first + 1
    starts = np.concatenate([[0], np.cumsum(sizes)])
    row = np.repeat(np.arange(len(centres)), sizes)
    panel = np.arange(starts[-1]) + np.repeat(first - starts[:-1], sizes)
    blocks = _Blocks(c, s, variance, there.z[row], edges[panel], edges[panel + 1], count, highest)
    entries = blocks.entries()
    columns = panel[:, None] * count + np.arange(count)
    if here.stride == 2:
        size = len(here.z)
        columns = np.where(columns < size, size - 1 - columns, columns - size)
    entries *= there.roots[row, None] / here.roots[columns]
    shape, pointers = (len(there.z), len(here.z)), starts * count
    return [
        sparse.csr_matrix((values.ravel(), columns.ravel(), pointers), shape) for values in entries
    ]


class _Blocks(NamedTuple):
    """Contributions of the nodes of a panel of one layer at a node of the next, by pairs."""

    # The correlation, the deviation of the noise, and K' of the next layer.
    c: float
    s: float
    variance: float
    # (m,): The nodes of the next layer, and the ends of the panels.
    z: np.ndarray
    low: np.ndarray
    high: np.ndarray
    # Nodes of a panel, and the largest j of P_j.
    size: int
    highest: int

    def entries(self) -> np.ndarray:
        """Those of all pairs, shape (highest + 1, m, count)."""
        blocks = np.zeros((self.highest + 1, len(self.z), self.size))
        centre, reach = self.c * self.z, NODES.noise * self.s
        single = (self.low <= centre - reach) & (centre + reach <= self.high)
        narrow = self.high - self.low <= NODES.smoothed * self.s
        split = ~narrow & ~single
        for some, of in (
            (narrow, _Blocks._of_narrow),
            (split, _Blocks._of_parts),
            (single, _Blocks._of_derivatives),
        ):
            if some.any():
                pairs = self._replace(z=self.z[some], low=self.low[some], high=self.high[some])
                blocks[:, some] = of(pairs)
        return blocks

    def _of_narrow(self) -> np.ndarray:
        """On the nodes of the panels themselves."""
        nodes, weights = gauss(self.size)
        half = (self.high - self.low)[:, None] / 2
        z = (self.high + self.low)[:, None] / 2 + half * nodes
        return np.stack(self._weighted(z, half * weights, self.z))

    def _of_parts(self) -> np.ndarray:
        """On subdivisions of the panels, within the reach of the noise."""
        start = np.maximum(self.low, self.c * self.z - NODES.noise * self.s)
        end = np.minimum(self.high, self.c * self.z + NODES.noise * self.s)
        parts = np.maximum(np.ceil((end - start) / (NODES.part * self.s)).astype(int), 1)
        ends = np.concatenate([[0], np.cumsum(parts)])
        pair = np.repeat(np.arange(len(parts)), parts)
        step = ((end - start) / parts)[pair]
        begin = start[pair] + (np.arange(ends[-1]) - ends[pair]) * step
        nodes, weights = gauss(NODES.part_nodes)
        z = begin[:, None] + step[:, None] * (nodes + 1) / 2
        values = self._weighted(z, step[:, None] * weights / 2, self.z[pair])
        polynomials = np.moveaxis(self._legendre(z, pair), 0, 1)
        moments = np.add.reduceat(polynomials @ np.stack(values, axis=-1), ends[:-1], axis=0)
        return np.moveaxis(moments, -1, 0) @ _fit(self.size)

    def _of_derivatives(self) -> np.ndarray:
        """Averages of derivatives where u is one polynomial, without powers of 1/s."""
        nodes, weights = hermite_e.hermegauss(self.size // 2 + 1)
        z = self.c * self.z[:, None] + self.s * nodes
        moments = self._legendre(z, np.arange(len(self.z))) @ (weights / weights.sum())
        derivatives = [moments.T]
        half = (self.high - self.low)[:, None] / 2
        for _ in range(2 * self.highest):
            derivatives.append(derivatives[-1] @ _derivative(self.size) / half)
        blocks, scale = [], 1 / (2 * self.variance) if self.variance > 0 else 0.0
        for j in range(self.highest + 1):
            total = np.zeros_like(derivatives[0])
            for m in range(2 * j + 1):
                factor = comb(2 * j, m) * (-self.c) ** m * scale**j / factorial(j)
                hermite = hermite_e.hermeval(self.z, np.eye(2 * j + 1)[2 * j - m])
                total += factor * hermite[:, None] * derivatives[m]
            blocks.append(total @ _fit(self.size))
        return np.stack(blocks)

    def _weighted(self, z: np.ndarray, weight: np.ndarray, after: np.ndarray) -> list[np.ndarray]:
        """Weights times the density of z given z' times He_2j/(j! (2C)^j)."""
        w = (z - self.c * after[:, None]) / self.s
        density = weight * np.exp(-w * w / 2) / (sqrt(2 * np.pi) * self.s)
        x = (after[:, None] * self.s - self.c * w) ** 2
        # Kernels of signals that vanish do not fluctuate.
        scale = 1 / (2 * self.variance * self.s**2) if self.variance > 0 else 0.0
        polynomials = (1.0, x - 1, (x - 6) * x + 3, ((x - 15) * x + 45) * x - 15)
        return [
            density * (polynomials[j] * (scale**j / factorial(j))) for j in range(self.highest + 1)
        ]

    def _legendre(self, z: np.ndarray, pair: np.ndarray) -> np.ndarray:
        """Legendre polynomials of the panels of pairs, shape (size, ...)."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        x = (z - middle[pair, None]) / half[pair, None]
        polynomials = np.ones((self.size, *x.shape))
        polynomials[1] = x
        for n in range(1, self.size - 1):
            polynomials[n + 1] = ((2 * n + 1) * x * polynomials[n] - n * polynomials[n - 1]) / (
                n + 1
            )
        return polynomials


@lru_cache(maxsize=16)
def _fit(count: int) -> np.ndarray:
    """Legendre coefficients from values at the nodes of a panel."""
    return np.linalg.inv(legendre.legvander(gauss(count)[0], count - 1))


@lru_cache(maxsize=16)
def _derivative(count: int) -> np.ndarray:
    """The Legendre coefficients of the derivatives of Legendre polynomials, one a column."""
    padded = np.zeros((count, count))
    padded[:-1] = legendre.legder(np.eye(count))
    return padded
