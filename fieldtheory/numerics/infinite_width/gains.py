"""Responses to the input kernel, by running products over the layers."""

from __future__ import annotations

import numpy as np

from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.homogeneous import are_parallel
from fieldtheory.numerics.infinite_width.kernels import homogeneous_averages
from fieldtheory.numerics.recursion import add_skip, require_finite


def variance_gains(network: DeepNetwork, K: np.ndarray, trailing: int = 0) -> np.ndarray:
    """a_l M'(K^(l-1)), the gain of layer l; shape (L + 2, ...), zero for the input."""
    functions = network_functions(network, trailing, K.ndim - 1 - trailing)
    return weighted(network, functions.every("susceptibility", K[:-1]), trailing)


def covariance_gains(
    network: DeepNetwork, K: np.ndarray, kernel: np.ndarray, pairs: tuple
) -> np.ndarray:
    """a_l ⟨φ'_α φ'_β⟩, the gain of layer l for a covariance; shape (L + 2, ..., pairs)."""
    along = homogeneous_averages(network, K[:-1], kernel[0], pairs)
    if along is not None:
        return weighted(network, np.stack([slope for _, slope in along]), 1)
    functions, arguments = network_functions(network, 1, K.ndim - 2), _arguments(K, kernel, pairs)
    return weighted(network, functions.every("covariance_susceptibility", *arguments), 1)


def skip_gains(
    network: DeepNetwork, skips: np.ndarray, trailing: int, *K: np.ndarray
) -> np.ndarray:
    """γ_l² ∂s/∂K of variances K^(l), or of pairs by K_αβ."""
    stream = network_functions(network, trailing, K[0].ndim - 1 - trailing).stream
    if stream is None:
        return skips
    hidden = [each[:-2] for each in K]
    slope = stream.own(hidden[0], 1)[1] if len(K) == 1 else stream.pair(*hidden, order=1)[3]
    gains = np.zeros((len(skips), *np.broadcast_shapes(skips.shape[1:], slope.shape[1:])))
    gains[1:-1] = skips[1:-1] * slope
    return gains


def cross_gains(
    network: DeepNetwork, K: np.ndarray, kernel: np.ndarray, pairs: tuple
) -> tuple[np.ndarray, np.ndarray]:
    """a_l ⟨φ''_α φ_β⟩/2 and a_l ⟨φ_α φ''_β⟩/2, the gains of a covariance by the two variances."""
    first, second = (weighted(network, x, 1) for x in _cross_averages(network, K, kernel, pairs))
    _require_no_divergence(network, K, (first, second))
    return first, second


def gains_of_fluctuations(
    network: LayeredNetwork, K: np.ndarray, kernel: np.ndarray, pairs: tuple, pair: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gains of covariances by themselves, ``pair``, and by the variances, as kernels can move.

    A variance that vanishes does so at any width, and K_αβ and K_ββ of parallel signals follow
    K_αα, so that derivatives which diverge there are not asked for.

    All are (L + 2, P(P−1)/2), as ``kernel`` is; K is (L + 2, P).
    """
    first, second = _cross_averages(network, K, kernel, pairs)
    (x, y), xy = (K[:-1][:, members] for members in pairs), kernel[:-1]
    first, second = _beside_zero(network, first, x, y), _beside_zero(network, second, y, x)
    pair = np.where(np.pad(x * y == 0, ((1, 0), (0, 0))), 0.0, pair)
    parallel = are_parallel(x, y, xy) & (x * y > 0)
    if parallel.any() and network_functions(network).jumps:
        first[parallel] = second[parallel] = 0.0
        layer = np.nonzero(parallel)[0]
        factors = np.sign(xy[parallel]) * np.sqrt(y[parallel] / x[parallel])
        along = [
            network_functions(network).collinear_susceptibility(*of)
            for of in zip(x[parallel], factors, strict=True)
        ]
        pair[1:][parallel] = layer_coefficients(network).weights[1:][layer] * along
    first, second = weighted(network, first, 1), weighted(network, second, 1)
    _require_no_divergence(network, K, (first, second))
    return pair, first, second


def _arguments(K: np.ndarray, kernel: np.ndarray, pairs: tuple) -> tuple[np.ndarray, ...]:
    """Variances and covariances of pairs before the layers 1, ..., L + 1."""
    return K[:-1][..., pairs[0]], K[:-1][..., pairs[1]], kernel[:-1]


def _cross_averages(
    network: DeepNetwork, K: np.ndarray, kernel: np.ndarray, pairs: tuple
) -> tuple[np.ndarray, np.ndarray]:
    """⟨φ''_α φ_β⟩/2 and ⟨φ_α φ''_β⟩/2."""
    functions = network_functions(network, 1, K.ndim - 2)
    alpha, beta, joint = _arguments(K, kernel, pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (
            functions.every("cross_susceptibility", alpha, beta, joint),
            functions.every("cross_susceptibility", beta, alpha, joint),
        )


def _require_no_divergence(
    network: DeepNetwork, K: np.ndarray, gains: tuple[np.ndarray, np.ndarray]
) -> None:
    if np.isfinite(gains).all():
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
    """⟨φ''(x) φ(y)⟩/2, zero for a signal x = 0, and for y = 0 where φ(0) = 0."""
    values = np.where(x == 0, 0.0, averages)
    if not network_functions(network).second_moment(np.zeros(1))[0]:
        values[(x > 0) & (y == 0)] = 0.0
    return values


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
            chi[l] = add_skip(skips[l], chi[l - 1], eta[l])
    if not np.isfinite(chi).all():
        for l in range(1, len(chi)):
            require_finite_gain(gains[l], l)
            require_finite("the response", chi[l], l)
    return eta, chi


def require_finite_gain(gain: np.ndarray, layer: int) -> None:
    """OverflowError if ⟨φ'φ'⟩ is infinite, as of parallel inputs where φ jumps."""
    if np.isinf(gain).any():
        raise OverflowError(
            f"the response of a covariance is infinite in layer {layer}: ⟨φ'φ'⟩ of an activation "
            "that jumps diverges beside an input that is zero, and for inputs that are parallel; "
            "leave these out of K0"
        )


def driven_response(
    skips: np.ndarray, gains: np.ndarray, sources: np.ndarray, variance_response: np.ndarray
) -> np.ndarray:
    """Response of a covariance to a variance, (L + 2, ..., pairs)."""
    chi = np.zeros_like(variance_response)
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(1, len(chi)):
            require_finite_gain(gains[l], l)
            driven = sources[l] * variance_response[l - 1]
            chi[l] = add_skip(skips[l] + gains[l], chi[l - 1], driven)
            require_finite("the response to a variance", chi[l], l)
    return chi


def weighted(network: DeepNetwork, averages: np.ndarray, trailing: int) -> np.ndarray:
    """a_l times averages of layers 1, ..., L + 1, zero where no layer adds them; (L + 2, ...)."""
    batch = averages.ndim - 1 - trailing
    weights = layer_coefficients(network, trailing, batch).weights[1:]
    shape = np.broadcast_shapes(weights.shape, averages.shape)
    gains = np.zeros((shape[0] + 1, *shape[1:]))
    # Also where they diverge.
    np.multiply(weights, averages, out=gains[1:], where=weights > 0)
    return gains
