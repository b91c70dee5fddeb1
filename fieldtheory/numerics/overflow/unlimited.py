"""Kernels of φ that grow as no power of their argument, layer by layer with mpmath.

Such φ (exp(h), h log(1 + |h|)) cannot be halved as `logarithms` does. The recursion runs in
numbers of mpmath, whose exponents have no end, with the averages of `unlimited_averages`. Where the
logarithm itself exceeds float64, kernels are infinite.
For waves that grow exponentially see `wave_layers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from mpmath import mp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.kernels import identical
from fieldtheory.numerics.layer_averages.along_layers import along_layers, path_of_numbers
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.layer_averages.large_variances import power_of
from fieldtheory.numerics.overflow.scaled_numbers import Scaled, of_numbers
from fieldtheory.numerics.overflow.unlimited_averages import (
    DIGITS,
    NOTHING,
    are_faint,
    closed_slope,
    covariance,
    moment,
    pair_slope,
    response,
    slope_square,
    waves_are_faint,
)
from fieldtheory.numerics.tangents import Pairs, Trained

Average = Callable[..., Any]


def needs_unlimited(network: LayeredNetwork) -> bool:
    """Whether φ grows as no power of its argument.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> [needs_unlimited(ResidualNetwork(depth=1, activation=phi)) for phi in ("exp(h)", "relu")]
    [True, False]
    """
    return power_of(network_entries(network), 1) is None


@dataclass(frozen=True, eq=False)
class UnlimitedLayers:
    """The kernels of all layers as numbers of mpmath, layer axis first.

    Parameters
    ----------
    network : LayeredNetwork
    kernels : ndarray of mpf, shape (L + 2, ...)
        K^(l), of single inputs or of pairs of them.
    own : tuple of ndarray
        The variances of both inputs of the pairs, shape (L + 2, ...); empty for single inputs.
    trailing : int
        1 if the last axis counts inputs or pairs, else 0.
    """

    network: LayeredNetwork
    kernels: np.ndarray
    own: tuple[np.ndarray, ...]
    trailing: int

    @property
    def log_kernels(self) -> np.ndarray:
        """ln|K^(l)|, shape (L + 2, ...)."""
        return of_numbers(self.kernels).log

    @property
    def gains(self) -> Scaled:
        """γ_l² + a_l M' or γ_l² + a_l ⟨φ'_α φ'_β⟩ of the layers 1, ..., L."""
        return of_numbers(self._hidden_gains)

    def tangents(self, trained: Trained) -> Scaled:
        """Θ^(l), shape (L + 2, ...), of D^(l) = w_l ⟨φφ⟩ + u_l; see `tangents`."""
        gain = _pair_gain if self.own else partial(_gain, slope_square)
        hidden = self._hidden_gains if self.own else self._gains(gain, range(self.network.depth))
        readout = self._gains(gain, [self.network.depth])
        weights, biases = trained.shaped(self.trailing, self._batch)
        tangent = partial(_known, partial(_tangent, self.network))
        step = np.frompyfunc(tangent, 4 + len(self._signals), 1)
        with mp.workdps(DIGITS):
            found = [weights[0] * self.kernels[0] + biases[0]]
            for l, handed_on in enumerate(np.concatenate([hidden, readout])):
                signals = (values[l] for values in self._signals)
                given = handed_on, found[-1], weights[l + 1], biases[l + 1], *signals
                found.append(np.asarray(step(*given), dtype=object))
        return of_numbers(np.stack(found))

    @cached_property
    def _hidden_gains(self) -> np.ndarray:
        gain = _pair_gain if self.own else partial(_gain, response)
        return self._gains(gain, range(self.network.depth))

    def _gains(self, gain: Average, signals: Sequence[int]) -> np.ndarray:
        """By which the layers behind the signals of some layers hand on what is before them."""
        layers = layer_coefficients(self.network, self.trailing, self._batch)
        coefficients = layers.skips[1:], layers.weights[1:]
        kernels = (values[signals] for values in self._signals)
        given = np.broadcast_arrays(*(values[signals] for values in coefficients), *kernels)
        step: Any = np.frompyfunc(partial(_known, partial(gain, self.network)), len(given), 1)
        with mp.workdps(DIGITS):
            path = path_of_numbers(*given[2:])
            if path is None:
                return step(*given)
            found = np.empty(given[0].shape, dtype=object)
            exact = np.zeros(given[0].shape, dtype=bool)

            def of_layers(layers: np.ndarray) -> np.ndarray:
                found[layers] = step(*(values[layers] for values in given))
                exact[layers] = True
                return found[layers].reshape(len(layers), -1).astype(float)

            path = np.concatenate([path, *(v.reshape(len(v), -1) for v in given[:2])], axis=1)
            told = along_layers(of_layers, path).reshape(found.shape)
            return np.where(exact, found, np.frompyfunc(mp.mpf, 1, 1)(told))

    @property
    def _signals(self) -> tuple[np.ndarray, ...]:
        return *self.own, self.kernels

    @property
    def _batch(self) -> int:
        return self.kernels.ndim - 1 - self.trailing


def unlimited_layers(
    network: LayeredNetwork, own: np.ndarray, trailing: int = 0
) -> UnlimitedLayers:
    """The variances of single inputs through all layers, whatever their size.

    Parameters
    ----------
    network : LayeredNetwork
    own : ndarray
        Variances, (..., P) with ``trailing`` = 1, else (...).
    trailing : int

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> settings = {"skip_scale": 0.0, "weight_variance": 1.0, "bias_variance": 0.0}
    >>> net = ResidualNetwork(depth=3, activation="exp(h)", **settings)
    >>> [round(float(v), 2) for v in unlimited_layers(net, np.array(1.0)).log_kernels]
    [0.0, 2.0, 14.78, 5237000.03, inf]
    """
    return _through_layers(network, own, (), trailing)


def unlimited_pairs(
    layers: UnlimitedLayers, own: np.ndarray, covariance: np.ndarray, pairs: Pairs
) -> UnlimitedLayers:
    """The covariances of pairs of inputs through all layers.

    Parameters
    ----------
    layers : UnlimitedLayers
        Of the single inputs.
    own : ndarray, shape (..., P)
        Variances K_αα^(0).
    covariance : ndarray, shape (..., pairs)
        K_αβ^(0).
    pairs : pair of ndarray
        Indices α and β of the pairs.
    """
    of_both = tuple(layers.kernels[..., index] for index in pairs)
    found = _through_layers(layers.network, covariance, of_both, 1)
    same = identical(own, covariance, pairs) & (covariance > 0)
    kernels = np.where(np.broadcast_to(same, found.kernels.shape), of_both[0], found.kernels)
    return replace(found, kernels=kernels)


def _through_layers(
    network: LayeredNetwork, initial: np.ndarray, own: tuple[np.ndarray, ...], trailing: int
) -> UnlimitedLayers:
    layers = layer_coefficients(network, trailing, initial.ndim - trailing)
    shape = np.broadcast_shapes(layers.weights.shape[1:], initial.shape)
    step = np.frompyfunc(partial(_known, partial(_next, network)), 4 + len(own), 1)
    with mp.workdps(DIGITS):
        kernels = [np.frompyfunc(mp.mpf, 1, 1)(np.broadcast_to(initial, shape))]
        for l in range(1, network.depth + 2):
            of_both = (values[l - 1] for values in own)
            given = layers.skips[l], layers.weights[l], layers.biases[l], *of_both, kernels[-1]
            kernels.append(np.asarray(step(*given), dtype=object))
    return UnlimitedLayers(network, np.stack(kernels), own, trailing)


def _known(step: Average, *given: Any) -> mp.mpf:
    """A number of the next layer, NaN behind those and where an average does not converge."""
    if any(map(mp.isnan, given)):
        return mp.nan
    try:
        return step(*given)
    except QuadratureError:
        return mp.nan


def _next(network: LayeredNetwork, skip: float, weight: float, bias: float, *K: mp.mpf) -> mp.mpf:
    """The kernel K behind the next layer; pairs come with the variances of both inputs."""
    return _joined(network, skip * K[-1] if skip else mp.zero, weight, bias, *K)


def _tangent(
    network: LayeredNetwork, gain: mp.mpf, theta: mp.mpf, weight: float, bias: float, *K: mp.mpf
) -> mp.mpf:
    """Θ^(l) of the gain of layer l, Θ^(l-1), w_l, u_l and the kernels before it."""
    # An endless gain leaves nothing of what vanishes.
    carried = gain * theta if theta and gain else mp.zero
    # Endless gains and averages are of one size, and the tangent kernel before them is large.
    return carried if mp.isinf(carried) else _joined(network, carried, weight, bias, *K)


def _joined(
    network: LayeredNetwork, carried: mp.mpf, weight: float, bias: float, *K: mp.mpf
) -> mp.mpf:
    """What is carried on, and weight ⟨φφ⟩ + bias."""
    if not weight or are_faint(network, (0, K[0]), (0, K[-2:][0]), abs(carried) / weight):
        return carried + bias
    if len(K) == 1:
        return carried + weight * moment(network, *K) + bias
    # Cauchy and Schwarz bound what the branch adds.
    most = weight * mp.sqrt(moment(network, K[0]) * moment(network, K[1]))
    if most < NOTHING * abs(carried):
        return carried + bias
    return carried + weight * covariance(network, *K) + bias


def _gain(average: Average, network: LayeredNetwork, skip: float, weight: float, K: mp.mpf) -> Any:
    # |M'| <= √(⟨h²φ²⟩⟨φ'²⟩)/K, of which h² is about K.
    if weight and are_faint(network, (0, K), (1, K), mp.sqrt(K) * skip / weight):
        return mp.mpf(skip)
    return skip + weight * average(network, K) if weight else mp.mpf(skip)


def _pair_gain(network: LayeredNetwork, skip: float, weight: float, *K: mp.mpf) -> mp.mpf:
    if weight and (closed := closed_slope(network, *K)) is not None:
        return skip + weight * closed
    if weight and are_faint(network, (1, K[0]), (1, K[1]), skip / weight):
        return mp.mpf(skip)
    if weight and waves_are_faint(network, K, skip / weight):
        return mp.mpf(skip)
    if skip and weight:
        # Cauchy and Schwarz again; slopes of cusps have no squares.
        with suppress(ValueError):
            most = weight * mp.sqrt(slope_square(network, K[0]) * slope_square(network, K[1]))
            weight = 0.0 if most < NOTHING * skip else weight
    return skip + weight * pair_slope(network, *K) if weight else mp.mpf(skip)
