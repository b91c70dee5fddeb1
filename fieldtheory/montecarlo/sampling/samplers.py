"""Networks drawn from the prior: with explicit weights, or with what their kernels are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fieldtheory.montecarlo.sampling.forward import (
    Neurons,
    Sampler,
    affine,
    correlated,
    forward,
    in_tiles,
    tile_size,
)
from fieldtheory.montecarlo.sampling.gram_chain import GramMatrices, Units
from fieldtheory.montecarlo.sampling.plan import Run
from fieldtheory.numerics.covariance_roots import psd_root


class Draws(NamedTuple):
    """Random kernels of n networks.

    ``residual`` (n, L+1, P, P) are C^(1), ..., C^(L+1). Of the products h_iα h_iβ of the neurons i
    in the layers 0, ..., L, ``second`` (n, L+1, P, P) are the means over i, and ``spread`` the
    unbiased variances over i (0 for one neuron), or the covariances (n, L+1, p, p) of all
    p = P(P+1)/2 pairs of inputs.
    """

    residual: np.ndarray
    second: np.ndarray
    spread: np.ndarray


def started(
    run: Run,
    generator: np.random.Generator,
    size: int,
    root: Callable[[np.ndarray], np.ndarray] = psd_root,
) -> Sampler:
    """The sampler of so many networks of a run, with the roots of covariances that it takes."""
    network, width, weights = run.network, run.network.width, run.method == "weights"

    def new(x: np.ndarray, units: int, weight: float, bias: float) -> np.ndarray:
        """W x + b with new W and b of these variances."""
        normals = generator.standard_normal((size, x.shape[-1], units))
        biases = generator.standard_normal((size, 1, units))
        return affine(x, normals, biases, np.sqrt((weight, bias)))

    def residual(l: int, kernel: np.ndarray, features: tuple) -> np.ndarray:
        if weights and l:
            layer = network.of_layer(l)
            return network.branch(features, lambda x, *of: new(x, width, *of), layer)
        if weights and run.data is not None:
            readin = (network.parameters[f"readin_{kind}_variance"] for kind in ("weight", "bias"))
            return new(run.data, width, *readin)
        return correlated(root(kernel), generator.standard_normal((size, run.inputs, width)))

    if run.sampler is not None:
        return run.sampler(run, generator, size, root)
    if not network.markov:
        return Neurons(network, residual)
    return Units(network, residual, new) if weights else GramMatrices(run, generator, size, root)


def draw(run: Run, generator: np.random.Generator, size: int) -> Draws:
    """The kernels of so many networks.

    Examples
    --------
    >>> from fieldtheory.montecarlo.sampling.plan import checked_run
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=3, width=50)
    >>> run = checked_run(net, 0.5, None, 20, 0, "weights", False, False)
    >>> draws = draw(run, np.random.default_rng(0), 10)
    >>> draws.residual.shape, draws.second.shape
    ((10, 4, 1, 1), (10, 4, 1, 1))
    """

    def tile(n: int) -> list[np.ndarray]:
        sampler = started(run, generator, n)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = [(C, *sampler.look(run.cross_inputs)) for _, C in forward(sampler, run.start)]
        return [np.stack(column, axis=1) for column in zip(*rows, strict=True)]

    tiles = in_tiles(tile, size, tile_size(run.drawn))
    return Draws(*map(np.concatenate, zip(*tiles, strict=True)))
