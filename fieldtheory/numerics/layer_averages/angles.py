"""Angles between signals of scale-free φ, with all digits where they are small.

For φ = a_± x on both sides of zero, ⟨φ'φ'⟩ is a linear function of the angle, of which the
covariances of float64 keep the digits of its square alone. With δ = 1 − c and the shares w_k of
skip connection, branch and bias in the variances of a layer,

    δ' = (1/2) Σ_k (√w_kα − √w_kβ)² + √(w_1α w_1β) δ + √(w_2α w_2β) δ_φ

(see `decorrelations`), δ_φ the arc-cosine kernel of degree 1 (SR eq. (5)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.layer_averages.large_variances import is_scale_free, network_lines

# 1 − c_φ beyond which ⟨φφ⟩ is left to its closed form.
_OPPOSITE = 0.9
# Variances below have products in float64.
_PRODUCTS_EXIST = 1e150


def of_input(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    """1 − K_xy/√(K_xx K_yy) to rounding, for the numbers as they are."""
    (x, y, xy), _ = _near_one(K_xx, K_yy, K_xy)
    root = np.sqrt(x * y)
    near = determinant(x, y, xy) / (root * (root + np.abs(xy)))
    return np.where(xy > 0, near, 1 - xy / root)


def covariance_of(network: LayeredNetwork) -> Callable[..., np.ndarray]:
    """⟨φφ⟩ of (K_xx, K_yy, K_xy); of scale-free φ also where K_xx K_yy exceeds float64.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> average = covariance_of(ResidualNetwork(depth=1, activation="relu"))
    >>> average(*np.full((3, 1), 8e200))
    array([4.e+200])
    """
    average = network_entries(network).covariance
    if not is_scale_free(network):
        return average

    def at_any_size(*K: np.ndarray) -> np.ndarray:
        if all(np.max(k, initial=0.0) < _PRODUCTS_EXIST for k in K[:2]):
            return average(*K)
        scaled, (size_x, size_y) = _near_one(*K)
        return average(*scaled) * size_x * size_y

    return at_any_size


def _near_one(
    K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Variances and covariances of signals divided by powers of two, and these."""
    x, y = (np.exp2(np.floor(np.frexp(k)[1] / 2)) for k in (K_xx, K_yy))
    return (K_xx / x / x, K_yy / y / y, K_xy / x / y), (x, y)


def exact_averages(
    network: LayeredNetwork, K: np.ndarray, K0: np.ndarray, pairs: tuple[np.ndarray, ...]
) -> Iterator[tuple[np.ndarray, np.ndarray | None]] | None:
    """⟨φ'_α φ'_β⟩ and ⟨φ_α φ_β⟩ over the signals of layers 0, 1, ..., one after the other.

    The latter is None where signals are so nearly opposite that it is a small difference.

    None where covariances have all digits that there are: for other φ, and signals that vanish.

    Parameters
    ----------
    network : LayeredNetwork
    K : ndarray, shape (n, ..., P)
        Variances of the inputs in layers.
    K0 : ndarray, shape (..., pairs)
        Covariances of the inputs.
    pairs : pair of ndarray
        Indices α and β of the pairs.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net, K = ResidualNetwork(depth=1, activation="relu"), np.ones((3, 2))
    >>> pairs = np.array([0]), np.array([1])
    >>> slope, _ = next(exact_averages(net, K, np.array([1 - 2.0**-51]), pairs))
    >>> (0.5 - slope) * 2 * np.pi * 2.0**25
    array([1.])
    """
    if not is_scale_free(network) or not (K > 0).all():
        return None
    return _averages(network, K, K0, pairs)


def _averages(
    network: LayeredNetwork, K: np.ndarray, K0: np.ndarray, pairs: tuple[np.ndarray, ...]
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    lines = network_lines(network)
    assert lines is not None
    layers = layer_coefficients(network, 1, K.ndim - 2)
    moment = lines.A**2 + lines.B**2
    first, second = pairs
    delta = of_input(K[0][..., first], K[0][..., second], K0)
    for l in range(len(K)):
        slope, of_phi = lines.at_angles(delta)
        root = np.sqrt(moment * K[l])
        size = root[..., first] * root[..., second]
        yield slope, None if (of_phi > _OPPOSITE).any() else size * (1 - of_phi)
        if l + 1 == len(K):
            return
        parts = (
            (layers.skips[l + 1] * K[l], delta),
            (layers.weights[l + 1] * moment * K[l], of_phi),
            (layers.biases[l + 1] + 0 * K[l], None),
        )
        delta = np.zeros_like(delta)
        for part, apart in parts:
            if not part.any():
                continue
            root = np.sqrt(part / K[l + 1])
            one, other = root[..., first], root[..., second]
            delta += (one - other) ** 2 / 2
            if apart is not None:
                delta += one * other * apart
