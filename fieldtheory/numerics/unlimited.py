"""Kernels of φ that grow as no power of their argument, layer by layer with mpmath.

Such φ (exp(h), h log(1 + |h|)) cannot be halved as `logarithms` does. The recursion runs in
numbers of mpmath, whose exponents have no end; averages are those of float64 where it holds them,
else those of `beyond_float`, and of `logarithmic_powers` where φ is a power times logarithms. Where
the logarithm itself exceeds float64, kernels are infinite.
For waves that grow exponentially see `wave_layers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp
from mpmath import mp

from fieldtheory.averages import beyond_float, logarithmic_slopes, polar_sizes
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.narrow import narrow_cuts
from fieldtheory.averages.steps import (
    between,
    branch,
    break_points,
    first_derivative,
    has_steps,
    slope_of_pieces,
)
from fieldtheory.averages.vectorising import kinks_of, vectorised
from fieldtheory.averages.waves import has_waves
from fieldtheory.networks import activations
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.entries import network_entries
from fieldtheory.numerics.kernels import identical
from fieldtheory.numerics.large_variances import pair_averages, power_of, single_average
from fieldtheory.numerics.logarithmic_powers import LogarithmicPowers, logarithmic_powers
from fieldtheory.numerics.scaled_numbers import Scaled, of_numbers
from fieldtheory.numerics.tangents import Pairs, Trained
from fieldtheory.theory.elementary_averages import feature_parameters

# Digits of the recursion, variances whose averages float64 holds, and what adds nothing.
_DIGITS, _SMALLEST, _LARGEST, _NOTHING = 30, 1e-280, 1e270, 1e-20
# Averages that are kept: deep networks of several inputs take each of them a few times.
_KEPT = 2**16
# 1 − c below which pairs are compared with parallel ones.
_NEAR = 1e-3
# A variance of which float64 holds averages, and beside which signals of size one are nothing.
_REFERENCE = 1e100
# Moments of which integrals over two signals in float64 would fail late.
_STEEP = 1e275
_H = activations.h
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
        with mp.workdps(_DIGITS):
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
        given = [values[signals] for values in (*coefficients, *self._signals)]
        with mp.workdps(_DIGITS):
            step = partial(_known, partial(gain, self.network))
            return np.frompyfunc(step, len(given), 1)(*given)

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
    with mp.workdps(_DIGITS):
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
    if not weight or _is_faint(network, (0, K[0]), (0, K[-2:][0]), abs(carried) / weight):
        return carried + bias
    if len(K) == 1:
        return carried + weight * moment(network, *K) + bias
    # Cauchy and Schwarz bound what the branch adds.
    most = weight * mp.sqrt(moment(network, K[0]) * moment(network, K[1]))
    if most < _NOTHING * abs(carried):
        return carried + bias
    return carried + weight * covariance(network, *K) + bias


def _gain(average: Average, network: LayeredNetwork, skip: float, weight: float, K: mp.mpf) -> Any:
    # |M'| <= √(⟨h²φ²⟩⟨φ'²⟩)/K.
    if weight and _is_faint(network, (0, K), (1, K), min(mp.sqrt(K), 1) * skip / weight):
        return mp.mpf(skip)
    return skip + weight * average(network, K) if weight else mp.mpf(skip)


def _pair_gain(network: LayeredNetwork, skip: float, weight: float, *K: mp.mpf) -> mp.mpf:
    if weight and (closed := _closed_slope(network, *K)) is not None:
        return skip + weight * closed
    if weight and _is_faint(network, (1, K[0]), (1, K[1]), skip / weight):
        return mp.mpf(skip)
    if skip and weight:
        # Cauchy and Schwarz again; slopes of cusps have no squares.
        with suppress(ValueError):
            most = weight * mp.sqrt(slope_square(network, K[0]) * slope_square(network, K[1]))
            weight = 0.0 if most < _NOTHING * skip else weight
    return skip + weight * pair_slope(network, *K) if weight else mp.mpf(skip)


def _is_faint(
    network: LayeredNetwork, first: tuple[int, mp.mpf], second: tuple[int, mp.mpf], size: mp.mpf
) -> bool:
    """Whether averages of two φ or φ' (orders 0 and 1) of wide signals are nothing beside a size.

    It takes a few values of φ, and no integrals: behind skip connections kernels grow without φ.
    """
    if not size or not all(mp.isfinite(K) and K > _LARGEST for _, K in (first, second)):
        return False
    bounds = [_bound(network, *each) for each in (first, second)]
    return bool(mp.sqrt(bounds[0] * bounds[1]) < _NOTHING**2 * size)


@lru_cache(maxsize=_KEPT)
def _bound(network: LayeredNetwork, order: int, K: mp.mpf) -> mp.mpf:
    if (found := _far_out(network, ("moment", "slope_square")[order], K)) is not None:
        return found
    functions = features_of(network)
    if any(f.has(sp.sin, sp.cos) or has_steps(f) for f in functions):
        return mp.inf
    with suppress(QuadratureError):
        return sum((beyond_float.bound(_slope(f, order), _H, K) for f in functions), mp.zero)
    return mp.inf


@lru_cache(maxsize=64)
def _slope(f: sp.Expr, order: int = 1) -> sp.Expr:
    return first_derivative(f, _H) if order else f


@lru_cache(maxsize=_KEPT)
def moment(network: LayeredNetwork, K: mp.mpf) -> mp.mpf:
    """⟨φ²⟩."""
    if (found := _far_out(network, "moment", K)) is not None:
        return found
    return _of_one(network, "second_moment", K, lambda f: beyond_float.single(f, f, _H, K))


@lru_cache(maxsize=_KEPT)
def slope_square(network: LayeredNetwork, K: mp.mpf) -> mp.mpf:
    """⟨φ'²⟩."""
    if (found := _far_out(network, "slope_square", K)) is not None:
        return found
    forms = _logarithmic(network)
    if _LARGEST < K < mp.inf and forms and not any(form.sides.power for form in forms):
        # Of logarithms φ' ~ 1/h counts at small signals alone.
        reference = mp.mpf(_REFERENCE)
        return slope_square(network, reference) * mp.sqrt(reference / K)

    def wide(f: sp.Expr) -> mp.mpf:
        return beyond_float.single(_slope(f), _slope(f), _H, K)

    return _of_one(network, "slope_square", K, wide)


def response(network: LayeredNetwork, K: mp.mpf) -> mp.mpf:
    """M'."""
    if (found := _far_out(network, "response", K)) is not None:
        return found

    def wide(f: sp.Expr) -> mp.mpf:
        # M' = ⟨h (φ²)'⟩/2K, and jumps of φ² at a add their a p(a)/2K.
        slope = slope_of_pieces(f, _H) if _slope(f).has(sp.DiracDelta) else _slope(f)
        smooth = beyond_float.single(f, slope, _H, K, 1) / mp.sqrt(K)
        return smooth + sum(a * step * mp.npdf(a, 0, mp.sqrt(K)) for a, step in _jumps(f)) / (2 * K)

    return _of_one(network, "susceptibility", K, wide)


def _of_one(
    network: LayeredNetwork, name: str, K: mp.mpf, wide: Callable[[sp.Expr], mp.mpf]
) -> mp.mpf:
    if K == 0 or _SMALLEST < K < _LARGEST:
        with suppress(QuadratureError, OverflowError), np.errstate(all="ignore"):
            found = float(single_average(network, name, np.array(float(K))))
            if np.isfinite(found):
                return mp.mpf(found)
    return sum(map(wide, features_of(network)), mp.zero) if mp.isfinite(K) else mp.inf


@lru_cache(maxsize=64)
def _jumps(f: sp.Expr) -> tuple[tuple[mp.mpf, mp.mpf], ...]:
    """Where f² jumps, and by how much."""
    cuts = break_points(f, _H) if has_steps(f) else []
    parts = [branch(f, _H, middle) for middle in between(cuts)]
    steps = [
        (right**2 - left**2).subs(_H, cut)
        for cut, (left, right) in zip(cuts, pairwise(parts), strict=True)
    ]
    with mp.workdps(_DIGITS):
        return tuple((_number(cut), _number(step)) for cut, step in zip(cuts, steps, strict=True))


def _number(value: sp.Expr) -> mp.mpf:
    return mp.mpf(value.evalf(_DIGITS))


@lru_cache(maxsize=_KEPT)
def covariance(network: LayeredNetwork, *K: mp.mpf) -> mp.mpf:
    """⟨φφ⟩ of K_xx, K_yy and K_xy."""
    if (found := _far_out(network, "covariance", *K)) is not None:
        return found
    return _of_two(network, "covariance", lambda f: f, *K)


def pair_slope(network: LayeredNetwork, *K: mp.mpf) -> mp.mpf:
    """⟨φ'φ'⟩, likewise."""
    closed = _closed_slope(network, *K)
    return _of_two(network, "slope", slope_of, *K) if closed is None else closed


def _closed_slope(network: LayeredNetwork, *K: mp.mpf) -> mp.mpf | None:
    """⟨φ'φ'⟩ of wide signals, None where it has no closed form."""
    if (far := _far_out(network, "slope", *K)) is not None:
        return far
    parts = [logarithmic_slopes.slope(f, _H, *K) for f in features_of(network)]
    found = [part for part in parts if part is not None]
    return sum(found, mp.zero) if len(found) == len(parts) else None


def _far_out(network: LayeredNetwork, name: str, *K: mp.mpf) -> mp.mpf | None:
    """An average of signals so wide that φ is a power times logarithms, None of others."""
    forms = _logarithmic(network)
    wide = all(form.start <= k < mp.inf for form in forms for k in K[:2])
    if not forms or not wide:
        return None
    found = [getattr(form, name)(*K) for form in forms]
    return None if None in found else sum(found, mp.zero)


@lru_cache(maxsize=64)
def _logarithmic(network: LayeredNetwork) -> tuple[LogarithmicPowers, ...]:
    """The features as powers times logarithms, none if one of them is not."""
    found = [logarithmic_powers(f) for f in features_of(network)]
    return tuple(form for form in found if form) if all(found) else ()


def slope_of(f: sp.Expr) -> sp.Expr:
    """f', if f does not jump."""
    found = _slope(f)
    if found.has(sp.DiracDelta):
        raise QuadratureError(
            "the response of two inputs of an activation with jumps needs kernels that float64 "
            f"holds, got {f}"
        )
    return found


def _of_two(
    network: LayeredNetwork,
    name: str,
    function: Callable[[sp.Expr], sp.Expr],
    K_xx: mp.mpf,
    K_yy: mp.mpf,
    K_xy: mp.mpf,
) -> mp.mpf:
    functions = [function(f) for f in features_of(network)]
    odd = K_xy <= 0 and all(sp.expand(f + f.subs(_H, -_H)) == 0 for f in functions)
    if K_xy == 0 and odd:
        return mp.zero
    if not (mp.isfinite(K_xx) and mp.isfinite(K_yy)):
        return -mp.inf if odd else mp.inf
    size = mp.sqrt(K_xx * K_yy)
    c = max(min(K_xy / size, mp.one), -mp.one) if size else mp.zero
    correlations = float(c), float(1 - c)
    wide = partial(_beyond_float, functions, (K_xx, K_yy), (c, correlations[1]))
    if size and any(f.has(sp.sin, sp.cos) for f in functions):
        # Waves that average out, of which quadrature tells late that it does not resolve them.
        with suppress(QuadratureError):
            return wide()
    if size and _SMALLEST < K_xx * K_yy < _LARGEST and correlations[1] < _NEAR:
        with suppress(QuadratureError):
            return _nearly_parallel(network, functions, name, (K_xx, K_yy), correlations[1])
    moderate = max(moment(network, K) for K in (K_xx, K_yy)) < _STEEP
    if not size or (moderate and _SMALLEST < K_xx * K_yy < _LARGEST):
        given = (np.array([float(v)]) for v in (K_xx, K_yy, *correlations))
        with suppress(QuadratureError, OverflowError), np.errstate(all="ignore"):
            found = float(pair_averages(network, name, *given)[0])
            if np.isfinite(found):
                return mp.mpf(found)
    found = wide()
    return -found if odd and mp.isinf(found) else found


def _nearly_parallel(
    network: LayeredNetwork,
    functions: list[sp.Expr],
    name: str,
    variances: tuple[mp.mpf, mp.mpf],
    away: float,
) -> mp.mpf:
    """⟨φφ⟩ or ⟨φ'φ'⟩ of 1 − c = ``away``; of the former no digits of 1 − ⟨φφ⟩/√(MM) cancel."""
    if not all(_is_analytic(f) for f in functions):
        raise QuadratureError("functions with waves, and kinks away from zero")
    x, y = map(float, variances)
    of_numbers = [vectorised([_H], f) for f in functions]
    if name == "slope":
        return mp.mpf(sum(polar_sizes.average(f, f, x, y, away) for f in of_numbers))
    moments = [moment(network, K) for K in variances]
    scales = [1 / float(mp.sqrt(M)) for M in moments]
    apart = 0.0
    for f in of_numbers:
        one, other = (partial(_times, scale, f) for scale in scales)
        apart += polar_sizes.half_square(one, other, x, y, away)
    return mp.sqrt(moments[0] * moments[1]) * (1 - mp.mpf(apart))


def _times(scale: float, f: Callable[..., Any], signals: np.ndarray) -> np.ndarray:
    return scale * f(signals)


@lru_cache(maxsize=64)
def _is_analytic(f: sp.Expr) -> bool:
    """Whether a function is, but for zero."""
    return not (has_waves(f) or any(kinks_of(f, _H)) or narrow_cuts(f, _H))


def _beyond_float(
    functions: list[sp.Expr], variances: tuple[mp.mpf, mp.mpf], correlations: tuple[mp.mpf, float]
) -> mp.mpf:
    return sum((beyond_float.pair(f, _H, variances, *correlations) for f in functions), mp.zero)


@lru_cache(maxsize=64)
def features_of(network: LayeredNetwork) -> tuple[sp.Expr, ...]:
    """Of a signal h, in numbers."""
    known = dict(feature_parameters(network))
    return tuple(map(sp.sympify, type(network).features(network.activation, _H, known)))
