"""`simulate` for diffusion networks, in blocks that no worker or chunk changes, and functions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.diffusions.diffusion_ensemble import DiffusionEnsemble, estimates
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.layers_drawn import (
    TILE,
    first_of_each,
    grams_drawn,
    input_layer,
    layers_drawn,
    products_of_pairs,
)
from fieldtheory.montecarlo.sampling import plan
from fieldtheory.montecarlo.sampling.block_moments import (
    collected,
    drawn,
    estimated,
    moments_of_parts,
)
from fieldtheory.montecarlo.sampling.forward import in_tiles, tile_size
from fieldtheory.montecarlo.sampling.plan import Block
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.symmetric_matrices import packed, unpacked

METHODS = ("kernel", "weights", "sde", "gram")


@dataclass(frozen=True, eq=False)
class DiffusionRun:
    """A checked call of `simulate_diffusion`: all that decides its numbers.

    Functions of many inputs have no moments of their layers, but the outputs of so many
    ``only_outputs``, the first neurons of every network.
    """

    network: DiffusionNetwork
    inputs: np.ndarray
    samples: int
    seed: int
    method: str
    keep: bool
    only_outputs: int = 0

    @cached_property
    def start(self) -> np.ndarray:
        """x_0, (P, D)."""
        return input_layer(self.network, self.inputs)

    @property
    def depth(self) -> int:
        """L."""
        assert self.network.depth is not None
        return self.network.depth

    @property
    def neurons(self) -> int:
        """Neurons that are distinguished: 1 where all have one law."""
        return self.network.width if self.network.parameter_law else 1

    @property
    def numbers_drawn(self) -> int:
        """For a layer of one network."""
        inputs, width = self.start.shape
        if self.method == "weights" or self.network.parameter_law:
            return width * max(width, inputs)
        return inputs * (inputs if self.method == "gram" else width)

    @property
    def numbers_kept(self) -> int:
        """Of every network, for its moments."""
        inputs = len(self.inputs)
        if self.only_outputs:
            return inputs * self.only_outputs
        return (self.depth + 1) * (self.neurons * (3 * inputs + inputs**2) + inputs**2)


@named_arguments
def simulate_diffusion(
    network: DiffusionNetwork,
    Z: Any,
    *,
    samples: int = 1000,
    seed: int = 0,
    method: str = "kernel",
    keep: bool = False,
    chunk: int | None = None,
    directory: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> DiffusionEnsemble:
    """Draw diffusion networks, or the diffusions that are their limit, at random; needs joblib.

    What ``fieldtheory.simulate`` does for a `DiffusionNetwork`.

    Parameters
    ----------
    network : DiffusionNetwork
        Of finite depth; for the diffusion that is the number of steps.
    Z : array_like, shape (P,) or (P, D)
        The inputs: x_0,d = z for all neurons d (PF section 4.1), or the layers x_0 themselves.
    samples : int
        Number of networks, at least 20.
    seed : int
        Seed of the random numbers, >= 0. Every method uses others.
    method : {"kernel", "weights", "sde", "gram"}
        "weights" draws every weight and bias, the definition itself (PF eq. (10)). "kernel" uses
        that given x_l the sums W_l ψ(x_l) + b_l are Gaussian with covariance
        Δt (σ_b² + σ_w² q) over the inputs, independent for every neuron: the same law without
        weights, about D times cheaper for few inputs. "sde" draws the diffusion by the steps of
        Euler and Maruyama, dx = φ'(0) u + (1/2) φ''(0) S dt (PF eqs. (6), (17)). "gram" does so for
        ψ(x) = x and φ''(0) = 0 without its width, see `grams_drawn`: a Gram matrix and one neuron;
        for φ(u) = u this is the network itself. With a ``parameter_law``: "weights" and "sde".
    keep : bool
        Keep the Gram matrices of every network; the memory then grows with ``samples``.
    chunk, directory, jobs, progress
        As for `simulate` of other networks: networks in one chunk, a folder for finished chunks
        from which a simulation of the same specification is resumed, joblib's jobs, and a progress
        bar on stderr.

    Returns
    -------
    DiffusionEnsemble

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, the method does not serve this network, or more memory is
        needed than there is.
    OverflowError
        If a network exceeds the range of float64, as exploding diffusions do.
    ImportError
        If joblib is missing.

    Notes
    -----
    Every block of networks has a stream of random numbers of its own, and blocks are merged in the
    order of their numbers: the same seed gives the same numbers whatever the number of jobs or the
    chunk. Memory does not grow with ``samples``, except for ``outputs`` and ``keep``.

    Examples
    --------
    >>> net = DiffusionNetwork(depth=50, width=20)
    >>> by_kernel, by_weights = (
    ...     simulate_diffusion(net, [0.0, 1.0], samples=400, method=m)
    ...     for m in ("kernel", "weights"))
    >>> difference = abs(by_kernel.covariance - by_weights.covariance)
    >>> error = np.hypot(by_kernel.covariance_error, by_weights.covariance_error)
    >>> bool((difference <= 4 * error).all())
    True
    """
    run = checked_run(network, Z, samples, seed, method, keep)
    groups, results = chunks_drawn(run, chunk, directory, jobs, progress)
    batches, kept = collected(groups, results, ["outputs", *["draws"] * run.keep])
    statistics = estimated(
        batches,
        partial(estimates, run.start, run.depth),
        ", as moments of exploding diffusions do (PF section 3.4); reduce horizon, "
        "weight_variance or the inputs",
    )
    if run.keep:
        statistics["grams"] = unpacked(kept["draws"], True)
    settings = run.network, run.inputs, run.samples, run.seed, run.method, len(batches)
    return DiffusionEnsemble(*settings, outputs=kept["outputs"], **statistics)


def chunks_drawn(
    run: DiffusionRun,
    chunk: int | None,
    directory: str | Path | None,
    jobs: int | None,
    progress: bool,
) -> tuple[list[list[Block]], Iterator[dict[str, np.ndarray]]]:
    """The blocks of all chunks, and what was drawn in each."""
    _check_memory(run, jobs or 1)
    groups = plan.chunks_of(run.samples, _block_size(run), chunk)

    def specification() -> dict[str, Any]:
        return plan.specification_of(run) | {"blocks": len(groups[0])}

    parts = [(partial(_block, run), group) for group in groups]
    return groups, drawn(parts, "simulate", specification, directory, jobs, progress)


def checked_run(
    network: Any,
    Z: Any,
    samples: Any,
    seed: Any,
    method: Any,
    keep: Any = False,
    only_outputs: int = 0,
) -> DiffusionRun:
    """The run of the arguments of `simulate_diffusion`, or an error that names the wrong one."""
    if not isinstance(network, DiffusionNetwork):
        raise TypeError(f"network must be a DiffusionNetwork, got {validation.excerpt(network)}")
    if network.depth is None:
        raise ValueError(
            "network must have a finite depth, the number of layers or of steps, got depth=None"
        )
    samples = validation.integer("samples", samples, plan.FEWEST_SAMPLES)
    seed = validation.integer("seed", seed, 0)
    method = validation.choice("method", method, METHODS)
    inputs = np.atleast_1d(validation.finite_array("Z", Z))
    input_layer(network, inputs)
    if network.parameter_law and method in ("kernel", "gram"):
        raise ValueError(
            f"method must be 'weights' or 'sde' for a network with parameter_law, got {method!r}"
        )
    if method == "gram" and not network.is_linear:
        raise ValueError(
            "method 'gram' is for input_activation 'linear' and φ''(0) = 0, got "
            f"{network.input_activation.name} and φ''(0) = {network.slopes[1]:g}"
        )
    if method == "sde":
        # Raises where there is no diffusion.
        _ = network.slopes
    return DiffusionRun(network, inputs, samples, seed, method, bool(keep), only_outputs)


def _block(run: DiffusionRun, block: Block) -> dict[str, np.ndarray]:
    key = (METHODS.index(run.method), block.number)
    bits = np.random.SFC64(np.random.SeedSequence(run.seed, spawn_key=key))
    draw = partial(_drawn, run, np.random.Generator(bits))
    parts = in_tiles(draw, block.size, tile_size(run.numbers_drawn, TILE))
    values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    results = {"outputs": values.pop("outputs")}
    if run.only_outputs:
        return results
    if run.keep:
        results["draws"] = values["gram"]
    inputs = len(run.inputs)
    samples = {
        name: array.reshape(block.size, -1, inputs if name == "first" else 1)
        for name, array in values.items()
    }
    return results | moments_of_parts(samples, block)


def _drawn(run: DiffusionRun, generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
    """Samples of which `estimates` takes the moments, of ``size`` networks, and their outputs."""
    layers = (
        grams_drawn(run.network, run.start, generator, size)
        if run.method == "gram"
        else layers_drawn(run.network, run.start, run.method, generator, size)
    )
    if run.only_outputs:
        layer = deque(layers, maxlen=1).pop()
        return {"outputs": first_of_each(run.start + layer.displacements, run.only_outputs)}
    moments = _of_each_neuron if run.neurons > 1 else _over_neurons
    names = ("first", "second", "third", "fourth")
    powers_of: dict[str, np.ndarray] = {}
    for layer in layers:
        values = dict(
            zip(names, moments(layer.displacements), strict=True), gram=packed(layer.gram)
        )
        for name, array in values.items():
            if name not in powers_of:
                powers_of[name] = np.empty((size, run.depth + 1, *array.shape[1:]))
            powers_of[name][:, layer.number] = array
    return powers_of | {"outputs": run.start[:, 0] + layer.displacements[:, :, 0]}


def _over_neurons(displacements: np.ndarray) -> tuple[np.ndarray, ...]:
    """Means over the neurons of y, y_i y_j, y³ and y⁴, (n, P) or (n, p), of y (n, P, D)."""
    width = displacements.shape[-1]
    squares = displacements * displacements
    higher = (np.einsum("npd,npd->np", squares, y) / width for y in (displacements, squares))
    return displacements.mean(axis=-1), products_of_pairs(displacements), *higher


def _of_each_neuron(displacements: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same of every neuron, (n, D, P) or (n, D, p)."""
    y = displacements.swapaxes(-1, -2)
    i, j = np.triu_indices(y.shape[-1])
    return y, y[..., i] * y[..., j], y**3, y**4


def _block_size(run: DiffusionRun) -> int:
    # Few enough that a chunk takes seconds; functions are few, and are shared among the jobs.
    numbers = 2**26 if run.only_outputs else 2**31
    most = max(1, numbers // (run.numbers_drawn * (run.depth + 1)))
    return max(1, min(plan.BLOCK, most, plan.BLOCK_NUMBERS // run.numbers_kept))


def _check_memory(run: DiffusionRun, jobs: int) -> None:
    """Raise if the run needs more memory than there is."""
    inputs = len(run.inputs)
    block = min(run.samples, _block_size(run))
    moments = 2 * run.numbers_kept + (run.depth + 1) * run.neurons * inputs**2
    kept = run.samples * (inputs + (run.depth + 1) * inputs**2 * run.keep)
    work = jobs * (3 * block * run.numbers_kept + 8 * max(TILE, run.numbers_drawn))
    needed = 8.0 * ((plan.BATCHES + 8) * moments + work + kept)
    require_memory("the simulation", needed, "use fewer inputs, layers or jobs, or do not keep")


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
