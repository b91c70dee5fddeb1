"""From the mean moments of a block to the scales that make it critical, with their errors.

A block R in z' = γ z + ξ R(z) enters the balance of skip and branch by two ratios, its square
s = G_RR / G_zz and its overlap c = G_Rz / G_zz, (B.44) and (B.45) of PDLT-B: appendix B of Roberts,
Yaida and Hanin, *The Principles of Deep Learning Theory* (2022).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory.montecarlo.sampling.moments import Moments, Summary, jackknife

# A scale that is so few standard errors from 0 is not resolved.
_RESOLVED = 3.0


def critical_branch(skip: Any, square: Any, overlap: Any) -> Any:
    """ξ for which a layer keeps the kernel at given γ, PDLT-B (B.45): ξ² s + 2 γ ξ c = 1 − γ².

    >>> float(critical_branch(0.6, square=4.0, overlap=0.0))
    0.4
    >>> float(critical_branch(1.0, square=2.0, overlap=-0.5)), float(critical_branch(1.0, 2.0, 0.5))
    (0.5, nan)
    """
    half, deficit = skip * overlap, 1 - skip**2
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(half**2 + square * deficit)
        # Either form where it does not cancel.
        solution = np.where(half > 0, deficit / (half + root), (root - half) / square)
    return np.where(solution > 0, solution, np.nan)


def critical_fields(
    sizes: np.ndarray, means: np.ndarray, kernel: np.ndarray, skip: float
) -> dict[str, Any]:
    """ξ, χ_∥, χ_⊥ and the kernel behind a layer of this γ, with errors.

    Examples
    --------
    A block with s = 4, c = 0 and susceptibilities as large, in two batches:

    >>> means = np.array([[1.0, 4.0, 0.0, 4.0, 0.0, 1.0, 4.0, 0.0]] * 2)
    >>> found = critical_fields(np.array([10, 10]), means, np.eye(1), skip=0.6)
    >>> found["branch_scale"], found["branch_scale_error"], found["parallel"]
    (0.4, 0.0, 1.0)
    """

    def layer(branch: Any, square: Any, overlap: Any) -> np.ndarray:
        # The factor by which a layer changes the kernel, PDLT-B (B.44); with the ratios of a
        # perturbation it is a susceptibility.
        return np.asarray(skip**2 + 2 * skip * branch * overlap + branch**2 * square)

    def estimate(summary: Summary) -> dict[str, np.ndarray]:
        flat = summary["moments"].mean[:, 0]
        zz, RR, Rz = flat[:-5].reshape(3, *kernel.shape)
        G_zz, G_RR, G_Rz = (np.asarray(pair.trace() / len(kernel)) for pair in (zz, RR, Rz))
        branch = critical_branch(skip, G_RR / G_zz, G_Rz / G_zz)
        behind = skip**2 * zz + skip * branch * (Rz + Rz.T) + branch**2 * RR
        return {
            "G_RR": G_RR,
            "G_Rz": G_Rz,
            "branch_scale": branch,
            "parallel": layer(branch, *(flat[-5:-3] / G_zz)),
            "perpendicular": layer(branch, *(flat[-2:] / flat[-3])),
            # The signals that were drawn have the variance of K0 up to chance.
            "kernel": behind * kernel.trace() / zz.trace(),
        }

    # The jackknife of means needs no co-moments.
    none = np.zeros((means.shape[1], 1, 1))
    rows = zip(sizes.tolist(), means, strict=True)
    found = jackknife([{"moments": Moments(n, row[:, None], none)} for n, row in rows], estimate)
    fields = {name: value if value.ndim else float(value) for name, value in found.items()}
    square, _, overlap, error = (fields.pop(f"G_{n}") for n in ("RR", "RR_error", "Rz", "Rz_error"))
    if not square > 0:
        raise ValueError("block must not vanish, got G_RR = 0: nothing to scale")
    branch, spread = fields["branch_scale"], fields["branch_scale_error"]
    if not np.isfinite(spread) or branch <= _RESOLVED * spread:
        words = f"(G_Rz = {overlap:.4g} ± {error:.2g})"
        if skip < 1:
            raise ValueError(
                f"samples must be more to resolve branch_scale at skip_scale {skip:g} {words}"
            )
        raise ValueError(
            f"skip_scale must be below 1 for this block, got {skip:g}: the skip alone keeps or "
            f"amplifies the signal, and the block does not oppose it enough {words}"
        )
    return fields
