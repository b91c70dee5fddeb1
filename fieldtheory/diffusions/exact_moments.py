"""Moments of linear diffusions in numbers, exact at every width.

For ψ(x) = x and φ(u) = s u the layers of PF eq. (10) and their diffusion (14) are linear in x, so
that moments obey closed linear equations at every width D: those of the Gram matrix and of one
neuron for independent parameters, means and covariances of all neurons for any Gaussian law. With
another φ of φ''(0) = 0 that holds for infinite depth alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.compiling.functions import lambdify
from fieldtheory.diffusions.diffusion_limit.closed_moments import (
    MomentSystem,
    displacement,
    exact_moment_system,
    gram,
    neuron_moments,
    pair_moments,
    start,
)
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork, ParameterLaw
from fieldtheory.diffusions.diffusion_settings import SETTINGS
from fieldtheory.networks.activations import h


def gram_variances(
    network: DiffusionNetwork, second: np.ndarray, times: np.ndarray
) -> np.ndarray | None:
    """Var q_ij over networks of width D at every time, (n, P, P); None where it does not close."""
    if network.depth is not None or not network.is_linear:
        return None
    inputs = len(second)
    variances = np.empty((len(times), inputs, inputs))
    own, pair = gram(0, 0), gram(0, 1)
    for i in range(inputs):
        first = {own: second[i, i]}
        mean, square = _trajectory(
            exact_moment_system((own**2,)), (own, own**2), network, first, times
        )
        variances[:, i, i] = square - mean**2
        for j in range(i):
            both = {own: second[i, i], gram(1, 1): second[j, j], pair: second[i, j]}
            mean, square = _trajectory(pair_moments(), (pair, pair**2), network, both, times)
            variances[:, i, j] = variances[:, j, i] = square - mean**2
    # The differences of numbers that are equal at the start.
    return np.maximum(variances, 0.0)


def kurtoses(network: DiffusionNetwork, inputs: np.ndarray, times: np.ndarray) -> np.ndarray | None:
    """Excess kurtosis of a neuron at every time, (n, P), all neurons starting from ``inputs``."""
    if network.depth is not None or not network.is_linear:
        return None
    columns = []
    for z in inputs:
        values = {gram(0, 0): z**2, start(0): z}
        wanted = displacement(0) ** 2, displacement(0) ** 4
        variance, fourth = _trajectory(neuron_moments(), wanted, network, values, times)
        moves = variance > 0
        ratio = fourth / np.where(moves, variance, 1.0) ** 2
        columns.append(np.where(moves, ratio - 3, 0.0))
    return np.stack(columns, axis=1)


@lru_cache
def _matrix_of(system: MomentSystem) -> Callable[..., np.ndarray]:
    return lambdify(list(system.parameters), system.matrix)


def _trajectory(
    system: MomentSystem,
    wanted: tuple[sp.Expr, ...],
    network: DiffusionNetwork,
    values: Mapping[sp.Symbol, float],
    times: np.ndarray,
) -> list[np.ndarray]:
    """Moments of a system over time, from the numbers of layer 0."""
    from scipy.linalg import expm

    scales = network.slopes[0], *np.sqrt([network.weight_variance, network.bias_variance])
    own = [values[symbol] for symbol in system.parameters[4:]]
    matrix = np.array(_matrix_of(system)(*scales, float(network.width), *own), dtype=float)
    exact = {symbol: sp.Float(value, 17) for symbol, value in values.items()}
    initial = np.array([float(sp.sympify(v).xreplace(exact)) for v in system.initial])
    trajectory = expm(matrix * times[:, None, None]) @ initial
    return [trajectory[:, system.moments.index(moment)] for moment in wanted]


class NeuronMoments(NamedTuple):
    """⟨x_d^i⟩ (P, D), and Cov(x_d^i, x_e^j) (P, P, D, D)."""

    mean: np.ndarray
    covariance: np.ndarray

    @property
    def gram(self) -> np.ndarray:
        """⟨x_d^i x_d^j⟩ averaged over the neurons, (P, P)."""
        return self.mean @ self.mean.T / self.mean.shape[1] + self.averaged_covariance

    @property
    def averaged_covariance(self) -> np.ndarray:
        """Cov(x_d^i, x_d^j) averaged over the neurons, (P, P)."""
        return np.trace(self.covariance, axis1=-2, axis2=-1) / self.mean.shape[1]


def law_moments_close(network: DiffusionNetwork) -> bool:
    """Whether means and covariances of the network obey closed equations.

    >>> network = DiffusionNetwork(depth=None)
    >>> law_moments_close(network), law_moments_close(network.replace(depth=10))
    (True, False)
    """
    if not network.features_are_inputs:
        return False
    if network.depth is None:
        return network.slopes[1] == 0
    return bool(network.activation.expression.diff(h, 2) == 0)


def law_moments(
    network: DiffusionNetwork, start: np.ndarray, times: np.ndarray
) -> list[NeuronMoments]:
    """The moments at increasing times from 0 on, or of the layers of a finite depth.

        d⟨x⟩/dt = s (μ^W ⟨x⟩ + μ^b),
        dC/dt = s (μ^W C + C μ^Wᵀ) + s² V,   V_op = Σ^b_op + Σ_km Σ^W_ok,pm ⟨x_k x_m⟩,

    s = φ'(0), for each pair of inputs (from PF eqs. (12), (13), (14) by Itô's rule; not in PF).

    >>> law = ParameterLaw(row_covariance=np.eye(2), column_covariance=np.eye(2) / 2)
    >>> network = DiffusionNetwork(depth=None, width=2, parameter_law=law)
    >>> last = law_moments(network, np.ones((1, 2)), np.array([0.0, 1.0]))[-1]
    >>> (last.averaged_covariance / np.expm1(1)).round(10)
    array([[1.]])
    """
    law = network.parameter_law
    assert law is not None
    moments = [NeuronMoments(start, np.zeros((*2 * start.shape[:1], *2 * start.shape[1:])))]
    advance, s = _advanced if network.depth is None else _layer, network.slopes[0]
    with np.errstate(all="ignore"):
        for before, after in pairwise(times):
            moments.append(advance(law, s, moments[-1], after - before))
            if not all(np.isfinite(part).all() for part in moments[-1]):
                raise OverflowError(
                    f"signals exceed the range of float64 at the time {after:.6g}; reduce horizon "
                    "or the covariances of parameter_law"
                )
    return moments


def _layer(law: ParameterLaw, s: float, moments: NeuronMoments, step: float) -> NeuronMoments:
    mean, covariance = moments
    carried = np.eye(law.width) + s * step * law.arrays.get("weight_mean", 0.0)
    return NeuronMoments(
        mean + s * step * law.mean_of(mean),
        carried @ covariance @ carried.T + s**2 * step * _noise(law, moments),
    )


def _advanced(law: ParameterLaw, s: float, moments: NeuronMoments, time: float) -> NeuronMoments:
    from scipy.integrate import solve_ivp

    if time == 0:
        return moments
    size, shape = moments.mean.size, moments.covariance.shape
    weights = law.arrays.get("weight_mean", np.zeros((law.width, law.width)))

    def of(flat: np.ndarray) -> NeuronMoments:
        return NeuronMoments(flat[:size].reshape(moments.mean.shape), flat[size:].reshape(shape))

    def rate(t: float, flat: np.ndarray) -> np.ndarray:
        now = of(flat)
        across = weights @ now.covariance + now.covariance @ weights.T
        change = s * across + s**2 * _noise(law, now)
        return np.concatenate([(s * law.mean_of(now.mean)).ravel(), change.ravel()])

    flat = np.concatenate([part.ravel() for part in moments])
    tolerances = {"rtol": SETTINGS.rtol, "atol": SETTINGS.atol}
    solution = solve_ivp(rate, (0.0, time), flat, "DOP853", [time], **tolerances)
    return of(solution.y[:, -1]) if solution.success else of(np.full_like(flat, np.inf))


def _noise(law: ParameterLaw, moments: NeuronMoments) -> np.ndarray:
    """V of every pair of inputs, (P, P, D, D)."""
    mean, covariance = moments
    return law.averaged_covariance(np.einsum("ik,jm->ijkm", mean, mean) + covariance)
