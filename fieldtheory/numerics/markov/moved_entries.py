"""How covariances of a chain of Gram matrices with T = tr U C^(L+1) respond to inputs that move.

With w^(l) = ∂T/∂X^(l) through all later layers, and d^(l) = N Cov(X^(l), T) = V^(l) w^(l), the
entry e of further inputs has, in the symbols of `fieldtheory.numerics.markov.fluctuations`,

    N Cov(C_e^(l+1), T) = C'_e d^(l) + B_e w^(l+1),
    d_e^(l+1) = N Cov(C_e^(l+1), T) + γ² s'_e d^(l) + W_e w^(l+1).

w is that of the inputs with labels, which stay. The entry e of K0 of two inputs moves X_e^(l), by
δ^(l) = F'_ee δ^(l-1), and no other entry, so that C'_e moves by C''_e,e δ and B_e by its derivative
by Q_e, while W is that of entries that stay. A variance moves the covariances X_αγ with all inputs
as well, among them the one at the same place, and with them W_αα and B_αα.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.markov.block_chain import BlockChain, Jet
from fieldtheory.numerics.markov.chain_fluctuations import Fluctuations
from fieldtheory.numerics.several_inputs.feature_correlators import gain_correlators
from fieldtheory.numerics.symmetric_matrices import packed, positions, unpacked


class Moves(NamedTuple):
    """What K0_e moves: the entry e, (p,), and of variances e = αα the entries αγ, (Q, Q)."""

    entry: np.ndarray
    mixed: np.ndarray


def learned_responses(theory: Fluctuations, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N ∂Cov(·, Tr U C^(L+1))/∂K_e^(0) of C_e^(l) and R_e^(l), the latter's last that of C^(L+1).

    Both are (L + 2, p), for further inputs at the places of those of the p entries, and weights U
    at rest.
    """
    chain = theory.chain
    assert isinstance(chain, BlockChain)
    w = _pulled(chain, U)
    d = np.einsum("lef,lf->le", theory.variances, w[:-1])
    size, p = d.shape
    of_X, of_C, of_R, of_Q = _moves(chain)
    units = _of_units(chain, w[1:-1], of_Q)
    residual, stream, change = *np.zeros((2, size + 1, p)), np.zeros(p)
    C, R = (unpacked(each, True) for each in (chain.states[0], chain.stream))
    half = unpacked(w, True) * (1 + np.eye(len(U))) / 2
    for l, skip in enumerate(np.append(chain.skips[1:], 0.0)):
        moved = of_X[l].entry
        stream[l] = change
        if chain.functions.stream:
            stream[l] = _changed(chain.stream_jet, chain, l, d[l], moved, change)
        residual[l + 1] = _changed(chain.curved, chain, l, d[l], moved, change) + units[l]
        # W_αα w = 4 Σ_γδ w_γδ A_αγ C_αδ, A = C/2 + γ² s.
        A, moved_A = C[l + 1] / 2 + skip * R[l], of_C[l].mixed / 2 + skip * of_R[l].mixed
        both = moved_A * (C[l + 1] @ half[l + 1]) + of_C[l].mixed * (A @ half[l + 1])
        change = residual[l + 1] + skip * stream[l]
        change[chain.pairs.own] += 4 * both.sum(axis=1)
    stream[-1] = residual[-1]
    return residual, stream


def _pulled(chain: BlockChain, U: np.ndarray) -> np.ndarray:
    """w^(l), (L + 2, p), the last by C^(L+1)."""
    w = [packed(U + U.T) / packed(1.0 + np.eye(len(U)))]
    for l in range(len(chain.skips), 0, -1):
        pulled = chain.jacobian(l).T @ w[-1]
        if l < len(chain.skips):
            S = chain.stream_jacobian(l - 1)
            pulled = pulled + chain.skips[l] * (w[-1] if S is None else S.T @ w[-1])
        w.append(pulled)
    return np.array(w[::-1])


def _changed(
    jet: Jet, chain: BlockChain, l: int, d: np.ndarray, moved: np.ndarray, change: np.ndarray
) -> np.ndarray:
    """The change of F'_e d where d_e changes, and the entry e of what F is of moves."""
    entries = np.array([chain.pairs.first, chain.pairs.second, np.arange(len(d))])
    return jet.gradient[2, l] * change + moved * (jet.hessian[2, :, l] * d[entries]).sum(axis=0)


def _moves(chain: BlockChain) -> tuple[list[Moves], ...]:
    """Those of X^(l), C^(l+1), R^(l), l = 0, ..., L, and of every Q_k with all layers in one."""
    K0, own = chain.field.input_kernel, chain.pairs.own
    # All inputs twice, of which the second ones move.
    both = BlockChain(MeanField(chain.field.network, np.tile(K0, (2, 2))))
    places, size = positions(len(both.pairs.alpha)), len(K0)
    entries, across = places[np.triu_indices(size)], places[size:, :size]

    def by(jet: Jet, l: int) -> Moves:
        """What a function of X^(l) moves by."""
        (_, by_own, by_pair), moves = jet.gradient[:, l], of_X[l]
        mixed = by_own[across] * moves.entry[own, None] + by_pair[across] * moves.mixed
        return Moves(by_pair[entries] * moves.entry, mixed)

    of_X, of_C, of_R = [Moves(np.ones(len(entries)), np.zeros((size, size)))], [], []
    for l, skip in enumerate(np.append(chain.skips[1:], 0.0)):
        of_C.append(by(both.slopes, l))
        of_R.append(by(both.stream_jet, l) if both.functions.stream else of_X[l])
        of_X.append(Moves(*(x + skip * y for x, y in zip(of_C[l], of_R[l], strict=True))))
    of_Q = []
    for signal in both.functions.hidden.signals:
        jet = both.entries(signal, both.states[1][:-1])
        each = zip(*(by(jet, l) for l in range(len(of_C) - 1)), strict=True)
        of_Q.append(Moves(*map(np.array, each)))
    return of_X, of_C, of_R, of_Q


def _of_units(chain: BlockChain, w: np.ndarray, of_Q: list[Moves]) -> np.ndarray:
    """What B_e w^(l) changes by, (L + 1, p), zero for the readout."""
    total = np.zeros((len(w) + 1, w.shape[-1]))
    for k, (entry, mixed) in enumerate(of_Q):
        factor, fourth, square = chain.factors[k], *np.ones((2, 1, 1, 1))
        for other in chain.factors[:k] + chain.factors[k + 1 :]:
            fourth = fourth * (other.connected.values + other.square)
            square = square * other.square
        weights = np.swapaxes(fourth * w[:, None], 0, 1)
        found = gain_correlators(factor.signals, weights, entry, mixed)
        if found is None:
            raise ValueError(
                "responses after labels of blocks need φ without kinks, and not too steep, got "
                f"{chain.field.network.activation.name}"
            )
        of_mean = ((fourth - square) * (w * factor.mean.value)[:, None]).sum(axis=-1)
        total[:-1] += found[0] + factor.mean.gradient[2] * entry * of_mean
    total[:-1] *= chain.unit_scales
    return total
