"""Signals that vanish, as φ that jumps at zero sees them: narrow ones, see `averages.vanishing`."""

from __future__ import annotations

import numpy as np

from fieldtheory.averages.vanishing import narrow_alone
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.layer_functions import network_functions


def seen(network: LayeredNetwork, K: np.ndarray) -> np.ndarray:
    """Variances K^(0), K^(1), ... of signals of which none vanishes where φ jumps at zero.

    A signal that layers add nothing to stays what it is, up to the skip connections.

    Parameters
    ----------
    network : LayeredNetwork
    K : ndarray, shape (n, ...)

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> networks = [ResidualNetwork(depth=1, activation=name) for name in ("relu", "sign")]
    >>> [seen(network, np.zeros(2)).tolist() for network in networks]
    [[0.0, 0.0], [1e-100, 1e-100]]
    """
    if np.all(K) or not any(0.0 in psi.jumping for psi in network_functions(network).functions):
        return K
    found = np.array(K)
    found[0] = narrow_alone(found[0])
    for l in range(1, len(found)):
        gamma = network.skip_scales[l - 1] if l <= network.depth else 0.0
        carried = np.where(found[l] == 0, gamma**2 * found[l - 1], found[l])
        found[l] = narrow_alone(carried)
    return found


def seen_kernels(
    network: LayeredNetwork, K: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same of the kernels of several inputs and of what layers add, both (L + 1, P, P).

    Inputs that vanish are the same.
    """
    own = np.diagonal(K, axis1=1, axis2=2)
    narrow = seen(network, own)
    if narrow is own:
        return K, C
    still = own == 0
    both = still[:, :, None] & still[:, None, :]
    K = np.where(both, np.sqrt(narrow[:, :, None] * narrow[:, None, :]), K)
    return K, np.concatenate([np.where(both[:1], K[:1], C[:1]), C[1:]])


def seen_input(network: LayeredNetwork, K0: np.ndarray) -> np.ndarray:
    """The same of the kernel of the inputs, a number or (P, P)."""
    if K0.ndim:
        return seen_kernels(network, K0[None], K0[None])[0][0]
    return seen(network, K0[None])[0]
