"""Scales of inputs, and samples made for one."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldtheory.data.dataset import Dataset
from fieldtheory.validation import finite_array, integer, positive


def normalise(samples: ArrayLike, scale: float, weight_variance: float) -> NDArray[np.float64]:
    """Rescale every sample so that the input kernel has ``scale`` on its diagonal.

    Sample α becomes x_α √(scale d / σ²_w,in) / ‖x_α‖, so that (σ²_w,in/d) x_α·x_α = scale, as in
    F25 Fig. 6 (samples of equal length, input scale K^(0) = 0.05). The variance σ²_b,in of the
    read-in biases, where it is not 0, comes on top of this in K^(0).

    Samples are not centred: F25 Fig. 9 shows raw overlaps.

    Parameters
    ----------
    samples : (P, d) array
        One sample per row.
    scale : float
        Diagonal of the input kernel, > 0.
    weight_variance : float
        σ²_w,in of the network's read-in layer, > 0.

    Returns
    -------
    (P, d) float64 array

    Raises
    ------
    ValueError
        ``samples`` is not (P, d) or not finite, has one column, a sample is constant (all its
        entries equal), or ``scale`` or ``weight_variance`` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> X = normalise([[0, 3, 1], [2, 2, 5]], scale=0.05, weight_variance=1.2)
    >>> np.allclose(1.2 / 3 * np.diag(X @ X.T), 0.05, rtol=1e-14)
    True
    """
    for name, value in (("scale", scale), ("weight_variance", weight_variance)):
        positive(name, value)
    x = finite_array("samples", samples)
    if x.ndim != 2:
        raise ValueError(f"samples must have shape (P, d), got {x.shape}")
    if x.shape[1] == 1:
        raise ValueError(
            "samples must have two entries or more to be scaled to one norm, got one column, shape "
            f"{x.shape}; leave numbers as they are: scale none, or ft.input_kernel(X, network)"
        )
    constant = np.flatnonzero((x == x[:, :1]).all(axis=1))
    if constant.size:
        raise ValueError(
            f"samples must not be constant, got sample {constant[0] + 1} of {len(x)} with all "
            f"entries equal to {x[constant[0], 0]:g}"
        )
    # Dividing by the largest entry first keeps the squared norm from over- or underflowing.
    x = x / np.abs(x).max(axis=1, keepdims=True)
    norm = np.sqrt((x * x).sum(axis=1, keepdims=True))
    return x * (math.sqrt(scale * x.shape[1] / weight_variance) / norm)


def scaled_kernel(samples: ArrayLike, scale: float) -> NDArray[np.float64]:
    """Input kernel of samples rescaled to equal length, ``scale`` times their correlations.

    The read-in has no bias here, so that K^(0) on the diagonal, 0.05 in F25's captions, is all due
    to the samples: a bias variance would be shared by all of them, and two of opposite sign would
    not have the covariance −0.05. The dimension d and σ²_w,in drop out.

    Parameters
    ----------
    samples : (P, d) array
        One sample per row.
    scale : float
        Diagonal of the kernel, > 0.

    Returns
    -------
    (P, P) float64 array

    Raises
    ------
    ValueError
        As `normalise`.

    Examples
    --------
    >>> scaled_kernel([[3.0, 0.0, 1.0], [3.0, 0.0, -1.0]], 0.05)
    array([[0.05, 0.04],
           [0.04, 0.05]])
    """
    x = normalise(samples, scale, 1.0)
    return x @ x.T / x.shape[1]


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
