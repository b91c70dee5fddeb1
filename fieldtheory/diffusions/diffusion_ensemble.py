"""The statistics of simulated networks and diffusions, with standard errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_result import DIFFUSION_FIELDS, KEPT, DiffusionResult
from fieldtheory.diffusions.layers_drawn import input_layer
from fieldtheory.montecarlo.sampling.moments import Moments, Summary
from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.symmetric_matrices import unpacked

# The fields with a standard error.
ESTIMATED = {
    name: replace(field, written="always", error=True) for name, field in DIFFUSION_FIELDS.items()
}


class OutputDistances(NamedTuple):
    """Test of Kolmogorov and Smirnov for the laws of x_T,1 of P inputs, each input alone.

    Parameters
    ----------
    statistic, p_value : ndarray, shape (P,)

    Examples
    --------
    >>> draw = np.random.default_rng(0).standard_normal
    >>> found = distances(draw((500, 1)), GaussianOutputs(np.zeros(1), np.eye(1)))
    >>> bool(found.p_value[0] > 0.01)
    True
    """

    statistic: np.ndarray
    p_value: np.ndarray


class GaussianOutputs(NamedTuple):
    """The law of outputs in the limit D → ∞: mean (P,) and covariance (P, P)."""

    mean: np.ndarray
    covariance: np.ndarray


def distances(outputs: np.ndarray, reference: np.ndarray | GaussianOutputs) -> OutputDistances:
    """Compare outputs (n, P) with other ones (m, P) or with a Gaussian."""
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


@dataclass(frozen=True, eq=False)
class DiffusionEnsemble(DiffusionResult):
    """Statistics of random networks or diffusions, with standard errors in ``<name>_error``.

    With L layers, P inputs, x_t,d the signal of neuron d at the time t = l Δt and
    q_ij = Σ_d ψ(x_t,d^i) ψ(x_t,d^j) / D:

    =============  ====================  ==========================================================
    field          shape                 meaning
    =============  ====================  ==========================================================
    times          (L+1,)                t
    mean           (L+1, P)              ⟨x_t,d⟩, the mean over the neurons d
    covariance     (L+1, P, P)           of x_t,d about its own mean
    gram           (L+1, P, P)           ⟨q_t⟩
    gram_variance  (L+1, P, P)           Var q_t over networks
    kurtosis       (L+1, P)              excess kurtosis of x_t,d about its own mean, 0 at t = 0
    outputs        (samples, P)          x_T,1 of every network
    grams          (samples, L+1, P, P)  q_t of every network, or None
    =============  ====================  ==========================================================

    With independent parameters covariance and kurtosis are the same for every neuron; with a
    ``parameter_law`` they are means over the neurons. Estimates use all neurons of a network, those
    of method "gram" the first one only, but for ``gram`` and ``gram_variance``.

    Standard errors come from the jackknife over ``batches`` independent batches of networks; see
    `Ensemble` for confidence intervals.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
    >>> net = DiffusionNetwork(depth=20, width=30, activation="linear")
    >>> e = ft.simulate(net, [0.0, 1.0], samples=200, seed=1)
    >>> e
    DiffusionEnsemble(depth=20, width=30, activation=linear, inputs=2, samples=200, ...
    >>> e.gram.shape, e.outputs.shape
    ((21, 2, 2), (200, 2))
    >>> bool(abs(e.gram[-1, 0, 0] - (1.05**20 - 1)) < 3 * e.gram_error[-1, 0, 0])  # Δt = 1/20
    True
    """

    table = ESTIMATED | KEPT
    settings = {"samples": int, "seed": int, "method": str, "batches": int}  # noqa: RUF012

    network: DiffusionNetwork
    inputs: np.ndarray
    samples: int
    seed: int
    method: str
    batches: int
    mean: np.ndarray
    mean_error: np.ndarray
    covariance: np.ndarray
    covariance_error: np.ndarray
    gram: np.ndarray
    gram_error: np.ndarray
    gram_variance: np.ndarray
    gram_variance_error: np.ndarray
    kurtosis: np.ndarray
    kurtosis_error: np.ndarray
    outputs: np.ndarray
    grams: np.ndarray | None = None

    @property
    def times(self) -> np.ndarray:  # type: ignore[override]
        """t = l Δt, shape (L+1,)."""
        assert self.network.depth is not None
        return np.linspace(0.0, self.network.horizon, self.network.depth + 1)

    def distances(self, other: Any) -> OutputDistances:
        """Distance of the law of the outputs from that of another ensemble, or of the limit D → ∞.

        Parameters
        ----------
        other : DiffusionEnsemble or DiffusionSolution
            Of the same inputs. A solution stands for the limit of deep and wide networks, where
            the outputs are Gaussian with its mean and covariance at the last time.

        Returns
        -------
        OutputDistances
            Of the test of Kolmogorov and Smirnov, for every input.

        Raises
        ------
        TypeError, ValueError
            If the other is of another kind, or its inputs or its horizon differ.

        Examples
        --------
        >>> import fieldtheory as ft
        >>> from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
        >>> net = DiffusionNetwork(depth=50, width=10)
        >>> network, diffusion = (
        ...     ft.simulate(net, [0.0, 1.0], samples=400, method=m) for m in ("kernel", "sde"))
        >>> bool(network.distances(diffusion).p_value.min() > 0.01)
        True
        """
        if not all(hasattr(other, name) for name in ("network", "inputs", "mean", "covariance")):
            raise TypeError(
                "other must be a DiffusionEnsemble or a DiffusionSolution, got "
                f"{validation.excerpt(other)}"
            )
        if not np.array_equal(other.inputs, self.inputs):
            raise ValueError(f"other must have the inputs {self.inputs}, got {other.inputs}")
        if other.network.horizon != self.network.horizon:
            horizon = self.network.horizon
            raise ValueError(f"other must have horizon={horizon}, got {other.network.horizon}")
        if isinstance(other, DiffusionEnsemble):
            return distances(self.outputs, other.outputs)
        if self.network.parameter_law is not None:
            raise ValueError(
                "other must be a DiffusionEnsemble for networks with a parameter_law, whose "
                "neurons differ and are no Gaussians, got a DiffusionSolution"
            )
        # The mean of the first neuron, not that of all.
        start = input_layer(self.network, self.inputs)
        mean = other.mean[-1] + start[:, 0] - start.mean(axis=1)
        return distances(self.outputs, GaussianOutputs(mean, other.covariance[-1]))

    def __repr__(self) -> str:
        net = self.network
        return (
            f"DiffusionEnsemble(depth={net.depth}, width={net.width}, "
            f"activation={net.activation.name}, inputs={len(self.inputs)}, "
            f"samples={self.samples}, method={self.method}, seed={self.seed})"
        )


def estimates(start: np.ndarray, depth: int, summary: Summary) -> dict[str, np.ndarray]:
    """The estimates of `DiffusionEnsemble` from the moments of a sample."""
    # Of m neurons that are distinguished, or of m = 1 mean over all of them, with y = x − x_0:
    # "first" has (L+1) m groups of the P variables y_i, "second" groups of one variable, y_i y_j of
    # the pairs i <= j, "third" and "fourth" y_i³ and y_i⁴; "gram" (L+1) groups for each pair, q_ij.
    inputs, layers = len(start), depth + 1

    def by_layer(values: np.ndarray, *last: int) -> np.ndarray:
        return values.reshape(layers, -1, *last)

    def matrices(values: np.ndarray) -> np.ndarray:
        return unpacked(by_layer(values, inputs * (inputs + 1) // 2), True)

    first: Moments = summary["first"]
    mean = by_layer(first.mean, inputs)
    # The product of two means is larger by their covariance.
    product = mean[..., :, None] * mean[..., None, :]
    product -= by_layer(first.covariance, inputs, inputs) / first.count
    covariance = matrices(summary["second"].mean) - product
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    third, fourth = (by_layer(summary[name].mean, inputs) for name in ("third", "fourth"))
    central = fourth - 4 * mean * third + 6 * mean**2 * variance + 3 * mean**4
    kurtosis = ratio(central, variance**2) - 3 * (variance > 0)
    return {
        "mean": start.mean(axis=1) + mean.mean(axis=1),
        "covariance": covariance.mean(axis=1),
        "gram": matrices(summary["gram"].mean)[:, 0],
        "gram_variance": matrices(summary["gram"].covariance)[:, 0],
        "kurtosis": kurtosis.mean(axis=1),
    }
