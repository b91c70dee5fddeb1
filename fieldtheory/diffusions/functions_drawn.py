"""Random functions of one variable: the output of a network over many inputs at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_simulation import checked_run, chunks_drawn
from fieldtheory.montecarlo.sampling import plan


@dataclass(frozen=True, eq=False)
class FunctionSamples:
    """Functions z → x_T,1(z) of random networks on a grid.

    Parameters
    ----------
    inputs : ndarray, shape (m,)
        z.
    values : ndarray, shape (samples, m)
        x_T,1(z), the first neuron of the last layer, or the first ones of every network in turn.

    Examples
    --------
    >>> net = DiffusionNetwork(depth=10, width=8, activation="linear")
    >>> function_samples(net, np.linspace(-1, 1, 5), samples=20).inputs
    array([-1. , -0.5,  0. ,  0.5,  1. ])
    """

    inputs: np.ndarray
    values: np.ndarray


def function_samples(
    network: DiffusionNetwork,
    z: Any,
    *,
    samples: int = 1000,
    neurons: int = 1,
    seed: int = 0,
    method: str = "kernel",
    directory: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> FunctionSamples:
    """Draw functions of one variable: outputs over many inputs z that are copied to all neurons.

    Parameters
    ----------
    network : DiffusionNetwork
        Of finite depth.
    z : array_like, shape (m,)
    samples : int
        Number of functions, from at least 20 networks.
    neurons : int
        Functions taken from one network, at most D. All neurons of x_T have the law of the first
        one, and are independent but for q, whose relative variance is of the order 1/D: D/10
        of them are nearly as good as one each of D/10 networks.
    seed, method, directory, jobs, progress
        As for `simulate_diffusion`.

    Returns
    -------
    FunctionSamples

    Raises
    ------
    TypeError, ValueError, OverflowError, ImportError
        As for `simulate_diffusion`.

    Examples
    --------
    >>> net = DiffusionNetwork(depth=50, width=20)
    >>> function_samples(net, np.linspace(-2, 2, 50), samples=100, neurons=2).values.shape
    (100, 50)
    """
    inputs = validation.finite_array("z", z)
    if inputs.ndim != 1:
        raise ValueError(f"z must have shape (m,), got {inputs.shape}")
    checked_run(network, inputs[:1], plan.FEWEST_SAMPLES, seed, method)
    neurons = validation.integer("neurons", neurons, 1)
    alike = network.parameter_law is None and method != "gram"
    if neurons > (most := network.width if alike else 1):
        why = "" if alike else ", as only the first one is drawn or the others have other laws"
        raise ValueError(f"neurons must be at most {most}{why}, got {neurons}")
    samples = validation.integer("samples", samples, plan.FEWEST_SAMPLES * neurons)
    different, places = np.unique(inputs, return_inverse=True)
    networks = -(-samples // neurons)
    run = checked_run(network, different, networks, seed, method, only_outputs=neurons)
    _, results = chunks_drawn(run, None, directory, jobs, progress)
    drawn = np.concatenate([arrays["outputs"] for arrays in results])[:samples]
    return FunctionSamples(inputs, drawn[:, places])
