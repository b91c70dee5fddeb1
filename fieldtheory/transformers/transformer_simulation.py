"""`simulate` for transformers: exact draws of the chain of their Gram matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.sampling.plan import Run, enough_samples
from fieldtheory.montecarlo.simulation import simulated
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.transformers.transformer_grams import TransformerGrams
from fieldtheory.transformers.transformer_network import TransformerNetwork
from fieldtheory.transformers.transformer_solution import checked_tokens


class TransformerRun(Run):
    """A checked call of `simulate` for a transformer."""

    sampler = TransformerGrams

    @property
    def drawn(self) -> int:
        """Numbers that are drawn for a step of one network."""
        net = self.network
        hidden = net.mlp.hidden_width * len(net.mlp.factors) if net.mlp else 0
        return int(self.inputs * (max(3 * net.heads * net.d, hidden) + 2 * self.inputs))


@named_arguments
def simulate_transformer(
    network: TransformerNetwork,
    K0: Any,
    *,
    samples: int = 1000,
    seed: int = 0,
    keep: bool = False,
    cross_inputs: bool = False,
    chunk: int | None = None,
    directory: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> Ensemble:
    """Random transformers of tokens of the Gram matrix K0, by exact draws of their Gram matrices.

    Arguments are those of every family; layers are the steps of `TransformerSolution`.
    """
    kernel = checked_tokens(network, K0)
    most = network.width - network.centred
    if len(kernel) > most:
        raise ValueError(
            f"K0 must have at most {most} tokens at width {network.width}, got {len(kernel)}"
        )
    samples, seed = enough_samples(samples), validation.integer("seed", seed, 0)
    flags = bool(keep), bool(cross_inputs), None
    run = TransformerRun(network, np.asarray(kernel), None, samples, seed, "kernel", *flags)
    return simulated(run, chunk, directory, jobs, progress)
