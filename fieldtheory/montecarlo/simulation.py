"""`simulate`: finite networks in blocks that depend neither on workers nor on chunks."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.montecarlo import ensemble
from fieldtheory.montecarlo.control_variate import reduced_estimates, reduced_samples
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.sampling import plan
from fieldtheory.montecarlo.sampling.block_moments import (
    collected,
    drawn,
    estimated,
    moments_of_parts,
)
from fieldtheory.montecarlo.sampling.plan import Block, Run, Samples
from fieldtheory.montecarlo.sampling.samplers import draw
from fieldtheory.networks.dispatch import of_families
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.symmetric_matrices import packed, unpacked
from fieldtheory.numerics.validity import ValidityWarning


@of_families
@named_arguments
def simulate(
    network: DeepNetwork,
    K0: Any = None,
    *,
    X: Any = None,
    samples: int = 1000,
    seed: int = 0,
    method: str = "kernel",
    keep: bool = False,
    cross_inputs: bool = False,
    variance_reduction: str | None = None,
    chunk: int | None = None,
    directory: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> Ensemble:
    """Draw finite networks at random and estimate the statistics of their kernels; needs joblib.

    A network of width N has the residual kernels

        C^(0) = K^(0),   C^(l) = a_l Σ_k ψ_k(h^(l-1)) ψ_k(h^(l-1))ᵀ / N + c_l,   l = 1, ..., L + 1

    with the features ψ_k and the coefficients of its family: for a residual network ψ = φ,
    a_l = ρ_l² σ²_w and c_l = ρ_l² σ²_b for l <= L and the variances of the readout for l = L + 1
    (F25 eqs. (16)-(18)). They are random for finite N; for N → ∞ they become the C*^(l) of
    `solve`.

    Parameters
    ----------
    network : LayeredNetwork or GramNetwork
        Of any family, without batch axes; its ``width`` is N. For blocks of two matrices
        (`BlockNetwork`) the fields of the K^(l) are those of the Gram matrices of the stream.
    K0 : float or array_like, shape (P, P)
        Kernel of the inputs: every neuron has h^(0) ~ N(0, K0). Variances of zero are as in
        `solve`, the limit of small ones.
    X : array_like, shape (P, d)
        The inputs themselves, in place of K0: h^(0) = W_in x + b_in, of kernel `input_kernel`.
        Where φ jumps at zero, method "weights" takes φ(0+) of signals that are exactly zero.
    samples : int
        Number of networks, at least 20.
    seed : int
        Seed of the random numbers, >= 0. The two methods use different ones.
    method : {"kernel", "weights"}
        "weights" draws every weight and bias, the definition itself. "kernel" uses that given
        h^(l-1) the residual of layer l is Gaussian with covariance C^(l) over the inputs,
        independent for every neuron: the same law without weights, about N times cheaper for few
        inputs. Of blocks it draws hidden units and Gram matrices (P, P), for P <= N, or with
        LayerNorm P < N.
    keep : bool
        Keep C^(l) of every network; the memory then grows with ``samples``.
    cross_inputs : bool
        Estimate the covariance of C between different pairs of inputs as well, and their vertex.
    variance_reduction : {"control_variate"}, optional
        Other estimates with the same expectation, for method "kernel": what is known of its
        fluctuations and has mean 0 is taken out of every sample (`controlled_samples`). For the
        same error the covariances and the four-point vertex need fewer networks by a factor of
        order N, the 1/N shift of the means by one of order N², of several inputs of order N, at
        about three times the cost of a network; it does not pay where Var K is not small against
        K².
    chunk : int, optional
        Networks in one chunk: of work that is resumed, and of work of one job. Chunks consist of
        whole blocks of at most 1024 networks, so they may be larger. Chosen if left out.
    directory : str or Path, optional
        Folder for finished chunks, made if it does not exist. A simulation of the same
        specification reads the chunks found there and computes the others only.
    jobs : int, optional
        Number of joblib's jobs; joblib decides if left out (one, or as ``parallel_config`` says,
        which may name a dask cluster).
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Ensemble

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or more memory is needed than there is.
    OverflowError
        If a kernel or its fluctuation exceeds the range of float64.
    ImportError
        If joblib is missing.

    Warns
    -----
    ValidityWarning
        For width 1, where there is no four-point vertex.

    Notes
    -----
    Every block of networks has a stream of its own (`numpy.random.SeedSequence`), and blocks are
    merged in the order of their numbers, so the same seed gives the same numbers whatever the
    number of jobs or the chunk size. That holds up to rounding where threadpoolctl is missing and
    BLAS has another number of threads in joblib's workers.

    Memory does not grow with ``samples``, except for ``keep``. For P inputs and depth L it grows
    as L² P², with ``cross_inputs`` as L² P⁴.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=5, branch_scale=0.5, width=100)
    >>> e = simulate(net, 0.3, samples=400, seed=1)
    >>> e
    Ensemble(depth=5, activation=erf, inputs=1, width=100, samples=400, method=kernel, seed=1)
    >>> e.mean.shape, e.covariance.shape, e.four_point.shape
    ((7,), (7, 7), (6,))
    >>> from fieldtheory.numerics.solution import solve
    >>> bool(np.abs(e.mean - solve(net, 0.3).residual_kernels).max() < 0.02)
    True
    """
    arguments = network, K0, X, samples, seed, method, keep, cross_inputs, variance_reduction
    return simulated(plan.checked_run(*arguments), chunk, directory, jobs, progress)


def simulated(
    run: Run, chunk: int | None, directory: str | Path | None, jobs: int | None, progress: bool
) -> Ensemble:
    """The ensemble of a checked run."""
    advice = "use fewer inputs, layers or jobs, or neither keep nor cross_inputs"
    require_memory("the simulation", plan.memory_needed(run, jobs or 1), advice)
    if run.network.width == 1:
        warnings.warn(
            "width 1 has no two neurons: there is no four-point vertex, and 1/N is not small",
            ValidityWarning,
            stacklevel=validation.level_of_user(),
        )
    groups = plan.chunks_of(run.samples, plan.block_size(run), chunk)

    def specification() -> dict[str, Any]:
        return plan.specification_of(run) | {"blocks": len(groups[0])}

    parts = [(partial(_block, run), blocks) for blocks in groups]
    results = drawn(parts, "simulate", specification, directory, jobs, progress)
    batches, kept = collected(groups, results, ["draws"] * run.keep)
    of = reduced_estimates if run.variance_reduction else ensemble.estimates
    estimates = estimated(
        batches,
        partial(of, run.network, run.kernel, run.cross_inputs),
        "; reduce depth, branch_scale, skip_scale or weight_variance",
    )
    if run.keep:
        residual, matrix = kept["draws"], run.kernel.ndim > 0
        first = np.broadcast_to(packed(np.atleast_2d(run.kernel)), residual[:, :1].shape)
        estimates["residual_kernels"] = unpacked(np.concatenate([first, residual], axis=1), matrix)
    return Ensemble(
        run.network, run.kernel, run.samples, run.seed, run.method, len(batches), **estimates
    )


def _block(run: Run, block: Block) -> dict[str, np.ndarray]:
    """The moments of the parts of one block, on the first axis; the draws if kept."""
    # What SeedSequence.spawn gives, without spawning all blocks before.
    key = (plan.METHODS.index(run.method), block.number)
    generator = np.random.default_rng(np.random.SeedSequence(run.seed, spawn_key=key))
    drawn_of = reduced_samples if run.variance_reduction else samples_of
    samples, residual = drawn_of(run, generator, block.size)
    summary = moments_of_parts(samples, block)
    if run.keep:
        summary["draws"] = residual
    return summary


def samples_of(run: Run, generator: np.random.Generator, size: int) -> Samples:
    """The groups of `estimates` and the residual kernels of drawn networks."""
    draws, across = draw(run, generator, size), run.cross_inputs
    residual, second = packed(draws.residual), packed(draws.second)
    samples = {
        "residual": ensemble.groups_of(residual, across),
        "second": second if across else second.reshape(size, -1, 1),
        "spread": (draws.spread if across else packed(draws.spread)).reshape(size, -1, 1),
    }
    if run.network.markov:
        kernels = np.concatenate([second, residual[:, -1:]], axis=1)
        samples["kernels"] = ensemble.groups_of(kernels, across)
    return samples, residual
