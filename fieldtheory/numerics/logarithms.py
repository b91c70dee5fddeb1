"""Logarithms of kernels and responses that leave the range of float64.

Numbers are mantissas with an exponent of their own, m 2^e. Where a variance is so large that φ is
a power of its argument to all digits, the signals are halved j times before averages are taken:

    M(K) = M(K 4^-j) 2^(2jp),   ⟨φ_α φ_β⟩ is 2^((j_α + j_β) p) times that of the halved signals

with the power p measured, see `power_of`. Likewise where a variance is so small. A covariance is
kept as the correlation c, from the shares w_k of skip connection, branch and bias in the variances,

    c' = √(w_1 w_1) c + √(w_2 w_2) c_φ + √(w_3 w_3),   c_φ = ⟨φ_α φ_β⟩/√(M_α M_β).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.entries import network_entries
from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.large_variances import PLACES, pair_averages, power_of, single_average

# Exponents above are not known to an integer; the exponent of zero; differences that count.
_EXACT, _ZERO, _COUNTS = 2.0**50, -(2.0**62), 1100.0
# Kernels below lose digits in float64.
_SMALLEST = 1e-290


class Scaled(NamedTuple):
    """m 2^e: mantissas of magnitude 1/2 to 1, or 0, and exponents, of one shape."""

    mantissa: np.ndarray
    exponent: np.ndarray

    @property
    def log(self) -> np.ndarray:
        """ln|m 2^e|, −∞ of zero."""
        m, e = np.abs(self.mantissa), self.exponent
        usual = np.abs(e) < 1000
        with np.errstate(divide="ignore"):
            inside = np.log(m * np.exp2(np.where(usual, e, 0)))
            return np.where(usual, inside, np.log(m) + e * np.log(2))


def scaled(values: np.ndarray, exponents: np.ndarray | float = 0.0) -> Scaled:
    """The numbers values 2^exponents."""
    mantissa, shift = np.frexp(values)
    return Scaled(mantissa, np.where(mantissa == 0, _ZERO, exponents + shift))


def product(x: Scaled, y: Scaled) -> Scaled:
    """The products of two arrays."""
    return scaled(x.mantissa * y.mantissa, x.exponent + y.exponent)


def total(parts: Sequence[Scaled]) -> tuple[Scaled, np.ndarray]:
    """The sum of several arrays, and the share of each in it, 0 where the sum vanishes."""
    parts = [Scaled(*np.broadcast_arrays(*part)) for part in parts]
    largest = np.maximum.reduce(np.broadcast_arrays(*(part.exponent for part in parts)))
    terms = [
        part.mantissa * np.exp2(np.clip(part.exponent - largest, -_COUNTS, 0.0)) for part in parts
    ]
    found = np.add.reduce(terms)
    return scaled(found, largest), np.stack([ratio(term + 0 * found, found) for term in terms])


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
    """

    network: LayeredNetwork
    layers: LayerCoefficients
    kernels: Scaled
    near: np.ndarray
    halvings: np.ndarray
    moments: np.ndarray
    shares: np.ndarray

    @cached_property
    def log_kernels(self) -> np.ndarray:
        """ln K^(l), shape (L + 2, ...)."""
        return self.kernels.log

    @cached_property
    def gains(self) -> Scaled:
        """γ_l² + a_l M'(K^(l-1)) of the layers 1, ..., L + 1."""
        slopes = single_average(self.network, "susceptibility", self.near)
        powers = _powers(self.network, self.halvings, "slope")
        return self._gains(slopes, 2 * self.halvings * powers)

    def _gains(self, slopes: np.ndarray, exponents: np.ndarray) -> Scaled:
        branch = product(scaled(self.layers.weights[1:]), scaled(slopes, exponents))
        return total([scaled(self.layers.skips[1:]), branch])[0]

    def correlations(self, initial: np.ndarray, pairs: tuple[np.ndarray, ...]) -> np.ndarray:
        """c^(l) of pairs of inputs, shape (L + 2, ..., pairs), from those of the input."""
        first, second = pairs
        shape = np.broadcast_shapes(initial.shape, (*self.near.shape[1:-1], len(first)))
        found = [np.broadcast_to(initial, shape)]
        for l in range(1, self.network.depth + 2):
            c = found[-1]
            near, moments = self.near[l - 1], self.moments[l - 1]
            size = np.sqrt(moments[..., first] * moments[..., second])
            average = pair_averages(
                self.network, "covariance", near[..., first], near[..., second], c
            )
            of_phi = ratio(average, size)
            skip, branch, bias = self.joint_shares(pairs, l)
            new = np.clip(skip * c + branch * of_phi + bias, -1, 1)
            # Identical inputs stay identical.
            found.append(np.where(initial == 1, ratio(new, new), new))
        return np.stack(found)

    def joint_shares(self, pairs: tuple[np.ndarray, ...], l: int) -> np.ndarray:
        """√(w_kα w_kβ) in layer l, shape (3, ..., pairs)."""
        shares = self.shares[:, l]
        return np.sqrt(shares[..., pairs[0]] * shares[..., pairs[1]])

    def log_covariances(
        self, correlations: np.ndarray, pairs: tuple[np.ndarray, ...]
    ) -> np.ndarray:
        """ln|K_αβ^(l)|, shape (L + 2, ..., pairs)."""
        logs = self.log_kernels
        with np.errstate(divide="ignore"):
            own = np.log(np.abs(correlations))
        return np.where(own > -np.inf, (logs[..., pairs[0]] + logs[..., pairs[1]]) / 2 + own, own)

    def pair_gains(self, correlations: np.ndarray, pairs: tuple[np.ndarray, ...]) -> Scaled:
        """γ_l² + a_l ⟨φ'_α φ'_β⟩ of the layers 1, ..., L + 1."""
        powers = _powers(self.network, self.halvings, "moment") - 1
        exponents = self.halvings * powers
        near = self.near[..., pairs[0]], self.near[..., pairs[1]]
        slopes = pair_averages(self.network, "slope", *near, correlations[:-1])
        return self._gains(slopes, exponents[..., pairs[0]] + exponents[..., pairs[1]])


def log_responses(gains: Scaled) -> np.ndarray:
    """ln|χ^(l)| of the layers 0, ..., L, from the gains of the layers 1, ..., L + 1."""
    chi = scaled(np.ones(gains.mantissa.shape[1:]))
    found = [chi.log]
    for mantissa, exponent in zip(gains.mantissa[:-1], gains.exponent[:-1], strict=True):
        chi = product(chi, Scaled(mantissa, exponent))
        found.append(chi.log)
    return np.stack(found)


def of_array(values: np.ndarray) -> np.ndarray:
    """ln|x|, −∞ of zero."""
    with np.errstate(divide="ignore"):
        return np.log(np.abs(values))


def leaves_float64(kernels: np.ndarray) -> bool:
    """Whether kernels have become so small that they lose digits."""
    return bool((np.abs(kernels) < _SMALLEST).any())


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
        If φ is no power of its argument where float64 ends, or the exponents leave float64.

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
        inside = np.where(exact, K.exponent - 2 * j, 120.0)
        near.append(K.mantissa * np.exp2(np.clip(inside, -_COUNTS, _COUNTS)))
        halvings.append(j)
        with np.errstate(over="ignore", invalid="ignore"):
            moments.append(single_average(network, "second_moment", np.asarray(near[-1])))
        _require_finite(network, moments[-1], l)
        with np.errstate(over="ignore", invalid="ignore"):
            powers = _powers(network, j, "moment")
            branch = product(scaled(layers.weights[l]), scaled(moments[-1], 2 * j * powers))
            parts = [product(scaled(layers.skips[l]), K), branch, scaled(layers.biases[l])]
            K, of_parts = total(parts)
        _require_finite(network, K.exponent, l)
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
    )


def _halvings(network: LayeredNetwork, K: Scaled) -> np.ndarray:
    """How often signals are halved (or doubled, if negative) before averages are taken."""
    e, j = K.exponent, np.zeros_like(K.exponent)
    averages = network_entries(network)
    least = PLACES[-1][0]
    if (e > least).any() and (large := power_of(averages, 1)) is not None:
        j = np.where(e > large.start + 2, (e - large.start) / 2, j)
    usual = (e < -least) & (K.mantissa > 0)
    if usual.any() and (small := power_of(averages, -1)) is not None:
        j = np.where(usual & (e < small.start - 2), (e - small.start) / 2, j)
    return np.where(np.abs(e) < _EXACT, np.floor(j), j)


def _powers(network: LayeredNetwork, halvings: np.ndarray, kind: str) -> np.ndarray:
    """The power as which M or M' goes with the variance, of signals that are halved or doubled."""
    averages, found = network_entries(network), np.zeros_like(halvings)
    for sign in (1, -1):
        chosen = halvings * sign > 0
        if chosen.any():
            found = np.where(chosen, getattr(power_of(averages, sign), kind), found)
    return found


def _require_finite(network: LayeredNetwork, values: np.ndarray, layer: int) -> None:
    if np.isfinite(values).all():
        return
    if power_of(network_entries(network), 1) is None:
        raise OverflowError(
            f"log_kernels and log_response need φ that grows as a power of its argument, "
            f"{network.activation.name} does not, and its kernel exceeds the range of float64 in "
            f"layer {layer}"
        )
    raise OverflowError(
        f"the logarithm of the kernel exceeds the range of float64 in layer {layer}; reduce depth"
    )
