"""The plan of a simulation: checked arguments, blocks of networks, memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.montecarlo.sampling.forward import TILE_KEPT, Sampler, tile_size
from fieldtheory.networks.dispatch import not_there
from fieldtheory.networks.family import DeepNetwork, deep_network
from fieldtheory.networks.family_checks import check_branch
from fieldtheory.networks.gram import GramEntry
from fieldtheory.networks.residual import input_kernel
from fieldtheory.numerics import storage
from fieldtheory.numerics.infinite_width.block_functions import require_norms
from fieldtheory.numerics.infinite_width.kernels import limit_input_kernel

METHODS = ("kernel", "weights")
# Batches of the jackknife; fewer where there are fewer samples.
BATCHES = 40
FEWEST_SAMPLES = 20
# Most networks in a block, and most numbers that are drawn for one or kept of it.
BLOCK = 1024
BLOCK_NUMBERS = 2**22
# Groups of variables (n, groups, variables) by name, and C^(l), l >= 1, of every network.
Samples = tuple[dict[str, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Run:
    """A checked call of `simulate`: all that decides its numbers.

    ``kernel`` is K0, () or (P, P); ``data`` is X (P, d) or None; the others are the arguments.
    ``sampler`` is that of a family with one of its own.
    """

    network: Any
    kernel: np.ndarray
    data: np.ndarray | None
    samples: int
    seed: int
    method: str
    keep: bool
    cross_inputs: bool
    variance_reduction: str | None
    sampler: ClassVar[Callable[..., Sampler] | None] = None

    @property
    def inputs(self) -> int:
        """P."""
        return len(np.atleast_2d(self.kernel))

    @property
    def start(self) -> np.ndarray:
        """K0 (P, P), variances of zero as the limit of small ones."""
        markov = self.network.markov
        return np.atleast_2d(
            self.kernel if markov else limit_input_kernel(self.network, self.kernel)
        )

    @property
    def independent(self) -> int:
        """Number of independent units of the stream of a chain, N or N − 1."""
        return int(self.network.width - self.network.centred)

    @property
    def drawn(self) -> int:
        """Numbers that are drawn for a layer of one network."""
        network, P, N = self.network, self.inputs, self.network.width
        hidden = network.hidden_width * len(network.factors) if network.markov else 0
        if self.method == "weights":
            fan_in = hidden + network.hidden_width if hidden else N
            return int(N * max(fan_in, P, 0 if self.data is None else self.data.shape[1]))
        return int(P * (hidden + 2 * P if hidden else N))


class Part(NamedTuple):
    """Networks of one block and one batch of the jackknife."""

    batch: int
    size: int


class Block(NamedTuple):
    """Networks drawn from one stream of random numbers; their batches are consecutive."""

    number: int
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Number of networks."""
        return sum(part.size for part in self.parts)


def checked_run(
    network: Any,
    K0: Any,
    X: Any,
    samples: Any,
    seed: Any,
    method: Any,
    keep: bool,
    cross_inputs: bool,
    variance_reduction: Any = None,
) -> Run:
    """The run of the arguments of `simulate`, or an error that names the wrong one."""
    if not deep_network(network).markov:
        check_branch(network)
    for name in network.layer_parameters:
        if np.ndim(network.parameters[name]) > 1:
            raise ValueError(f"{name} must be one number or one for every layer in a simulation")
    kernel, data = given_kernel(network, K0, X)
    if kernel.ndim not in (0, 2):
        raise ValueError(f"K0 must be a variance or a matrix (P, P), got shape {kernel.shape}")
    samples = enough_samples(samples)
    seed = validation.integer("seed", seed, 0)
    method = validation.choice("method", method, METHODS)
    flags = bool(keep), bool(cross_inputs), variance_reduction
    run = Run(network, kernel, data, samples, seed, method, *flags)
    if variance_reduction is not None:
        validation.choice("variance_reduction", variance_reduction, ("control_variate",))
        if network.markov:
            raise not_there("variance_reduction", network)
        if method != "kernel" or (cross_inputs and run.inputs == 1):
            raise ValueError(
                "variance_reduction is for method 'kernel', with cross_inputs for several inputs, "
                f"got {variance_reduction!r} for K0 of shape {kernel.shape}, method {method!r}"
            )
    if network.markov:
        if method == "kernel" and run.inputs > run.independent:
            raise ValueError(
                f"method 'kernel' needs at most {run.independent} inputs at width "
                f"{network.width}, got P = {run.inputs}; use 'weights'"
            )
        own = np.diagonal(run.start)
        with np.errstate(invalid="ignore"):
            read = network.read(GramEntry(own, own, own), network.of_layer(1))
        require_norms(own, read)
    return run


def enough_samples(samples: Any) -> int:
    """The number of samples, or an error that says how many standard errors take."""
    samples = validation.integer("samples", samples, 1)
    if samples < FEWEST_SAMPLES:
        raise ValueError(
            f"samples must be an integer >= {FEWEST_SAMPLES} for standard errors, got {samples}"
        )
    return samples


def given_kernel(network: DeepNetwork, K0: Any, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """K0 as it is given, or that of the inputs X (P, d), and X."""
    if (K0 is None) == (X is None):
        raise ValueError(f"K0 or X must be given, got {'neither' if K0 is None else 'both'}")
    data = None if X is None else validation.finite_array("X", X)
    return validation.input_kernel_array("K0", K0 if X is None else input_kernel(X, network)), data


def specification_of(run: Any) -> dict[str, Any]:
    """All that decides the numbers of a run, a dataclass, in a form that JSON takes."""
    parameters = {field.name: getattr(run, field.name) for field in fields(run)}
    plain = {n: v.tolist() if isinstance(v, np.ndarray) else v for n, v in parameters.items()}
    return plain | {"network": storage.attributes(run.network)}


def blocks_of(samples: int, size: int) -> list[Block]:
    """All blocks in order, of one size but for the last; sizes of batches differ by one at most.

    >>> blocks = blocks_of(50, 19)
    >>> [block.size for block in blocks]
    [19, 19, 12]
    >>> blocks[0].parts[-1], blocks[1].parts[0]
    (Part(batch=9, size=1), Part(batch=9, size=1))
    """
    count = min(BATCHES, samples)
    quotient, remainder = divmod(samples, count)
    edges = np.cumsum([quotient + (batch < remainder) for batch in range(count)])
    blocks = []
    for number, start in enumerate(range(0, samples, size)):
        stop = min(start + size, samples)
        first, last = np.searchsorted(edges, (start, stop - 1), side="right")
        cuts = [start, *edges[first:last].tolist(), stop]
        sizes = [int(n) for n in np.diff(cuts)]
        parts = [Part(int(first) + step, n) for step, n in enumerate(sizes)]
        blocks.append(Block(number, tuple(parts)))
    return blocks


def chunks_of(samples: int, size: int, chunk: int | None) -> list[list[Block]]:
    """The blocks in chunks of at most ``chunk`` networks, or of one block; chosen if None.

    >>> [len(blocks) for blocks in chunks_of(9000, 1024, 4096)], len(chunks_of(9000, 1024, None))
    ([4, 4, 1], 9)
    """
    blocks = blocks_of(samples, size)
    if chunk is None:
        # A chunk whose size was left open has few blocks.
        count = min(16, -(-len(blocks) // 100))
    else:
        count = max(1, validation.integer("chunk", chunk, 1) // blocks[0].size)
    return [blocks[start : start + count] for start in range(0, len(blocks), count)]


def block_size(run: Run) -> int:
    """Most networks in a block of a run."""
    net, drawn = run.network, (run.network.steps + 1) * run.drawn
    kept = (net.steps + 1) * run.inputs**2
    if run.variance_reduction:
        kept = (net.depth + 1) ** 2 * (run.inputs * (run.inputs + 1) // 2) ** (1 + run.cross_inputs)
    return max(1, min(BLOCK, BLOCK_NUMBERS // drawn, BLOCK_NUMBERS // kept))


def memory_needed(run: Run, jobs: int) -> float:
    """An estimate in bytes, right to a factor of about two, for so many blocks at once.

    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> run = checked_run(ResidualNetwork(depth=20), 0.5, None, 1000, 0, "kernel", False, False)
    >>> 1e5 < memory_needed(run, jobs=1) < 1e7
    True
    """
    net, P = run.network, run.inputs
    pairs = P * (P + 1) // 2
    kernels = (net.steps + 1) * pairs
    moments = kernels * (net.steps + 1) + (kernels**2 if run.cross_inputs else 0)
    results = 6 * (net.steps + 2) ** 2 * P**2 * (1 + (P**2 if run.cross_inputs else 0))
    block = min(run.samples, block_size(run))
    work = 6 * run.drawn * min(block, tile_size(run.drawn)) + 8 * block * kernels + 2 * moments
    if run.variance_reduction:
        products = kernels**2 if run.cross_inputs else kernels * (net.depth + 1)
        work += 3 * block * products + 3 * max(TILE_KEPT, kernels * net.width)
    raw = run.samples * (net.steps + 2) * (2 * pairs + P**2) if run.keep else 0
    return 8.0 * ((BATCHES + 4) * moments + results + jobs * work + raw)
