"""Functions of one neuron as values on nodes, for φ with kinks.

A layer that adds little to its signals moves them by noise much narrower than they are, and a kink
is seen for many layers: as a series of Hermite polynomials it needs about K/C orders, with C the
kernel added. On panels that end at the kinks, as wide as a few deviations √C of the noise, it
needs about √(K/C) nodes, and noise leads from a node to a few dozen others.

P_j multiplies the density of the noise f = h' − γh by He_2j(f/√C)/(j! (2C)^j). Where only even
functions occur, nodes are those of h > 0, which noise reaches from h and from −h.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, factorial, log2, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import hermite_e
from scipy import sparse

from fieldtheory.averages.integrals.panels import evenly, graded_cuts
from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.neurons.hermite_modes import Observable, Square, overlooks, square_of
from fieldtheory.numerics.neurons.interacting_neurons import of_the_mean, raising

# Deviations of the signals and of the noise beyond which nothing is seen.
_REACH, _NOISE = 10.0, 8.5
# The widest noise that panels are made for, in deviations of the signals: narrower panels are
# narrower for wider noise, too. Panels at a kink are halved so many times, and more often where the
# signals are wide and φ has a scale.
_WIDEST, _HALVED = 0.25, 2
# He_2, He_4 and He_6 below their highest power, as polynomials in the square.
_LOWER_POWERS = (-1.0,), (-6.0, 3.0), (-15.0, 45.0, -15.0)
# Hermite polynomials whose part of a function is moved on exactly.
_LOW = 10


class Nodes(NamedTuple):
    """Functions of z = h/√K* by their values times the roots of the weights of the nodes.

    Parameters
    ----------
    z : ndarray, shape (n,)
    roots : ndarray, shape (n,)
        The squares are the weights of averages over N(0, 1).
    stride : {1, 2}
        2 for even functions, on z > 0.
    """

    z: np.ndarray
    roots: np.ndarray
    stride: int

    def project(self, values: np.ndarray) -> np.ndarray:
        """The vector of a function with these values."""
        return values * self.roots

    def functional(self, values: np.ndarray) -> np.ndarray:
        """The same: roots of weights are shared by both."""
        return self.project(values)

    def multiply(self, values: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """The vector of a product."""
        return values * coefficients

    def mean(self, values: np.ndarray) -> float:
        """⟨F⟩."""
        return float(values @ self.roots**2)

    def unit(self, order: int) -> np.ndarray:
        """The vector of h_n."""
        return self.units(order + 1)[:, -1]

    def units(self, count: int) -> np.ndarray:
        """Those of the orders below ``count`` that occur, h_0, h_1, ... or h_0, h_2, ..."""
        norms = np.sqrt([float(factorial(n)) for n in range(count)])
        found = self.roots[:, None] * hermite_e.hermevander(self.z, count - 1) / norms
        return found[:, :: self.stride]

    def second(self) -> np.ndarray:
        """What averages products with h_2."""
        return self.unit(2)

    def centred(self, coefficients: np.ndarray) -> np.ndarray:
        """The vector of F − ⟨F⟩."""
        return coefficients - (coefficients @ self.roots) * self.roots

    def windows(self, terms: np.ndarray) -> list[float]:
        """Nothing: errors show as differences between two sets of nodes."""
        return [0.0, 0.0]


class NodeStep(NamedTuple):
    """From the nodes of one layer to those of the next.

    Parameters
    ----------
    nodes : Nodes
        Of the next layer.
    correlation, variance : float
        See `interacting_neurons.Step`.
    kernels : list of sparse matrices
        P_jᵀ, j < 4.
    low, raised : ndarray, shapes (n, k) and (n', k + 6)
        Hermite polynomials on the nodes of the two layers. The derivatives of narrow Gaussians
        leave less rounding without them, and what they become is known.
    """

    nodes: Nodes
    correlation: float
    variance: float
    kernels: list[Any]
    low: np.ndarray
    raised: np.ndarray

    def unit(self, order: int) -> np.ndarray:
        """The Hermite polynomial of this order."""
        return self.raised[:, order // self.nodes.stride]

    def to_next(self, j: int, u: np.ndarray) -> np.ndarray:
        """P_jᵀ u, or of all columns of u."""
        if j == 0:
            return self.kernels[j] @ u
        stride, count, parts = self.nodes.stride, self.low.shape[1], self.low.T @ u
        first = 2 * j // stride
        factors = of_the_mean(self, j) * raising(count + first, stride, j)
        factors = factors * self.correlation ** (stride * np.arange(count))
        known = self.raised[:, first : count + first] @ (factors * parts.T).T
        return self.kernels[j] @ (u - self.low @ parts) + known


def on_nodes(
    network: LayeredNetwork,
    layers: LayerCoefficients,
    kernels: tuple[np.ndarray, np.ndarray],
    width: float,
    count: int,
) -> Iterator[tuple[Observable, NodeStep | None]]:
    """The observable of every layer l = 0, ..., L and the step to the next one.

    Parameters
    ----------
    network : LayeredNetwork
    layers : LayerCoefficients
    kernels : pair of ndarray, shape (L + 2,)
        C*^(l) and K*^(l).
    width : float
        Of the panels, in deviations of the noise.
    count : int
        Nodes of a panel.
    """
    square, K, noise = square_of(network), kernels[1][:-1], _deviations_of_noise(kernels)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = np.where(K[1:] > 0, network.skip_scales * np.sqrt(K[:-1] / K[1:]), 0.0)
    nodes = _nodes_of_layers(square, K, noise, width, count, 2 if square.even else 1)
    here = next(nodes)
    for l in range(network.depth + 1):
        g = square.function(np.sqrt(K[l]) * here.z)
        values = layers.weights[l + 1] * (g - here.mean(g))
        d = here.project(values)
        missed = float(overlooks(layers, kernels[0], l, g, here.roots**2))
        D = Observable(here, values, d, d, here.mean(values**2), missed)
        if l == network.depth:
            yield D, None
        else:
            there, c, variance = next(nodes), float(correlations[l]), float(K[l + 1])
            matrices = _matrices(here, there, c, float(noise[l + 1]), variance)
            low, raised = here.units(_LOW), there.units(_LOW + 6)
            yield D, NodeStep(there, c, variance, matrices, low, raised)
            here = there


def nodes_needed(kernels: tuple[np.ndarray, np.ndarray], width: float, count: int) -> int:
    """About the most nodes of a layer, for panels as in `on_nodes`."""
    noise = _deviations_of_noise(kernels)
    return int(2 * _REACH / (width * min(noise[noise > 0].min(), _WIDEST)) * count)


def _deviations_of_noise(kernels: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """√(C/K) of the layers l = 0, ..., L; 1 where there are no signals, and of the input."""
    C, K = (values[:-1] for values in kernels)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(K > 0, np.sqrt(C / K), 1.0)
    found[0] = 1.0
    return found


def _nodes_of_layers(
    square: Square, K: np.ndarray, noise: np.ndarray, width: float, count: int, stride: int
) -> Iterator[Nodes]:
    """Those of layers that no noise parts are the same."""
    (steep, scale), power = square.steep, _is_power(square)
    places = sorted({*square.kinks, *steep})
    scales = np.where(noise > 0, noise, 1.0)
    scales = np.minimum(scales, np.append(scales[1:], 1.0))
    runs = np.cumsum(noise > 0)
    for run in range(1, runs[-1] + 1):
        (members,) = np.nonzero(runs == run)
        least = width * min(scales[members].min(), _WIDEST)
        dev = np.sqrt(K[members])
        with np.errstate(divide="ignore", invalid="ignore"):
            centres = np.where(dev > 0, np.array([0.0, *places])[:, None] / dev, 0.0)
        level = _HALVED + (0 if power else ceil(log2(max(dev.max() * least / scale, 1.0))))
        near = graded_cuts(np.concatenate([centres, -centres]), level, least, _REACH)
        cuts = np.unique(np.concatenate([near.ravel(), evenly(least, _REACH)]))
        if stride == 2:
            cuts = np.append(0.0, cuts[cuts > 0])
        z, weights = composite(cuts, count)
        bell = stride * np.exp(-z * z / 2) / sqrt(2 * np.pi)
        nodes = Nodes(z, np.sqrt(weights * bell), stride)
        for _ in members:
            yield nodes


def _is_power(square: Square) -> bool:
    """Whether φ² is a power of |h| on either side of zero, so that no signals are wide."""
    h = np.geomspace(1e-3, 1e3, 13)
    with np.errstate(all="ignore"):
        ratios = [square.function(2 * x) / square.function(x) for x in (h, -h)]
    # Zero on one side is a power, too.
    return all(np.isnan(r).all() or np.allclose(r, r[0], rtol=1e-13, atol=0) for r in ratios)


def _matrices(here: Nodes, there: Nodes, c: float, noise: float, variance: float) -> list[Any]:
    """P_jᵀ, j < 4, for the deviation of the noise in units of that of the signals."""
    if noise == 0:
        same = sparse.identity(len(here.z), format="csr")
        return [same if c > 0 or here.stride == 2 else same[::-1], *[0 * same] * 3]
    z, roots = here.z, here.roots / here.stride
    if here.stride == 2:
        z, roots = np.concatenate([-z[::-1], z]), np.concatenate([roots[::-1], roots])
    # As functions of the node before, the matrices are Gaussians times polynomials.
    centres, reach = 2 * c / (1 + c * c) * there.z, _NOISE * noise * sqrt(2 / (1 + c * c))
    first = np.searchsorted(z, centres - reach)
    sizes = np.searchsorted(z, centres + reach) - first
    starts = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.arange(starts[-1]) + np.repeat(first - starts[:-1], sizes)
    before, after = z[columns], np.repeat(there.z, sizes)
    x = (after - c * before) / noise
    exponent = before**2 / 2 - ((before - c * after) / noise) ** 2 / 2
    density = np.exp(exponent) * roots[columns] * np.repeat(there.roots, sizes) / noise
    if here.stride == 2:
        # From −h as from h.
        count = len(here.z)
        columns = np.where(columns < count, count - 1 - columns, columns - count)
    square, shape = x * x, (len(there.z), len(here.z))
    found = [sparse.csr_matrix((density, columns, starts), shape)]
    # Kernels of signals that vanish do not fluctuate.
    scale = 1 / (2 * variance * noise**2) if variance > 0 else 0.0
    for j, lower in enumerate(_LOWER_POWERS, start=1):
        values = square + lower[0]
        for coefficient in lower[1:]:
            values *= square
            values += coefficient
        values *= density * (scale**j / factorial(j))
        # The matrices share their places.
        same = found[0].indices, found[0].indptr
        found.append(sparse.csr_matrix((values, *same), shape))
    return found
