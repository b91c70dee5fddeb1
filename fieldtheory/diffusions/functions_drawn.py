"""Random functions of one variable: the output of a network over many inputs at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import BarycentricInterpolator

from fieldtheory import validation
from fieldtheory.diffusions.diffusion_simulation import checked_run, chunks_drawn
from fieldtheory.montecarlo.sampling import plan
from fieldtheory.networks.diffusion import DiffusionNetwork

# Numbers of nodes that are tried, and networks that try them.
_NODES = (4, 5, 7, 9, 13, 19, 28, 41, 61)
_TRIED = plan.FEWEST_SAMPLES


@dataclass(frozen=True, eq=False)
class FunctionSamples:
    """Functions z → x_T,1(z) of random networks on a grid.

    Parameters
    ----------
    inputs : ndarray, shape (m,)
        z.
    values : ndarray, shape (samples, m)
        x_T,1(z), the first neuron of the last layer, or the first ones of every network in turn.
    nodes : int
        Inputs at which networks were drawn; m where nothing was interpolated.
    error : float
        Error of interpolation over the standard deviation of the values, as measured; 0 for none.

    Examples
    --------
    >>> net = DiffusionNetwork(depth=10, width=8, activation="linear")
    >>> function_samples(net, np.linspace(-1, 1, 50), samples=20).nodes
    4
    """

    inputs: np.ndarray
    values: np.ndarray
    nodes: int
    error: float


def function_samples(
    network: DiffusionNetwork,
    z: Any,
    *,
    samples: int = 1000,
    neurons: int = 1,
    seed: int = 0,
    method: str = "kernel",
    tolerance: float = 1e-3,
    directory: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> FunctionSamples:
    """Draw functions of one variable: outputs over many inputs z that are copied to all neurons.

    A network at 400 inputs (PF Figs. 1, 3) needs 400 signals for every neuron, though they are
    smooth in z: for ψ(x) = x the diffusion is linear in z up to its drift. So networks are drawn at
    Chebyshev's nodes and interpolated. How many nodes it takes is measured on a few networks that
    are drawn between the nodes as well. Where z are fewer than the nodes, as with jumps, networks
    are drawn at z.

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
    tolerance : float
        Largest error of interpolation, root mean square over networks, over the largest standard
        deviation of the outputs; statistical errors are 1/√samples.

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
    >>> found = function_samples(net, np.linspace(-2, 2, 400), samples=100, neurons=2)
    >>> found.values.shape, found.nodes <= 9, found.error < 1e-3
    ((100, 400), True, True)
    """
    inputs = validation.finite_array("z", z)
    if inputs.ndim != 1:
        raise ValueError(f"z must have shape (m,), got {inputs.shape}")
    tolerance = validation.positive("tolerance", tolerance)
    checked_run(network, inputs[:1], plan.FEWEST_SAMPLES, seed, method)
    samples, neurons = _checked_numbers(network, samples, neurons, method)
    different, places = np.unique(inputs, return_inverse=True)
    chosen, error = _chosen_nodes(network, different, seed, method, tolerance)
    networks = -(-samples // neurons)
    run = checked_run(network, chosen, networks, seed, method, only_outputs=neurons)
    _, results = chunks_drawn(run, None, directory, jobs, progress)
    drawn = np.concatenate([arrays["outputs"] for arrays in results])[:samples]
    if error:
        drawn = drawn @ _interpolation(chosen, different).T
    return FunctionSamples(inputs, drawn[:, places], len(chosen), error)


def _checked_numbers(
    network: DiffusionNetwork, samples: Any, neurons: Any, method: str
) -> tuple[int, int]:
    neurons = validation.integer("neurons", neurons, 1)
    alike = network.parameter_law is None and method != "gram"
    if neurons > (most := network.width if alike else 1):
        why = "" if alike else ", as only the first one is drawn or the others have other laws"
        raise ValueError(f"neurons must be at most {most}{why}, got {neurons}")
    return validation.integer("samples", samples, plan.FEWEST_SAMPLES * neurons), neurons


def _chosen_nodes(
    network: DiffusionNetwork, inputs: np.ndarray, seed: int, method: str, tolerance: float
) -> tuple[np.ndarray, float]:
    """The fewest nodes that interpolate to the tolerance, with the error; or the inputs, with 0."""
    alike = network.parameter_law is None and method != "gram"
    neurons = network.width if alike else 1
    for count in _NODES:
        if count >= len(inputs):
            break
        angles = np.linspace(0.0, np.pi, 2 * count - 1)
        middle, half = (inputs[0] + inputs[-1]) / 2, (inputs[-1] - inputs[0]) / 2
        points = middle - half * np.cos(angles)
        run = checked_run(network, points, _TRIED, seed, method, only_outputs=neurons)
        _, results = chunks_drawn(run, None, None, None, False)
        tried = np.concatenate([arrays["outputs"] for arrays in results])
        values, between = tried[:, ::2], tried[:, 1::2]
        missed = values @ _interpolation(points[::2], points[1::2]).T - between
        scale = (tried - points).std(axis=0).max()
        error = float(np.sqrt((missed**2).mean(axis=0).max()) / scale) if scale else 0.0
        if error <= tolerance:
            # Something that is not exact is interpolated.
            return points[::2], max(error, np.finfo(float).tiny)
    return inputs, 0.0


def _interpolation(nodes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The matrix (m, n) that takes values at the nodes to those at the points."""
    return BarycentricInterpolator(nodes, np.eye(len(nodes)))(points)
