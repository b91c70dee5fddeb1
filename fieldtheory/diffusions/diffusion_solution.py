"""`solve` for a `DiffusionNetwork`: means and covariances of wide networks, at any depth."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_result import DIFFUSION_FIELDS, GRAM_ERROR, DiffusionResult
from fieldtheory.diffusions.diffusion_settings import SETTINGS
from fieldtheory.diffusions.exact_moments import (
    gram_variances,
    kurtoses,
    law_moments,
    law_moments_close,
)
from fieldtheory.diffusions.feature_averages import Starts
from fieldtheory.diffusions.independent_increments import layers_of
from fieldtheory.diffusions.layers_drawn import input_layer
from fieldtheory.diffusions.wide_limit import (
    Signals,
    WideNetwork,
    advanced,
    explosion_times,
    signals_at,
    warn_if_close,
)
from fieldtheory.networks.activations import h
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.validity import ValidityWarning


class Moments(NamedTuple):
    """Means (P,) and covariances (P, P) of the signals at a time, and q (P, P)."""

    mean: np.ndarray
    covariance: np.ndarray
    gram: np.ndarray


@dataclass(frozen=True, eq=False)
class DiffusionSolution(DiffusionResult):
    """Signals of an infinitely wide `DiffusionNetwork`, layer by layer or for infinite depth.

    For P inputs, at n = L + 1 times l Δt, or for infinite depth at 21 times from 0 to T:

    ================  ==========  =================================================================
    field             shape       meaning
    ================  ==========  =================================================================
    times             (n,)        t = l Δt
    mean              (n, P)      ⟨x_d⟩, averaged over the neurons d
    covariance        (n, P, P)   Cov(x_d^i, x_d^j) about the neuron's own mean, the same for all d
    gram              (n, P, P)   q_ij = ⟨ψ(x_d^i) ψ(x_d^j)⟩, averaged over d
    gram_error        (n, P, P)   estimate of its error at finite depth and ψ(x) ≠ x: rounding for
                                  smooth ψ; None elsewhere, where it is 1e-11
    gram_variance     (n, P, P)   variance of (1/D) Σ_d ψ(x_d^i) ψ(x_d^j) over networks, exact at
                                  every width D; None where it is not closed
    kurtosis          (n, P)      excess kurtosis of x_d, exact at every D; likewise
    explosion_time    (P,)        T*, from which on the mean is infinite; ∞ where moments stay
                                  finite (PF Assumption 2.3); None where there is no closed form
                                  (ψ(x) ≠ x that may explode) or no limit of infinite depth (ReLU)
    is_exact          bool        whether the means and covariances hold at every width D
    ================  ==========  =================================================================

    ``gram_variance`` and ``kurtosis`` close where the diffusion is linear: infinite depth,
    ψ(x) = x, φ''(0) = 0. With a ``parameter_law``, covariances differ among the neurons: here they
    are averaged over them. For φ''(0) ≠ 0 a network of finite width leaves every bound before any
    time with a positive probability (PF section 3.4): then the limit D → ∞ comes first.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> limit = ft.solve(ft.DiffusionNetwork(depth=None), [0.0, 1.0])
    >>> bool(np.allclose(limit.covariance[-1], [[np.e - 1, np.e - 1], [np.e - 1, 2 * np.e - 2]]))
    True
    >>> limit.is_exact, limit.kurtosis[-1].round(4)
    (True, array([0.0101, 0.014 ]))
    """

    table = {**DIFFUSION_FIELDS, **GRAM_ERROR}  # noqa: RUF012

    network: DiffusionNetwork
    inputs: np.ndarray
    times: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    gram: np.ndarray
    gram_error: np.ndarray | None = None

    @property
    def is_exact(self) -> bool:
        """Whether means and covariances hold at every width D, not for D → ∞ alone."""
        net = self.network
        if net.depth is None:
            return net.is_linear
        return net.features_are_inputs and net.activation.expression.diff(h, 2) == 0

    @cached_property
    def explosion_time(self) -> np.ndarray | None:
        """T* of every input."""
        return explosion_times(self.network, self._wide.starts)

    @cached_property
    def gram_variance(self) -> np.ndarray | None:
        """Var q_ij at width D."""
        if self.network.parameter_law is not None:
            return None
        return gram_variances(self.network, self._wide.starts.second, self.times)

    @cached_property
    def kurtosis(self) -> np.ndarray | None:
        """Excess kurtosis of x_d at width D, for copied inputs."""
        if self.inputs.ndim > 1 or self.network.parameter_law is not None:
            return None
        return kurtoses(self.network, self.inputs, self.times)

    def at(self, time: float) -> Moments:
        """The moments at a time between those of the grid, for infinite depth.

        Parameters
        ----------
        time : float
            From 0 to T.

        Returns
        -------
        Moments

        Raises
        ------
        ValueError
            If there is no such time, or at finite depth.
        """
        if self.network.depth is not None:
            raise ValueError(f"at() is of infinite depth, got depth={self.network.depth}")
        time = validation.within("time", time, 0.0, self.network.horizon)
        if self.network.parameter_law is not None:
            return _of_law(self.network, self.inputs, np.array([0.0, time]))[-1]
        wide = self._wide
        if self.network.is_linear:
            signals = signals_at(wide, np.array([0.0, time]))[-1]
        else:
            before = int(np.searchsorted(self.times, time, side="right")) - 1
            moved = self.mean[before] - wide.starts.mean
            start = Signals(moved, self.covariance[before])
            signals = advanced(wide, start, self.times[before], time)
        return _moments(wide, signals)

    @cached_property
    def _wide(self) -> WideNetwork:
        return WideNetwork(self.network, starts_of(self.inputs))

    def __repr__(self) -> str:
        net = self.network
        return (
            f"DiffusionSolution(depth={net.depth or 'infinite'}, horizon={net.horizon:g}, "
            f"activation={net.activation.name}, inputs={self.mean.shape[1]})"
        )


@named_arguments
def solve_diffusion(
    network: DiffusionNetwork, Z: Any, *, progress: bool = False
) -> DiffusionSolution:
    """Means and covariances of the signals of an infinitely wide `DiffusionNetwork`.

    For D → ∞ the neurons are independent, and

        x_d(t) = x_d(0) + y,   ⟨y_i⟩ = m_i,   Cov(y_i, y_j) = V_ij,
        dm_i/dt = φ''(0) S_ii/2,   dV_ij/dt = φ'(0)² S_ij,   S_ij = σ_b² + σ_w² ⟨ψ(x_i)ψ(x_j)⟩

    for infinite depth (from PF Corollary 3.3); a network of finite depth takes its layers one by
    one with exact averages of φ. For ψ(x) = x and φ''(0) = 0 the solution is

        V_ij = (z_i z_j + σ_b²/σ_w²) (e^{φ'(0)² σ_w² t} − 1),   m = 0

    at every width D, z_i z_j averaged over neurons; for ψ(x) = x and φ''(0) ≠ 0 the mean obeys a
    Riccati equation and is infinite from a time T* on.

    Parameters
    ----------
    network : DiffusionNetwork
        Its width counts in exact results and as the size of Z alone. With a ``parameter_law``, of
        ψ(x) = x and φ''(0) = 0, at finite depth of φ(u) = s u: then the moments are exact at its
        width, see `law_moments`, and averaged over the neurons.
    Z : array_like, shape (P,) or (P, D)
        Inputs: numbers that all neurons of x_0 have (PF section 4.1), or the layers x_0 themselves.
    progress : bool
        Show a progress bar over the times of infinite depth on stderr.

    Returns
    -------
    DiffusionSolution

    Raises
    ------
    TypeError, ValueError
        If Z is not of that shape, the moments of a network with a ``parameter_law`` do not close,
        or the horizon is not before the explosion.
    ArithmeticError
        If the signals grow beyond all bounds, or ψ is too steep for its averages.

    Warns
    -----
    ValidityWarning
        If the horizon is 0.9 T* or more, or ``gram_error`` exceeds 1e-4 of the features' size.

    Notes
    -----
    At finite depth and ψ(x) ≠ x the signals are no Gaussians but sums of independent increments,
    whose characteristic functions multiply: see `independent_increments`. A pair of inputs takes
    some 5 ms a layer. Averages over ψ are found to 1e-11, at finite depth for ψ with kinks to
    ``gram_error``, 1e-6 to 1e-4. Where there is no
    closed form, that is for φ''(0) ≠ 0 or another ψ, all means and covariances of the inputs are
    integrated together, to a relative error of 1e-12 a step. Thousands of different neurons are
    averaged over once for ψ without kinks (40,000 in seconds), and in every step for others: some
    hundred neurons take as long.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.DiffusionNetwork(depth=400, activation="swish")
    >>> finite, limit = ft.solve(net, [0.5, 1.0]), ft.solve(net.replace(depth=None), [0.5, 1.0])
    >>> finite.mean[-1].round(3), limit.mean[-1].round(3)
    (array([0.919, 1.79 ]), array([0.92 , 1.793]))
    >>> limit.explosion_time.round(3)
    array([3.709, 2.773])
    """
    inputs = np.atleast_1d(validation.finite_array("Z", Z))
    input_layer(network, inputs)
    with np.errstate(over="ignore"):
        if not np.isfinite(inputs**2).all():
            largest = np.abs(inputs).max()
            raise ValueError(f"Z must have squares within float64, got {largest:g}")
    if network.parameter_law is not None:
        return _solved_for_law(network, inputs)
    starts = starts_of(inputs)
    if network.depth is None:
        warn_if_close(network, starts)
    return _solved(network, inputs, starts, progress)


def _solved_for_law(network: DiffusionNetwork, inputs: np.ndarray) -> DiffusionSolution:
    if not law_moments_close(network):
        condition = "φ''(0) = 0" if network.depth is None else "φ(u) = s u, or infinite depth"
        raise ValueError(
            f"network must have ψ(x) = x and {condition}, for moments to close with a "
            f"parameter_law, got φ = {network.activation.name}, "
            f"ψ = {network.input_activation.name}; ft.simulate draws such networks by the "
            "methods 'weights' and 'sde', and ft.derive has their equations"
        )
    times = _times(network)
    columns = zip(*_of_law(network, inputs, times), strict=True)
    mean, covariance, gram = (np.stack(column) for column in columns)
    return DiffusionSolution(network, inputs, times, mean, covariance, gram)


def _of_law(network: DiffusionNetwork, inputs: np.ndarray, times: np.ndarray) -> list[Moments]:
    start = input_layer(network, inputs)
    return [
        Moments(neurons.mean.mean(axis=1), neurons.averaged_covariance, neurons.gram)
        for neurons in law_moments(network, start, times)
    ]


def _times(network: DiffusionNetwork) -> np.ndarray:
    if network.depth is None:
        return np.linspace(0.0, network.horizon, SETTINGS.places)
    return network.step * np.arange(network.depth + 1)


def starts_of(inputs: np.ndarray) -> Starts:
    """The different neurons of the layer 0."""
    if inputs.ndim == 1:
        return Starts(inputs[None], np.ones(1))
    values, counts = np.unique(inputs.T, axis=0, return_counts=True)
    return Starts(values, counts / counts.sum())


def _solved(
    network: DiffusionNetwork, inputs: np.ndarray, starts: Starts, progress: bool
) -> DiffusionSolution:
    wide, times = WideNetwork(network, starts), _times(network)
    if network.depth is not None and not network.features_are_inputs:
        return _of_increments(wide, inputs, times)
    if network.depth is None:
        signals = signals_at(wide, times, progress)
    else:
        signals = [wide.origin]
        for layer in range(network.depth):
            signals.append(wide.layer(signals[-1]))
            _require_finite(layer + 1, *signals[-1])
    columns = (
        np.stack(column) for column in zip(*(_moments(wide, s) for s in signals), strict=True)
    )
    mean, covariance, gram = columns
    return DiffusionSolution(network, inputs, times, mean, covariance, gram)


def _of_increments(wide: WideNetwork, inputs: np.ndarray, times: np.ndarray) -> DiffusionSolution:
    """Finite depth and ψ(x) ≠ x."""
    y, covariance, gram, error = layers_of(wide)
    for layer, moments in enumerate(zip(y, covariance, gram, strict=True)):
        _require_finite(layer, *moments)
    own = np.sqrt(np.maximum(np.diagonal(gram, axis1=1, axis2=2), 0.0))
    if (error > SETTINGS.warned * own[:, :, None] * own[:, None, :]).any():
        warnings.warn(
            f"averages over input_activation are found to {error.max():.1g} only, see gram_error",
            ValidityWarning,
            stacklevel=validation.level_of_user(),
        )
    mean = wide.starts.mean + y
    return DiffusionSolution(wide.network, inputs, times, mean, covariance, gram, error)


def _require_finite(layer: int, *moments: np.ndarray) -> None:
    if not all(np.isfinite(part).all() for part in moments):
        raise OverflowError(
            f"signals exceed the range of float64 in layer {layer}; reduce horizon or "
            "weight_variance"
        )


def _moments(wide: WideNetwork, signals: Signals) -> Moments:
    return Moments(wide.starts.mean + signals.mean, signals.covariance, wide.gram(signals))
