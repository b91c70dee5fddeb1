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
from dataclasses import dataclass
from functools import lru_cache
from math import comb, factorial, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import hermite_e, legendre
from scipy import sparse

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.routes import SETTINGS
from fieldtheory.numerics.neurons.interacting_neurons import Observable, of_the_mean, raising


@dataclass(frozen=True)
class NodeSettings:
    """Numbers of the nodes of neurons."""

    # Deviations of the signals and of the noise beyond which the Gaussian is negligible.
    reach: float = 10.0
    noise: float = 8.5
    # Widths of panels: of the widest in deviations of the signals, and at a breakpoint of an
    # earlier layer in deviations of the noise since then.
    widest: float = 1.7
    smoothed: float = 6.0
    # Subdivisions of wider panels: their widths in deviations of the noise, and their nodes.
    part: float = 4.25
    part_nodes: int = 14
    # Hermite polynomials whose part of a function is moved on exactly: derivatives of narrow
    # Gaussians leave less rounding without them.
    low: int = 10
    # Differences of variances and correlations of layers that are rounding.
    equal: float = 1e-14


NODES = NodeSettings()


class Nodes(NamedTuple):
    """Functions of z = h/√K* by their values times the roots of the weights of the nodes."""

    # (m + 1,): Of the panels; on z >= 0 for even functions.
    edges: np.ndarray
    # (n,): The squares of the roots are the weights of averages over N(0, 1).
    z: np.ndarray
    roots: np.ndarray
    # 2 for even functions, on z > 0.
    stride: int

    @property
    def averaging_2(self) -> np.ndarray:
        """Averaging vector for h_2."""
        return self.unit(2)

    def project(self, values: np.ndarray) -> np.ndarray:
        """The vector of a function with these values."""
        return values * self.roots

    def averaging(self, values: np.ndarray) -> np.ndarray:
        """The same."""
        return values * self.roots

    def multiply(self, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """The vectors of products."""
        return values * vectors

    def mean(self, values: np.ndarray) -> float:
        """⟨F⟩."""
        return float(values @ self.roots**2)

    def unit(self, order: int) -> np.ndarray:
        """The vector of h_n."""
        return self.units(order + 1)[:, -1]

    def units(self, count: int) -> np.ndarray:
        """Those of the orders below ``count`` that occur, h_0, h_1, ... or h_0, h_2, ..."""
        norms = np.sqrt([float(factorial(n)) for n in range(count)])
        polynomials = self.roots[:, None] * hermite_e.hermevander(self.z, count - 1) / norms
        return polynomials[:, :: self.stride]

    def centred(self, vectors: np.ndarray) -> np.ndarray:
        """The vectors of F − ⟨F⟩."""
        return vectors - np.multiply.outer(vectors @ self.roots, self.roots)


def agree(one: Nodes, other: Nodes) -> bool:
    """Whether nodes of two layers are the same but for rounding."""
    return len(one.edges) == len(other.edges) and np.allclose(
        one.edges, other.edges, rtol=1e-14, atol=1e-14
    )


def layer_nodes(
    square: Function, K: float, smoothed: np.ndarray, count: int, stride: int
) -> tuple[Nodes, np.ndarray]:
    """The nodes of a layer, and the edges of φ² in z with the widths of panels there (2, m)."""
    root = sqrt(K)
    edges = np.array([-NODES.reach, 0.0, NODES.reach])
    own = np.zeros((2, 0))
    if K > 0:
        inner = square.edges(NODES.reach * root)
        widths = np.minimum(np.append(np.inf, np.diff(inner)), np.append(np.diff(inner), np.inf))
        widths[np.isin(inner, square.kinks)] = 0.0
        own = np.array([inner, widths]) / root
        own = own[:, np.abs(own[0]) < NODES.reach]
        edges = np.concatenate([edges, own[0]])
    exact = smoothed[0][(smoothed[1] == 0) & (np.abs(smoothed[0]) < NODES.reach)]
    edges = np.unique(np.concatenate([edges, exact]))
    edges = split_panels(edges, smoothed[:, smoothed[1] > 0], NODES.widest)
    if stride == 2:
        edges = np.append(0.0, edges[edges > 0])
    if (len(edges) - 1) * count > SETTINGS.node_count:
        raise QuadratureError(
            f"{(len(edges) - 1) * count} nodes are needed, allowed are {SETTINGS.node_count}: the "
            "activation has too many or too narrow features for the variance of its signals"
        )
    x, weights = gauss(count)
    half = np.diff(edges)[:, None] / 2
    z = ((edges[1:] + edges[:-1])[:, None] / 2 + half * x).ravel()
    bell = (half * weights).ravel() * stride * np.exp(-z * z / 2) / sqrt(2 * np.pi)
    return Nodes(edges, z, np.sqrt(bell), stride), own


def split_panels(edges: np.ndarray, features: np.ndarray, widest: float) -> np.ndarray:
    """The edges with as many more that panels resolve features with centres and widths (2, m)."""
    low, high, kept = edges[:-1], edges[1:], [edges]
    while len(low):
        places, widths = features[:, :, None]
        distance = np.maximum(np.maximum(low - places, places - high), 0.0)
        allowed = np.maximum(widths, distance).min(axis=0, initial=widest)
        wide = high - low > 1.0001 * allowed
        low, high = low[wide], high[wide]
        middle = (low + high) / 2
        kept.append(middle)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return np.unique(np.concatenate(kept))


def smoothed_features(features: np.ndarray, c: float, s: float) -> np.ndarray:
    """Places and widths (2, m) of what noise makes of features u(z) as functions of z'."""
    if c == 0:
        return np.zeros((2, 0))
    places, widths = (
        features[0] / c,
        np.sqrt(features[1] ** 2 + (NODES.smoothed * s) ** 2) / abs(c),
    )
    inside = (np.abs(places) < 2 * NODES.reach) & (widths < 2 * NODES.widest)
    order = np.argsort(widths[inside], kind="stable")
    places, widths = places[inside][order], widths[inside][order]
    kept = np.ones(len(places), dtype=bool)
    for i in range(len(places)):
        if kept[i]:
            near = np.abs(places[i + 1 :] - places[i]) <= widths[i + 1 :] / 2
            kept[i + 1 :] &= ~near
    return np.array([places[kept], widths[kept]])


@lru_cache(maxsize=16)
def gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the Gauss-Legendre rule on [−1, 1]."""
    return legendre.leggauss(count)


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
    neurons: Any, count: int, highest: int
) -> Iterator[tuple[Observable, NodeStep | None]]:
    """The observable of every layer l = 0, ..., L of `Neurons`, and the step to the next one."""
    square, weights, K = neurons.square, neurons.weights, neurons.K
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
        c, s = float(neurons.correlations[l]), float(neurons.noise[l])
        variance = float(K[l + 1])
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
