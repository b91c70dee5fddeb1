"""`measure_block`: random blocks on random signals, one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.blocks.applied import Apply, Draw, drawing, name_of
from fieldtheory.blocks.measurement import BlockMeasurement
from fieldtheory.montecarlo.plan import BATCHES, enough_samples
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import chunks

# Steps of the differences, relative to the signal: kinks count for so much, rounding for 1e-12.
_STEP = 1e-4


@named_arguments
def measure_block(
    block: Any,
    width: int,
    samples: int = 1000,
    *,
    K0: Any = 1.0,
    skip_scale: float = 0.5**0.5,
    reset: Any = None,
    seed: int = 0,
    progress: bool = False,
) -> BlockMeasurement:
    """Measure a residual block of any kind and tune its network to criticality.

    In a network of layers z' = γ z + ξ R(z), PDLT-B (B.38), (B.39), with a new block R in each, a
    layer keeps the kernel G_zz if

        (1 − γ²) G_zz = ξ² G_RR + 2 γ ξ G_Rz,                                     PDLT-B (B.45)

    where the correlators, PDLT-B (B.42) and (B.43), are averages over neurons, inputs, signals and
    random blocks. They are measured, and ξ is solved for.

    Parameters
    ----------
    block : callable or torch.nn.Module
        ``block(width, rng)`` draws a new block at random, from a `numpy.random.Generator`, and
        returns it as a function of z (P, width), or as a torch module. The function returns R(z) in
        the shape of z; its random numbers are those that were drawn before, so that the same z
        gives the same R(z). Of a module itself a copy is initialised anew for every sample. Modules
        are given a tensor (P, width) and compute in double precision. Torch's random numbers follow
        ``seed`` and are left as they were. A module stays in its mode, that of training unless
        ``eval()`` was called, in which dropout and batch normalisation act; a warning says so.
    width : int
        Number N of neurons (channels, features) of the signal, at least 1.
    samples : int
        Number of random blocks, each with a signal of its own, at least 20.
    K0 : float or array_like, shape (P, P)
        The kernel at which to measure: z_i ~ N(0, K0) for every neuron i. The rows of z are what
        the block may mix, such as tokens of a sequence or pixels of an image, or just P inputs.
    skip_scale : float
        γ >= 0. PDLT-B leaves it free; by default γ² = 1/2.
    reset : callable, optional
        For a module: ``reset(module)`` initialises it with torch's random numbers. By default every
        part of it does by its ``reset_parameters()``.
    seed : int
        Seed of the random numbers, >= 0.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    BlockMeasurement

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed; if the block cannot be applied, or returns something of
        another shape or not finite; or if no ξ > 0 keeps the kernel.
    OverflowError
        If a correlator exceeds the range of float64.

    Notes
    -----
    Every sample has a stream of random numbers of its own. Memory does not grow with ``samples``.
    Beside R(z), the block is applied to (1 ± ε) z and to z ± ε u, where u is an independent signal
    and thus perpendicular to z in the mean, for the parallel and the perpendicular susceptibility.

    The signal is Gaussian, as it is in wide networks. What a deep network of finite width does to
    it beyond that is of relative order depth/width.

    Examples
    --------
    >>> def two_layers(width, rng):
    ...     first, second = rng.normal(size=(2, width, width)) * (2 / width) ** 0.5
    ...     return lambda z: np.maximum(z @ first.T, 0) @ second.T
    >>> m = measure_block(two_layers, width=64, samples=400, skip_scale=0.8)
    >>> m
    BlockMeasurement(two_layers, width=64, samples=400, γ=0.8, ξ=0.4248 ± 0.0044)
    >>> bool(abs(m.branch_scale - (0.36 / 2) ** 0.5) < 4 * m.branch_scale_error)
    True
    """
    draw = drawing(block, reset)
    width = validation.integer("width", width, 1)
    samples = enough_samples(samples)
    kernel = validation.input_kernel_array("K0", K0)
    if kernel.ndim == 1 or kernel.ndim > 2:
        raise ValueError(f"K0 must be a variance or a matrix (P, P), got shape {kernel.shape}")
    if not np.atleast_2d(kernel).trace() > 0:
        raise ValueError("K0 must have a variance > 0, got 0: there is no signal to measure with")
    skip_scale = validation.nonnegative("skip_scale", skip_scale)
    seed = validation.integer("seed", seed, 0)
    steps: Iterable[int] = range(samples)
    if progress:
        steps = chunks.with_progress(steps, samples, "measure_block")
    sizes, means = _batches(draw, width, np.atleast_2d(kernel), seed, steps, samples)
    settings = {
        "block": name_of(block),
        "width": width,
        "samples": samples,
        "seed": seed,
        "skip_scale": skip_scale,
    }
    return BlockMeasurement.of_batches(settings, np.atleast_2d(kernel), sizes, means)


def _batches(
    draw: Draw, width: int, kernel: np.ndarray, seed: int, steps: Iterable[int], samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of the batches (g,) and means of the moments in each (g, m)."""
    count = min(BATCHES, samples)
    batch = np.arange(samples) * count // samples
    values, vectors = np.linalg.eigh(kernel)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    sums = np.zeros((count, 3 * kernel.size + 5))
    for i in steps:
        signal, weights = np.random.SeedSequence(seed, spawn_key=(i,)).spawn(2)
        normals = np.random.default_rng(signal).standard_normal((2, len(kernel), width))
        apply = draw(width, np.random.default_rng(weights))
        if i == 0:
            _require_function(apply, root @ normals[0])
        with np.errstate(over="ignore", invalid="ignore"):
            sums[batch[i]] += moments_of_sample(apply, *(root @ normals))
    sizes = np.bincount(batch)
    means = sums / sizes[:, None]
    if not np.isfinite(means).all():
        raise OverflowError("a correlator of the block exceeds the range of float64; reduce K0")
    return sizes, means


def _require_function(apply: Apply, z: np.ndarray) -> None:
    first, second = apply(z.copy()), apply(z.copy())
    if not np.allclose(first, second, rtol=1e-9, atol=1e-9 * np.abs(first).max()):
        raise ValueError(
            "block(width, rng) must return a function of z alone, its random weights drawn before; "
            "it gave two answers for one z"
        )


def moments_of_sample(apply: Apply, z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The moments of one block on one signal.

    Parameters
    ----------
    apply : callable
        R.
    z, u : ndarray, shape (P, N)
        A signal, and an independent one as a direction. To take out of u what is along z would
        make u depend on z, and susceptibilities wrong by 1/N.

    Returns
    -------
    ndarray, shape (3 P² + 5,)
        z zᵀ/N, R Rᵀ/N and R zᵀ/N, flattened. Then, of averages over rows and neurons: the
        derivatives of R² and of R z with respect to z² where z becomes (1 + ε) z; and where it
        becomes z + ε u, the averages of u², (∂R/∂ε)² and u ∂R/∂ε.
    """
    size = z.size
    R = apply(z)
    pairs = [a @ b.T / z.shape[1] for a, b in ((z, z), (R, R), (R, z))]
    longer, shorter = (1 + _STEP) * z, (1 - _STEP) * z
    more, less = apply(longer), apply(shorter)
    growth = 4 * _STEP * size
    parallel = (
        ((more - less) * (more + less)).sum() / growth,
        ((more * longer) - (less * shorter)).sum() / growth,
    )
    slope = (apply(z + _STEP * u) - apply(z - _STEP * u)) / (2 * _STEP)
    perpendicular = ((u * u).sum() / size, (slope * slope).sum() / size, (slope * u).sum() / size)
    return np.concatenate([*(pair.ravel() for pair in pairs), parallel, perpendicular])
