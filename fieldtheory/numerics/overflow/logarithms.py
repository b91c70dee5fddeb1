"""Logarithms of kernels, responses and tangent kernels that leave the range of float64.

Numbers have exponents of their own, see `scaled_numbers`. Where a variance is so large that φ is
a power of its argument to all digits, the signals are halved j times before averages are taken:

    M(K) = M(K 4^-j) 2^(2jp),   ⟨φ_α φ_β⟩ is 2^((j_α + j_β) p) times that of the halved signals

with the power p measured, see `power_of`. Likewise where a variance is so small. Behind averages
that do not converge everything is NaN. For pairs
of inputs see `scaled_pairs`, for φ that grows as no power `unlimited`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.layer_averages.large_variances import (
    PLACES,
    power_of,
    single_average,
    slope_power,
    where_known,
)
from fieldtheory.numerics.overflow.scaled_numbers import (
    Scaled,
    joined,
    product,
    recursion,
    scaled,
    total,
)
from fieldtheory.numerics.tangents import Trained

# Exponents above are not known to an integer; variances are no farther from their power.
_EXACT, _COUNTS = 2.0**50, 1100.0
# Kernels below lose digits in float64.
_SMALLEST = 1e-290


@dataclass(frozen=True, eq=False)
class ScaledLayers:
    """The variances of all layers, and what every layer does with them, layer axis first.

    Parameters
    ----------
    network : LayeredNetwork
    layers : LayerCoefficients
    kernels : Scaled, shape (L + 2, ...)
        K^(l).
    near : ndarray, shape (L + 1, ...)
        Variances K^(l) 4^-j of the layers up to L, which float64 holds.
    halvings : ndarray, shape (L + 1, ...)
        j, negative where signals are doubled.
    moments : ndarray, shape (L + 1, ...)
        M of ``near``.
    shares : ndarray, shape (3, L + 2, ...)
        w_k: γ² K^(l-1), a_l M and c_l over K^(l); nothing for the input.
    trailing : int
        1 if the last axis counts inputs, else 0.
    """

    network: LayeredNetwork
    layers: LayerCoefficients
    kernels: Scaled
    near: np.ndarray
    halvings: np.ndarray
    moments: np.ndarray
    shares: np.ndarray
    trailing: int

    @cached_property
    def log_kernels(self) -> np.ndarray:
        """ln K^(l), shape (L + 2, ...)."""
        return self.kernels.log

    @cached_property
    @np.errstate(over="ignore")
    def gains(self) -> Scaled:
        """γ_l² + a_l M'(K^(l-1)) of the layers 1, ..., L + 1."""
        slopes = where_known(partial(single_average, self.network, "susceptibility"), self.near)
        return self.gains_of(slopes, 2 * self.halvings * self.powers("response"))

    @np.errstate(over="ignore")
    def tangents(self, trained: Trained) -> Scaled:
        """Θ^(l), shape (L + 2, ...)."""
        slopes = where_known(partial(single_average, self.network, "slope_square"), self.near)
        gains = self.gains_of(slopes, 2 * self.halvings * self.powers("slope"))
        averages = scaled(self.moments, 2 * self.halvings * self.powers("moment"))
        return self.tangents_of(trained, gains, Scaled(*(k[:1] for k in self.kernels)), averages)

    def gains_of(self, slopes: np.ndarray, exponents: np.ndarray) -> Scaled:
        """γ_l² + a_l s 2^e of the layers 1, ..., L + 1."""
        branch = product(scaled(self.layers.weights[1:]), scaled(slopes, exponents))
        return total([scaled(self.layers.skips[1:]), branch])[0]

    def tangents_of(self, trained: Trained, gains: Scaled, K0: Scaled, averages: Scaled) -> Scaled:
        """Θ^(l) with D^(l) = w_l ⟨φφ⟩ + u_l, D^(0) = w_0 K^(0) + u_0; see `tangents`."""
        batch = self.near.ndim - 1 - self.trailing
        weights, biases = (scaled(values) for values in trained.shaped(self.trailing, batch))
        sources = total([product(weights, joined(K0, averages)), biases])[0]
        return recursion(gains, sources)

    def powers(self, kind: str) -> np.ndarray:
        """The power of the variance as which an average goes where signals are halved or doubled.

        ``kind`` is "moment" of M, "response" of M', "slope" of ⟨φ'²⟩, "pair" of ⟨φ'_α φ'_β⟩.
        """
        return _powers(self.network, self.halvings, kind)


def log_responses(gains: Scaled, depth: int) -> np.ndarray:
    """ln|χ^(l)| of the layers 0, ..., L, from the gains of the layers from 1 on."""
    chi = scaled(np.ones(gains.mantissa.shape[1:]))
    found = [chi.log]
    for mantissa, exponent in zip(gains.mantissa[:depth], gains.exponent[:depth], strict=True):
        chi = product(chi, Scaled(mantissa, exponent))
        found.append(chi.log)
    return np.stack(found)


def of_array(values: np.ndarray) -> np.ndarray:
    """ln|x|, −∞ of zero."""
    with np.errstate(divide="ignore"):
        return np.log(np.abs(values))


def leaves_float64(kernels: np.ndarray, layer_axis: int = 0) -> bool:
    """Whether kernels have become so small that they lose digits.

    Of independent inputs of odd φ they are zero from the first layer on.
    """
    sizes = np.abs(np.moveaxis(kernels, layer_axis, 0))
    vanishes = (sizes[1:] == 0) & (sizes[:-1] > 0)
    return bool(((sizes > 0) & (sizes < _SMALLEST)).any() or vanishes.any())


def stays_in_float64(compute: Callable[[], np.ndarray], layer_axis: int) -> bool:
    """Whether kernels or responses can be computed and lose no digits."""
    try:
        return not leaves_float64(compute(), layer_axis)
    except ArithmeticError:
        return False


def scaled_layers(network: LayeredNetwork, K0: np.ndarray, trailing: int = 0) -> ScaledLayers:
    """The variances of single inputs through all layers, whatever their size.

    Parameters
    ----------
    network : LayeredNetwork
    K0 : ndarray
        Variances, (..., P) with ``trailing`` = 1, else (...).

    Raises
    ------
    OverflowError
        If φ is no power of its argument where float64 ends; see `unlimited` for such φ.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=5000, activation="relu", weight_variance=2.0, bias_variance=0.0)
    >>> scaled_layers(net, np.array(1.0)).log_kernels[-2] / np.log(2)
    np.float64(5000.0)
    """
    layers = layer_coefficients(network, trailing, K0.ndim - trailing)
    shape = np.broadcast_shapes(layers.weights.shape[1:], K0.shape)
    K = scaled(np.broadcast_to(K0, shape))
    kernels, near, halvings, moments = [K], [], [], []
    shares = [np.zeros((3, *shape))]
    for l in range(1, network.depth + 2):
        j = _halvings(network, K)
        exact = np.abs(K.exponent) < _EXACT
        with np.errstate(invalid="ignore"):
            inside = np.where(exact, K.exponent - 2 * j, PLACES[0][0] + 1.0)
        near.append(K.mantissa * np.exp2(np.clip(inside, -_COUNTS, _COUNTS)))
        halvings.append(j)
        with np.errstate(over="ignore", invalid="ignore"):
            moments.append(where_known(partial(_moment, network), np.asarray(near[-1])))
        _require_finite(network, moments[-1], l)
        with np.errstate(over="ignore", invalid="ignore"):
            powers = _powers(network, j, "moment")
            branch = product(scaled(layers.weights[l]), scaled(moments[-1], 2 * j * powers))
            parts = [product(scaled(layers.skips[l]), K), branch, scaled(layers.biases[l])]
            K, of_parts = total(parts)
        kernels.append(K)
        shares.append(of_parts)
    return ScaledLayers(
        network,
        layers,
        Scaled(*(np.stack(part) for part in zip(*kernels, strict=True))),
        np.stack(near),
        np.stack(halvings),
        np.stack(moments),
        np.stack(shares, axis=1),
        trailing,
    )


def _moment(network: LayeredNetwork, K: np.ndarray) -> np.ndarray:
    """M, infinite where it exceeds float64."""
    found = single_average(network, "second_moment", K)
    return np.where(np.isnan(found), np.inf, found)


def _halvings(network: LayeredNetwork, K: Scaled) -> np.ndarray:
    """How often signals are halved (or doubled, if negative) before averages are taken.

    Large variances stay above the first at which φ is a power.
    """
    e, j = K.exponent, np.zeros_like(K.exponent)
    averages = network_entries(network)
    least = PLACES[-1][0]
    if (e > least).any() and (large := power_of(averages, 1)) is not None:
        j = np.where(e > large.start + 2, (e - 1 - large.start) / 2, j)
    usual = (e < -least) & (K.mantissa > 0)
    if usual.any() and (small := power_of(averages, -1)) is not None:
        j = np.where(usual & (e < small.start - 2), (e - small.start) / 2, j)
    return np.where(np.abs(e) < _EXACT, np.floor(j), j)


def _powers(network: LayeredNetwork, halvings: np.ndarray, kind: str) -> np.ndarray:
    """See `ScaledLayers.powers`."""
    found = np.zeros_like(halvings)
    for sign in (1, -1):
        chosen = halvings * sign > 0
        if chosen.any():
            found = np.where(chosen, _power(network, sign, kind), found)
    return found


def _power(network: LayeredNetwork, sign: int, kind: str) -> float:
    if kind in ("slope", "pair"):
        return slope_power(network, sign, kind == "pair")
    power = power_of(network_entries(network), sign)
    assert power is not None
    return power.moment if kind == "moment" else power.slope


def _require_finite(network: LayeredNetwork, moments: np.ndarray, layer: int) -> None:
    if np.isinf(moments).any():
        raise OverflowError(
            f"this needs φ that grows as a power of its argument, {network.activation.name} does "
            f"not, and its kernel exceeds the range of float64 in layer {layer}"
        )
