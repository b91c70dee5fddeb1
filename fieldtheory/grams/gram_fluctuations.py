"""Order 1/N of a chain of Gram matrices: one loop over the layers, see `gram_theory`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fieldtheory.grams.gram_theory import Entries, GramChain
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.several_inputs.feature_correlators import Truncated, within_layers
from fieldtheory.numerics.several_inputs.pair_fluctuations import PairGains
from fieldtheory.numerics.symmetric_matrices import assembled

# Arrays of the size of G11 that are held at once.
_COPIES = 4


class Covariances(NamedTuple):
    """N Cov(C^(k), C^(l)), (L + 2, L + 2, p, p), and N Cov(R^(k), R^(l)), (L + 1, L + 1, p, p)."""

    residual: np.ndarray
    stream: np.ndarray


@dataclass(frozen=True, eq=False)
class GramFluctuations:
    """Covariances and mean shifts of the p = P(P+1)/2 pairs, each N times as large.

    Parameters
    ----------
    chain : GramChain
        Without batch axes.
    """

    chain: GramChain

    @property
    def depth(self) -> int:
        """L."""
        return self.chain.network.depth

    @cached_property
    def branches(self) -> PairGains:
        """∂C^(l)/∂X^(l-1) of the layers 1, ..., L + 1."""
        return _gains(self.chain.slopes)

    @cached_property
    def reported(self) -> PairGains:
        """∂s(X^(l))/∂X^(l); row l + 1 is that of layer l."""
        return _gains(self.chain.stream_jets)

    @cached_property
    def skips(self) -> np.ndarray:
        """γ_l² of the layers 1, ..., L."""
        skip = self.chain.network.layer(self.chain.parameters).skip
        return np.broadcast_to(np.reshape(skip, (-1, 1)) ** 2, (self.depth, 1))[:, 0]

    def carried(self, l: int, X: np.ndarray) -> np.ndarray:
        """The change of γ_l² s(X^(l-1)) with X^(l-1), shape (p, ...)."""
        return self.skips[l - 1] * self.reported.kernel_change(l, X)

    # Sources.

    @cached_property
    def _fourth(self) -> Truncated:
        """⟨a a ; a a⟩ of all layers and what is left out, (L, p, p)."""
        chain = self.chain
        signals = chain.entries("signals", chain.before, chain.parameters, 0)
        each = []
        for functions, Q in zip(chain.functions, signals, strict=True):
            a, b, t = chain.covariances(Q)
            one = within_layers(chain.signals(functions, Q.own, t))
            joint = functions.covariance(a, b, t) if t.size else t
            mean = Entries(functions.second_moment(Q.own), joint)
            each.append((one, chain.packed(mean)))
        if len(each) == 1:
            return each[0][0]
        fourth, squares, left = np.ones(1), np.ones(1), np.zeros(1)
        for one, first in each:
            square = first[:, :, None] * first[:, None]
            left = left * np.abs(one.values + square) + np.abs(fourth * one.left_out)
            fourth, squares = fourth * (one.values + square), squares * square
        return Truncated(0, fourth - squares, left)

    @cached_property
    def hidden_sources(self) -> np.ndarray:
        """B^(l) of the hidden units, and what is left out of it, shape (2, L + 2, p, p)."""
        network, p = self.chain.network, self._fourth.values.shape[-1]
        weight = network.layer(self.chain.parameters).weight
        weight = np.broadcast_to(np.reshape(weight, (-1, 1, 1)), (self.depth, 1, 1))
        scale = network.width / network.hidden_width * weight**2
        B = np.zeros((2, self.depth + 2, p, p))
        B[:, 1:-1] = scale * self._fourth.values, scale * np.abs(self._fourth.left_out)
        return B

    @cached_property
    def stream_sources(self) -> np.ndarray:
        """W^(l) of the units of the stream, shape (L + 1, p, p)."""
        residual = assembled(*self.chain.states[0], self.chain.pairs)[:-1]
        carried = np.zeros_like(residual)
        stream = assembled(*self.chain.stream, self.chain.pairs)[:-1]
        carried[1:] = self.skips[:, None, None] * stream
        return _wick(carried + residual / 2, residual)

    # Recursions.

    @cached_property
    def variances(self) -> np.ndarray:
        """V^(l), N times the covariance of X^(l) with itself, shape (L + 1, p, p)."""
        W, B = self.stream_sources, self.hidden_sources[0]
        V = np.empty_like(W)
        V[0] = W[0]
        for l in range(1, self.depth + 1):
            half = self._moved(l, V[l - 1])
            V[l] = self._moved(l, half.T) + B[l] + W[l]
        return V

    def _moved(self, l: int, X: np.ndarray) -> np.ndarray:
        """J X."""
        return self.carried(l, X) + self.branches.kernel_change(l, X)

    @cached_property
    def stream_variances(self) -> np.ndarray:
        """N times the covariance of R^(l) with itself, shape (L + 1, p, p)."""
        change = self.reported.kernel_change
        return np.array([change(l + 1, change(l + 1, V).T) for l, V in enumerate(self.variances)])

    @cached_property
    def of_one_unit(self) -> np.ndarray:
        """⟨h_iα h_iβ ; h_iγ h_iδ⟩ of a unit of the stream with itself (Wick), (L + 1, p, p)."""
        K = assembled(*self.chain.stream, self.chain.pairs)
        return _wick(K / 2, K)

    def of_stream(self, covariances: np.ndarray) -> np.ndarray:
        """Cov(R^(k), R^(l)) from Cov(X^(k), X^(l)), (L + 1, L + 1, p, p)."""
        if self.chain.is_stream:
            return covariances
        for _ in range(2):
            # The second layer and pair, then, both exchanged, the first ones.
            changed = [
                self.reported.kernel_change(l + 1, np.moveaxis(covariances[:, l], -1, 0))
                for l in range(self.depth + 1)
            ]
            covariances = np.moveaxis(np.array(changed), 1, 2)
        return covariances

    @cached_property
    def covariances(self) -> Covariances:
        """Those of all pairs of layers."""
        return self._propagated(self.hidden_sources[0], self.stream_sources)

    @cached_property
    def missed(self) -> np.ndarray:
        """Errors of N Cov(C^(k), C^(l)), zero where it is exact."""
        left = self.hidden_sources[1]
        if not left.any():
            size = self.depth + 2
            return np.zeros((size, size, *left.shape[1:]))
        return np.abs(self._propagated(left, np.zeros_like(self.stream_sources)).residual)

    def _propagated(self, B: np.ndarray, W: np.ndarray) -> Covariances:
        size, p = self.depth + 2, B.shape[-1]
        require_memory(
            f"G11 of {self.chain.inputs.own.shape[-1]} inputs",
            8.0 * _COPIES * (size * p) ** 2,
            "use fewer inputs or layers",
        )
        residual, stream = np.zeros((size, size, p, p)), np.zeros((size - 1, size - 1, p, p))
        # Cov(X^(l), C^(k)) and Cov(X^(l), X^(k)) of the layer l and all k <= l, (p, k, p).
        with_C, with_X = np.zeros((p, size, p)), np.zeros((p, size, p))
        with_X[:, 0] = stream[0, 0] = W[0]
        change = self.branches.kernel_change
        for l in range(1, size):
            of_C, of_X = change(l, with_C[:, :l]), change(l, with_X[:, :l])
            crossed = of_X[:, l - 1].T
            own = change(l, crossed) + B[l]
            residual[l, :l] = np.moveaxis(of_C, 1, 0)
            residual[:l, l] = np.swapaxes(residual[l, :l], 1, 2)
            residual[l, l] = own
            if l == size - 1:
                break
            with_C[:, :l] = self.carried(l, with_C[:, :l]) + of_C
            with_C[:, l] = self.carried(l, crossed) + own
            with_X[:, :l] = self.carried(l, with_X[:, :l]) + of_X
            with_X[:, l] = self.carried(l, with_X[:, l - 1].T) + with_C[:, l].T + W[l]
            stream[l, : l + 1] = np.moveaxis(with_X[:, : l + 1], 1, 0)
            stream[:l, l] = np.swapaxes(stream[l, :l], 1, 2)
        return Covariances(residual, stream)

    @cached_property
    def shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """N times the mean shifts of C^(l), (L + 2, p), and of R^(l), (L + 1, p)."""
        chain, V = self.chain, self.variances
        chain.require_angles()
        curved, stream = chain.curved, chain.stream_jets
        C = chain.packed(chain.states[0])
        lost = float(chain.network.centred)
        residual = np.zeros_like(C)
        reported = np.empty_like(C[:-1])
        m = -lost * C[0]
        for l in range(self.depth + 1):
            if l:
                m = self.skips[l - 1] * reported[l - 1] + residual[l] - lost * C[l]
            reported[l] = _second_order(stream, l, m, V[l])
            residual[l + 1] = _second_order(curved, l, m, V[l])
        return residual, reported


def _second_order(jets: Entries, l: int, m: np.ndarray, V: np.ndarray) -> np.ndarray:
    """F'(X) m + F''(X):V/2 of all pairs, of layer l."""
    inputs = jets.own.value.shape[-1]
    alpha, beta = np.triu_indices(inputs)
    same = alpha == beta
    at, others = np.flatnonzero(same), np.flatnonzero(~same)
    entries = np.array([at[alpha[others]], at[beta[others]], others])
    shift = np.empty_like(m)
    own, pair = jets
    shift[at] = own.gradient[0, l] * m[at] + own.hessian[0, 0, l] * V[at, at] / 2
    shift[others] = (pair.gradient[:, l] * m[entries]).sum(axis=0)
    shift[others] += (pair.hessian[:, :, l] * V[entries[:, None], entries]).sum(axis=(0, 1)) / 2
    return shift


def _gains(jets: Entries) -> PairGains:
    """Gradients of layers as gains, one row later, as the first layer has none."""
    own, pair = (np.pad(jet.gradient, ((0, 0), (1, 0), (0, 0))) for jet in jets)
    return PairGains(own[0], pair[2], pair[0], pair[1])


def _wick(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A_αγ B_βδ + A_αδ B_βγ + A_βγ B_αδ + A_βδ B_αγ of matrices (L, P, P), shape (L, p, p)."""
    alpha, beta = np.triu_indices(A.shape[-1])
    total = np.zeros((len(A), len(alpha), len(alpha)))
    for one, other in ((A, B), (B, A)):
        total += one[:, alpha[:, None], alpha] * other[:, beta[:, None], beta]
        total += one[:, alpha[:, None], beta] * other[:, beta[:, None], alpha]
    return total
