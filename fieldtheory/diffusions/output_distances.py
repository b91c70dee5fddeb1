"""How far the laws of outputs are from each other: two samples, or a sample and a Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.plotting.tables import table_html, table_text


@dataclass(frozen=True, eq=False)
class OutputDistances:
    """Distances of the laws of x_T,1 of P inputs, and deviations of moments in standard errors.

    Parameters
    ----------
    statistic, p_value : ndarray, shape (P,)
        Of the test of Kolmogorov and Smirnov, for every input alone.
    mean_z, kurtosis_z : ndarray, shape (P,)
        Differences of means and of excess kurtosis over their standard errors.
    covariance_z : ndarray, shape (P, P)
        The same of the covariances of the inputs.
    other : str
        What the outputs were compared with.
    """

    statistic: np.ndarray
    p_value: np.ndarray
    mean_z: np.ndarray
    covariance_z: np.ndarray
    kurtosis_z: np.ndarray
    other: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for every input, with the largest deviation of its covariances with others."""
        own = np.diagonal(self.covariance_z)
        across = self.covariance_z - np.diag(own)
        largest = across[np.arange(len(own)), np.abs(across).argmax(axis=1)]
        columns = {
            "input": range(1, len(own) + 1),
            "KS": self.statistic.tolist(),
            "p-value": self.p_value.tolist(),
            "z of mean": self.mean_z.tolist(),
            "z of variance": own.tolist(),
            "z of covariances": largest.tolist(),
            "z of kurtosis": self.kurtosis_z.tolist(),
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def __str__(self) -> str:
        return table_text(self.rows, f"outputs compared with {self.other}")

    def _repr_html_(self) -> str:
        return table_html(self.rows, f"outputs compared with {self.other}")


class GaussianOutputs(NamedTuple):
    """The law of outputs in the limit D → ∞: mean (P,) and covariance (P, P)."""

    mean: np.ndarray
    covariance: np.ndarray


def distances(
    outputs: np.ndarray, reference: np.ndarray | GaussianOutputs, other: str
) -> OutputDistances:
    """Compare outputs (n, P) with other ones (m, P) or with a Gaussian.

    Examples
    --------
    >>> draw = np.random.default_rng(0).standard_normal
    >>> found = distances(draw((500, 1)), GaussianOutputs(np.zeros(1), np.eye(1)), "N(0, 1)")
    >>> bool(found.p_value[0] > 0.01), bool(abs(found.mean_z[0]) < 3)
    (True, True)
    """
    from scipy import stats

    if isinstance(reference, GaussianOutputs):
        deviations = np.sqrt(np.diagonal(reference.covariance))
        laws = zip(reference.mean, deviations, strict=True)
        tests = [
            stats.ks_1samp(x, stats.norm(mean, deviation).cdf)
            if deviation
            else stats.ks_2samp(x, [mean])
            for x, (mean, deviation) in zip(outputs.T, laws, strict=True)
        ]
        zero = np.zeros_like(reference.mean)
        theirs = {
            "mean": (reference.mean, zero),
            "covariance": (reference.covariance, np.zeros_like(reference.covariance)),
            "kurtosis": (zero, zero),
        }
    else:
        pairs = zip(outputs.T, reference.T, strict=True)
        tests = [stats.ks_2samp(x, y) for x, y in pairs]
        theirs = _moments(reference)
    scores = {
        name: _score(value - theirs[name][0], np.hypot(error, theirs[name][1]))
        for name, (value, error) in _moments(outputs).items()
    }
    return OutputDistances(
        np.array([test.statistic for test in tests]),
        np.array([test.pvalue for test in tests]),
        scores["mean"],
        scores["covariance"],
        scores["kurtosis"],
        other,
    )


def _moments(outputs: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Moments with their standard errors, that of the kurtosis by its influence function."""
    count = len(outputs)
    centred = outputs - outputs.mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    variance = (centred**2).mean(axis=0)
    scaled = centred / np.sqrt(np.where(variance > 0, variance, 1.0))
    third, fourth = (scaled**3).mean(axis=0), (scaled**4).mean(axis=0)
    influence = scaled**4 - 2 * fourth * scaled**2 - 4 * third * scaled
    values = {
        "mean": (outputs.mean(axis=0), outputs),
        "covariance": (products.mean(axis=0) * count / (count - 1), products),
        "kurtosis": (fourth - 3 * (variance > 0), influence),
    }
    return {
        name: (value, samples.std(axis=0, ddof=1) / np.sqrt(count))
        for name, (value, samples) in values.items()
    }


def _score(difference: np.ndarray, error: np.ndarray) -> np.ndarray:
    """0 where there is neither, infinite where exact numbers differ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / error)
