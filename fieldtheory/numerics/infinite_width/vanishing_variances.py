"""Variances of zero as limits of small ones, which an average over a φ that jumps at zero needs."""

from __future__ import annotations

import numpy as np

from fieldtheory.averages.integrands.exact_differences import narrow_alone
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.layer_functions import network_functions


def limit_variances(network: LayeredNetwork, K: np.ndarray) -> np.ndarray:
    """Variances K^(l), zeros replaced by a small variance where φ jumps at zero.

    Parameters
    ----------
    network : LayeredNetwork
    K : ndarray, shape (n, ...)

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> networks = [ResidualNetwork(depth=1, activation=name) for name in ("relu", "sign")]
    >>> [limit_variances(network, np.zeros(2)).tolist() for network in networks]
    [[0.0, 0.0], [1e-60, 1e-60]]
    """
    if np.all(K) or not any(0.0 in psi.jumping for psi in network_functions(network).functions):
        return K
    return narrow_alone(K)


def limit_kernels(
    network: LayeredNetwork, K: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`limit_variances` for K^(l) and C^(l) of several inputs, both (L + 1, P, P).

    Inputs of variance zero count as identical.
    """
    own = np.diagonal(K, axis1=1, axis2=2)
    narrow = limit_variances(network, own)
    if narrow is own:
        return K, C
    zero = own == 0
    both = zero[:, :, None] & zero[:, None, :]
    K = np.where(both, np.sqrt(narrow[:, :, None] * narrow[:, None, :]), K)
    return K, np.concatenate([np.where(both[:1], K[:1], C[:1]), C[1:]])


def limit_input_kernel(network: LayeredNetwork, K0: np.ndarray) -> np.ndarray:
    """`limit_variances` for the kernel of the inputs, a number or (P, P)."""
    if K0.ndim:
        return limit_kernels(network, K0[None], K0[None])[0][0]
    return limit_variances(network, K0[None])[0]
