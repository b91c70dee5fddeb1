"""The shift of the mean covariances of inputs to order 1/N: one loop.

    N (⟨C⟩ − C*)^(m) = a_m Σ_e ⟨∂_e g⟩ N (⟨K_e⟩ − K_e*)^(m-1)
                       + (a_m/2) Σ_ee' ⟨∂_e ∂_e' g⟩ N Cov(K_e, K_e')^(m-1)
                       + a_m Σ_{k<m} a_k Σ_ee' ⟨∂_e g^(m-1) ; g_e'^(k-1)⟩ ∂K_e^(m-1)/∂C_e'^(k)

with the entries e, e' = (αα), (ββ), (αβ) on which ⟨g(h_α, h_β)⟩ depends, ∂_αα = ∂_x²/2 and
∂_αβ = ∂_x ∂_y by Price's theorem. The last term is a neuron that moves the kernels of later layers
and responds to them. A covariance is shifted as if its two inputs were alone.
"""

from __future__ import annotations

import numpy as np

from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.numerics.recursion import add_skip
from fieldtheory.numerics.several_inputs.feature_correlators import Truncated
from fieldtheory.numerics.several_inputs.pair_curvatures import curvatures
from fieldtheory.numerics.several_inputs.pair_expansions import Signals
from fieldtheory.numerics.several_inputs.pair_fluctuations import PairGains


def shift_of_covariances(
    layers: LayerCoefficients,
    gains: PairGains,
    signals: Signals,
    variances: np.ndarray,
    slopes: Truncated,
    own_shift: np.ndarray,
) -> np.ndarray:
    """The estimate of N (⟨C⟩ − C*) of the covariances α < β.

    Parameters
    ----------
    layers : LayerCoefficients
    gains : PairGains
    signals : Signals
    variances : ndarray, shape (n, L + 1, 3, 3, P(P−1)/2)
        The estimate of N Cov(K_e, K_e') of the hidden layers, e = αα, ββ, αβ: the values, and
        independent deviations.
    slopes : Truncated
        ⟨∂_e g^(l) ; g_e'^(k)⟩ of `correlators_by_kernels`.
    own_shift : ndarray, shape (L + 2, P)
        N (⟨C⟩ − C*) of the variances.

    Returns
    -------
    ndarray, shape (n + 1, L + 2, P(P−1)/2)
        The values, and independent deviations.
    """
    _, others, alpha, beta = gains.places
    a = layers.weights.reshape(len(own_shift), -1)[:, :1]
    sources = np.zeros((len(variances) + 1, len(a), len(others)))
    # Kernels of layers that nothing was added to do not fluctuate.
    used = np.abs(variances[0]).max(axis=(1, 2)) > 0
    curvature = curvatures(signals, others, used)
    sources[:-1, 1:] = np.einsum("eflp,nlefp->nlp", curvature, variances) / 2
    by_neurons = np.stack([slopes.values, slopes.left_out])
    sources[[0, -1], 1:] += _of_neurons(a, layers, gains, by_neurons)
    sources *= a
    shift = np.zeros_like(sources)
    kernel, own = np.zeros_like(sources[:, 0]), np.zeros_like(own_shift[0])
    for m in range(1, len(a)):
        change = gains.pair[m] * kernel
        change[0] += gains.first[m] * own[alpha] + gains.second[m] * own[beta]
        shift[:, m] = sources[:, m] + change
        kernel = add_skip(layers.skips[m], kernel, shift[:, m])
        own = add_skip(layers.skips[m], own, own_shift[m])
    return shift


def _of_neurons(
    a: np.ndarray, layers: LayerCoefficients, gains: PairGains, slopes: np.ndarray
) -> np.ndarray:
    """Σ_{k<m} a_k Σ_ee' ⟨∂_e g^(m-1) ; g_e'^(k-1)⟩ ∂K_e^(m-1)/∂C_e'^(k), (2, L + 1, pairs)."""
    _, others, alpha, beta = gains.places
    size = len(a) - 1
    shift = np.zeros((2, size, len(others)))
    for k in range(1, size):
        # Of layer k to unit sources there, entry by source by pair.
        response = np.repeat(np.eye(3)[:, :, None], len(others), axis=2)
        for m in range(k + 1, size + 1):
            shift[:, m - 1] += a[k] * np.einsum("nefp,efp->np", slopes[:, k - 1, m - 1], response)
            if m < size:
                changes = np.stack(
                    [
                        gains.own[m][alpha] * response[0],
                        gains.own[m][beta] * response[1],
                        gains.pair[m] * response[2]
                        + gains.first[m] * response[0]
                        + gains.second[m] * response[1],
                    ]
                )
                response = add_skip(layers.skips[m], response, changes)
    return shift
