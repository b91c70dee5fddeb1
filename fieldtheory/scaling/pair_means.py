"""Means of ρ* over the variances and the covariances of a data set, and what carries them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory import validation

# The mean over pairs is carried by few if (Σρ*)²/Σρ*² is below this part of their number.
_FEW = 0.5


def mean_scaling(scaling: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of ρ* over the variances and over the covariances of a data set (F25 Fig. 5).

        ρ̄_αα = (1/P) Σ_α ρ*_αα,    ρ̄_αβ = (1/P(P−1)) Σ_{α≠β} ρ*_αβ

    The second is one number for a network and a data set: the scaling at which the output responds
    most to the differences of the samples (F25 section III.3). Pairs without ρ*, which are NaN, are
    left out.

    Parameters
    ----------
    scaling : ndarray, shape (..., P, P)
        ρ* of every entry of the kernel, from `optimal_scaling`; P >= 2.

    Returns
    -------
    pair of ndarray, shape (...)

    Raises
    ------
    ValueError
        If ``scaling`` is not a matrix of at least two inputs, or no pair has a ρ*.

    Notes
    -----
    The captions of F25 print N and N(N−1) for the numbers of entries.

    Examples
    --------
    >>> variances, covariances = mean_scaling(np.array([[0.1, 0.3], [0.3, 0.2]]))
    >>> round(float(variances), 12), float(covariances)
    (0.15, 0.3)
    """
    variances, covariances = _entries("scaling", scaling)
    if np.isnan(covariances).all(axis=-1).any():
        raise ValueError("scaling must have a pair of inputs with ρ*, got NaN for all")
    return variances.mean(axis=-1), np.nanmean(covariances, axis=-1)


def few_pairs(scaling: np.ndarray) -> str:
    """Words that name the few pairs which carry the mean of `mean_scaling`; empty if many do.

    Optima of nearly equal inputs are large, so that a duplicate or a column of numbers such as an
    index may set the mean. (Σρ*)²/Σρ*² is the number of pairs that carry it.

    Parameters
    ----------
    scaling : ndarray, shape (P, P)
        ρ* of every entry of the kernel, from `optimal_scaling`.

    Examples
    --------
    >>> few_pairs(np.array([[0.1, 0.3, 0.3], [0.3, 0.1, 9.0], [0.3, 9.0, 0.1]]))
    'about 1 of 3 pairs carry the mean ρ* = 3.2 of pairs: their median is 0.3'
    >>> few_pairs(np.array([[0.1, 0.3, 0.3], [0.3, 0.1, 0.4], [0.3, 0.4, 0.1]]))
    ''
    """
    _, covariances = _entries("scaling", scaling)
    values = covariances[~np.isnan(covariances)]
    # Every pair has two entries.
    carrying = (values.sum() ** 2 / (values**2).sum() if values.any() else covariances.size) / 2
    if carrying >= _FEW * covariances.size / 2:
        return ""
    return (
        f"about {carrying:.0f} of {covariances.size // 2} pairs carry the mean ρ* = "
        f"{values.mean():.4g} of pairs: their median is {np.median(values):.4g}"
    )


def _entries(name: str, scaling: Any) -> tuple[np.ndarray, np.ndarray]:
    """ρ* of the variances (..., P) and of the covariances (..., P(P − 1)), where NaN is none."""
    rho = np.asarray(scaling)
    without_nan = validation.finite_array(name, np.where(np.isnan(rho), 0.0, rho))
    if rho.ndim < 2 or rho.shape[-1] != rho.shape[-2] or rho.shape[-1] < 2:
        raise ValueError(f"{name} must be a matrix (P, P) with P >= 2, got shape {rho.shape}")
    diagonal = np.eye(rho.shape[-1], dtype=bool)
    return without_nan[..., diagonal], rho[..., ~diagonal]
