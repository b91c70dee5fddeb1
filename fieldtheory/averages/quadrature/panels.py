"""Gaussian averages on panels: nodes, sums with an estimate of their error."""

from __future__ import annotations

import numpy as np

from fieldtheory.averages.quadrature.functions import NODES, TAILS


def subdivided(edges: np.ndarray, low: float, high: float, width: float) -> np.ndarray:
    """The edges between low and high, with as many more that panels are as narrow as asked for."""
    inner = edges[(edges > low) & (edges < high)]
    ends = np.concatenate([[low], inner, [high]])
    counts = np.maximum(np.ceil(np.diff(ends) / width).astype(int), 1)
    start, step = np.repeat(ends[:-1], counts), np.repeat(np.diff(ends) / counts, counts)
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.append(start + place * step, high)


def nodes_of(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (..., ORDER) and half the widths of panels."""
    half = (high - low) / 2
    return ((low + high) / 2)[..., None] + half[..., None] * NODES, half


def summed(
    values: np.ndarray, half: np.ndarray, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Integrals over panels (..., panels), and their errors.

    The rule is exact to twice the degree of the polynomial through its nodes. What follows the last
    coefficients up to there is as much less than these as these are less than those amid, squared,
    but not below a share ``least`` of them, which small parts that fall off slowly may hide in.
    """
    found = np.abs(terms := values @ TAILS)
    amid, last = found[..., 1] + found[..., 2], found[..., 3] + found[..., 4]
    less = np.minimum(last / np.maximum(amid, 1e-300), 1.0) ** 2
    return terms[..., 0] * half, last * np.maximum(less, least) * half


def error_of(errors: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The error of integrals from those of their panels (..., panels), and rounding."""
    return errors.sum(axis=-1) + 1e-15 * size
