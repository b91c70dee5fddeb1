"""Nodes of one neuron's signals: Gauss-Legendre panels in z = h/√K* that resolve φ²."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial, sqrt
from typing import NamedTuple

import numpy as np
from numpy.polynomial import hermite_e, legendre

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.routes import SETTINGS


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
