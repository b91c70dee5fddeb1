"""Correlations that keep the digits of 1 ∓ c, and logarithms of kernels of any size.

Both gaps 1 − c and 1 + c of two inputs are followed through the layers, see `homogeneous`. For ReLU
and its relatives they and the shares of skip connection, branch and bias do not need the kernels
themselves, which are numbers m 2^e with an exponent of any size, as responses and tangent kernels:

    K' = γ² K + a (A² + B²) K + c
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.homogeneous import ROUNDED, Lines, gaps_of, next_gaps
from fieldtheory.numerics.infinite_width.kernels import identical
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.infinite_width.tangents import Trained
from fieldtheory.numerics.recursion import ratio

# Correlations from which on their gap is what is followed.
_NEAR = 0.5


def log(values: np.ndarray) -> np.ndarray:
    """ln|x|, −∞ of zero."""
    with np.errstate(divide="ignore"):
        return np.log(np.abs(values))


# m and e of numbers m 2^e.
Scaled = tuple[np.ndarray, np.ndarray]
# Exponents of zero, and of what is nothing beside a number of order one.
_ZERO, _NOTHING = -(2**40), -1100


def _parts(*terms: tuple[Any, Any]) -> Scaled:
    """Numbers m 2^e on a new first axis, with one exponent for all that lets the largest be one."""
    m, e = (np.stack(np.broadcast_arrays(*each)) for each in zip(*terms, strict=True))
    m, shift = np.frexp(m)
    e = np.where(m == 0, _ZERO, e + shift)
    largest = e.max(axis=0)
    return np.ldexp(m, np.maximum(e - largest, _NOTHING)), largest


def _sum(*terms: tuple[Any, Any]) -> Scaled:
    """A sum of numbers m 2^e."""
    m, e = _parts(*terms)
    return m.sum(axis=0), e


def _logs(layers: list[Scaled]) -> np.ndarray:
    """ln|m 2^e|."""
    m, e = map(np.stack, zip(*layers, strict=True))
    return log(m) + np.where(m == 0, 0, e) * np.log(2)


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
    """Correlations of the pairs of inputs in all layers."""
    pairs, K0 = field.pairs, field.pair_inputs
    shape = np.broadcast_shapes(K0.shape, (*shares.shape[2:-1], len(pairs[0])))
    same = np.broadcast_to(identical(field.own_inputs, K0, pairs) & (K0 > 0), shape)
    own = (field.own_inputs[..., members] for members in pairs)
    x, y, K0 = (np.broadcast_to(each, shape) for each in (*own, K0))
    gaps = np.where((x > 0) & (y > 0), gaps_of(x, y, K0), 1.0)
    c = ratio(K0 + 0.0, np.sqrt(x) * np.sqrt(y))
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
    def _own(self) -> tuple[list[Scaled], np.ndarray]:
        """K^(l) of single inputs, and the shares of its parts, (L + 2, 3, ...)."""
        layers, K0 = self.field.layers, self.field.own_inputs
        shape = np.broadcast_shapes(layers.weights.shape[1:], K0.shape)
        K = [_sum((np.broadcast_to(K0, shape), 0))]
        shares = [np.zeros((3, *shape))]
        for l in range(1, len(layers.weights)):
            k, e = K[-1]
            branch = layers.weights[l] * self.lines.moment * k
            parts, e = _parts((layers.skips[l] * k, e), (branch, e), (layers.biases[l], 0))
            K.append((parts.sum(axis=0), e))
            shares.append(ratio(parts, np.broadcast_to(K[-1][0], parts.shape)))
        return K, np.stack(shares)

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

    @property
    def kernels(self) -> np.ndarray:
        """ln|K^(l)|, shape (..., L + 2) or (..., L + 2, P, P)."""
        own = _logs(self._own[0])
        if not self.field.has_matrix:
            return self.field.assembled(own, None)
        first, second = (own[..., members] for members in self.field.pairs)
        return self.field.assembled(own, first / 2 + second / 2 + log(self.pairs.c))

    @property
    def response(self) -> np.ndarray:
        """ln|∂K^(l)/∂K^(0)|, shape (..., L + 1) or (..., L + 1, P, P)."""
        layers = self.field.layers

        def through(slopes: Any, shape: tuple[int, ...]) -> np.ndarray:
            chi = [_sum((np.ones(shape), 0))]
            for gain in layers.skips[1:-1] + layers.weights[1:-1] * slopes:
                chi.append(_sum((gain * chi[-1][0], chi[-1][1])))
            return _logs(chi)

        own = through(self.lines.moment, self._own[1].shape[2:])
        if not self.field.has_matrix:
            return self.field.assembled(own, None)
        slopes = self._pair_slopes[:-1]
        return self.field.assembled(own, through(slopes, slopes.shape[1:]))

    def tangents(self, trained: Trained) -> tuple[np.ndarray, np.ndarray]:
        """ln|Θ^(l)| and the signs of Θ^(l), shape (..., L + 2) or (..., L + 2, P, P)."""
        field, (K, shares), m = self.field, self._own, self.lines.moment
        layers = field.layers
        shaped = trained.shaped(field.has_matrix, shares.ndim - 2 - field.has_matrix)

        def through(inputs: np.ndarray, slopes: Any, averages: list[Scaled]) -> list[Scaled]:
            gains = layers.skips[1:] + layers.weights[1:] * slopes
            start = shaped.weights[0] * inputs + shaped.biases[0]
            theta = [_sum((np.broadcast_to(start, averages[0][0].shape), 0))]
            for l, ((t, e), (M, of_M)) in enumerate(zip(theta, averages, strict=False), 1):
                added = (shaped.weights[l] * M, of_M), (shaped.biases[l], 0)
                theta.append(_sum((gains[l - 1] * t, e), *added))
            return theta

        own = through(field.own_inputs, m, [(m * k, e) for k, e in K[:-1]])
        signs = np.sign([t for t, _ in own])
        if not field.has_matrix:
            return field.assembled(_logs(own), None), field.assembled(signs, None)

        def average(l: int) -> Scaled:
            """⟨φφ⟩ = √(M M) times a correlation."""
            (k, e), (k_, e_) = ([each[..., at] for each in K[l]] for at in field.pairs)
            odd = (e + e_) % 2
            root = np.sqrt(k) * np.sqrt(k_) * np.where(odd, np.sqrt(2), 1)
            return m * root * self.pairs.of_phi[l], (e + e_ - odd) // 2

        slopes = self._pair_slopes
        pair = through(field.pair_inputs, slopes, [average(l) for l in range(len(slopes))])
        same, first = identical(field.own_inputs, field.pair_inputs, field.pairs), field.pairs[0]
        logs = np.where(same, _logs(own)[..., first], _logs(pair))
        pair_signs = np.where(same, signs[..., first], np.sign([t for t, _ in pair]))
        return field.assembled(_logs(own), logs), field.assembled(signs, pair_signs)
