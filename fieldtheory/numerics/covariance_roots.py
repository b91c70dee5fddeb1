"""Roots R of covariances C (..., P, P), R Rᵀ = C, positive semidefinite and maybe singular.

What is not above rounding counts as zero, so that identical inputs stay identical; correlations
are decomposed, so that inputs of small variance keep their digits.
"""

from __future__ import annotations

import numpy as np


def modes(C: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Deviations (..., P, 1), and the eigenvalues and eigenvectors of the correlations."""
    deviations = np.sqrt(np.maximum(np.diagonal(C, axis1=-2, axis2=-1), 0.0))[..., None]
    units = np.where(deviations > 0, deviations, 1.0)
    values, vectors = np.linalg.eigh(C / units / units.swapaxes(-1, -2))
    rounding = C.shape[-1] * np.finfo(float).eps * np.abs(values).max(axis=-1, keepdims=True)
    return deviations, np.where(values > rounding, values, 0.0), vectors


def psd_root(C: np.ndarray) -> np.ndarray:
    """A root by eigenvectors, the narrowest direction first.

    Examples
    --------
    >>> root = psd_root(np.array([[2.0, 2.0], [2.0, 2.0]]))
    >>> (root @ root.T).round(12)
    array([[2., 2.],
           [2., 2.]])
    """
    if C.shape[-1] == 1:
        return np.sqrt(np.maximum(C, 0.0))
    deviations, values, vectors = modes(C)
    return np.asarray(deviations * vectors * np.sqrt(values)[..., None, :])


def lower_root(C: np.ndarray, pivoted: bool = False) -> np.ndarray:
    """Cholesky's root, lower triangular and smooth in C.

    Examples
    --------
    >>> lower_root(np.array([[4.0, 2.0], [2.0, 1.0]]))
    array([[2., 0.],
           [1., 0.]])
    >>> root = lower_root(np.array([[4.0, 2.0, 2.0], [2.0, 1.0, 1.0], [2.0, 1.0, 5.0]]), True)
    >>> root.shape, (root @ root.T).round(12)
    ((3, 2), array([[4., 2., 2.],
           [2., 1., 1.],
           [2., 1., 5.]]))
    """
    size = C.shape[-1]
    if size == 1:
        return np.sqrt(np.maximum(C, 0.0))
    pivoted = pivoted and size > 2
    deviations = np.sqrt(np.maximum(np.diagonal(C, axis1=-2, axis2=-1), 0.0))
    inverse = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    root, remainder = np.zeros(C.shape), (deviations > 0).astype(float)
    for k in range(size):
        place = remainder.argmax(-1) if pivoted else np.full(remainder.shape[:-1], k)
        row = place[..., None]
        pivot = np.take_along_axis(remainder, row, -1)
        kept = pivot > 8 * size * np.finfo(float).eps
        if pivoted and not kept.any():
            return deviations[..., None] * root[..., :k]
        before, column = (np.take_along_axis(x, row[..., None], -2)[..., 0, :] for x in (root, C))
        column = column * inverse * np.take_along_axis(inverse, row, -1)
        if k:
            column -= np.einsum("...pk,...k->...p", root[..., :k], before[..., :k])
        column *= np.where(kept, 1 / np.sqrt(np.where(kept, pivot, 1.0)), 0.0)
        if not pivoted:
            column[..., :k] = 0.0
        root[..., k] = column
        remainder -= column**2
        np.put_along_axis(remainder, row, 0.0, -1)
    return deviations[..., None] * root


def wishart_root(
    freedom: int, inputs: int, generator: np.random.Generator, count: int
) -> np.ndarray:
    """T (count, P, min(P, ν)) with T Tᵀ of Wishart's law of ν >= 0 degrees of freedom (Bartlett).

    Examples
    --------
    >>> root = wishart_root(1000, 2, np.random.default_rng(0), 500)
    >>> (root @ root.swapaxes(1, 2)).mean(axis=0).round(-1)
    array([[1000.,   -0.],
           [  -0., 1000.]])
    """
    own = np.arange(min(inputs, freedom))
    root = np.tril(generator.standard_normal((count, inputs, len(own))))
    root[:, own, own] = np.sqrt(generator.chisquare(freedom - own, (count, len(own))))
    return root
