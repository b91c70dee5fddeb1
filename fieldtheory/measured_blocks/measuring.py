"""`measure_block`: random blocks on random signals, one by one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.measured_blocks.estimates import critical_fields
from fieldtheory.measured_blocks.measurement import BlockMeasurement
from fieldtheory.montecarlo.sampling.plan import BATCHES, enough_samples
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import chunks

Apply = Callable[[np.ndarray], np.ndarray]

# Steps of the differences, relative to the signal: kinks count for so much, rounding for 1e-12.
_STEP = 1e-4
_FORM = (
    "block must be a callable block(width, rng) that draws a block and returns it as a function of "
    "z or a torch module"
)
# Samples on whose signals jumps are sought.
_SEARCHED = 5


@named_arguments
def measure_block(
    block: Callable[[int, np.random.Generator], Any],
    width: int,
    samples: int = 1000,
    *,
    K0: Any = 1.0,
    skip_scale: float = 0.5**0.5,
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
    block : callable
        ``block(width, rng)`` draws a new block at random, from a `numpy.random.Generator`, and
        returns it as a function of z (P, width), or as a torch module. The function returns R(z) in
        the shape of z; its random numbers are those that were drawn before, so that the same z
        gives the same R(z). ``lambda width, rng: MyBlock(width)`` builds a module of torch anew, as
        its constructor initialises it. Modules are given a tensor (P, width) and compute in double
        precision; they draw from torch's generator, which is seeded by ``torch.manual_seed``.
    width : int
        Number N of neurons (channels, features) of the signal, at least 1.
    samples : int
        Number of random blocks, each with a signal of its own, at least 20.
    K0 : float or array_like, shape (P, P)
        The kernel at which to measure: z_i ~ N(0, K0) for every neuron i. The rows of z are what
        the block may mix, such as tokens of a sequence or pixels of an image, or just P inputs.
    skip_scale : float
        γ >= 0. PDLT-B leaves it free; by default γ² = 1/2.
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
    A warning says if a block is the same in every sample, though it looks random: the errors are
    then those of the signals alone.

    Besides R(z), the block is applied to (1 ± ε) z and to z ± ε u, where u is an independent signal
    and thus perpendicular to z in the mean, for the parallel and the perpendicular susceptibility.
    Both are NaN, and a warning says so, if R jumps or is rounded more coarsely than in float32: its
    changes then do not become proportional to those of z. Behind a jump the perpendicular one is
    infinite.

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
    if validation.is_torch_module(block):
        kind = block if isinstance(block, type) else type(block)
        raise TypeError(
            f"block must be a function that draws a new block, got the torch module "
            f"{kind.__name__}: give lambda width, rng: {kind.__name__}(...)"
        )
    if not callable(block):
        raise TypeError(f"{_FORM}, got {validation.excerpt(block)}")
    validation.require_arguments("block", block, "width", "rng")
    width = validation.integer("width", width, 1)
    samples = enough_samples(samples)
    kernel = validation.input_kernel_array("K0", K0)
    if kernel.ndim == 1 or kernel.ndim > 2:
        raise ValueError(f"K0 must be a variance or a matrix (P, P), got shape {kernel.shape}")
    kernel = np.atleast_2d(kernel)
    if not kernel.trace() > 0:
        raise ValueError("K0 must have a variance > 0, got 0: there is no signal to measure with")
    skip_scale = validation.nonnegative("skip_scale", skip_scale)
    seed = validation.integer("seed", seed, 0)
    steps: Iterable[int] = range(samples)
    if progress:
        steps = chunks.with_progress(steps, samples, "measure_block")
    sizes, means = _batches(block, width, kernel, seed, steps, samples)
    return BlockMeasurement(
        block=str(getattr(block, "__name__", type(block).__name__)),
        width=width,
        input_kernel=kernel,
        samples=samples,
        seed=seed,
        skip_scale=skip_scale,
        **critical_fields(sizes, means, kernel, skip_scale),
    )


def _batches(
    block: Any, width: int, kernel: np.ndarray, seed: int, steps: Iterable[int], samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of the batches (g,) and means of the moments in each (g, m)."""
    count = min(BATCHES, samples)
    batch = np.arange(samples) * count // samples
    values, vectors = np.linalg.eigh(kernel)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    sums = np.zeros((count, 3 * kernel.size + 5))
    resolved, first = True, None
    for i in steps:
        signal, weights = np.random.SeedSequence(seed, spawn_key=(i,)).spawn(2)
        normals = np.random.default_rng(signal).standard_normal((2, len(kernel), width))
        apply = _drawn(block, width, np.random.default_rng(weights))
        z, u = root @ normals
        if i == 0:
            first = z, apply(z)
            if not _are_close(first[1], apply(z)):
                raise ValueError(
                    "block(width, rng) must return a function of z alone, its random weights drawn "
                    "before; it gave two answers for one z (a torch module with dropout needs "
                    "its eval())"
                )
        elif first is not None:
            _warn_of_fixed(apply, *first)
            first = None
        with np.errstate(over="ignore", invalid="ignore"):
            sums[batch[i]] += moments_of_sample(apply, z, u)
            resolved &= i >= _SEARCHED or is_resolved(apply, z, u)
    sizes = np.bincount(batch)
    means = sums / sizes[:, None]
    if not np.isfinite(means).all():
        raise OverflowError("a correlator of the block exceeds the range of float64; reduce K0")
    if not resolved:
        # The derivatives of R.
        means[:, [-5, -4, -2, -1]] = np.nan
        warnings.warn(
            "block jumps, or is rounded more coarsely than in float32: its parallel and "
            "perpendicular susceptibilities cannot be measured and are NaN",
            stacklevel=validation.level_of_user(),
        )
    return sizes, means


def _drawn(block: Any, width: int, rng: np.random.Generator) -> Apply:
    """A new block as a function (P, width) -> (P, width) with checked answers."""
    try:
        drawn = block(width, rng)
    except Exception as error:
        raise ValueError(f"block(width={width}, rng) failed: {_reason(error)}") from error
    if not callable(drawn):
        raise TypeError(f"{_FORM}; block(width, rng) returned {validation.excerpt(drawn)}")
    if validation.is_torch_module(drawn) and not isinstance(drawn, type):
        import torch

        module: Any = drawn.double().requires_grad_(False)
        device = next((p.device for p in module.parameters()), None)
        drawn = lambda z: module(torch.tensor(z, device=device))  # noqa: E731

    def checked(z: np.ndarray) -> np.ndarray:
        # A block that writes into its input would change what it is compared with.
        z.flags.writeable = False
        try:
            values = np.asarray(validation.without_tensors(drawn(z)))
        except Exception as error:
            raise ValueError(
                f"block failed on a signal of shape {z.shape}: {_reason(error)}"
            ) from error
        if values.dtype.kind not in "fiub":
            raise TypeError(f"block must return real numbers, got {validation.excerpt(values)}")
        if values.dtype == np.float16:
            raise TypeError(
                "block must return float32 or float64 numbers, got float16, too coarse for the "
                "differences that give susceptibilities"
            )
        if values.shape != z.shape:
            raise ValueError(
                f"block must return an array of the shape of its input {z.shape}, "
                f"got shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise ValueError(
                f"block must return finite numbers, got {float(values[~np.isfinite(values)][0])!r}"
            )
        return values.astype(float, copy=False)

    return checked


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _are_close(first: np.ndarray, second: np.ndarray) -> bool:
    return np.allclose(first, second, rtol=1e-9, atol=1e-9 * np.abs(second).max())


def _warn_of_fixed(apply: Apply, z: np.ndarray, R: np.ndarray) -> None:
    """Warn if the second block gives R(z) of the first, and treats neurons differently."""
    order = np.random.default_rng(0).permutation(z.shape[1])
    if np.array_equal(R, apply(z)) and not _are_close(apply(z[:, order]), R[:, order]):
        warnings.warn(
            "block is the same in every sample: if that is random, it is not drawn anew, and the "
            "errors are too small; give block(width, rng) that builds the block with new random "
            "numbers",
            stacklevel=validation.level_of_user(),
        )


def is_resolved(apply: Apply, z: np.ndarray, u: np.ndarray) -> bool:
    """Whether differences of the block R become proportional to those of the signal z.

    >>> z, u = np.random.default_rng(0).normal(size=(2, 1, 50))
    >>> is_resolved(lambda z: np.maximum(z, 0), z, u), is_resolved(np.sign, z, u)
    (True, False)
    >>> is_resolved(lambda z: z.astype(np.float16).astype(float), z, u)
    False
    """

    def at(t: float) -> np.ndarray:
        return apply(np.cos(t) * z + np.sin(t) * u)

    def bend(low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> float:
        return float(np.linalg.norm(low - 2 * middle + high))

    # By steps along the path, then by halvings down to 1e-6.
    steps, halvings = 8, 20
    length = np.pi / steps
    points = [at(k * length) for k in range(steps + 1)]
    slopes = [np.linalg.norm(b - a) / length for a, b in pairwise(points)]
    k = max(range(steps - 1), key=lambda k: bend(*points[k : k + 3]))
    t, (low, middle, high) = k * length, points[k : k + 3]
    for _ in range(halvings):
        length /= 2
        below, above = at(t + length), at(t + 3 * length)
        if bend(low, below, middle) >= bend(middle, above, high):
            low, middle, high = low, below, middle
        else:
            t, low, middle, high = t + 2 * length, middle, above, high
        slopes.append(np.linalg.norm(high - low) / (2 * length))
    # Changes of the block, relative to it, over those of the signal that add 1e-4 to χ. Over four
    # halvings a slope that is resolved stays; at a jump it doubles in each, and where a block is
    # rounded it grows by 2^½.
    negligible = 1e-2 * np.linalg.norm(points[0])
    return bool(slopes[-1] <= max(1.5 * max(slopes[:-4]), negligible))


def moments_of_sample(apply: Apply, z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The moments (3 P² + 5,) of one block R on one signal z, with a direction u."""
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
