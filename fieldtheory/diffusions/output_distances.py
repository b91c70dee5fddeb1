"""How far the laws of outputs are from each other: two samples, or a sample and a Gaussian."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class OutputDistances(NamedTuple):
    """Test of Kolmogorov and Smirnov for the laws of x_T,1 of P inputs, each input alone.

    Parameters
    ----------
    statistic, p_value : ndarray, shape (P,)
    """

    statistic: np.ndarray
    p_value: np.ndarray


class GaussianOutputs(NamedTuple):
    """The law of outputs in the limit D → ∞: mean (P,) and covariance (P, P)."""

    mean: np.ndarray
    covariance: np.ndarray


def distances(outputs: np.ndarray, reference: np.ndarray | GaussianOutputs) -> OutputDistances:
    """Compare outputs (n, P) with other ones (m, P) or with a Gaussian.

    Examples
    --------
    >>> draw = np.random.default_rng(0).standard_normal
    >>> law = GaussianOutputs(np.zeros(1), np.eye(1))
    >>> bool(distances(draw((500, 1)), law).p_value[0] > 0.01)
    True
    """
    from scipy import stats

    if isinstance(reference, GaussianOutputs):
        deviations = np.sqrt(np.diagonal(reference.covariance))
        tests = [
            stats.ks_1samp(x, stats.norm(mean, deviation).cdf)
            if deviation
            else stats.ks_2samp(x, [mean])
            for x, mean, deviation in zip(outputs.T, reference.mean, deviations, strict=True)
        ]
    else:
        tests = [stats.ks_2samp(x, y) for x, y in zip(outputs.T, reference.T, strict=True)]
    statistics, p_values = zip(*[(test.statistic, test.pvalue) for test in tests], strict=True)
    return OutputDistances(np.array(statistics), np.array(p_values))
