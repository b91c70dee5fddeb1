"""Correlations that keep the digits of 1 ∓ c, and logarithms of kernels of any size.

Both gaps 1 − c and 1 + c of two inputs are followed through the layers, see `homogeneous`. For ReLU
and its relatives they and the shares of skip connection, branch and bias do not need the kernels
themselves, whose logarithms are then

    ln K' = ln(γ² e^(ln K) + a (A² + B²) e^(ln K) + c)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.homogeneous import Lines, gaps_of, next_gaps
from fieldtheory.numerics.infinite_width.kernels import identical
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.infinite_width.parallel import ROUNDED
from fieldtheory.numerics.infinite_width.tangents import Trained

# Correlations from which on their gap is what is followed.
_NEAR = 0.5


def log(values: np.ndarray) -> np.ndarray:
    """ln|x|, −∞ of zero."""
    with np.errstate(divide="ignore"):
        return np.log(np.abs(values))


def _logsum(*parts: np.ndarray) -> np.ndarray:
    return np.logaddexp.reduce(np.broadcast_arrays(*parts))


@dataclass(frozen=True, eq=False)
class Correlations:
    """c^(l), (L + 2, ..., pairs), its gaps 1 ∓ c, (L + 2, 2, ..., pairs), and of the features."""

    c: np.ndarray
    gaps: np.ndarray
    of_phi: np.ndarray
    phi_gaps: np.ndarray


def correlations(
    field: MeanField,
    shares: np.ndarray,
    features: Callable[[int, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> Correlations:
    """Correlations of the pairs of inputs in all layers.

    ``shares`` (L + 2, 3, ..., P) are of γ² K^(l-1), a_l M and c_l in K^(l), and
    ``features(l, c, gaps)`` gives ⟨φφ⟩/√(MM) over the signals of layer l and its gaps.
    """
    pairs, K0 = field.pairs, field.pair_inputs
    x, y = (field.own_inputs[..., members] for members in pairs)
    shape = np.broadcast_shapes(K0.shape, (*shares.shape[2:-1], len(pairs[0])))
    same = np.broadcast_to(identical(field.own_inputs, K0, pairs) & (K0 > 0), shape)
    gaps = np.broadcast_to(np.where((x > 0) & (y > 0), gaps_of(x, y, K0), 1.0), (2, *shape))
    c = np.broadcast_to(ratio(K0 + 0.0, np.sqrt(x) * np.sqrt(y)), shape)
    c = np.where(np.abs(c) > _NEAR, _correlation(gaps), c)
    found: list[list[np.ndarray]] = [[c], [gaps], [], []]
    for l in range(1, field.network.depth + 2):
        c_phi, phi_gaps = features(l - 1, c, gaps)
        one, other = (np.sqrt(shares[l][..., members]) for members in pairs)
        skip, branch, bias = one * other
        c = np.clip(skip * c + branch * c_phi + bias, -1, 1)
        near = (one.sum(axis=0) * other.sum(axis=0) > 0) & (np.abs(c) > _NEAR)
        gaps = np.where(near, next_gaps(gaps, phi_gaps, one, other), np.stack([1 - c, 1 + c]))
        # Identical inputs stay identical.
        gaps[0] = np.where(same & (c > 0), 0.0, gaps[0])
        c = np.where(near, _correlation(gaps), c)
        for values, each in zip(found, (c, gaps, c_phi, phi_gaps), strict=True):
            values.append(each)
    return Correlations(*map(np.stack, found))


def _correlation(gaps: np.ndarray) -> np.ndarray:
    """c of 1 ∓ c, of which the smaller is exact."""
    return np.where(gaps[0] < gaps[1], 1 - gaps[0], gaps[1] - 1)


def decorrelation(field: MeanField) -> np.ndarray:
    """1 − K_αβ^(l)/√(K_αα^(l) K_ββ^(l)), shape (..., L + 2, P, P)."""
    functions = network_functions(field.network)
    if (field.own_inputs == 0).any():
        raise ValueError("decorrelation needs positive variances, got 0 in K0")
    if functions.lines is not None:
        found = Logarithms(field, functions.lines).pairs.gaps[:, 0]
        return field.assembled(np.zeros((*found.shape[:-1], len(field.own_inputs.T))), found)
    if functions.layers_differ:
        size = np.sqrt(np.diagonal(field.kernels, axis1=-2, axis2=-1))
        apart = 1 - field.kernels / (size[..., :, None] * size[..., None, :])
        return np.where(np.eye(apart.shape[-1], dtype=bool), 0.0, apart)
    K, layers = field.variances[1], field.layers
    if (K == 0).any():
        raise ValueError("decorrelation needs positive variances, got 0 in a layer")
    M = functions.every("second_moment", K[:-1])
    parts = np.zeros((len(K), 3, *K.shape[1:]))
    parts[1:] = np.stack(
        np.broadcast_arrays(layers.skips[1:] * K[:-1], layers.weights[1:] * M, layers.biases[1:]),
        axis=1,
    )
    parts /= K[:, None]
    averages = functions.every("covariance", *(each[:-1] for each in field.pair_arguments))

    def features(l: int, c: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, y, M_x, M_y = (each[l][..., index] for each in (K, M) for index in field.pairs)
        c_phi = ratio(averages[l], np.sqrt(M_x) * np.sqrt(M_y))
        # Those of parallel signals are zero within rounding.
        near = np.stack([1 - c_phi, 1 + c_phi])
        parallel = (near <= ROUNDED) & (gaps.min(axis=0) == 0)
        exact = functions.small_gaps(x, y, gaps)
        rounded = np.where(parallel, 0.0, np.maximum(near, 0.0))
        return c_phi, np.where(np.isnan(exact), rounded, exact)

    found = correlations(field, parts, features).gaps[:, 0]
    return field.assembled(np.zeros(K.shape), found)


@dataclass(frozen=True, eq=False)
class Logarithms:
    """Logarithms of kernels, responses and tangent kernels of φ that is a line on either side.

    Their absolute error is a few roundings of them.
    """

    field: MeanField
    lines: Lines

    @cached_property
    def _logs(self) -> tuple[np.ndarray, ...]:
        """ln a_l, ln c_l and ln γ_l² of the layers."""
        layers = self.field.layers
        return tuple(map(log, (layers.weights, layers.biases, layers.skips)))

    @cached_property
    def _own(self) -> tuple[np.ndarray, np.ndarray]:
        """ln K^(l) of single inputs, (L + 2, ...), and the shares of its parts, (L + 2, 3, ...)."""
        weights, biases, skips = self._logs
        K0 = self.field.own_inputs
        K = np.empty((len(weights), *np.broadcast_shapes(weights.shape[1:], K0.shape)))
        K[0], shares = log(K0), np.zeros((len(K), 3, *K.shape[1:]))
        for l in range(1, len(K)):
            branch = weights[l] + np.log(self.lines.moment) + K[l - 1]
            parts = np.broadcast_arrays(skips[l] + K[l - 1], branch, biases[l])
            K[l] = _logsum(*parts)
            shares[l] = np.exp(np.where(np.isinf(K[l]), -np.inf, parts - np.nan_to_num(K[l])))
        return K, shares

    @cached_property
    def pairs(self) -> Correlations:
        """Of the pairs of inputs."""
        odd = self.lines.A**2 / self.lines.moment

        def features(l: int, c: np.ndarray, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            # The even part of φ alone is |h|.
            even = Lines(0.0, 1.0).averages(gaps)[1][0]
            return odd * c + (1 - odd) * (1 - even), self.lines.averages(gaps)[1]

        return correlations(self.field, self._own[1], features)

    @cached_property
    def _pair_slopes(self) -> np.ndarray:
        """⟨φ'φ'⟩ of pairs, (L + 1, ..., pairs)."""
        return self.lines.averages(np.moveaxis(self.pairs.gaps[:-1], 1, 0))[0]

    def _half(self, own: np.ndarray) -> np.ndarray:
        """Halves of both inputs of pairs together."""
        return sum(own[..., members] / 2 for members in self.field.pairs)

    @property
    def kernels(self) -> np.ndarray:
        """ln|K^(l)|, shape (..., L + 2) or (..., L + 2, P, P)."""
        own = self._own[0]
        pair = self.field.has_matrix and self._half(own) + log(self.pairs.c)
        return self.field.assembled(own, pair)

    @property
    def response(self) -> np.ndarray:
        """ln|∂K^(l)/∂K^(0)|, shape (..., L + 1) or (..., L + 1, P, P)."""
        layers = self.field.layers
        moment = np.full((len(layers.skips) - 2, *self._own[0].shape[1:]), self.lines.moment)

        def through(slopes: np.ndarray) -> np.ndarray:
            gains = log(layers.skips[1:-1] + layers.weights[1:-1] * slopes)
            return np.concatenate([np.zeros_like(gains[:1]), np.cumsum(gains, axis=0)])

        pair = self.field.has_matrix and through(self._pair_slopes[:-1])
        return self.field.assembled(through(moment), pair)

    def tangents(self, trained: Trained) -> tuple[np.ndarray, np.ndarray]:
        """ln|Θ^(l)| and the signs of Θ^(l), shape (..., L + 2) or (..., L + 2, P, P)."""
        field, (K, _), m = self.field, self._own, self.lines.moment
        layers = field.layers
        shaped = trained.shaped(field.trailing, K.ndim - 1 - field.trailing)
        w, u = log(shaped.weights), log(shaped.biases)
        M = np.log(m) + K[:-1]
        theta = np.empty_like(K)
        theta[0] = log(shaped.weights[0] * field.own_inputs + shaped.biases[0])
        for l in range(1, len(K)):
            carried = log(layers.skips[l] + layers.weights[l] * m) + theta[l - 1]
            theta[l] = _logsum(carried, w[l] + M[l - 1], u[l])
        if not field.has_matrix:
            return field.assembled(theta, None), field.assembled(np.isfinite(theta) * 1.0, None)
        # Pairs relative to the roots of both inputs' own.
        size = self._half(theta)
        sizes = np.where(np.isinf(size), 0.0, size)
        tau = np.empty_like(size)
        start = shaped.weights[0] * field.pair_inputs + shaped.biases[0]
        tau[0] = start * np.exp(-sizes[0])
        of_M = self._half(M)
        for l in range(1, len(K)):
            gain = layers.skips[l] + layers.weights[l] * self._pair_slopes[l - 1]
            average = shaped.weights[l] * self.pairs.of_phi[l - 1] * np.exp(of_M[l - 1] - sizes[l])
            own = average + shaped.biases[l] * np.exp(-sizes[l])
            tau[l] = gain * tau[l - 1] * np.exp(sizes[l - 1] - sizes[l]) + own
        same = identical(field.own_inputs, field.pair_inputs, field.pairs)
        tau = np.where(same, np.isfinite(size), np.where(np.isinf(size), 0.0, tau))
        return (
            field.assembled(theta, sizes + log(tau)),
            field.assembled(np.isfinite(theta) * 1.0, np.sign(tau)),
        )
