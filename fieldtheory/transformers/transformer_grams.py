"""Sampler of transformers by the chain of their Gram matrices, exact at every width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fieldtheory.montecarlo.sampling.forward import correlated, gram
from fieldtheory.montecarlo.sampling.gram_chain import GramMatrices
from fieldtheory.montecarlo.sampling.plan import Run
from fieldtheory.transformers.transformer_chain import TransformerKernels


class TransformerGrams:
    """Gram matrices X of the stream behind every step, of new heads and hidden units."""

    def __init__(
        self,
        run: Run,
        generator: np.random.Generator,
        size: int,
        root: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        self.run, self.network, self.generator, self.size = run, run.network, generator, size
        self.root = root
        # It draws hidden units, and knows the stream.
        self.mlp = GramMatrices(replace(run, network=run.network.block), generator, size, root)
        self.functions = TransformerKernels(run.network, np.atleast_2d(run.kernel), 2, 0)

    def enter(self, l: int, kernel: np.ndarray) -> None:
        """X, that of the stream R, and that of what is read."""
        # γ and the norm are those of all steps.
        self.mlp.enter(min(l, 1), kernel)

    def kernel(self, l: int) -> Any:
        """C^(l) of what the branches of a step add."""
        net = self.network
        if l > net.steps:
            return self.mlp.kernel(net.depth + 1)
        block, kinds = self.functions.steps[l - 1]
        branches = {"attention": self.attention, "mlp": self.mlp.kernel}
        return sum(branches[kind](block) for kind in kinds)

    def look(self, across: bool) -> tuple[Any, Any]:
        """R and the spread of the units of the stream."""
        return self.mlp.look(across)

    def attention(self, block: int) -> Any:
        """What the heads of a block add."""
        net, head, P = self.network, self.functions.heads[block - 1], self.run.inputs
        attention, groups = self.functions.attention, net.heads // net.grouped_heads
        # The queries of heads that share the last two, a key and a value.
        shape = self.size, groups, net.grouped_heads + 2, P, net.d
        x = correlated(
            self.root(self.mlp.read)[:, None, None], self.generator.standard_normal(shape)
        )
        b = self.generator.standard_normal((*shape[:3], 1, net.d))
        x, b = (each.reshape(-1, *each.shape[2:]) for each in (x, b))
        each = slice(-2), slice(-2, -1), slice(-1, None)
        variances = [(head.query, head.query_bias), (head.key, head.key_bias)]
        variances.append((1.0, head.value_bias))
        q, k, v = (
            np.sqrt(weight) * x[:, of] + np.sqrt(bias) * b[:, of]
            for of, (weight, bias) in zip(each, variances, strict=True)
        )
        (z,) = attention.logits(head.logit, [q], [k])
        o = (attention.softmax(z) @ v).reshape(self.size, net.heads, P, net.d)
        return head.weight * gram(o.swapaxes(1, 2).reshape(self.size, P, -1)) + head.out_bias
