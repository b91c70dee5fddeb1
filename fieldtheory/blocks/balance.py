"""The balance of skip and branch that keeps the kernel, (B.44) and (B.45) of PDLT-B.

A block R in z' = γ z + ξ R(z) enters by two ratios, its square s = G_RR / G_zz and its overlap
c = G_Rz / G_zz. PDLT-B is appendix B of Roberts, Yaida and Hanin, *The Principles of Deep Learning
Theory* (2022).
"""

from __future__ import annotations

from typing import Any

import numpy as np


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
    half, deficit = skip * overlap, 1 - skip**2
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(half**2 + square * deficit)
        # Either form, where it does not cancel.
        solution = np.where(half > 0, deficit / (half + root), (root - half) / square)
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
    half, deficit = branch * overlap, 1 - branch**2 * square
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(half**2 + deficit)
        solution = np.where(half > 0, deficit / (half + root), root - half)
        return np.where(solution >= 0, solution, np.nan)
