"""Order 1/N of networks whose Gram matrices are a Markov chain, as fields of `Solution` have it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.markov.block_chain import BlockChain
from fieldtheory.numerics.markov.chain_fluctuations import Fluctuations
from fieldtheory.numerics.markov.moved_entries import learned_responses
from fieldtheory.numerics.markov.second_order import SecondOrder
from fieldtheory.numerics.several_inputs.pair_theory import error_of
from fieldtheory.numerics.shift_response import by_covariances, by_variances
from fieldtheory.numerics.symmetric_matrices import assembled, packed, unpacked
from fieldtheory.numerics.validity import warn_if_spread


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
        """The derivatives of `covariances_with_output` by K_αβ^(0), see `moved_entries`."""
        residual, stream = learned_responses(self._chain, U)
        return self._of_entries(residual), self._of_entries(stream)
