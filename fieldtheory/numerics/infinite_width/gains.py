"""Responses to the input kernel, by running products over the layers."""

from __future__ import annotations

from functools import partial

import numpy as np

from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.compiling.translation import is_closed
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.finite import require_finite
from fieldtheory.numerics.kinks import odd_pairs
from fieldtheory.numerics.kinks.kinked_features import centres
from fieldtheory.numerics.kinks.kinked_planes import ORDER, RESOLUTIONS, Plane
from fieldtheory.numerics.layer_averages.along_layers import smoothly
from fieldtheory.numerics.layer_averages.angles import exact_averages
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.layer_averages.large_variances import farthest_lines
from fieldtheory.numerics.layer_averages.parallel_signals import are_parallel
from fieldtheory.numerics.observables.pair_observables import kinked_features
from fieldtheory.numerics.overflow.logarithms import scaled_layers
from fieldtheory.numerics.overflow.scaled_pairs import scaled_pairs
from fieldtheory.numerics.recursion import carried

# A variance that is as good as none, relative to another.
_NARROW = 1e-32
# Variances from which on smooth φ looks like one with a kink, and the angle of two signals below
# which 1e-16/θ in every layer is too much.
_KINKED, _ANGLE = 2.0**10, 1e-3


def variance_gains(network: LayeredNetwork, K: np.ndarray, trailing: int = 0) -> np.ndarray:
    """a_l M'(K^(l-1)), the gain of layer l; shape (L + 2, ...), zero for the input."""
    averages = network_entries(network)
    slope = averages.susceptibility
    if not is_closed(averages.averages.moment):
        slope = partial(smoothly, slope)
    return _gains(
        layer_coefficients(network, trailing, K.ndim - 1 - trailing).weights, slope(K[:-1])
    )


def covariance_gains(
    network: LayeredNetwork, K: np.ndarray, kernel: np.ndarray, pairs: tuple
) -> np.ndarray:
    """a_l ⟨φ'_α φ'_β⟩, the gain of layer l for a covariance; shape (L + 2, ..., pairs)."""
    exact = exact_averages(network, K[:-1], kernel[0], pairs)
    if exact is not None:
        averages = np.stack([slope for slope, _ in exact])
    else:
        known = network_entries(network)
        slope = known.covariance_susceptibility
        if not is_closed(known.averages.covariance):
            slope = partial(smoothly, slope)
        first, second = pairs
        averages = slope(K[:-1][..., first], K[:-1][..., second], kernel[:-1])
        averages = _at_small_angles(network, averages, K[:-1], kernel[:-1], pairs)
    return _gains(layer_coefficients(network, 1, K.ndim - 2).weights, averages)


def _at_small_angles(
    network: LayeredNetwork, slopes: np.ndarray, K: np.ndarray, kernel: np.ndarray, pairs: tuple
) -> np.ndarray:
    """⟨φ'φ'⟩ of signals to which φ has a kink, at angles of which covariances lost digits."""
    x, y = (K[..., members] for members in pairs)
    with np.errstate(invalid="ignore"):
        narrow = kernel > (1 - _ANGLE**2 / 2) * np.sqrt(x) * np.sqrt(y)
    narrow &= (x != kernel) | (y != kernel)
    if not narrow.any():
        return slopes
    lines, features = farthest_lines(network), kinked_features(network)
    # Pieces that are no polynomials take long at small angles.
    kinked = bool(centres(features)) and all(psi.degree is not None for psi in features)
    if not (kinked or (lines is not None and lines.B)):
        return slopes
    narrow &= np.minimum(x, y) > (0.0 if kinked else _KINKED)
    # Digits that are lost stay lost as angles grow.
    narrow = np.logical_or.accumulate(narrow)
    which = narrow.reshape(-1, narrow.shape[-1]).any(axis=0)
    if not which.any():
        return slopes
    some = pairs[0][which], pairs[1][which]
    own = scaled_layers(network, K[0], 1)
    found = scaled_pairs(own, K[0], kernel[0][..., which], some).slopes
    exact = np.ldexp(found.mantissa, found.exponent.astype(int))[: len(K)]
    corrected = np.array(slopes)
    # Those of jumps are infinite where signals are parallel.
    known = narrow[..., which] & np.isfinite(exact) & ~np.isinf(slopes[..., which])
    corrected[..., which] = np.where(known, exact, slopes[..., which])
    return corrected


def cross_gains(
    network: LayeredNetwork, K: np.ndarray, kernel: np.ndarray, pairs: tuple
) -> tuple[np.ndarray, np.ndarray]:
    """a_l ⟨φ''_α φ_β⟩/2 and a_l ⟨φ_α φ''_β⟩/2, the gains of a covariance by the two variances.

    Where φ has a kink at zero they diverge as the variance vanishes, where it jumps for parallel
    inputs; this raises ValueError.
    """
    averages = _cross_averages(network, K, kernel, pairs)
    _require_no_divergence(network, K, averages)
    weights = layer_coefficients(network, 1, K.ndim - 2).weights
    return _gains(weights, averages[0]), _gains(weights, averages[1])


def gains_of_fluctuations(
    network: LayeredNetwork, K: np.ndarray, kernel: np.ndarray, pairs: tuple, pair: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gains of covariances by themselves, ``pair``, and by the variances, as kernels can move.

    A variance that vanishes does so at any width, and K_αβ and K_ββ of parallel signals follow
    K_αα, so that derivatives which diverge there are not asked for.

    Parameters
    ----------
    network : LayeredNetwork
    K : ndarray, shape (L + 2, P)
    kernel : ndarray, shape (L + 2, P(P−1)/2)
    pairs : tuple of ndarray
    pair : ndarray, shape (L + 2, P(P−1)/2)

    Returns
    -------
    tuple of three ndarrays, shape (L + 2, P(P−1)/2)
    """
    first, second = _cross_averages(network, K, kernel, pairs)
    (x, y), xy = (K[:-1][:, members] for members in pairs), kernel[:-1]
    first, second = _beside_zero(network, first, x, y), _beside_zero(network, second, y, x)
    weights = layer_coefficients(network, 1).weights
    pair = np.where(np.pad(x * y == 0, ((1, 0), (0, 0))), 0.0, pair)
    parallel = are_parallel(x, y, xy)
    if parallel.any() and any(psi.jumps for psi in kinked_features(network)):
        first[parallel] = second[parallel] = 0.0
        at = np.nonzero(parallel)
        factors = np.sign(xy[parallel]) * np.sqrt(y[parallel] / x[parallel])
        along = [
            _along(network, float(k), float(factor))
            for k, factor in zip(x[parallel], factors, strict=True)
        ]
        pair[1:][parallel] = weights[1:].reshape(len(x), -1)[at[0], 0] * along
    _require_no_divergence(network, K, (first, second))
    return pair, _gains(weights, first), _gains(weights, second)


def _cross_averages(
    network: LayeredNetwork, K: np.ndarray, kernel: np.ndarray, pairs: tuple
) -> tuple[np.ndarray, np.ndarray]:
    """⟨φ''_α φ_β⟩/2 and ⟨φ_α φ''_β⟩/2."""
    slope = odd_pairs.cross_susceptibility(network)
    alpha, beta = K[:-1][..., pairs[0]], K[:-1][..., pairs[1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        return slope(alpha, beta, kernel[:-1]), slope(beta, alpha, kernel[:-1])


def _require_no_divergence(
    network: LayeredNetwork, K: np.ndarray, averages: tuple[np.ndarray, np.ndarray]
) -> None:
    if np.isfinite(averages).all():
        return
    name = network.activation.name
    if (K[:-1] > 0).all():
        raise ValueError(
            f"K0 must have no parallel inputs, same or opposite: ⟨φφ''⟩ of {name} diverges "
            "for them; leave one of them out"
        )
    raise ValueError(f"K0 must have positive variances: ⟨φφ''⟩ of {name} diverges at zero")


def _beside_zero(
    network: LayeredNetwork, averages: np.ndarray, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """⟨φ''(x) φ(y)⟩/2 with those of a signal x = 0 zero, and ⟨φ''⟩ φ(0)/2 where y alone is."""
    found = np.where(x == 0, 0.0, averages)
    only = (x > 0) & (y == 0)
    if only.any():
        # A limit, as integrals over kinks are not those of a point.
        found[only] = 0.0
        if network_entries(network).second_moment(np.zeros(1))[0]:
            slope, near = odd_pairs.cross_susceptibility(network), _NARROW * x[only]
            found[only] = slope(x[only], near, np.zeros_like(near))
    return found


def _along(network: LayeredNetwork, K: float, factor: float) -> float:
    """∂⟨φ(h) φ(λh)⟩/∂K_xy with the variances K and λ²K that move with it: ⟨(h² − K) φφ⟩/(2λK²)."""
    psi = kinked_features(network)
    line = Plane(np.sqrt(K) * np.array([[1.0, 0.0], [factor, 0.0]]), centres(psi))
    z, weights = composite(line.cuts((1.0, 1.0), RESOLUTIONS[1].panel), ORDER)
    bell, h = weights * np.exp(-z * z / 2) / np.sqrt(2 * np.pi), np.sqrt(K) * z
    values = np.sum([each.function(h) * each.function(factor * h) for each in psi], axis=0)
    return float((bell * (z * z - 1)) @ values) / (2 * factor * K)


def responses(skips: np.ndarray, gains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """η^(l) and χ^(l) of all layers up to the output, both (L + 2, ...), layer axis first.

        η^(l) = gain_l χ^(l-1),   χ^(l) = γ_l² χ^(l-1) + η^(l),   η^(0) = χ^(0) = 1

    (F25 eqs. (51), (53) for γ = 1, with η^(0) = 1 instead of N/d_in as eq. (57) has it.) The last
    entry of both is χ^out of eq. (55).
    """
    eta = np.ones(np.broadcast_shapes(skips.shape, gains.shape))
    chi = np.ones_like(eta)
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(1, len(eta)):
            eta[l] = gains[l] * chi[l - 1]
            chi[l] = carried(skips[l], chi[l - 1], eta[l])
            require_finite_gain(gains[l], l)
            require_finite("the response", chi[l], l, "log_response")
    return eta, chi


def require_finite_gain(gain: np.ndarray, layer: int) -> None:
    """OverflowError if ⟨φ'φ'⟩ is infinite, as of parallel inputs where φ jumps."""
    if np.isinf(gain).any():
        raise OverflowError(
            f"the response of a covariance is infinite in layer {layer}: ⟨φ'φ'⟩ of an activation "
            "that jumps diverges beside an input that is zero, and for inputs that are parallel; "
            "leave these out of K0 (log_response says which they are)"
        )


def driven_response(
    skips: np.ndarray, gains: np.ndarray, sources: np.ndarray, variance_response: np.ndarray
) -> np.ndarray:
    """Response of a covariance to a variance, (L + 2, ..., pairs).

    It starts from zero and is driven by the response of the variance in every layer:
    χ^(l) = (γ_l² + gain_l) χ^(l-1) + source_l χ_αα^(l-1).
    """
    chi = np.zeros_like(variance_response)
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(1, len(chi)):
            require_finite_gain(gains[l], l)
            driven = sources[l] * variance_response[l - 1]
            chi[l] = carried(skips[l] + gains[l], chi[l - 1], driven)
            require_finite("the response to a variance", chi[l], l)
    return chi


def _gains(weights: np.ndarray, averages: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(weights[1:].shape, averages.shape)
    return np.concatenate([np.zeros((1, *shape[1:])), weights[1:] * averages])
