"""From the mean moments of a block to its correlators and critical scales, with their errors.

A block R in z' = γ z + ξ R(z) enters the balance of skip and branch by two ratios, its square
s = G_RR / G_zz and its overlap c = G_Rz / G_zz, (B.44) and (B.45) of PDLT-B: appendix B of Roberts,
Yaida and Hanin, *The Principles of Deep Learning Theory* (2022).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.montecarlo.sampling.moments import Moments, Summary, jackknife

# A scale that is so few standard errors from 0 is not resolved.
_RESOLVED = 3.0


def add_skip(skip: Any, branch: Any, square: Any, overlap: Any) -> Any:
    """γ² + 2 γ ξ c + ξ² s, the factor by which one layer changes the kernel, PDLT-B (B.44).

    With the ratios of a perturbation in place of those of the signal it is a susceptibility.

    Examples
    --------
    >>> add_skip(0.8, 0.6, square=1.0, overlap=0.0)
    1.0
    """
    return skip**2 + 2 * skip * branch * overlap + branch**2 * square


def critical_branch(skip: Any, square: Any, overlap: Any) -> Any:
    """ξ for which a layer keeps the kernel at given γ, PDLT-B (B.45): ξ² s + 2 γ ξ c = 1 − γ².

    For γ < 1 there is one solution ξ > 0. For γ >= 1 there are none or, if the block opposes the
    signal (c < 0), up to two, of which this is the one that continues those of γ < 1.

    Parameters
    ----------
    skip : float or ndarray
        γ >= 0.
    square, overlap : float or ndarray
        s > 0 and c.

    Returns
    -------
    float or ndarray
        NaN where there is no solution ξ > 0.

    Examples
    --------
    >>> float(critical_branch(0.6, square=4.0, overlap=0.0))
    0.4
    >>> float(critical_branch(1.0, square=2.0, overlap=-0.5)), float(critical_branch(1.0, 2.0, 0.5))
    (0.5, nan)
    """
    skip, square, overlap = np.broadcast_arrays(skip, square, overlap)
    solution = _larger_root(square, skip * overlap, 1 - skip**2)
    return np.where(solution > 0, solution, np.nan)


def critical_skip(branch: Any, square: Any, overlap: Any) -> Any:
    """γ for which a layer keeps the kernel at given ξ, PDLT-B (B.45): the larger solution.

    It continues γ = 1 at ξ = 0.

    Parameters
    ----------
    branch : float or ndarray
        ξ >= 0.
    square, overlap : float or ndarray
        s > 0 and c.

    Returns
    -------
    float or ndarray
        NaN where there is no solution γ >= 0.

    Examples
    --------
    >>> float(critical_skip(0.4, square=4.0, overlap=0.0)), float(critical_skip(0.6, 4.0, 0.0))
    (0.6, nan)
    """
    branch, square, overlap = np.broadcast_arrays(branch, square, overlap)
    solution = _larger_root(1.0, branch * overlap, 1 - branch**2 * square)
    return np.where(solution >= 0, solution, np.nan)


def _larger_root(square: Any, half: Any, deficit: Any) -> Any:
    """The larger x of s x² + 2 h x = d, in either form where it does not cancel."""
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(half**2 + square * deficit)
        return np.where(half > 0, deficit / (half + root), (root - half) / square)


class Scales(NamedTuple):
    """Scales (γ, ξ) that keep the kernel, and what a layer with them does; each with its error.

    Parameters
    ----------
    skip_scale, branch_scale : float
        γ and ξ of z' = γ z + ξ R(z); the one that was given has the error 0.
    parallel, perpendicular : float
        The susceptibilities χ_∥ and χ_⊥, PDLT-B (B.13) and (B.14): what a layer makes of a change
        of the size of the signal, and of a difference perpendicular to it. Criticality, PDLT-B
        (B.19), is that both are 1.
    kernel : ndarray, shape (P, P)
        The kernel after the layer, PDLT-B (B.44) for every pair of inputs. Its mean variance is
        that of K0.
    """

    skip_scale: float
    skip_scale_error: float
    branch_scale: float
    branch_scale_error: float
    parallel: float
    parallel_error: float
    perpendicular: float
    perpendicular_error: float
    kernel: np.ndarray
    kernel_error: np.ndarray


class _Means(NamedTuple):
    """The means of `moments_of_sample`, each with its own shape; the ratios are to the signal."""

    zz: np.ndarray
    RR: np.ndarray
    Rz: np.ndarray
    whole: tuple[Any, Any]
    parallel: tuple[Any, Any]
    perpendicular: tuple[Any, Any]


def _means(summary: Summary, inputs: int) -> _Means:
    flat = summary["moments"].mean[:, 0]
    zz, RR, Rz = flat[:-5].reshape(3, inputs, inputs)
    signal = zz.trace() / inputs
    return _Means(
        zz,
        RR,
        Rz,
        (RR.trace() / inputs / signal, Rz.trace() / inputs / signal),
        (flat[-5] / signal, flat[-4] / signal),
        (flat[-2] / flat[-3], flat[-1] / flat[-3]),
    )


def _batches(sizes: np.ndarray, means: np.ndarray) -> list[Summary]:
    # The jackknife of means needs no co-moments.
    none = np.zeros((means.shape[1], 1, 1))
    rows = zip(sizes.tolist(), means, strict=True)
    return [{"moments": Moments(size, row[:, None], none)} for size, row in rows]


def correlators(sizes: np.ndarray, means: np.ndarray, inputs: int) -> dict[str, Any]:
    """G_zz, G_RR, G_Rz and those of pairs, with errors, by the names of `BlockMeasurement`.

    Parameters
    ----------
    sizes, means : ndarray
        ``batch_sizes`` (g,) and ``batch_means`` (g, 3 P² + 5) of it.
    inputs : int
        P.
    """

    def estimate(summary: Summary) -> dict[str, np.ndarray]:
        moments = _means(summary, inputs)
        pairs = {"zz": moments.zz, "RR": moments.RR, "Rz": moments.Rz}
        bars = {f"G_{name}": np.asarray(pair.trace() / inputs) for name, pair in pairs.items()}
        return bars | {f"pairs_{name}": pair.copy() for name, pair in pairs.items()}

    return _plain(jackknife(_batches(sizes, means), estimate))


def critical_fields(
    sizes: np.ndarray, means: np.ndarray, kernel: np.ndarray, skip: Any = None, branch: Any = None
) -> dict[str, np.ndarray]:
    """The fields of `Scales` for many γ, or many ξ; NaN where there is no solution.

    ``sizes`` and ``means`` are those of `correlators`, ``kernel`` is K0. The kernel behind the
    layer is found for a single number only.

    Examples
    --------
    A block with s = 4, c = 0 and susceptibilities as large, in two batches:

    >>> means = np.array([[1.0, 4.0, 0.0, 4.0, 0.0, 1.0, 4.0, 0.0]] * 2)
    >>> found = critical_fields(np.array([10, 10]), means, np.eye(1), skip=np.array([0.6, 0.8]))
    >>> found["branch_scale"], found["branch_scale_error"], found["parallel"]
    (array([0.4, 0.3]), array([0., 0.]), array([1., 1.]))
    """

    def estimate(summary: Summary) -> dict[str, np.ndarray]:
        m = _means(summary, len(kernel))
        gamma = np.asarray(critical_skip(branch, *m.whole) if skip is None else skip)
        xi = np.asarray(critical_branch(skip, *m.whole) if branch is None else branch)
        scales = {
            "skip_scale": gamma,
            "branch_scale": xi,
            "parallel": add_skip(gamma, xi, *m.parallel),
            "perpendicular": add_skip(gamma, xi, *m.perpendicular),
        }
        if gamma.ndim == xi.ndim == 0:
            cross = m.Rz + m.Rz.T
            scales["kernel"] = gamma**2 * m.zz + gamma * xi * cross + xi**2 * m.RR
            # The signals that were drawn have the variance of K0 up to chance.
            scales["kernel"] *= kernel.trace() / m.zz.trace()
        return scales

    return jackknife(_batches(sizes, means), estimate)


def solved_scales(
    sizes: np.ndarray, means: np.ndarray, kernel: np.ndarray, skip: Any = None, branch: Any = None
) -> Scales:
    """The scales of `critical_fields` for one γ, or one ξ.

    Raises
    ------
    TypeError, ValueError
        If the number is not allowed, or there is no solution that the errors resolve.
    """
    if skip is not None:
        skip = validation.nonnegative("skip_scale", skip)
    else:
        branch = validation.nonnegative("branch_scale", branch)
    scales = _plain(critical_fields(sizes, means, kernel, skip, branch))
    unknown = "skip_scale" if skip is None else "branch_scale"
    value, error = scales[unknown], scales[f"{unknown}_error"]
    if not np.isfinite(error) or (skip is not None and value <= _RESOLVED * error):
        raise ValueError(_no_solution(correlators(sizes, means, len(kernel)), skip, branch))
    return Scales(**scales)


def _no_solution(fields: dict[str, Any], skip: float | None, branch: float | None) -> str:
    overlap = f"G_Rz = {fields['G_Rz']:.4g} ± {fields['G_Rz_error']:.2g}"
    if skip is not None and skip >= 1:
        return (
            f"skip_scale must be below 1 for this block, got {skip:g}: the skip alone keeps or "
            f"amplifies the signal, and the block does not oppose it enough ({overlap})"
        )
    if skip is not None:
        return f"samples must be more to resolve branch_scale at skip_scale {skip:g} ({overlap})"
    assert branch is not None
    share = branch**2 * fields["G_RR"] / fields["G_zz"]
    return (
        f"branch_scale must be smaller for this block, got {branch:g}: the branch alone has "
        f"ξ² G_RR / G_zz = {share:.4g} of the signal's variance ({overlap})"
    )


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Arrays without axes as floats."""
    return {name: value if np.ndim(value) else float(value) for name, value in fields.items()}
