"""Moments of linear diffusions in numbers, exact at every width."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
import sympy as sp

from fieldtheory.compiling.functions import lambdify
from fieldtheory.diffusions.diffusion_limit.diffusion_generator import (
    MomentSystem,
    displacement,
    exact_moment_system,
    gram,
    neuron_moments,
    pair_moments,
    start,
)
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork


def gram_variances(
    network: DiffusionNetwork, second: np.ndarray, times: np.ndarray
) -> np.ndarray | None:
    """Var q_ij over networks of width D at every time, (n, P, P); None where it does not close.

    ``second`` is q at t = 0, (P, P).
    """
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
    """Excess kurtosis of a neuron at every time, (n, P), all neurons starting from ``inputs``.

    None where it does not close; 0 where nothing moves.
    """
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
