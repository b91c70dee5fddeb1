"""Correlators of the observables of pairs of inputs of φ with two values, as of sign and Heaviside.

With φ = m + d sign(h) in every ψ, g(x, y) = Σ ψ(x) ψ(y) = Σ m² + B (s_x + s_y) + D s_x s_y, and

    ⟨g_αβ ; g_γδ⟩ = B² Σ_{i=α,β} Σ_{j=γ,δ} ⟨s_i s_j⟩ + D² ⟨s_α s_β ; s_γ s_δ⟩.

Averages see the angle between signals, the root of what is left of the later ones given those of
the earlier layer k: what layers add, Q, and what k alone leaves of other inputs,

    K_γδ − A² (K_γα K_γβ) K_αβ⁻¹ (K_αδ K_βδ)ᵀ = Q_γδ + A² (K_γδ given α, β)^(k).

Derivatives by kernels are Price's theorem, with what two signals leave of two others. That by a
variance follows from those by covariances, as signs do not change with the size of signals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.polynomial_pieces import signs
from fieldtheory.numerics.layer_averages.parallel_signals import are_parallel
from fieldtheory.numerics.observables.pair_observables import PairObservables, kinked_features
from fieldtheory.numerics.one_input.fluctuations import added_since


class Kernel(NamedTuple):
    """Variances and covariance of two signals, and the determinant."""

    x: np.ndarray
    y: np.ndarray
    xy: np.ndarray
    det: np.ndarray


def have_two_values(signals: PairObservables) -> bool:
    """Whether φ is one constant below zero and another above."""
    psi = kinked_features(signals.network)
    return all(each.degree == 0 and all(j.place == 0 for j in each.jumps) for each in psi)


def connected(signals: PairObservables, k: int, inputs: np.ndarray, l: np.ndarray) -> np.ndarray:
    """⟨g_αβ^(k) ; g_γδ^(l)⟩, shape (m,).

    Parameters
    ----------
    signals : PairObservables
    k : int
    inputs : ndarray of int, shape (4, m)
        α, β, γ and δ; those that are the same by one of them.
    l : ndarray of int, shape (m,)
        Layers after k.
    """
    B, D = _coefficients(signals)
    alpha, beta, gamma, delta = inputs
    # Of γ and δ the one that k shares first.
    later = (delta == alpha) | (delta == beta)
    gamma, delta = np.where(later, delta, gamma), np.where(later, gamma, delta)
    K, A = signals.K, signals.carried[l, k]
    Q = added_since(signals.network, signals.C, k)[l - k]
    n = np.arange(len(l))
    found = np.zeros(len(l))
    if B:
        for i in (alpha, beta):
            for j in (gamma, delta):
                own = K[k, i, i], K[k, j, j], K[k, i, j]
                rest = A**2 * _determinant(*own) + own[0] * Q[n, j, j]
                found += B**2 * (2 / np.pi) * np.arctan2(A * own[2], np.sqrt(rest))
    # The product of the signs of parallel signals is constant.
    both = _determinant(K[k, alpha, alpha], K[k, beta, beta], K[k, alpha, beta]) > 0
    both &= _determinant(K[l, gamma, gamma], K[l, delta, delta], K[l, gamma, delta]) > 0
    if D and both.any():
        four = np.stack([alpha, beta, gamma, delta])[:, both]
        found[both] += D**2 * _of_four(K, k, l[both], four, A[both], Q[both])
    return found


def slopes(signals: PairObservables, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """∂_e ⟨g_αβ^(l) ; g_e'^(k)⟩ for k < l and e, e' = αα, ββ, αβ, as `pair_blocks.slopes`."""
    size, (B, D) = len(signals.K), _coefficients(signals)
    found = np.zeros((size, size, 3, 3, len(alpha)))
    for k in range(size - 1):
        Q = added_since(signals.network, signals.C, k)[1:]
        for i, j, own in ((alpha, beta, 0), (beta, alpha, 1)):
            early, late, added = (
                _of_pair(kernel, i, j) for kernel in (signals.K[k], signals.K[k + 1 :], Q)
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                of_one, both = _slopes(early, late, added, signals.carried[k + 1 :, k, None])
            # The product of the signs of parallel signals is constant.
            of_both = [np.where(early.det * late.det == 0, 0.0, each) for each in both]
            block = found[k, k + 1 :]
            block[:, own, own] = 2 * B**2 * of_one[0]
            block[:, own, 1 - own] = 2 * B**2 * of_one[1]
            block[:, own, 2] = B**2 * (of_one[0] + of_one[1]) + D**2 * of_both[0]
            block[:, 2, 2] = D**2 * of_both[1]
    found *= (np.tril(signals.carried, -1).T != 0)[:, :, None, None, None]
    return found


def _determinant(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    """That of two signals, zero of those that are one up to a factor."""
    return np.where(are_parallel(K_xx, K_yy, K_xy), 0.0, determinant(K_xx, K_yy, K_xy))


def _of_pair(kernel: np.ndarray, i: np.ndarray, j: np.ndarray) -> Kernel:
    entries = kernel[..., i, i], kernel[..., j, j], kernel[..., i, j]
    return Kernel(*entries, _determinant(*entries))


def _slopes(
    early: Kernel, late: Kernel, added: Kernel, A: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """By K_xx those of ⟨s_x s_u⟩ and ⟨s_x s_v⟩, and by K_xx and K_xy that of ⟨s_x s_y ; s_u s_v⟩.

    Of u and v in layer k, and x = A u + n, y = A v + n' with noise of the kernel Q.
    """
    # What v leaves of u, and of u and x whatever y is.
    left = early.det / early.y
    of_u, of_v = np.sqrt(early.x * added.x), np.sqrt(A**2 * early.det + early.y * added.x)
    by_u, by_v = 1 / of_u, 1 / of_v
    one = -A / (np.pi * late.x) * early.x * by_u, -A / (np.pi * late.x) * early.xy * by_v
    # Angles of y and v given x = u = 0, of y and u given x = v = 0, of u and v given x = y = 0.
    given_u = np.arctan2(A * np.sqrt(early.det / early.x), np.sqrt(added.det / added.x))
    noise = np.sqrt(added.det * (A**2 * left + added.x))
    given_v = np.arctan2(-added.xy * A * np.sqrt(left), noise)
    joined = A**2 * early.det * added.xy + added.det * early.xy
    rest = np.sqrt(early.det * added.det * late.det)
    turned = np.arctan2(joined, rest) - np.arctan2(early.xy, np.sqrt(early.det))
    by_xy = (2 / np.pi) ** 2 * turned / np.sqrt(late.det)
    total = late.xy * by_xy
    total += (2 / np.pi) ** 2 * A * (early.x * by_u * given_u + early.xy * by_v * given_v)
    return one, (-total / (2 * late.x), by_xy)


def _coefficients(signals: PairObservables) -> tuple[float, float]:
    """B and D."""
    psi = kinked_features(signals.network)
    below, above = np.array([each.function(np.array([-1.0, 1.0])) for each in psi]).T
    means, jumps = (above + below) / 2, (above - below) / 2
    return float(means @ jumps), float(jumps @ jumps)


def _of_four(
    K: np.ndarray, k: int, l: np.ndarray, four: np.ndarray, A: np.ndarray, Q: np.ndarray
) -> np.ndarray:
    """⟨s_α s_β ; s_γ s_δ⟩ of layers k and l."""
    early, late, n = four[:2], four[2:], np.arange(len(l))
    joint = np.empty((4, 4, len(l)))
    joint[:2, :2] = K[k][early[:, None], early]
    joint[2:, 2:] = K[l, late[:, None], late]
    joint[:2, 2:] = A * K[k][early[:, None], late]
    joint[2:, :2] = np.swapaxes(joint[:2, 2:], 0, 1)
    left = Q[n, late[:, None], late] + A**2 * _given(K[k], early, late)
    return signs.connected(joint, left=left)


def _given(K: np.ndarray, early: np.ndarray, late: np.ndarray) -> np.ndarray:
    """The covariance (2, 2, m) of two inputs given two others, of which they may be."""
    x, y = early
    # What y adds to x, and what both leave of the others.
    of_x, of_y = K[late, x] / K[x, x], K[late, y] - K[late, x] * (K[x, y] / K[x, x])
    rest = determinant(K[x, x], K[y, y], K[x, y]) / K[x, x]
    found = K[late[:, None], late] - of_x[:, None] * K[late, x] - of_y[:, None] * of_y / rest
    shared = np.any(
        [_determinant(K[late, late], K[one, one], K[late, one]) == 0 for one in early], axis=0
    )
    found[shared[:, None] | shared] = 0.0
    return np.where(np.eye(2, dtype=bool)[..., None], np.maximum(found, 0.0), found)
