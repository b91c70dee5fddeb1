"""The shift of the mean covariances of inputs to order 1/N: one loop.

    N (⟨C⟩ − C*)^(m) = a_m Σ_e ⟨∂_e g⟩ N (⟨K_e⟩ − K_e*)^(m-1)
                       + (a_m/2) Σ_ee' ⟨∂_e ∂_e' g⟩ N Cov(K_e, K_e')^(m-1)
                       + a_m Σ_{k<m} a_k Σ_ee' ⟨∂_e g^(m-1) ; g_e'^(k-1)⟩ ∂K_e^(m-1)/∂C_e'^(k)

with the entries e, e' = (αα), (ββ), (αβ) on which ⟨g(h_α, h_β)⟩ depends, ∂_αα = ∂_x²/2 and
∂_αβ = ∂_x ∂_y by Price's theorem. The last term is a neuron that moves the kernels of later layers
and sees them. A covariance is shifted as if its two inputs were alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.numerics.observables.pair_observables import PairObservables
from fieldtheory.numerics.recursion import carried
from fieldtheory.numerics.several_inputs import pair_blocks
from fieldtheory.numerics.several_inputs.pair_fluctuations import PairGains


def shift_of_covariances(
    layers: LayerCoefficients,
    gains: PairGains,
    signals: PairObservables,
    variances: Callable[[], np.ndarray],
    own_shift: np.ndarray,
) -> np.ndarray:
    """N (⟨C⟩ − C*) of the covariances α < β, shape (L + 2, P(P−1)/2).

    Parameters
    ----------
    layers : LayerCoefficients
    gains : PairGains
    signals : PairObservables
    variances : callable
        Finds N Cov(K_e, K_e') of the hidden layers, e = αα, ββ, αβ, shape
        (L + 1, 3, 3, P(P−1)/2); after what is refused for its time.
    own_shift : ndarray, shape (L + 2, P)
        N (⟨C⟩ − C*) of the variances.

    Returns
    -------
    ndarray
    """
    _, others, alpha, beta = gains.places
    a = layers.weights.reshape(len(own_shift), -1)[:, :1]
    # Signals that are the same make of a covariance a variance.
    same, opposite = signals.same(others), signals.opposite(others)
    turned = signals.turned(others)
    used = ~same & ~opposite & ~signals.still(others) & ~signals.vanish(others) & (turned == 0)
    sources = np.zeros((len(a), len(others)))
    if used.any():
        sources[1:] = _seen(a, layers, gains, signals, used)
        sources[1:] += _bent(gains, signals, variances(), used)
    sources *= a
    shift, kernel = np.zeros_like(sources), np.zeros_like(sources[0])
    own = np.zeros_like(own_shift[0])
    for m in range(1, len(a)):
        moved = gains.pair[m] * kernel + gains.first[m] * own[alpha] + gains.second[m] * own[beta]
        shift[m] = np.where(same[m - 1], own_shift[m, alpha], sources[m] + moved)
        shift[m] = np.where(opposite[m - 1], -own_shift[m, alpha], shift[m])
        shift[m] = np.where(turned, turned * own_shift[m, alpha], shift[m])
        kernel = carried(layers.skips[m], kernel, shift[m])
        own = carried(layers.skips[m], own, own_shift[m])
    return shift


def _bent(
    gains: PairGains, signals: PairObservables, variances: np.ndarray, used: np.ndarray
) -> np.ndarray:
    """(1/2) Σ_ee' ⟨∂_e ∂_e' g⟩ N Cov(K_e, K_e'), shape (L + 1, pairs)."""
    others = gains.places[1]
    # The kernels of the input do not fluctuate.
    curvature = pair_blocks.curvatures(signals, others, used & (np.arange(len(used)) > 0)[:, None])
    return np.einsum("eflp,lefp->lp", curvature, variances) / 2


def _seen(
    a: np.ndarray,
    layers: LayerCoefficients,
    gains: PairGains,
    signals: PairObservables,
    used: np.ndarray,
) -> np.ndarray:
    """Σ_{k<m} a_k Σ_ee' ⟨∂_e g^(m-1) ; g_e'^(k-1)⟩ ∂K_e^(m-1)/∂C_e'^(k), shape (L + 1, pairs)."""
    _, others, alpha, beta = gains.places
    size = len(signals.K)
    found = np.zeros((size, len(others)))
    slopes = pair_blocks.slopes(signals, others, used)
    for k in range(1, size):
        # Of layer k to unit sources there, entry by source by pair.
        response = np.repeat(np.eye(3)[:, :, None], len(others), axis=2)
        for m in range(k + 1, size + 1):
            found[m - 1] += a[k] * np.einsum("efp,efp->p", slopes[k - 1, m - 1], response)
            if m <= size - 1:
                moved = np.stack(
                    [
                        gains.own[m][alpha] * response[0],
                        gains.own[m][beta] * response[1],
                        gains.pair[m] * response[2]
                        + gains.first[m] * response[0]
                        + gains.second[m] * response[1],
                    ]
                )
                response = carried(layers.skips[m], response, moved)
    return found
