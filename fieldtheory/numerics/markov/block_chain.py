"""The chain of Gram matrices of networks of blocks, with its derivatives of all layers.

An entry C_αβ of a block depends on X_αα, X_ββ and X_αβ of the stream alone, a variance on itself:
rows of the Jacobian have three entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fieldtheory.numerics.infinite_width.block_functions import (
    BlockFunctions,
    Entry,
    network_functions,
)
from fieldtheory.numerics.infinite_width.homogeneous import exactly_parallel
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.several_inputs.feature_correlators import Truncated, within_layers
from fieldtheory.numerics.several_inputs.pair_curvatures import curvatures
from fieldtheory.numerics.several_inputs.pair_expansions import Signals
from fieldtheory.numerics.symmetric_matrices import unpacked

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Pairs(NamedTuple):
    """The inputs α <= β of entries of matrices (P, P), in the order of `np.triu_indices`.

    ``first`` and ``second`` are the places of the variances of α and β among the entries, ``own``
    and ``others`` those of all variances and covariances.
    """

    alpha: np.ndarray
    beta: np.ndarray
    first: np.ndarray
    second: np.ndarray
    own: np.ndarray
    others: np.ndarray

    @classmethod
    def of(cls, inputs: int) -> Pairs:
        """Those of so many inputs."""
        alpha, beta = np.triu_indices(inputs)
        own, others = np.flatnonzero(alpha == beta), np.flatnonzero(alpha != beta)
        return cls(alpha, beta, own[alpha], own[beta], own, others)


class Jet(NamedTuple):
    """Entries (l, p) as functions of the entries (αα), (ββ), (αβ) of another matrix.

    The gradient has these on its first axis, the Hessian on the first two. A variance depends on
    its own variance, which stands for (αβ).
    """

    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray

    def of(self, inner: Jet, pairs: Pairs) -> Jet:
        """The function of the entries of a function."""
        slopes, curved = (np.zeros((3, *each.shape)) for each in inner[1:])
        # The variances of a pair move with its first and second entries, a variance with its own.
        for e, places in enumerate((pairs.first, pairs.second)):
            slopes[e, e] = inner.gradient[2][..., places]
            curved[e, e, e] = inner.hessian[2, 2][..., places]
        slopes[2], curved[2] = inner.gradient, inner.hessian
        hessian = np.einsum("fg...,fd...,ge...->de...", self.hessian, slopes, slopes)
        return Jet(
            self.value,
            np.einsum("f...,fe...->e...", self.gradient, slopes),
            hessian + np.einsum("f...,fde...->de...", self.gradient, curved),
        )

    def times(self, other: Jet) -> Jet:
        """The product of two functions."""
        mixed = self.gradient[:, None] * other.gradient
        mixed = mixed + np.swapaxes(mixed, 0, 1)
        return Jet(
            self.value * other.value,
            self.gradient * other.value + self.value * other.gradient,
            self.hessian * other.value + mixed + self.value * other.hessian,
        )

    def jacobian(self, l: int, pairs: Pairs) -> csr_array:
        """That of layer l, (p, p)."""
        from scipy.sparse import csr_array

        size = self.gradient.shape[-1]
        columns = np.column_stack([pairs.first, pairs.second, np.arange(size)])
        starts = np.arange(0, columns.size + 1, 3)
        entries = self.gradient[:, l].T.ravel(), columns.ravel(), starts
        return csr_array(entries, (size, size))

    def curvature(self, l: int, V: np.ndarray, pairs: Pairs) -> np.ndarray:
        """F'':V/2 of layer l, with the covariances V (p, p)."""
        entries = np.array([pairs.first, pairs.second, np.arange(len(V))])
        return (self.hessian[:, :, l] * V[entries[:, None], entries]).sum((0, 1)) / 2


class Factor(NamedTuple):
    """A φ_k of the hidden units of all layers: ⟨φφ⟩ by Q_k, and ⟨φφ ; φφ⟩, (L, p, p)."""

    signals: Signals
    mean: Jet
    connected: Truncated

    @property
    def square(self) -> np.ndarray:
        """⟨φφ⟩⟨φφ⟩, (L, p, p)."""
        return self.mean.value[:, :, None] * self.mean.value[:, None]


@dataclass(frozen=True, eq=False)
class BlockChain:
    """The chain of a network for P inputs, with p = P(P+1)/2 entries of its matrices."""

    # Of a kernel (P, P) and one network.
    field: MeanField

    @cached_property
    def pairs(self) -> Pairs:
        """The inputs of the entries."""
        return Pairs.of(self.field.input_kernel.shape[-1])

    @cached_property
    def functions(self) -> BlockFunctions:
        """Averages of the blocks."""
        functions = network_functions(self.field.network, 1)
        assert isinstance(functions, BlockFunctions)
        return functions

    @property
    def jumps(self) -> bool:
        """Whether a φ_k jumps."""
        return self.functions.jumps

    def _packed(self, own: np.ndarray, joint: np.ndarray) -> np.ndarray:
        values = np.empty((*own.shape[:-1], len(self.pairs.alpha)))
        values[..., self.pairs.own], values[..., self.pairs.others] = own, joint
        return values

    @cached_property
    def states(self) -> tuple[np.ndarray, np.ndarray]:
        """C^(l), shape (L + 2, p), and X^(l), (L + 1, p)."""
        (C, X), (of_C, of_X) = self.field.variances, self.field.covariances
        return self._packed(C, of_C), self._packed(X, of_X)[:-1]

    @cached_property
    def skips(self) -> np.ndarray:
        """γ_l² of the layers 0, ..., L, zero for the input."""
        return self.field.layers.skips[:-1, 0]

    @cached_property
    def stream(self) -> np.ndarray:
        """s(X^(l)), shape (L + 1, p)."""
        return self.stream_jet.value if self.functions.stream else self.states[1]

    def entries(self, entry: Entry, X: np.ndarray) -> Jet:
        """A function of the entries with its derivatives."""
        own, others = self.pairs.own, self.pairs.others
        whole = np.zeros((13, *X.shape))
        whole[[[0], [3], [12]], ..., own] = np.moveaxis(np.array(entry.own(X[..., own], 2)), -1, 1)
        if len(others):
            every = X[..., self.pairs.first], X[..., self.pairs.second], X
            whole[..., others] = entry.pair(*(each[..., others] for each in every), order=2)
        return Jet(whole[0], whole[1:4], whole[4:].reshape(3, 3, *X.shape))

    @cached_property
    def stream_jet(self) -> Jet:
        """s by X of the layers 0, ..., L."""
        assert self.functions.stream is not None
        return self.entries(self.functions.stream, self.states[1])

    @cached_property
    def slopes(self) -> Jet:
        """C^(l+1) by X^(l), of L + 1 layers, without second derivatives."""
        return self._branches(second=False)

    @cached_property
    def curved(self) -> Jet:
        """The same with second derivatives."""
        return self._branches(second=True)

    def _branches(self, second: bool) -> Jet:
        X, layers = self.states[1], self.field.layers
        hidden = self.functions.hidden
        signals = [self.entries(signal, X[:-1]) for signal in hidden.signals]
        parts = zip(hidden.factors, signals, strict=True)
        each = [self._average(phi, Q.value, second).of(Q, self.pairs) for phi, Q in parts]
        (read,) = self.functions.readout.signals
        units = reduce(Jet.times, each)
        both = zip(units, self.entries(read, X[-1:]), strict=True)
        value, *derivatives = (np.concatenate(of, axis=-2) for of in both)
        weights = layers.weights[1:]
        return Jet(weights * value + layers.biases[1:], *(weights * d for d in derivatives))

    def _average(self, phi: LayerFunctions, Q: np.ndarray, second: bool) -> Jet:
        """⟨φφ⟩ by Q."""
        own, others = self.pairs.own, self.pairs.others
        value, gradient = np.empty(Q.shape), np.zeros((3, *Q.shape))
        hessian, variance = np.zeros((3, 3, *Q.shape)), Q[..., own]
        value[..., own] = phi.second_moment(variance)
        gradient[2][..., own] = phi.susceptibility(variance)
        if second:
            hessian[2, 2][..., own] = phi.curvature(variance)
        if len(others):
            a, b, t = self._covariances(Q)
            value[..., others], gradient[2][..., others] = phi.covariance_gain(a, b, t)
            gradient[0][..., others] = phi.cross_susceptibility(a, b, t)
            gradient[1][..., others] = phi.cross_susceptibility(b, a, t)
        if second and len(others):
            signals = self.signals_of(phi, Q)
            if (signals.R[1, 1][:, others] == 0).any() and not signals.smooth:
                raise ValueError(
                    "K0 must have no parallel inputs, same or opposite, for mean shifts of φ with "
                    "kinks; leave one of them out"
                )
            used = np.ones(t.shape, dtype=bool)
            hessian[..., others] = curvatures(signals, others, used)
        return Jet(value, gradient, hessian)

    def _covariances(self, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Variances and covariances of pairs, those that are parallel within rounding exactly."""
        others = self.pairs.others
        a, b = (Q[..., each[others]] for each in (self.pairs.first, self.pairs.second))
        return a, b, exactly_parallel(a, b, Q[..., others])

    def signals_of(self, phi: LayerFunctions, Q: np.ndarray) -> Signals:
        """Signals of hidden units in all layers, each a layer of its own."""
        K = unpacked(Q, True)
        members = self.pairs.alpha[self.pairs.others], self.pairs.beta[self.pairs.others]
        if len(members[0]):
            K[:, *members] = K[:, *members[::-1]] = self._covariances(Q)[2]
        return Signals(phi.functions, K, K, np.zeros(len(K) - 1))

    # What `Fluctuations` asks for.

    def jacobian(self, l: int) -> csr_array:
        """That of C^(l) by X^(l-1)."""
        return self.slopes.jacobian(l - 1, self.pairs)

    def stream_jacobian(self, l: int) -> csr_array | None:
        """That of s(X^(l)), None where it is X^(l)."""
        return self.stream_jet.jacobian(l, self.pairs) if self.functions.stream else None

    def curvature(self, l: int, V: np.ndarray) -> np.ndarray:
        """C'':V/2 of C^(l) by X^(l-1)."""
        return self.curved.curvature(l - 1, V, self.pairs)

    def stream_curvature(self, l: int, V: np.ndarray) -> np.ndarray | float:
        """s'':V/2 of s(X^(l))."""
        return self.stream_jet.curvature(l, V, self.pairs) if self.functions.stream else 0.0

    @property
    def unit_scales(self) -> np.ndarray:
        """N/M a_l² of the blocks, (L, 1)."""
        network, weight = self.field.network, self.field.layers.weights[1:-1]
        scale = network.width / network.hidden_width  # type: ignore[attr-defined]
        return np.asarray(scale * weight.reshape(-1, 1) ** 2)

    @cached_property
    def unit_covariances(self) -> np.ndarray:
        """N/M times the covariances of what hidden units add to C^(l), (2, L + 2, p, p)."""
        connected, scale = self._hidden_units, self.unit_scales[..., None]
        B = np.zeros((2, self.field.network.depth + 2, *connected.values.shape[1:]))
        B[:, 1:-1] = scale * connected.values, scale * np.abs(connected.left_out)
        return B

    @cached_property
    def factors(self) -> list[Factor]:
        """Those of all layers."""
        hidden, X, found = self.functions.hidden, self.states[1][:-1], list[Factor]()
        for phi, signal in zip(hidden.factors, hidden.signals, strict=True):
            Q = self.entries(signal, X).value
            signals, mean = self.signals_of(phi, Q), self._average(phi, Q, second=False)
            found.append(Factor(signals, mean, within_layers(signals)))
        return found

    @cached_property
    def _hidden_units(self) -> Truncated:
        """⟨a a ; a a⟩ of all layers and what is left out, (L, p, p)."""
        if len(self.factors) == 1:
            return self.factors[0].connected
        fourth, squares, left = np.ones(1), np.ones(1), np.zeros(1)
        for factor in self.factors:
            connected, square = factor.connected, factor.square
            left = left * np.abs(connected.values + square) + np.abs(fourth * connected.left_out)
            fourth, squares = fourth * (connected.values + square), squares * square
        return Truncated(0, fourth - squares, left)
