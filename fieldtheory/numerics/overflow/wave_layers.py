"""Kernels of waves that grow exponentially, layer by layer with mpmath, and what is known of them.

Of φ = e^h sin(h) the covariance of two signals is (e^{2K_xy} cos(K_xx − K_yy) − ...)/2: once the
variances exceed 1e16, their digits in float64 do not tell its sign. Every kernel comes with the
error that roundings of the input and of the parameters make in it; the next one is taken at both
ends, and where its sign or its logarithm depend on them it is not a number. The recursion goes on
with the error: where averages vanish beside skip connections and biases, kernels are known again.
What stands beside such waves in φ counts as `wave_averages` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp

from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.kernels import identical
from fieldtheory.numerics.overflow.scaled_numbers import Scaled, of_numbers
from fieldtheory.numerics.overflow.wave_averages import Kernels, around
from fieldtheory.numerics.tangents import Pairs, Trained

# Digits of the recursion, roundings of the input and of the coefficients of a layer, and how much
# of a logarithm, or of 1, they may change.
_DIGITS, _ROUNDING, _KNOWN = 30, 2 * np.finfo(float).eps, 1e-6
# Changes beyond are not linear, and logarithms of changes beyond are cut.
_LINEAR, _FAR = 1e-3, 20

# Summands of a number of the next layer, and the size of what is not known of it.
Parts = tuple[Sequence[mp.mpf], mp.mpf]
Step = Callable[[Kernels], Parts]
Layer = Callable[..., Any]


class Estimate(NamedTuple):
    """Numbers of mpmath, their errors, and whether sign and logarithm are known: also arrays."""

    value: Any
    error: Any
    known: Any

    @property
    def scaled(self) -> Scaled:
        """As numbers of float64 with exponents, NaN where they are not known."""
        return of_numbers(np.where(self.known, self.value, mp.nan))


@dataclass(frozen=True, eq=False)
class WaveLayers:
    """The kernels of all layers, layer axis first.

    Parameters
    ----------
    network : LayeredNetwork
    kernels : Estimate of ndarray, shape (L + 2, ...)
        K^(l), of single inputs or of pairs of them.
    own : tuple of Estimate
        Of the variances of both inputs of the pairs, shape (L + 2, ...); empty for single inputs.
    count : ndarray
        How many of the kernels K_xx, K_yy and K_xy of a pair differ: 3, 2 of inputs of one norm,
        1 of identical inputs.
    trailing : int
        1 if the last axis counts inputs or pairs, else 0.
    """

    network: LayeredNetwork
    kernels: Estimate
    own: tuple[Estimate, ...]
    count: np.ndarray
    trailing: int

    @property
    def log_kernels(self) -> np.ndarray:
        """ln|K^(l)|, shape (L + 2, ...), NaN where it is not known."""
        return self.kernels.scaled.log

    @cached_property
    def gains(self) -> Scaled:
        """γ_l² + a_l M' or γ_l² + a_l ⟨φ'_α φ'_β⟩ of the layers 1, ..., L."""
        step = partial(_gain, "slope_square" if self.own else "response")
        layers = zip(self._layers.skips[1:-1], self._layers.weights[1:-1], strict=True)
        with mp.workdps(_DIGITS):
            return _stacked([self._layer(step, l, *given) for l, given in enumerate(layers)]).scaled

    def tangents(self, trained: Trained) -> Scaled:
        """Θ^(l), shape (L + 2, ...), of D^(l) = w_l ⟨φφ⟩ + u_l; see `tangents`."""
        weights, biases = trained.shaped(self.trailing, self._batch)
        layers, shape = self._layers, self.kernels.value.shape[1:]
        with mp.workdps(_DIGITS):
            first = _of_array(np.broadcast_to(weights[0], shape)) * self.kernels.value[0]
            first = first + np.broadcast_to(biases[0], shape)
            found = [_rounded(np.asarray(first, dtype=object))]
            for l in range(1, self.network.depth + 2):
                given = layers.skips[l], layers.weights[l], weights[l], biases[l]
                found.append(self._layer(_tangent, l - 1, *given, *found[-1][:2]))
        return _stacked(found).scaled

    @cached_property
    def _layers(self) -> Any:
        return layer_coefficients(self.network, self.trailing, self._batch)

    @property
    def _batch(self) -> int:
        return self.kernels.value.ndim - 1 - self.trailing

    def _layer(self, step: Layer, l: int, *given: Any) -> Estimate:
        kernels = [(part.value[l], part.error[l]) for part in (*self.own, self.kernels)]
        return _vectorised(step, self.network, self.count, kernels, given)


def wave_layers(network: LayeredNetwork, own: np.ndarray, trailing: int = 0) -> WaveLayers:
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
    >>> settings = {"skip_scale": 0.0, "weight_variance": 2.0, "bias_variance": 0.0}
    >>> net = ResidualNetwork(depth=3, activation="exp(h)*sin(h)", **settings)
    >>> [round(float(v), 2) for v in wave_layers(net, np.array(1.0)).log_kernels]
    [0.0, 2.08, 16.09, 19356649.17, inf]
    """
    return _through_layers(network, own, (), np.ones((), dtype=int), trailing)


def wave_pairs(
    layers: WaveLayers, own: np.ndarray, covariance: np.ndarray, pairs: Pairs
) -> WaveLayers:
    """The covariances of pairs of inputs through all layers.

    Parameters
    ----------
    layers : WaveLayers
        Of the single inputs.
    own : ndarray, shape (..., P)
        Variances K_αα^(0).
    covariance : ndarray, shape (..., pairs)
        K_αβ^(0).
    pairs : pair of ndarray
        Indices α and β of the pairs.
    """
    of_both = tuple(Estimate(*(v[..., index] for v in layers.kernels)) for index in pairs)
    same = identical(own, covariance, pairs) & (covariance > 0)
    count = np.where(same, 1, np.where(own[..., pairs[0]] == own[..., pairs[1]], 2, 3))
    return _through_layers(layers.network, covariance, of_both, count, 1)


def _through_layers(
    network: LayeredNetwork,
    initial: np.ndarray,
    own: tuple[Estimate, ...],
    count: np.ndarray,
    trailing: int,
) -> WaveLayers:
    layers = layer_coefficients(network, trailing, initial.ndim - trailing)
    shape = np.broadcast_shapes(layers.weights.shape[1:], initial.shape)
    with mp.workdps(_DIGITS):
        found = [_rounded(_of_array(np.broadcast_to(initial, shape)))]
        for l in range(1, network.depth + 2):
            given = layers.skips[l], layers.weights[l], layers.biases[l]
            kernels = [(part.value[l - 1], part.error[l - 1]) for part in own]
            kernels.append(found[-1][:2])
            found.append(_vectorised(_kernel, network, count, kernels, given))
    return WaveLayers(network, _stacked(found), own, count, trailing)


def _of_array(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.frompyfunc(mp.mpf, 1, 1)(values), dtype=object)


def _rounded(values: np.ndarray) -> Estimate:
    return Estimate(values, abs(values) * _ROUNDING, np.ones(values.shape, dtype=bool))


def _stacked(found: Sequence[Estimate]) -> Estimate:
    return Estimate(*(np.stack(part) for part in zip(*found, strict=True)))


def _vectorised(
    step: Layer,
    network: LayeredNetwork,
    count: np.ndarray,
    kernels: Sequence[tuple[np.ndarray, np.ndarray]],
    given: Sequence[np.ndarray],
) -> Estimate:
    flat = [part for both in kernels for part in both]

    def one(count: int, *numbers: Any) -> Estimate:
        signals, rest = numbers[: len(flat)], numbers[len(flat) :]
        values, errors = signals[::2], signals[1::2]
        # K_xx, K_yy and K_xy, but for those that are the same.
        kept = {1: values[:1], 2: values[::2], 3: values}[count]
        return step(network, kept, {1: errors[:1], 2: errors[::2], 3: errors}[count], *rest)

    found = np.frompyfunc(one, 1 + len(flat) + len(given), 3)(count, *flat, *given)
    value, error, known = (np.asarray(part, dtype=object) for part in found)
    return Estimate(value, error, known.astype(bool))


def _kernel(
    network: LayeredNetwork, K: Kernels, errors: Kernels, skip: float, weight: float, bias: float
) -> Estimate:
    if weight and _endless(K):
        return Estimate(mp.inf, mp.inf, True)

    average = around(network, "moment", K, errors, weight)

    def step(K: Kernels) -> Parts:
        known, unknown = average(K)
        return (skip * K[-1] if skip else mp.zero, weight * known, mp.mpf(bias)), weight * unknown

    return _estimate(step, K, errors)


def _gain(
    name: str, network: LayeredNetwork, K: Kernels, errors: Kernels, skip: float, weight: float
) -> Estimate:
    if weight and _endless(K):
        return Estimate(mp.inf, mp.inf, True)

    average = around(network, name, K, errors, weight)

    def step(K: Kernels) -> Parts:
        known, unknown = average(K)
        return (mp.mpf(skip), weight * known), weight * unknown

    return _estimate(step, K, errors)


def _tangent(
    network: LayeredNetwork,
    K: Kernels,
    errors: Kernels,
    skip: float,
    weight: float,
    trained_weight: float,
    trained_bias: float,
    theta: mp.mpf,
    error: mp.mpf,
) -> Estimate:
    if (weight or trained_weight) and _endless(K):
        return Estimate(mp.inf, mp.inf, True)

    slopes = around(network, "slope_square", K, errors, weight)
    moments = around(network, "moment", K, errors, trained_weight)

    def step(given: Kernels) -> Parts:
        *K, theta = given
        slope, no_slope = slopes(K)
        moment, no_moment = moments(K)
        carried = skip * theta if skip else mp.zero
        branch = weight * slope * theta if slope and weight else mp.zero
        parts = carried, branch, trained_weight * moment, mp.mpf(trained_bias)
        beside = weight * no_slope * abs(theta) if no_slope and theta else mp.zero
        return parts, beside + trained_weight * no_moment

    return _estimate(step, (*K, theta), (*errors, error))


def _endless(K: Kernels) -> bool:
    """Whether the variance of one signal is infinite: all its averages are then."""
    return len(K) == 1 and bool(mp.isinf(K[0]))


def _estimate(step: Step, values: Kernels, errors: Kernels) -> Estimate:
    """A number of the next layer; ``values`` are kernels and what else has an error."""
    parts, unknown = step(values)
    value, rounding = sum(parts, mp.zero), _ROUNDING * sum(map(abs, parts), mp.zero)
    if mp.isnan(value) or mp.isnan(unknown):
        return Estimate(mp.zero, mp.inf, False)
    beside = unknown + (rounding if mp.isfinite(rounding) else 0)
    ends = [(value - beside, value + beside)]
    for i, error in enumerate(errors):
        if error and mp.isfinite(values[i]):
            ends.append(_moved(step, values, i, error, value))
    if any(mp.isnan(end) for both in ends for end in both):
        return Estimate(value if mp.isfinite(value) else mp.zero, mp.inf, False)
    if not all(_alike(value, end) for both in ends for end in both):
        error = sum((max(abs(end - value) for end in both) for both in ends), mp.zero)
        return Estimate(value, mp.inf if mp.isnan(error) else error, False)
    if not value or mp.isinf(value):
        return Estimate(value, abs(value), True)
    change = sum(max(abs(mp.log(end / value)) for end in both) for both in ends)
    # Of e^K, where K has an error of many, the logarithm is known, and the sign.
    known = change <= _KNOWN * max(1, abs(mp.log(abs(value))))
    return Estimate(value, -abs(value) * mp.expm1(-min(change, _FAR)), known)


def _alike(value: mp.mpf, end: mp.mpf) -> bool:
    return mp.sign(value) == mp.sign(end) and mp.isinf(value) == mp.isinf(end)


def _moved(step: Step, values: Kernels, i: int, error: mp.mpf, value: mp.mpf) -> tuple[mp.mpf, ...]:
    """The ends of the range over which a number changes with one of those it comes from."""
    ends: list[mp.mpf] = []
    for by in (error, -error):
        parts, unknown = step([*values[:i], values[i] + by, *values[i + 1 :]])
        end = sum(parts, mp.zero)
        ends += [end - unknown, end + unknown]
        if max(abs(end - value) for end in ends) <= _LINEAR * abs(value):
            # The other side mirrors this one.
            break
    return tuple(ends)
