"""Synthetic samples."""

import numpy as np

from fieldtheory.data.dataset import Dataset
from fieldtheory.validation import integer


def equal_angles(count: int = 20, dimension: int = 100) -> Dataset:
    """Samples of unit length at the angles 2πk/P, k = 0, ..., P-1, in one plane.

    These are the samples of F25 Fig. 6(a), section III.3.

    Parameters
    ----------
    count : int
        Number of samples P, at least 2.
    dimension : int
        Number of components d_in, at least 2; all but the first two are 0. F25 has 100.

    Returns
    -------
    Dataset
        ``samples`` (count, dimension), no labels.

    Raises
    ------
    TypeError, ValueError
        ``count`` or ``dimension`` is not an integer >= 2.

    Examples
    --------
    >>> equal_angles(4, dimension=2).samples.round(12) + 0.0
    array([[ 1.,  0.],
           [ 0.,  1.],
           [-1.,  0.],
           [ 0., -1.]])
    """
    count = integer("count", count, 2)
    angles = 2 * np.pi * np.arange(count) / count
    samples = np.zeros((count, integer("dimension", dimension, 2)))
    samples[:, 0], samples[:, 1] = np.cos(angles), np.sin(angles)
    return Dataset(samples, None, f"{count} samples at equal angles")
