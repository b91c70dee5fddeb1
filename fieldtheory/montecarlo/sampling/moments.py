"""Means and co-moments that are streamed and merged, and the jackknife over batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Moments:
    """Count n, means x̄ (k, d) and Σ (x − x̄)(x − x̄)ᵀ (k, d, d) of k groups of d variables."""

    count: int
    mean: np.ndarray
    comoment: np.ndarray

    @property
    def covariance(self) -> np.ndarray:
        """The unbiased covariance within every group, shape (k, d, d)."""
        return self.comoment / (self.count - 1)


def moments_of(samples: np.ndarray) -> Moments:
    """The moments of samples (n, k, d) in two passes.

    >>> moments_of(np.array([[[1.0]], [[2.0]], [[6.0]]])).covariance
    array([[[7.]]])
    """
    mean = samples.mean(axis=0)
    centred = (samples - mean).swapaxes(0, 1)
    return Moments(len(samples), mean, centred.swapaxes(1, 2) @ centred)


def merge(first: Moments, second: Moments) -> Moments:
    """The moments of two samples taken together (Chan, Golub and LeVeque 1983).

    >>> parts = moments_of(np.array([[[1.0]]])), moments_of(np.array([[[2.0]], [[6.0]]]))
    >>> merge(*parts).covariance
    array([[[7.]]])
    """
    count = first.count + second.count
    step = second.mean - first.mean
    weight = first.count * (second.count / count)
    return Moments(
        count,
        first.mean + step * (second.count / count),
        first.comoment + second.comoment + weight * (step[:, :, None] * step[:, None]),
    )


def remove(total: Moments, part: Moments) -> Moments:
    """The moments of a sample without a part of it, the inverse of `merge`.

    Examples
    --------
    >>> part = moments_of(np.array([[[1.0]], [[2.0]]]))
    >>> float(remove(merge(part, moments_of(np.array([[[6.0]]]))), part).mean[0, 0])
    6.0
    """
    return merge(total, Moments(-part.count, part.mean, -part.comoment))


Summary = Mapping[str, Moments]
Estimate = Callable[[Summary], dict[str, np.ndarray]]


def jackknife(batches: Sequence[Summary], estimate: Estimate) -> dict[str, np.ndarray]:
    """Estimates from all batches together, and their standard errors under ``<name>_error``.

    >>> batches = [{"x": moments_of(np.array([[[x]]]))} for x in (1.0, 2.0, 6.0)]
    >>> found = jackknife(batches, lambda of: {"mean": of["x"].mean[0]})
    >>> found["mean"], found["mean_error"]                     # the error is (7 / 3)^(1/2)
    (array([3.]), array([1.527525]))
    """
    total = dict(batches[0])
    for batch in batches[1:]:
        total = {name: merge(total[name], batch[name]) for name in total}
    values = estimate(total)
    counts = np.array([next(iter(batch.values())).count for batch in batches])
    shares = counts / counts.sum()
    sums = {name: np.zeros((3, *np.shape(value))) for name, value in values.items()}
    for share, batch in zip(shares, batches, strict=True):
        others = estimate({name: remove(total[name], batch[name]) for name in total})
        for name, value in values.items():
            step = others[name] - value
            sums[name] += (1 / share - 1) * step**2, step, (1 - share) * step
    inverse = (shares / (1 - shares)).sum()
    for name, (squares, plain, shift) in sums.items():
        variance = (squares - 2 * shift * plain + inverse * shift**2) / len(batches)
        values[f"{name}_error"] = np.sqrt(np.maximum(variance, 0.0))
    return values
