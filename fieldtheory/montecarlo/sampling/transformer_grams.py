"""`simulate` for transformers: exact draws of the chain of their Gram matrices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.grams.gram_simulation import expected_spread, next_gram
from fieldtheory.montecarlo.ensemble import groups_of
from fieldtheory.montecarlo.sampling.forward import (
    continued_at_zero,
    gaussian,
    gram,
    in_tiles,
    psd_root,
    tile_size,
)
from fieldtheory.montecarlo.sampling.plan import Run, Samples
from fieldtheory.montecarlo.sampling.samplers import Draws, joined
from fieldtheory.montecarlo.simulation import RUNS, samples_of, simulate
from fieldtheory.networks.activations import h
from fieldtheory.networks.transformer import TransformerNetwork
from fieldtheory.numerics.finite import require_finite
from fieldtheory.numerics.markov import transformer_solution as transformer_solution
from fieldtheory.numerics.markov.transformer_chain import TransformerKernels
from fieldtheory.numerics.recursion import residual_kernel
from fieldtheory.numerics.symmetric_matrices import packed


class TransformerRun(Run):
    """A checked call of `simulate` for a transformer."""

    def __post_init__(self) -> None:
        self.network.mask(self.inputs)
        if self.method != "kernel" or self.variance_reduction is not None:
            raise ValueError(
                "method must be 'kernel', without variance_reduction, for transformers, got "
                f"{self.method!r}, {self.variance_reduction!r}"
            )
        if self.inputs > self.independent:
            raise ValueError(
                f"K0 must have at most {self.independent} tokens at width {self.network.width}, "
                f"got {self.inputs}"
            )

    @property
    def independent(self) -> int:
        """Number of independent units of the stream, N or N − 1."""
        return self.network.width - self.network.centred

    @property
    def drawn(self) -> int:
        """Numbers that are drawn for a layer of one network."""
        net = self.network
        hidden = net.mlp.hidden_width * len(net.mlp.factors) if net.mlp else 0
        return self.inputs * (3 * net.heads * net.d + hidden + 2 * self.inputs)

    def draws(self, generator: np.random.Generator, size: int) -> Samples:
        """Samples of so many networks, with their Gram matrices."""
        tiles = in_tiles(lambda n: self._tile(generator, n), size, tile_size(self.drawn))
        draws = joined(tiles)
        samples, residual = samples_of(draws, self.cross_inputs)
        kernels = np.concatenate([packed(draws.second), residual[:, -1:]], axis=1)
        return samples | {"kernels": groups_of(kernels, self.cross_inputs)}, residual

    def _tile(self, generator: np.random.Generator, size: int) -> Draws:
        sampler, rows = TransformerGrams(self, generator, size), []
        C = np.broadcast_to(np.atleast_2d(self.kernel), (size, self.inputs, self.inputs))
        for l in range(self.network.steps + 1):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                sampler.enter(l, C)
                C = sampler.kernel(l + 1)
            require_finite("a kernel", C, l + 1)
            rows.append((C, *sampler.look(self.cross_inputs)))
        return Draws(*(np.stack(column, axis=1) for column in zip(*rows, strict=True)))


RUNS[TransformerNetwork] = TransformerRun
simulate.register(TransformerNetwork)(simulate.__wrapped__)  # type: ignore[attr-defined]


class TransformerGrams:
    """Gram matrices X of the stream of so many networks, step by step."""

    def __init__(self, run: TransformerRun, generator: np.random.Generator, size: int) -> None:
        self.run, self.network, self.generator, self.size = run, run.network, generator, size
        self.R = self.read = np.zeros((size, run.inputs, run.inputs))
        kernels = TransformerKernels(run.network, np.atleast_2d(run.kernel), 2, 0)
        self.functions, self.attention = kernels, kernels.attention
        factors = run.network.block.factors
        values = (function_of(factor.expression, h).value for factor in factors)
        self.factors = [*map(continued_at_zero, values)]

    def enter(self, l: int, C: np.ndarray) -> None:
        """X, that of the stream R, and that of what is read."""
        net, run = self.network, self.run
        X = next_gram(self.R, C, net.skip_scale, net.width, run.independent, self.generator)
        self.R = self.functions.entries(net.block.stream, X)
        self.read = self.functions.entries(net.block.read, X)

    def kernel(self, l: int) -> Any:
        """C^(l) of new heads and hidden units."""
        net = self.network
        if l > net.steps:
            return residual_kernel(
                net.readout_weight_variance, net.readout_bias_variance, self.read
            )
        block, kinds = self.functions.steps[l - 1]
        branches = {"attention": self._attention, "mlp": self._mlp}
        return sum(branches[kind](block) for kind in kinds)

    def look(self, across: bool) -> tuple[np.ndarray, np.ndarray]:
        """R, and the spread of its units."""
        return self.R, expected_spread(self.run, self.R)

    def _attention(self, block: int) -> np.ndarray:
        net, head = self.network, self.functions.heads[block - 1]
        groups, P = net.heads // net.grouped_heads, self.run.inputs
        root = psd_root(self.read)[:, None, None]
        shape = self.size, groups, net.grouped_heads + 2, P, net.d
        # The queries of heads that share the last two, a key and a value.
        x = root @ self.generator.standard_normal(shape)
        x = x.reshape(-1, *shape[2:])
        q, k, v = np.sqrt(head.query) * x[:, :-2], np.sqrt(head.key) * x[:, -2:-1], x[:, -1:]
        (z,) = self.attention.logits(head, [q], [k])
        o = (self.attention.softmax(z) @ v).reshape(self.size, net.heads, P, net.d)
        return head.weight * gram(np.moveaxis(o, 1, 2).reshape(self.size, P, -1))

    def _mlp(self, block: int) -> Any:
        mlp = self.network.block
        parameters = mlp.of_layer(block)
        a, c, _ = mlp.layer(parameters)
        shape = self.size, self.run.inputs, mlp.hidden_width
        covariances = mlp.signals(self.read, parameters)
        signals = [gaussian(Q, self.generator.standard_normal(shape)) for Q in covariances]
        activity = prod(phi(u) for phi, u in zip(self.factors, signals, strict=True))
        return residual_kernel(a, c, gram(activity))
