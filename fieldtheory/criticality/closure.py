"""The closure of PDLT-B for the four-point vertex: a named approximation next to the exact 1/N.

PDLT-B (B.24)-(B.26) close on the four-point vertex V^(l) alone. Between two different layers that
keeps of ⟨φ²(h^(k)) ; φ²(h^(l))⟩ its second Hermite component, 2 M'_k M'_l Cov(h^(k), h^(l))², and
drops all others, which are of the same order 1/N. It is exact without skip connections, after the
first residual layer of any network, and for one input where φ² is a multiple of h²; not otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork, single_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import one_input
from fieldtheory.numerics.infinite_width import gains
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.kernels import variances
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.recursion import add_skip, require_finite
from fieldtheory.numerics.several_inputs.feature_correlators import within_layers
from fieldtheory.numerics.several_inputs.pair_theory import PairTheory


@named_arguments
def closure_four_point(network: LayeredNetwork, K0: Any) -> np.ndarray:
    """The four-point vertex V^(l) in the closure of PDLT-B.

        V^(l+1) = C_W² ⟨φ² ; φ²⟩ + (χ_∥)² V^(l) + 4γ² (χ_∥ − γ²) (K^(l))²     (PDLT-B (B.26))

    for one input, with all averages at K^(l), χ_∥ = γ² + C_W M'(K^(l)), and V^(0) = 0. For several
    inputs it is (B.24)-(B.25), see `fieldtheory.criticality.closure`.

    Parameters
    ----------
    network : LayeredNetwork
        ρ_l and γ_l may differ between layers.
    K0 : float or array_like, shape (P, P)
        Kernel of the input.

    Returns
    -------
    ndarray, shape (L + 1,) or (L + 1, p, p)
        V^(l), with V^(l)/N = E[h_i² h_j²] − E[h_i²] E[h_j²] for two neurons i ≠ j; for P inputs
        V_(αβ)(γδ)/N = E[h_iα h_iβ h_jγ h_jδ] − K_αβ K_γδ of the p = P(P+1)/2 pairs of
        ``np.triu_indices(P)``.

    Raises
    ------
    TypeError, ValueError
        If K0 is no kernel, or the network has batch axes.
    OverflowError
        If V leaves the range of float64.

    Notes
    -----
    An approximation, not the theory to order 1/N: it is exact for γ = 0, and for the first residual
    layer, V^(1). From the second on it lacks connected correlators of different layers. For ReLU at
    criticality and γ² = 1/2, V^(2)/K² is 4.5 here and 5.477 exactly.

    Examples
    --------
    >>> from fieldtheory.criticality import critical_network
    >>> closure_four_point(critical_network("relu", skip_scale=0.5**0.5, depth=2), 1.0).round(6)
    array([0.  , 2.25, 4.5 ])
    """
    if np.ndim(K0) == 2:
        return _of_pairs(_checked(network), validation.input_kernel_array("K0", K0))
    layers, K = _saddle_point(network, K0)
    averages = network_functions(network)
    squares = averages.connected(K[:-1], K[:-1], K[:-1])
    gain = gains.variance_gains(network, K)
    V = np.zeros(network.depth + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(1, network.depth + 1):
            weight, skip = layers.weights[l], layers.skips[l]
            source = weight**2 * squares[l - 1] + 4 * skip * gain[l] * K[l - 1] ** 2
            V[l] = add_skip((skip + gain[l]) ** 2, V[l - 1], source)
            require_finite("the four-point vertex", V[l], l)
    return V


def _of_pairs(network: LayeredNetwork, K0: np.ndarray) -> np.ndarray:
    """V^(l) of p = P(P+1)/2 pairs of inputs in the closure, shape (L + 1, p, p)."""
    theory = PairTheory.of(network, MeanField(network, K0), progress=False)
    layers, change = theory.layers, theory.gains.kernel_change
    within, alpha, beta = within_layers(theory.signals).values, *theory.signals.pairs
    a, b = alpha[:, None], beta[:, None]
    V = np.zeros_like(within)
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(1, len(V)):
            K, weight, skip = theory.signals.K[l - 1], layers.weights[l], layers.skips[l]
            # V <- J V Jᵀ + C_W² Q + C_W γ² (D W + W Dᵀ), J = γ² + C_W D, of PDLT-B (B.25), with
            # Q = ⟨φ_αφ_β ; φ_γφ_δ⟩ and W = ⟨h_αh_β ; h_γh_δ⟩ = K_αγ K_βδ + K_αδ K_βγ.
            half = skip * V[l - 1] + change(l, V[l - 1])
            shared = skip * change(l, K[a, alpha] * K[b, beta] + K[a, beta] * K[b, alpha])
            V[l] = skip * half + change(l, half.T).T
            V[l] += weight**2 * within[l - 1] + shared + shared.T
            require_finite("the four-point vertex", V[l], l)
    return V


@named_arguments
def closure_G11(network: LayeredNetwork, K0: Any) -> np.ndarray:
    """The covariance of the residual kernels that belongs to the closure of PDLT-B, one input.

        G11 = G12 S22 G21,   S22_kl = N a_k a_l 2 M'_k M'_l Cov(h^(k-1), h^(l-1))²   for k ≠ l

    and the full ⟨φ²;φ²⟩ for k = l. With it in place of the exact G11, the expression of the
    four-point vertex by propagators gives `closure_four_point`.

    Parameters
    ----------
    network, K0
        As for `closure_four_point`.

    Returns
    -------
    ndarray, shape (L + 2, L + 2)
        With its 1/N, as ``ft.solve(network, K0).G11``, which is the exact one.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As `closure_four_point`.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=3, activation="linear")
    >>> bool(np.allclose(closure_G11(net, 1.0), ft.solve(net, 1.0).G11, rtol=1e-13))
    True
    """
    return _covariances(network, K0)[0]


@named_arguments
def closure_kernel_variance(network: LayeredNetwork, K0: Any) -> np.ndarray:
    """Var K^(l) = Σ_km A²_lk A²_lm G11^km with the G11 of `closure_G11`.

    Parameters
    ----------
    network, K0
        As for `closure_four_point`.

    Returns
    -------
    ndarray, shape (L + 1,)
        With its 1/N, as ``ft.solve(network, K0).kernel_variance``, which is the exact one.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As `closure_four_point`.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.FeedForwardNetwork(depth=3)
    >>> both = closure_kernel_variance(net, 1.0), ft.solve(net, 1.0).kernel_variance
    >>> bool(np.allclose(*both, rtol=1e-13))
    True
    """
    return _covariances(network, K0)[1]


def _covariances(network: LayeredNetwork, K0: Any) -> tuple[np.ndarray, np.ndarray]:
    """G11 and Var K^(l)."""
    layers, K = _saddle_point(network, K0)
    averages = network_functions(network)
    signals = K[:-1]
    covariance = one_input.signal_covariance(network, signals)
    slope = averages.susceptibility(signals)
    S22 = np.zeros((network.depth + 2,) * 2)
    S22[1:, 1:] = 2 * np.outer(slope, slope) * covariance**2
    own = np.arange(1, network.depth + 2)
    S22[own, own] = averages.connected(signals, signals, signals)
    S22 *= np.outer(layers.weights, layers.weights)
    gain = gains.variance_gains(network, K)
    G11, variance = one_input.kernel_covariances(layers, gain, S22)
    return G11 / network.width, variance / network.width


def _checked(network: Any) -> LayeredNetwork:
    return single_network(network, function="the closure of PDLT-B")


def _saddle_point(network: LayeredNetwork, K0: Any) -> tuple[LayerCoefficients, np.ndarray]:
    """The coefficients of the layers, and K^(l) up to the output."""
    checked = _checked(network)
    kernel = validation.input_kernel_array("K0", K0)
    if kernel.ndim:
        raise ValueError(f"K0 must be a variance, got shape {kernel.shape}")
    return layer_coefficients(checked), variances(checked, kernel)[1]
