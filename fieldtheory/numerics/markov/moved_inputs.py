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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.markov.block_chain import BlockChain, Jet
from fieldtheory.numerics.markov.fluctuations import Fluctuations
from fieldtheory.numerics.several_inputs.gain_correlators import gain_correlators
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
    functions, name = chain.functions, chain.field.network.activation.name
    if any(len(psi.kinks) for phi in functions.factors for psi in phi.functions):
        raise ValueError(f"responses after labels of blocks need φ without kinks, got {name}")
    w = _pulled(chain, U)
    d = np.einsum("lef,lf->le", theory.variances, w[:-1])
    size, p = d.shape
    moving = _Moving.of(chain)
    of_X, of_C, of_R = moving.through_layers()
    units = _of_units(chain, w[1:-1], moving.signals(of_X[:-1]))
    if units is None:
        raise ValueError(
            "responses after labels need correlators of hidden units that are series of few "
            f"orders, got those of {name} for these inputs"
        )
    residual, stream, change = *np.zeros((2, size + 1, p)), np.zeros(p)
    C, R = (unpacked(each, True) for each in (chain.states[0], chain.stream))
    half = unpacked(w, True) * (1 + np.eye(len(U))) / 2
    for l, skip in enumerate(np.append(chain.skips[1:], 0.0)):
        moved = of_X[l].entry
        stream[l] = change
        if functions.stream:
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


@dataclass(frozen=True, eq=False)
class _Moving:
    """A chain of all inputs twice, of which the second ones move.

    ``entries`` are the places of the p entries, ``own`` those of variances among the p, ``across``
    (Q, Q) the places of the covariances of the second inputs with the first ones.
    """

    chain: BlockChain
    entries: np.ndarray
    own: np.ndarray
    across: np.ndarray

    @classmethod
    def of(cls, chain: BlockChain) -> _Moving:
        K0 = chain.field.input_kernel
        size = len(K0)
        both = BlockChain(MeanField(chain.field.network, np.tile(K0, (2, 2))))
        places = positions(len(both.pairs.alpha))
        return cls(both, places[np.triu_indices(size)], chain.pairs.own, places[size:, :size])

    def by(self, jet: Jet, moves: Moves, l: int) -> Moves:
        """What a function of moved entries moves by."""
        _, by_own, by_pair = jet.gradient[:, l]
        by_variance = by_own[self.across] * moves.entry[self.own, None]
        mixed = by_variance + by_pair[self.across] * moves.mixed
        return Moves(by_pair[self.entries] * moves.entry, mixed)

    def through_layers(self) -> tuple[list[Moves], list[Moves], list[Moves]]:
        """Moves of X^(l), C^(l+1) and R^(l), l = 0, ..., L."""
        of_X = [Moves(np.ones(len(self.entries)), np.zeros(self.across.shape))]
        of_C, of_R = list[Moves](), list[Moves]()
        carried = self.chain.functions.stream is not None
        for l, skip in enumerate(np.append(self.chain.skips[1:], 0.0)):
            of_C.append(self.by(self.chain.slopes, of_X[l], l))
            of_R.append(self.by(self.chain.stream_jet, of_X[l], l) if carried else of_X[l])
            of_X.append(Moves(*(x + skip * y for x, y in zip(of_C[l], of_R[l], strict=True))))
        return of_X[:-1], of_C, of_R

    def signals(self, of_X: Sequence[Moves]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Those of the entries of Q_k of all layers, (L, p) and (L, Q, Q)."""
        X, moves = self.chain.states[1][:-1], list[tuple[np.ndarray, np.ndarray]]()
        for signal in self.chain.functions.hidden.signals:
            jet = self.chain._entries(signal, X)
            entry, mixed = zip(*(self.by(jet, x, l) for l, x in enumerate(of_X)), strict=True)
            moves.append((np.array(entry), np.array(mixed)))
        return moves


def _of_units(
    chain: BlockChain, w: np.ndarray, moves: Sequence[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray | None:
    """What B_e w^(l) of units changes by, (L + 1, p), zero for the readout; None as its parts."""
    factors, means = chain.factors, [*map(chain.average, chain.factors)]
    squares = [mean.value[:, :, None] * mean.value[:, None] for mean in means]
    total = np.zeros((len(w) + 1, w.shape[-1]))
    for k, (factor, mean, (entry, mixed)) in enumerate(zip(factors, means, moves, strict=True)):
        fourth, square = np.ones((2, 1, 1, 1))
        for j in set(range(len(factors))) - {k}:
            fourth = fourth * (factors[j].connected.values + squares[j])
            square = square * squares[j]
        weights = np.swapaxes(fourth * w[:, None], 0, 1)
        found = gain_correlators(factor.signals, weights, entry, mixed)
        if found is None:
            return None
        of_mean = ((fourth - square) * (w * mean.value)[:, None]).sum(axis=-1)
        total[:-1] += found[0] + mean.gradient[2] * entry * of_mean
    total[:-1] *= chain.unit_scales
    return total
