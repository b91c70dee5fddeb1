"""Layers whose kernels leave the range of float64, for asymptotically scale-invariant φ.

Kernels are numbers m 2^e with exponents of their own. Signals of variances between 2^-120 and
2^120 are averaged as they are. Beyond, φ is a line on either side of zero to all digits (ReLU,
GELU, swish, ELU, softplus and so on far from zero, any φ with slopes and φ(0) = 0 near it), and

    M(K) = M(K 4^-j) 4^j,   ⟨φ_α φ_β⟩ is 2^(j_α + j_β) times that of signals halved j times.

Pairs of inputs are followed by their correlation and its gaps 1 − c and 1 + c, see `homogeneous`,
so that 1 − c keeps its digits where it is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.homogeneous import Lines, gaps_of, next_gaps
from fieldtheory.numerics.infinite_width.kernels import ROUNDED, identical
from fieldtheory.numerics.infinite_width.layer_functions import network_functions
from fieldtheory.numerics.infinite_width.scaled_numbers import (
    Scaled,
    joined,
    product,
    recursion,
    scaled,
    total,
)
from fieldtheory.numerics.infinite_width.tangents import Pairs, Trained
from fieldtheory.numerics.recursion import ratio

# Exponents of variances beyond which φ is a line: signals are 2^60 then, corrections a rounding.
_LINES = 120
# Variances whose products float64 holds; averages of bounded φ do not change beyond.
_PRODUCTS = 480
# Correlations from which on their gap is what is followed.
_NEAR = 0.5


@dataclass(frozen=True, eq=False)
class ScaledLayers:
    """The variances of all layers, and what every layer does with them, layer axis first.

    Parameters
    ----------
    network : LayeredNetwork
    layers : LayerCoefficients
    kernels : Scaled, shape (L + 2, ...)
        K^(l).
    kinds : ndarray, shape (L + 1, ...)
        1 and −1 where φ is that line of wide and of narrow signals, else 0.
    halvings, near : ndarray, shape (L + 1, ...)
        j, and the variances K^(l) 4^-j.
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
    kinds: np.ndarray
    halvings: np.ndarray
    near: np.ndarray
    moments: np.ndarray
    shares: np.ndarray
    trailing: int

    @cached_property
    def gains(self) -> Scaled:
        """γ_l² + a_l M'(K^(l-1)) of the layers 1, ..., L + 1."""
        slope = network_functions(self.network).susceptibility
        return self.gains_of(_of_kinds(self.network, self.kinds, self.near, slope))

    @cached_property
    def narrowed(self) -> np.ndarray:
        """n: bounded φ are averaged at K 2^-n, which leaves ⟨φ²⟩ and makes ⟨φ'²⟩ 2^(n/2) times."""
        wider = np.maximum(self.kernels.exponent[:-1] - _PRODUCTS, 0.0)
        return np.where(self.kinds == 0, wider, 0.0)

    def gains_of(self, slopes: np.ndarray, narrowed: np.ndarray | float = 0.0) -> Scaled:
        """γ_l² + a_l s of the layers 1, ..., L + 1, with s 2^(n/2) given; a_l = 0 adds nothing."""
        weights = self.layers.weights[1:]
        seen = np.where(weights > 0, slopes, 0.0)
        branch = product(scaled(weights), scaled(seen, -narrowed / 2))
        return total([scaled(self.layers.skips[1:]), branch])[0]

    def tangents(self, trained: Trained) -> Scaled:
        """Θ^(l), shape (L + 2, ...)."""
        square = network_functions(self.network).slope_square
        slopes = _of_kinds(self.network, self.kinds, self.near, square)
        gains = self.gains_of(slopes, self.narrowed)
        averages = scaled(self.moments, 2 * self.halvings)
        return self.tangents_of(trained, gains, Scaled(*(k[:1] for k in self.kernels)), averages)

    def tangents_of(self, trained: Trained, gains: Scaled, K0: Scaled, averages: Scaled) -> Scaled:
        """Θ^(l) with D^(l) = w_l ⟨φφ⟩ + u_l, D^(0) = w_0 K^(0) + u_0; see `tangents`."""
        batch = self.near.ndim - 1 - self.trailing
        weights, biases = (scaled(values) for values in trained.shaped(self.trailing, batch))
        sources = total([product(weights, joined(K0, averages)), biases])[0]
        return recursion(gains, sources)


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
        If a variance leaves float64 where φ is no line on either side of zero.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=5000, activation="relu", weight_variance=2.0, bias_variance=0.0)
    >>> scaled_layers(net, np.array(1.0)).kernels.log[-2] / np.log(2)
    np.float64(5000.0)
    """
    layers = layer_coefficients(network, trailing, K0.ndim - trailing)
    shape = np.broadcast_shapes(layers.weights.shape[1:], K0.shape)
    moment = network_functions(network).second_moment
    K, averages = scaled(np.broadcast_to(K0, shape)), []
    kernels, shares = [K], [np.zeros((3, *shape))]
    for l in range(1, network.depth + 2):
        kind, j, near = _reduced(network, K, l - 1)
        with np.errstate(over="ignore", invalid="ignore"):
            M = _of_kinds(network, kind, near, moment, near)
        if not np.isfinite(M).all():
            raise _no_line(network, l)
        averages.append((kind, j, near, M))
        branch = product(scaled(layers.weights[l]), scaled(M, 2 * j))
        K, parts = total([product(scaled(layers.skips[l]), K), branch, scaled(layers.biases[l])])
        kernels.append(K)
        shares.append(parts)
    kinds, halvings, near, moments = (np.stack(each) for each in zip(*averages, strict=True))
    return ScaledLayers(
        network,
        layers,
        _stacked(kernels),
        kinds,
        halvings,
        near,
        moments,
        np.stack(shares, axis=1),
        trailing,
    )


def _reduced(
    network: LayeredNetwork, K: Scaled, layer: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kinds, halvings and variances K 4^-j of signals."""
    functions = network_functions(network)
    if functions.lines is not None:
        kind = np.where(K.mantissa == 0, 0, 1)
    else:
        kind = np.where(K.exponent > _LINES, 1, 0) - np.where(K.exponent < -_LINES, 1, 0)
        kind = np.where(K.mantissa == 0, 0, kind)
    if functions.near_lines is None and (kind < 0).any():
        if not functions.is_finite_at_zero or (K.exponent[kind < 0] < -_PRODUCTS).any():
            raise _no_line(network, layer)
        kind = np.maximum(kind, 0)
    if functions.far_lines is None and (kind > 0).any():
        if not functions.is_bounded:
            raise _no_line(network, layer)
        kind = np.minimum(kind, 0)
    j = np.where(kind == 0, 0.0, np.floor(K.exponent / 2))
    inside = np.where(K.mantissa == 0, 0.0, np.minimum(K.exponent - 2 * j, _PRODUCTS))
    return kind, j, K.mantissa * np.exp2(inside)


def _no_line(network: LayeredNetwork, layer: int) -> OverflowError:
    return OverflowError(
        f"the kernel leaves the range of float64 in layer {layer}; this needs φ that is a line on "
        f"either side of zero there, {network.activation.name} is not: reduce depth, "
        "branch_scale, skip_scale, weight_variance or K0"
    )


def _of_kinds(
    network: LayeredNetwork,
    kinds: np.ndarray,
    near: np.ndarray,
    average: object,
    power: np.ndarray | float = 1.0,
) -> np.ndarray:
    """An average of single inputs, where φ is a line A² + B² times a power."""
    functions = network_functions(network)
    values = np.empty(kinds.shape)
    if (usual := kinds == 0).any():
        values[usual] = average(near[usual])  # type: ignore[operator]
    for kind, lines in ((1, functions.far_lines), (-1, functions.near_lines)):
        if (some := kinds == kind).any():
            assert lines is not None
            values[some] = (lines.moment * power * np.ones(kinds.shape))[some]
    return values


def log_responses(gains: Scaled, depth: int) -> np.ndarray:
    """ln|χ^(l)| of the layers 0, ..., L, from the gains of the layers from 1 on."""
    chi = scaled(np.ones(gains.mantissa.shape[1:]))
    logarithms = [chi.log]
    for mantissa, exponent in zip(gains.mantissa[:depth], gains.exponent[:depth], strict=True):
        chi = product(chi, Scaled(mantissa, exponent))
        logarithms.append(chi.log)
    return np.stack(logarithms)


@dataclass(frozen=True, eq=False)
class ScaledPairs:
    """The correlations of pairs of inputs in all layers, layer axis first.

    Parameters
    ----------
    layers : ScaledLayers
    pairs : pair of ndarray
        Indices α and β of the pairs.
    correlations : ndarray, shape (L + 2, ..., pairs)
        c^(l).
    gaps : ndarray, shape (L + 2, 2, ..., pairs)
        1 − c^(l) and 1 + c^(l).
    of_phi, slopes : ndarray, shape (L + 1, ..., pairs)
        ⟨φ_α φ_β⟩/√(M_α M_β) and ⟨φ'_α φ'_β⟩ of the layers up to L.
    K0 : ndarray, shape (..., pairs)
        K_αβ^(0).
    """

    layers: ScaledLayers
    pairs: Pairs
    correlations: np.ndarray
    gaps: np.ndarray
    of_phi: np.ndarray
    slopes: np.ndarray
    K0: np.ndarray

    @property
    def log_kernels(self) -> np.ndarray:
        """ln|K_αβ^(l)|, shape (L + 2, ..., pairs)."""
        first, second = (self.layers.kernels.log[..., index] for index in self.pairs)
        with np.errstate(divide="ignore"):
            own = np.log(np.abs(self.correlations))
        return np.where(own > -np.inf, first / 2 + second / 2 + own, own)

    @property
    def decorrelations(self) -> np.ndarray:
        """1 − c^(l), shape (L + 2, ..., pairs)."""
        return self.gaps[:, 0]

    @cached_property
    def gains(self) -> Scaled:
        """γ_l² + a_l ⟨φ'_α φ'_β⟩ of the layers 1, ..., L + 1.

        Slopes of wide signals meet where both are near a line across zero, of parallel ones where
        one is.
        """
        first, second = (self.layers.narrowed[..., index] for index in self.pairs)
        parallel = self.gaps[:-1].min(axis=1) == 0
        return self.layers.gains_of(self.slopes, (first + second) / np.where(parallel, 2, 1))

    def tangents(self, trained: Trained) -> Scaled:
        """Θ_αβ^(l), shape (L + 2, ..., pairs)."""
        first, second = self.pairs
        root, j = np.sqrt(self.layers.moments), self.layers.halvings
        size = root[..., first] * root[..., second]
        averages = scaled(self.of_phi * size, j[..., first] + j[..., second])
        return self.layers.tangents_of(trained, self.gains, scaled(self.K0[None]), averages)


def scaled_pairs(
    layers: ScaledLayers, own: np.ndarray, covariance: np.ndarray, pairs: Pairs
) -> ScaledPairs:
    """Pairs of inputs through all layers.

    Parameters
    ----------
    layers : ScaledLayers
        Of the single inputs.
    own : ndarray, shape (..., P)
        Variances K_αα^(0).
    covariance : ndarray, shape (..., pairs)
        K_αβ^(0).
    pairs : pair of ndarray
        Indices α and β of the pairs.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=200, activation="relu", weight_variance=2.0)
    >>> layers = scaled_layers(net, K0 := np.ones(2), 1)
    >>> found = scaled_pairs(layers, K0, np.array([0.3]), (np.array([0]), np.array([1])))
    >>> found.decorrelations[[0, 100, 200], 0].round(6)
    array([0.7     , 0.01235 , 0.003641])
    """
    shape = np.broadcast_shapes(covariance.shape, (*layers.near.shape[1:-1], len(pairs[0])))
    first, second = (np.broadcast_to(own[..., index], shape) for index in pairs)
    K0 = np.broadcast_to(covariance, shape)
    same = np.broadcast_to(identical(own, covariance, pairs) & (covariance > 0), shape)
    gaps = np.where((first > 0) & (second > 0), gaps_of(first, second, K0), 1.0)
    c = ratio(K0 + 0.0, np.sqrt(first) * np.sqrt(second))
    c = np.where(np.abs(c) > _NEAR, _correlation(gaps), c)
    correlations, all_gaps, averages = [c], [gaps], []
    for l in range(1, layers.network.depth + 2):
        c_phi, of_phi, slope = _of_phi(layers, l - 1, c, gaps, pairs)
        averages.append((c_phi, slope))
        roots = np.sqrt(layers.shares[:, l])
        one, other = roots[..., pairs[0]], roots[..., pairs[1]]
        skip, branch, bias = one * other
        c = np.clip(skip * c + branch * c_phi + bias, -1, 1)
        positive = (one**2).sum(axis=0) * (other**2).sum(axis=0) > 0
        exact = next_gaps(gaps, of_phi, one, other)
        near = positive & (np.abs(c) > _NEAR)
        gaps = np.where(near, exact, np.stack([1 - c, 1 + c]))
        # Identical inputs stay identical.
        gaps[0] = np.where(same & (c > 0), 0.0, gaps[0])
        c = np.where(near, _correlation(gaps), c)
        correlations.append(c)
        all_gaps.append(gaps)
    of_phi, slopes = (np.stack(each) for each in zip(*averages, strict=True))
    followed = np.stack(correlations), np.stack(all_gaps)
    return ScaledPairs(layers, pairs, *followed, of_phi, slopes, K0)


def _correlation(gaps: np.ndarray) -> np.ndarray:
    """c of 1 ∓ c, of which the smaller is exact."""
    return np.where(gaps[0] < gaps[1], 1 - gaps[0], gaps[1] - 1)


def _of_phi(
    layers: ScaledLayers, l: int, c: np.ndarray, gaps: np.ndarray, pairs: Pairs
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """c_φ, its gaps 1 ∓ c_φ and ⟨φ'φ'⟩ of the signals of layer l."""
    functions = network_functions(layers.network)
    kinds = [np.broadcast_to(layers.kinds[l][..., index], c.shape) for index in pairs]
    c_phi, slopes, phi_gaps = np.zeros(c.shape), np.zeros(c.shape), np.ones(gaps.shape)
    for kind, lines in ((1, functions.far_lines), (-1, functions.near_lines)):
        if (both := (kinds[0] == kind) & (kinds[1] == kind)).any():
            assert lines is not None
            # The even part of φ alone is |h|.
            even, odd = Lines(0.0, 1.0).averages(gaps[:, both])[1][0], lines.A**2 / lines.moment
            slopes[both], phi_gaps[:, both] = lines.averages(gaps[:, both])
            c_phi[both] = odd * c[both] + (1 - odd) * (1 - even)
    # Of two others the one that φ is a line of may be of any size that float64 holds.
    some = (kinds[0] != kinds[1]) | (kinds[0] == 0)
    if not some.any():
        return c_phi, phi_gaps, slopes
    size = 4.0 ** np.clip(layers.halvings[l], -_LINES, _LINES)
    x, y, M_x, M_y = (
        np.broadcast_to((values[l] * size)[..., index], c.shape)[some]
        for values in (layers.near, layers.moments)
        for index in pairs
    )
    value, slopes[some] = functions.covariance_gain(x, y, c[some] * np.sqrt(x) * np.sqrt(y))
    c_phi[some] = ratio(value, np.sqrt(M_x) * np.sqrt(M_y))
    # Those of parallel signals are zero within rounding.
    near = np.stack([1 - c_phi[some], 1 + c_phi[some]])
    parallel = (near <= ROUNDED) & (gaps[:, some].min(axis=0) == 0)
    exact = functions.small_gaps(x, y, gaps[:, some])
    phi_gaps[:, some] = np.where(
        np.isnan(exact), np.where(parallel, 0.0, np.maximum(near, 0.0)), exact
    )
    return c_phi, phi_gaps, slopes


def _stacked(parts: list[Scaled]) -> Scaled:
    return Scaled(*(np.stack(part) for part in zip(*parts, strict=True)))
