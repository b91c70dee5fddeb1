"""The chain of Gram matrices of transformers: steps of attention, of an MLP, or of both at once.

Averages over softmax are those of independent runs of draws, each with its own kernels, whose
scatter is the standard error of everything. What MLPs add is linear in how far the kernels of a run
are from their mean over the runs, and the derivatives of MLPs are those at the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory.networks.gram import GramEntry
from fieldtheory.numerics.infinite_width.block_functions import require_norms
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.markov.block_chain import BlockChain, Jet
from fieldtheory.numerics.recursion import require_finite
from fieldtheory.numerics.symmetric_matrices import packed, unpacked
from fieldtheory.transformers.attention import RUNS, Attention, Head, Moments
from fieldtheory.transformers.transformer_network import TransformerNetwork


def heads_of(network: TransformerNetwork) -> list[Head]:
    """The parameters of the heads of every block."""
    values, rho = network.parameters, network.branch_scales[:, 0]
    weight = rho**2 * values["out_weight_variance"] * values["value_weight_variance"]
    logit = values["logit_scale"] / np.sqrt(network.d)
    rows = [weight, values["query_weight_variance"], values["key_weight_variance"], logit]
    rows += [np.full(len(rho), values[f"{name}_bias_variance"]) for name in ("query", "key")]
    of_values = values["value_weight_variance"]
    rows.append(values["value_bias_variance"] / np.where(of_values > 0, of_values, 1))
    rows.append(rho**2 * values["out_bias_variance"])
    return [Head(*map(float, row)) for row in zip(*rows, strict=True)]


@dataclass(frozen=True, eq=False)
class TransformerKernels:
    """The kernels of all steps, in every run.

    Parameters
    ----------
    network : TransformerNetwork
    input_kernel : ndarray, shape (P, P)
    samples, seed : int
        Number of heads that are drawn, in all runs and with both signs.
    """

    network: TransformerNetwork
    input_kernel: np.ndarray
    samples: int
    seed: int

    @cached_property
    def heads(self) -> list[Head]:
        """Those of every block."""
        return heads_of(self.network)

    @cached_property
    def attention(self) -> Attention:
        """How the tokens attend."""
        net, P = self.network, len(self.input_kernel)
        mask = net.mask(P)
        zero = not any(h.has_logits for h in self.heads)
        fixed = zero or not (mask.sum(1) > 1).any()
        draws = 1 if fixed else -(-self.samples // (2 * RUNS))
        norm = net.epsilon if net.query_key_norm and not zero else None
        return Attention(
            mask, net.d, net.grouped_heads, net.turns(P), norm, draws, self.seed, fixed
        )

    @property
    def runs(self) -> int:
        """How many, one where averages are exact."""
        return 1 if self.attention.fixed else RUNS

    @cached_property
    def steps(self) -> list[tuple[int, tuple[str, ...]]]:
        """The block l = 1, ..., L and the branches of every step."""
        blocks = range(1, self.network.depth + 1)
        return [(l, kinds) for l in blocks for kinds in self.network.branches]

    @cached_property
    def block(self) -> BlockChain:
        """The MLP and the norm, for functions of the entries of one matrix."""
        return BlockChain(MeanField(self.network.block, self.input_kernel))

    def entries(self, of: Callable[..., Any], X: np.ndarray) -> np.ndarray:
        """The stream or what is read of it, of matrices (..., P, P)."""
        own = np.diagonal(X, axis1=-2, axis2=-1)
        entry = GramEntry(X, own[..., :, None], own[..., None, :])
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.asarray(of(entry, {"epsilon": self.network.epsilon}))
        require_norms(own, values)
        return values

    @cached_property
    def parts(self) -> np.ndarray:
        """What attention and MLP add in every step, (runs, S + 1, 2, P, P), nothing in the first.

        With X^(l) on the way, which `states` has.
        """
        return self._recursion[0]

    @cached_property
    def states(self) -> tuple[np.ndarray, np.ndarray]:
        """C^(l), (runs, S + 2, P, P), and X^(l), (runs, S + 1, P, P)."""
        parts, X = self._recursion
        K0 = np.broadcast_to(self.input_kernel, X[:, :1].shape)
        net = self.network
        output = net.readout_weight_variance * self.entries(net.block.read, X[:, -1:])
        output = output + net.readout_bias_variance
        return np.concatenate([K0, parts[:, 1:].sum(2), output], axis=1), X

    @cached_property
    def _recursion(self) -> tuple[np.ndarray, np.ndarray]:
        net, P = self.network, len(self.input_kernel)
        parts = np.zeros((self.runs, len(self.steps) + 1, 2, P, P))
        X = np.empty((self.runs, len(self.steps) + 1, P, P))
        X[:, 0] = self.input_kernel
        for s, (l, kinds) in enumerate(self.steps, start=1):
            carried = self.entries(net.block.stream, X[:, s - 1])
            if "attention" in kinds:
                read = self.entries(net.block.read, X[:, s - 1])
                for r, R in enumerate(read):
                    parts[r, s, 0] = self.attention.mean(R, self.heads[l - 1], r)
            if "mlp" in kinds:
                parts[:, s, 1] = self._mlp(l, X[:, s - 1])
            X[:, s] = net.skip_scale**2 * carried + parts[:, s].sum(1)
            require_finite("the kernel", X[:, s], s)
        return parts, X

    def _mlp(self, l: int, X: np.ndarray) -> np.ndarray:
        """What the MLP of block l adds to the kernels of all runs."""
        layer = self.block.functions.layer(l)
        K = X.mean(0)
        own, (a, b) = np.diagonal(K), np.triu_indices(len(K), 1)
        at, moved = (own[a], own[b], K[a, b]), X - K
        moves, diagonal = np.diagonal(moved, axis1=1, axis2=2), np.arange(len(K))
        mean = np.zeros_like(X)
        mean[:, diagonal, diagonal] = layer.second_moment(own) + layer.susceptibility(own) * moves
        if len(a):
            value, slope = layer.covariance_gain(*at)
            joint = value + slope * moved[:, a, b]
            if len(X) > 1:
                joint = joint + layer.cross_susceptibility(*at) * moves[:, a]
                joint = joint + layer.cross_susceptibility(at[1], at[0], at[2]) * moves[:, b]
            mean[:, a, b] = mean[:, b, a] = joint
        coefficients = self.block.field.layers
        return np.asarray(coefficients.weights[l] * mean + coefficients.biases[l])

    @cached_property
    def mlp(self) -> _Mlp:
        """The MLPs of all blocks, at the mean kernels before them and of the last step."""
        X = packed(self.states[1].mean(0))
        before = [s for s, (_, kinds) in enumerate(self.steps) if "mlp" in kinds]
        return _Mlp(self.block.field, X[[*before, len(X) - 1]])

    def run(self, r: int) -> TransformerChain:
        """The chain of one run."""
        return TransformerChain(self.block.field, self, r)


@dataclass(frozen=True, eq=False)
class _Mlp(BlockChain):
    """Blocks that read the given kernels (L + 1, p)."""

    inputs: np.ndarray

    @property
    def states(self) -> tuple[np.ndarray, np.ndarray]:
        """Only what is read."""
        return self.inputs, self.inputs


@dataclass(frozen=True, eq=False)
class TransformerChain(BlockChain):
    """One run as a chain; its layers are the steps."""

    kernels: TransformerKernels
    number: int

    @cached_property
    def states(self) -> tuple[np.ndarray, np.ndarray]:
        """C^(l), shape (S + 2, p), and X^(l), (S + 1, p)."""
        C, X = (packed(each[self.number]) for each in self.kernels.states)
        return C, X

    @cached_property
    def skips(self) -> np.ndarray:
        """γ² of the steps 0, ..., S, zero for the input."""
        return np.array([0.0] + [self.kernels.network.skip_scale**2] * len(self.kernels.steps))

    @cached_property
    def read_jet(self) -> Jet:
        """What is read of the stream behind every step."""
        (entry,) = self.functions.readout.signals
        return self.entries(entry, self.states[1])

    def _read(self, l: int) -> np.ndarray:
        return np.asarray(unpacked(self.read_jet.value[l], True))

    @cached_property
    def moments(self) -> list[Moments | None]:
        """Of the heads of every step."""
        kernels = self.kernels
        return [
            kernels.attention.moments(self._read(s), kernels.heads[l - 1], self.number)
            if "attention" in kinds
            else None
            for s, (l, kinds) in enumerate(kernels.steps)
        ]

    def _of_step(self, l: int) -> tuple[int, Moments | None, bool]:
        """Its block, what its heads are and whether it has an MLP."""
        block, kinds = self.kernels.steps[l - 1]
        return block, self.moments[l - 1], "mlp" in kinds

    def jacobian(self, l: int) -> np.ndarray:
        """That of C^(l) by X^(l-1)."""
        by_read = self.read_jet.jacobian(l - 1, self.pairs)
        if l > len(self.kernels.steps):
            return np.asarray(self.kernels.network.readout_weight_variance * by_read.toarray())
        block, heads, mlp = self._of_step(l)
        J = np.zeros(by_read.shape)
        if heads:
            J += (by_read.T @ heads.jacobian.T).T
        if mlp:
            J += self.kernels.mlp.jacobian(block).toarray()
        return J

    def curvature(self, l: int, V: np.ndarray) -> np.ndarray:
        """C'':V/2 of C^(l) by X^(l-1)."""
        of_read = self.read_jet.curvature(l - 1, V, self.pairs)
        if l > len(self.kernels.steps):
            return np.asarray(self.kernels.network.readout_weight_variance * of_read)
        block, heads, mlp = self._of_step(l)
        total = np.zeros(len(V))
        if heads:
            by_read = self.read_jet.jacobian(l - 1, self.pairs)
            moved = by_read @ (by_read @ V).T
            head, attention = self.kernels.heads[block - 1], self.kernels.attention
            total += attention.curvature(self._read(l - 1), head, moved, self.number)
            total += heads.jacobian @ of_read
        if mlp:
            total += self.kernels.mlp.curvature(block, V)
        return total

    @cached_property
    def unit_covariances(self) -> np.ndarray:
        """N/M times the covariances of what heads and hidden units add, (2, S + 2, p, p)."""
        network, p = self.kernels.network, len(self.pairs.alpha)
        B = np.zeros((2, len(self.kernels.steps) + 2, p, p))
        units = network.width * network.grouped_heads / network.heads
        for l in range(1, len(self.kernels.steps) + 1):
            block, heads, mlp = self._of_step(l)
            if heads:
                B[0, l] += units * heads.covariance
            if mlp:
                B[:, l] += self.kernels.mlp.unit_covariances[:, block]
        return B
