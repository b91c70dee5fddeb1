"""Pairs of inputs whose kernels leave the range of float64.

A covariance is kept as the correlation c, from the shares w_k of skip connection, branch and bias
in the variances,

    c' = √(w_1 w_1) c + √(w_2 w_2) c_φ + √(w_3 w_3),   c_φ = ⟨φ_α φ_β⟩/√(M_α M_β),

and where that is near 1 as δ = 1 − c, see `decorrelations`: slopes of φ with kinks know the angle.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from mpmath import mp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.kernels import identical
from fieldtheory.numerics.layer_averages.angles import of_input
from fieldtheory.numerics.layer_averages.asymptotes import Lines
from fieldtheory.numerics.layer_averages.large_variances import (
    at_angles,
    pair_averages,
    where_known,
)
from fieldtheory.numerics.overflow.decorrelations import of_features
from fieldtheory.numerics.overflow.logarithms import ScaledLayers
from fieldtheory.numerics.overflow.scaled_numbers import Scaled, product, scaled, total
from fieldtheory.numerics.overflow.unlimited_averages import DIGITS, pair_slope
from fieldtheory.numerics.tangents import Pairs, Trained

# Correlations from which on δ is kept, and δ below which 1 − c_φ is no difference.
_NEAR, _SMALL = 0.5, 1e-3
# Correlations whose square is nothing beside them, and that lose digits soon.
_FAINT = 1e-280


@dataclass(frozen=True, eq=False)
class ScaledPairs:
    """The correlations of pairs of inputs in all layers, layer axis first.

    Parameters
    ----------
    layers : ScaledLayers
    pairs : pair of ndarray
        Indices α and β of the pairs.
    correlations, decorrelations : ndarray, shape (L + 2, ..., pairs)
        c^(l) and 1 − c^(l).
    of_phi : ndarray, shape (L + 1, ..., pairs)
        c_φ of the layers up to L.
    K0 : ndarray, shape (..., pairs)
        K_αβ^(0).
    """

    layers: ScaledLayers
    pairs: Pairs
    correlations: np.ndarray
    decorrelations: np.ndarray
    of_phi: np.ndarray
    K0: np.ndarray

    @cached_property
    def log_kernels(self) -> np.ndarray:
        """ln|K_αβ^(l)|, shape (L + 2, ..., pairs)."""
        first, second = self._of_both(self.layers.log_kernels)
        with np.errstate(divide="ignore"):
            own = np.log(np.abs(self.correlations))
        # The sum of both may exceed float64 where neither does.
        found = np.where(own > -np.inf, first / 2 + second / 2 + own, own)
        return np.where(self._faint, self._numbers[0].log, found) if self._faint.any() else found

    @cached_property
    def gains(self) -> Scaled:
        """γ_l² + a_l ⟨φ'_α φ'_β⟩ of the layers 1, ..., L + 1."""
        return self.layers.gains_of(*self.slopes)

    @cached_property
    def _faint(self) -> np.ndarray:
        """Where correlations are, or have been, smaller than float64 holds with all digits."""
        # Zeros behind others are numbers too small for float64.
        related = np.logical_or.accumulate(self.correlations != 0)
        small = (np.abs(self.correlations) < _FAINT) & related
        return np.maximum.accumulate(small) & (np.abs(self.correlations) < _FAINT)

    @cached_property
    def _numbers(self) -> tuple[Scaled, Scaled]:
        """K_αβ of all layers, and ⟨φ_α φ_β⟩ of those up to L.

        Of faint correlations it is that of none, and ⟨φ'_α⟩⟨φ'_β⟩ K_αβ.
        """
        averages, layers = self._averages, self.layers.layers
        unrelated = np.where(np.abs(self.of_phi) < _FAINT, 0.0, averages.mantissa)
        kernels, found = [scaled(self.K0)], []
        for l, faint in enumerate(self._faint[:-1], start=1):
            average = Scaled(averages.mantissa[l - 1], averages.exponent[l - 1])
            if faint.any():
                slope = scaled(*(part[l - 1] for part in self.slopes))
                parts = scaled(unrelated[l - 1], average.exponent), product(slope, kernels[-1])
                pairs = zip(total(parts)[0], average, strict=True)
                average = Scaled(*(np.where(faint, *of_both) for of_both in pairs))
            found.append(average)
            branch = product(scaled(layers.weights[l]), average)
            carried = product(scaled(layers.skips[l]), kernels[-1])
            kernels.append(total([carried, branch, scaled(layers.biases[l])])[0])
        return _stacked(kernels), _stacked(found)

    @cached_property
    @np.errstate(over="ignore", invalid="ignore")
    def _averages(self) -> Scaled:
        """⟨φ_α φ_β⟩ of the layers up to L, from c_φ."""
        moments = self._of_both(self.layers.halvings * self.layers.powers("moment"))
        size = np.multiply(*self._of_both(np.sqrt(self.layers.moments)))
        return scaled(self.of_phi * size, moments[0] + moments[1])

    @cached_property
    @np.errstate(over="ignore")
    def slopes(self) -> Scaled:
        """⟨φ'_α φ'_β⟩ of the layers up to L."""
        first, second = self._of_both(self.layers.halvings * self.layers.powers("pair"))
        near, c, delta = self._near, self.correlations[:-1], self.decorrelations[:-1]
        form, closed = at_angles(self.layers.network, *near)
        lines = form if isinstance(form, Lines) else None
        closed = np.broadcast_to(closed, c.shape)
        if lines is None or not closed.all():
            average = partial(pair_averages, self.layers.network, "slope")
            slopes = where_known(average, *near, c, delta)
            slopes = _completed(self.layers.network, slopes, *near, c, delta)
        if lines is not None:
            exact = lines.slope_at(delta)
            slopes = exact if closed.all() else np.where(closed, exact, slopes)
        return Scaled(slopes, first + second)

    @np.errstate(over="ignore")
    def tangents(self, trained: Trained) -> Scaled:
        """Θ_αβ^(l), shape (L + 2, ..., pairs)."""
        averages = self._numbers[1] if self._faint.any() else self._averages
        return self.layers.tangents_of(trained, self.gains, scaled(self.K0[None]), averages)

    @property
    def _near(self) -> tuple[np.ndarray, np.ndarray]:
        return self._of_both(self.layers.near)

    def _of_both(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return values[..., self.pairs[0]], values[..., self.pairs[1]]


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
    >>> from fieldtheory.numerics.overflow.logarithms import scaled_layers
    >>> net = ResidualNetwork(depth=200, activation="relu", weight_variance=2.0)
    >>> layers = scaled_layers(net, K0 := np.ones(2), 1)
    >>> found = scaled_pairs(layers, K0, np.array([0.3]), (np.array([0]), np.array([1])))
    >>> found.decorrelations[[0, 100, 200], 0].round(6)
    array([0.7     , 0.01235 , 0.003641])
    """
    first, second = (own[..., index] for index in pairs)
    shape = np.broadcast_shapes(covariance.shape, (*layers.near.shape[1:-1], len(pairs[0])))
    same = np.broadcast_to(identical(own, covariance, pairs) & (covariance > 0), shape)
    angles = np.broadcast_to((first > 0) & (second > 0), shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(angles, of_input(first, second, covariance), 1.0)
    delta = np.where(same, 0.0, apart)
    c = np.where(delta < 1 - _NEAR, 1 - delta, _correlation(first, second, covariance))
    found, of_phi = [(c, delta)], []
    for l in range(1, layers.network.depth + 2):
        features, delta_phi = _of_phi(layers, l - 1, c, delta, pairs)
        roots = np.sqrt(layers.shares[:, l])
        roots = roots[..., pairs[0]], roots[..., pairs[1]]
        skip, branch, bias = roots[0] * roots[1]
        c = np.clip(skip * c + branch * features + bias, -1, 1)
        differ = ((roots[0] - roots[1]) ** 2).sum(axis=0) / 2
        delta = np.where(c > _NEAR, differ + skip * delta + branch * delta_phi, 1 - c)
        # Identical inputs stay identical.
        delta = np.where(same & (c > 0), 0.0, delta)
        c = np.where(c > _NEAR, 1 - delta, c)
        found.append((c, delta))
        of_phi.append(features)
    correlations, apart = (np.stack(part) for part in zip(*found, strict=True))
    K0 = np.broadcast_to(covariance, shape)
    return ScaledPairs(layers, pairs, correlations, apart, np.stack(of_phi), K0)


def _completed(network: LayeredNetwork, slopes: np.ndarray, *pairs: np.ndarray) -> np.ndarray:
    """⟨φ'φ'⟩ of K_xx, K_yy, c and 1 − c; those that float64 does not have with mpmath."""
    given = np.broadcast_arrays(*pairs)
    left = np.isnan(slopes) & np.isfinite(given).all(axis=0) & (np.minimum(*given[:2]) > 0)
    for at in zip(*np.nonzero(left), strict=True):
        with mp.workdps(DIGITS), suppress(QuadratureError):
            x, y, c, delta = (mp.mpf(float(each[at])) for each in given)
            c = 1 - delta if c > _NEAR else c
            slopes[at] = float(pair_slope(network, x, y, c * mp.sqrt(x * y)))
    return slopes


def _stacked(parts: list[Scaled]) -> Scaled:
    return Scaled(*(np.stack(part) for part in zip(*parts, strict=True)))


def _correlation(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    size = np.sqrt(K_xx) * np.sqrt(K_yy)
    return ratio(K_xy + 0 * size, size)


def _of_phi(
    layers: ScaledLayers, l: int, c: np.ndarray, delta: np.ndarray, pairs: Pairs
) -> tuple[np.ndarray, np.ndarray]:
    """c_φ and 1 − c_φ of the signals of layer l."""
    first, second = (layers.near[l][..., index] for index in pairs)
    first, second = np.broadcast_to(first, c.shape), np.broadcast_to(second, c.shape)
    roots = np.sqrt(layers.moments[l])
    size = roots[..., pairs[0]] * roots[..., pairs[1]]
    size = np.broadcast_to(size, c.shape)
    _, closed = at_angles(layers.network, first, second)
    exact = (size > 0) & (closed & (c > _NEAR) | (delta > 0) & (delta < _SMALL))
    found, apart = np.zeros(c.shape), np.ones(c.shape)
    if not exact.all():
        rest = ~exact
        covariance = partial(pair_averages, layers.network, "covariance")
        average = where_known(covariance, first[rest], second[rest], c[rest])
        unknown = np.isnan(average + size[rest])
        found[rest] = np.where(unknown, np.nan, ratio(average, size[rest]))
        apart[rest] = 1 - found[rest]
    if exact.any():
        given = first[exact], second[exact], size[exact], delta[exact]
        apart[exact] = where_known(partial(of_features, layers.network), *given)
        found[exact] = 1 - apart[exact]
    return found, apart
