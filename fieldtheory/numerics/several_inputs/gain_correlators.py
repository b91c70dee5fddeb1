"""Correlators of the gains of pairs of inputs with one weighted sum of products φφ, in series.

Gains are D_αβ = ∂⟨φ(h_α)φ(h_β)⟩/∂K_αβ without the average: φ'(h_α)φ'(h_β), and φ'² + φφ'' of one
input. Series in Hermite coefficients, as in `feature_correlators`, for analytic φ.
"""

from __future__ import annotations

import numpy as np

from fieldtheory.numerics.several_inputs.feature_correlators import (
    Truncated,
    from_layer_on,
    resolved,
)
from fieldtheory.numerics.several_inputs.pair_expansions import Expansion, Signals

# What the series leave out, relative to the largest: asked for, and allowed.
_ASKED, _ALLOWED = 1e-7, 1e-4


def gain_correlators(
    signals: Signals, weights: np.ndarray, chi: np.ndarray, covariance_response: np.ndarray
) -> np.ndarray | None:
    """The derivatives of ⟨φ_αφ_β^(l) ; Ψ⟩ by K_αβ^(0), Ψ = Σ_k Σ_γδ weights_γδ^(k) φ_γφ_δ^(k)."""
    if not signals.smooth:
        return None
    if not weights.any():
        return np.zeros((1, *chi.shape))
    weights = np.broadcast_to(weights, (chi.shape[-1], *weights.shape[-2:]))
    some = np.flatnonzero(np.abs(weights).max(axis=(0, 1)))
    parts = weights[..., some], some, chi, covariance_response
    series = resolved(signals, lambda count: _series(signals, *parts, count), _ASKED)
    return series.values[None] if series and series.error <= _ALLOWED else None


def _series(
    signals: Signals,
    weights: np.ndarray,
    some: np.ndarray,
    chi: np.ndarray,
    covariance_response: np.ndarray,
    count: int,
) -> Truncated:
    alpha, beta = signals.pairs
    (own,) = np.nonzero(alpha == beta)
    every, layers = np.arange(len(alpha)), np.arange(len(signals.K))
    pairs, alone = Expansion(signals, count, some), Expansion(signals, count, own)
    gains = Expansion(signals, count).products(1, 1)
    gains[:, own] += alone.products(2, 0)
    sides = (
        (2 * alone.products(1, 0), own, pairs.products(*orders)) for orders in ((1, 0), (0, 1))
    )
    values, left = chi * _summed(signals, gains, every, pairs.observables, some, count, weights)
    # Cov(h^(l), h^(k)) is K of the earlier layer times the skips between them.
    earlier = np.minimum(layers[:, None], layers)
    passed = signals.passed + np.tril(signals.passed, -1).T
    for (f, rows, g), members in zip(sides, (alpha[some], beta[some]), strict=True):
        turned = covariance_response[earlier][..., members] * passed[:, :, None, None]
        turned = np.swapaxes(turned, 1, 2) * weights[own]
        more = _summed(signals, f, rows, g, some, count, turned)
        # These are no connected correlators.
        values[:, own] += more[0] + np.einsum("lqkp,lq,kp->lq", turned, f[..., 0], g[..., 0])
        left[:, own] += more[1]
    return Truncated(count, values, left)


def _summed(
    signals: Signals,
    f: np.ndarray,
    rows: np.ndarray,
    g: np.ndarray,
    columns: np.ndarray,
    count: int,
    weights: np.ndarray,
) -> np.ndarray:
    """Σ_k Σ_c weights_rc^(k) ⟨f_r^(l) ; g_c^(k)⟩ and what is left out, (2, L + 1, r)."""
    after = from_layer_on(signals, f, rows, g, columns, count)
    before = from_layer_on(signals, g, columns, f, rows, count)
    size, sums = len(f), []
    for later, earlier in zip(after, before, strict=True):
        whole = later + np.transpose(earlier, (2, 3, 0, 1))
        layers = np.arange(size)
        whole[layers, :, layers] /= 2
        sums.append((whole * weights).sum(axis=(2, 3)))
    return np.array(sums)
