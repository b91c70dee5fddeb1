"""The closure of PDLT-B for the four-point vertex of several inputs, (B.24)-(B.25)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.finite import require_finite
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions, network_functions
from fieldtheory.numerics.several_inputs.feature_correlators import within_layer
from fieldtheory.numerics.solution import solve


def pair_vertex(network: LayeredNetwork, K0: np.ndarray) -> np.ndarray:
    """V^(l) of p = P(P+1)/2 pairs of inputs in the closure, shape (L + 1, p, p).

        V <- J V Jᵀ + C_W² Q + C_W γ² (D W + W Dᵀ),   J = γ² + C_W D

    with D = ∂⟨φφ⟩_(αβ)/∂K_(γδ), Q = ⟨φ_αφ_β ; φ_γφ_δ⟩ and W = ⟨h_αh_β ; h_γh_δ⟩ at K^(l): what
    PDLT-B (B.25) says with sums over raised indices.

    Parameters
    ----------
    network : LayeredNetwork
    K0 : ndarray, shape (P, P)

    Raises
    ------
    OverflowError
        If V leaves the range of float64.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=1, activation="linear", skip_scale=0.0, weight_variance=1.0)
    >>> pair_vertex(net, np.array([[1.0, 0.5], [0.5, 1.0]]))[1]
    array([[2.  , 1.  , 0.5 ],
           [1.  , 1.25, 1.  ],
           [0.5 , 1.  , 2.  ]])
    """
    kernels = solve(network, K0).kernels
    layers, averages = layer_coefficients(network), network_functions(network)
    pairs = np.triu_indices(len(K0))
    p = len(pairs[0])
    V = np.zeros((network.depth + 1, p, p))
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(1, network.depth + 1):
            K, weight, skip = kernels[l - 1], layers.weights[l], layers.skips[l]
            D, mixed = _derivatives(averages, K, pairs), _products(K, pairs)
            J = skip * np.eye(p) + weight * D
            shared = D @ mixed
            source = weight**2 * within_layer(network, K)
            V[l] = J @ V[l - 1] @ J.T + source + weight * skip * (shared + shared.T)
            require_finite("the four-point vertex", V[l], l)
    return V


def _derivatives(averages: LayerFunctions, K: np.ndarray, pairs: tuple[Any, ...]) -> np.ndarray:
    """∂⟨φ_αφ_β⟩/∂K_γδ, an entry of K and its transpose as one variable."""
    first, second = pairs
    own, other = np.nonzero(first == second)[0], np.nonzero(first != second)[0]
    derivatives = np.zeros((len(first),) * 2)
    derivatives[own, own] = averages.susceptibility(K[first[own], first[own]])
    a, b = first[other], second[other]
    x, y, both = K[a, a], K[b, b], K[a, b]
    derivatives[other, other] = averages.covariance_susceptibility(x, y, both)
    derivatives[other, own[a]] = averages.cross_susceptibility(x, y, both)
    derivatives[other, own[b]] = averages.cross_susceptibility(y, x, both)
    return derivatives


def _products(K: np.ndarray, pairs: tuple[Any, ...]) -> np.ndarray:
    """⟨h_αh_β ; h_γh_δ⟩ = K_αγ K_βδ + K_αδ K_βγ."""
    a, b = (index[:, None] for index in pairs)
    c, d = pairs
    return K[a, c] * K[b, d] + K[a, d] * K[b, c]
