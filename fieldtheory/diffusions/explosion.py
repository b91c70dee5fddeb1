"""When the mean of a wide diffusion with ψ(x) = x and φ''(0) ≠ 0 becomes infinite, in numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.compiling.functions import lambdify
from fieldtheory.diffusions.diffusion_limit.diffusion_conditions import diffusion_conditions
from fieldtheory.diffusions.diffusion_limit.wide_closed_forms import ALPHA, BETA, GAMMA, riccati
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_settings import SETTINGS
from fieldtheory.diffusions.starts import Starts
from fieldtheory.numerics.validity import ValidityWarning


def explosion_times(network: DiffusionNetwork, starts: Starts) -> np.ndarray | None:
    """T* of every input (PF Assumption 2.3), (P,); ∞ where moments stay finite, None if unknown."""
    mean = starts.mean
    try:
        slopes = network.slopes
    except ValueError:
        # No limit of infinite depth, so nothing that explodes in it.
        return None
    conditions = diffusion_conditions(network.activation, network.input_activation)
    if network.weight_variance == 0 or conditions.cannot_explode:
        return np.full(len(mean), np.inf)
    if not network.features_are_inputs:
        return None
    coefficients, time = _functions()
    scales = np.sqrt([network.weight_variance, network.bias_variance])
    riccati_coefficients = coefficients(*slopes[:2], *scales, mean, np.diagonal(starts.second))
    alpha, beta, gamma = np.broadcast_arrays(*riccati_coefficients)
    # Branches that are not taken may divide by zero.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.array([float(time(*each)) for each in zip(alpha, beta, gamma, strict=True)])


def warn_if_close(network: DiffusionNetwork, starts: Starts) -> None:
    """Refuse a horizon beyond the explosion of an input, warn if it is close.

    Raises
    ------
    ValueError
        If T >= T*.
    """
    times = explosion_times(network, starts)
    if times is None:
        return
    first = int(np.argmin(times))
    end, explosion = network.horizon, times[first]
    if end >= explosion:
        raise ValueError(
            f"horizon must be below the explosion time {explosion:.6g} of input {first}, got "
            f"{end:g}: for φ''(0) ≠ 0 the mean of infinitely wide networks is infinite from then on"
        )
    if end >= SETTINGS.close * explosion:
        warnings.warn(
            f"the horizon {end:g} is close to the explosion time {explosion:.6g} of input "
            f"{first}: networks of finite width and depth are far from the limit",
            ValidityWarning,
            stacklevel=validation.level_of_user(),
        )


@lru_cache
def _functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    equation = riccati()
    return (
        lambdify(list(equation.parameters), list(equation.coefficients)),
        lambdify([ALPHA, BETA, GAMMA], equation.explosion_time),
    )
