"""Order 1/N of networks whose Gram matrices are a Markov chain, as fields of `Solution` have it.

And how covariances of a chain with T = tr U C^(L+1) respond to inputs that move. With the symbols
of `chain_fluctuations`, w^(l) = ∂T/∂X^(l) through all later layers, and d^(l) = N Cov(X^(l), T) =
V^(l) w^(l), the entry e of further inputs has

    N Cov(C_e^(l+1), T) = C'_e d^(l) + B_e w^(l+1),
    d_e^(l+1) = N Cov(C_e^(l+1), T) + γ² s'_e d^(l) + W_e w^(l+1).

w is that of the inputs with labels, which stay. The entry e of K0 of two inputs moves X_e^(l), by
δ^(l) = F'_ee δ^(l-1), and no other entry, so that C'_e moves by C''_e,e δ and B_e by its derivative
by Q_e, while W is that of entries that stay. A variance moves the covariances X_αγ with all inputs
as well, among them the one at the same place, and with them W_αα and B_αα.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.markov.block_chain import BlockChain, Jet
from fieldtheory.numerics.markov.chain_fluctuations import Fluctuations
from fieldtheory.numerics.markov.second_order import SecondOrder
from fieldtheory.numerics.several_inputs.feature_correlators import gain_correlators
from fieldtheory.numerics.several_inputs.pair_theory import error_of
from fieldtheory.numerics.shift_response import by_covariances, by_variances
from fieldtheory.numerics.symmetric_matrices import assembled, packed, positions, unpacked
from fieldtheory.numerics.validity import warn_if_spread


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


def fluctuations_of(field: MeanField) -> Fluctuations:
    """The chain of a network for given inputs."""
    return Fluctuations(BlockChain(field))


@dataclass(frozen=True, eq=False)
class MarkovTheory:
    """The fluctuations of the kernels that a chain has, over networks.

    R^(l) is the Gram matrix of the stream, (1/N) Σ_i h_i h_i, behind the norm for post-norm.
    """

    # Of one network and one kernel.
    field: MeanField

    @cached_property
    def _of_matrix(self) -> MeanField:
        """The field, of a matrix also for one input."""
        field = self.field
        if field.has_matrix:
            return field
        return MeanField(field.network, field.input_kernel[None, None])

    @cached_property
    def _chain(self) -> Fluctuations:
        return fluctuations_of(self._of_matrix)

    @property
    def of_inputs(self) -> MarkovTheory:
        """Those of one input and of several."""
        return self

    @cached_property
    def one(self) -> SecondOrder:
        """The order 1/N² of one input."""
        return SecondOrder(BlockChain(self._of_matrix))

    def alone(self, i: int) -> SecondOrder:
        """That of input i of several."""
        K0 = self.field.input_kernel[i : i + 1, i : i + 1]
        return SecondOrder(BlockChain(MeanField(self.field.network, K0)))

    @property
    def kernel_shift_2(self) -> np.ndarray:
        """The term of ⟨R^(l)⟩ of order 1/N²."""
        return self.one.kernel_shift_2

    def _of_entries(self, values: np.ndarray) -> np.ndarray:
        """Entries α <= β as matrices over N."""
        return unpacked(values, self.field.has_matrix) / self.field.network.width

    def _of_pairs(self, values: np.ndarray) -> np.ndarray:
        """Fields of one input have no axes of pairs."""
        return values if self.field.has_matrix else values[..., 0, 0]

    @property
    def G11(self) -> np.ndarray:
        """Cov(C^(l), C^(m))."""
        return self._of_pairs(self._chain.covariances.residual)

    @property
    def G11_error(self) -> np.ndarray:
        """What is left out of G11."""
        return self._of_pairs(self._chain.missed)

    @property
    def stream_covariance(self) -> np.ndarray:
        """Cov(R^(l), R^(m))."""
        return self._of_pairs(self._chain.stream_covariances)

    @property
    def kernel_variance(self) -> np.ndarray:
        """Var R^(l)."""
        return self._of_entries(np.diagonal(self._chain.stream_variances, axis1=1, axis2=2))

    @property
    def four_point(self) -> np.ndarray:
        """V^(l) = N ⟨h_iα h_iβ ; h_jγ h_jδ⟩ for i ≠ j: N Cov(R, R) without a unit with itself."""
        chain, K = self._chain, unpacked(self._chain.chain.stream, True)
        return self._of_pairs(chain.stream_variances - chain._wick(K / 2, K))

    @property
    def four_point_error(self) -> np.ndarray:
        """What is left out of the vertex."""
        moved = self._chain._reported
        missed = self._chain.missed_variances
        return self._of_pairs(np.abs([moved(l, moved(l, V).T) for l, V in enumerate(missed)]))

    @property
    def mean_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """⟨C^(l)⟩ − C*^(l) and its error."""
        chain = self._chain
        missed = np.abs(chain._shifts(chain.missed_variances, start=0.0)[0])
        return self._of_entries(chain.shifts[0]), self._of_entries(missed)

    @property
    def kernel_shift(self) -> np.ndarray:
        """⟨R^(l)⟩ − K^(l), last that of the output."""
        residual, stream = self._chain.shifts
        return self._of_entries(np.concatenate([stream, residual[-1:]]))

    def response_shifts(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂ of the mean shifts of C^(l), (2, L + 2, ...), and of R^(l), (2, L + 1, ...)."""
        network, chain = self.field.network, self._chain.chain
        K, size = chain.states[0][0], packed(eta) if self.field.has_matrix else eta[:, None]
        pairs = np.triu_indices(chain.field.input_kernel.shape[-1])
        own, others = np.equal(*pairs), np.not_equal(*pairs)

        def shift(kernels: Iterable[np.ndarray]) -> np.ndarray:
            """Of the last entry of kernels."""
            each = [
                np.concatenate(fluctuations_of(MeanField(network, K0)).shifts)[:, len(K0) - 1]
                for K0 in kernels
            ]
            return np.stack(each, axis=-1)[None]

        def of_pairs(covariances: np.ndarray) -> np.ndarray:
            return shift(assembled(members, covariances[:, None], np.triu_indices(2, 1)))

        # The stream responds about as what is added to it.
        size = np.concatenate([size, size[:-1]])
        values, errors = np.empty_like(size), np.zeros_like(size)
        values[:, own] = by_variances(lambda k: shift(k[:, None, None]), K[own], size[:, own])[0]
        if others.any():
            members = K[own][np.stack(pairs, axis=-1)[others]]
            largest = np.sqrt(members.prod(axis=1))
            arguments = K[others], largest, False, size[:, others]
            estimate = by_covariances(of_pairs, *arguments)
            values[:, others], errors[:, others] = estimate[0], error_of(estimate)
        both = self._of_entries(np.stack([values, errors]))
        return both[:, : len(eta)], both[:, len(eta) :]

    def spread(self, kernels: np.ndarray) -> np.ndarray:
        """The relative standard deviations of the kernels that layers see; see `warn_if_spread`."""
        chain = self._chain
        at = np.flatnonzero(np.equal(*np.triu_indices(chain.chain.field.input_kernel.shape[-1])))
        own = chain.variances[:, at, at] / self.field.network.width
        own = own if self.field.has_matrix else own[:, 0]
        return warn_if_spread(self.field, self.kernel_variance, kernels, own)

    def covariances_with_output(self, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cov(C^(l), Tr U C^(L+1)) and Cov(R^(l), Tr U C^(L+1)), the latter's last that of C^(L+1).

        Both of shape (L + 2, P, P).
        """
        chain = self._chain
        residual, covariance = chain.covariances.residual[:, -1], chain.covariances.stream
        moved = chain._branch(len(covariance), np.moveaxis(covariance[:, -1], -1, 0))
        each = (chain._reported(l, X) for l, X in enumerate(np.moveaxis(moved, 0, -1)))
        stream = np.array([*each, residual[-1]])
        traces = ((unpacked(each, True) * U).sum(axis=(-1, -2)) for each in (residual, stream))
        first, second = (unpacked(each, True) for each in traces)
        return first, second

    def responses_with_output(self, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The derivatives of `covariances_with_output` by K_αβ^(0), see `learned_responses`."""
        residual, stream = learned_responses(self._chain, U)
        return self._of_entries(residual), self._of_entries(stream)
