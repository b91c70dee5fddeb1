"""The saturation argument in numbers: the scaling of F25 eqs. (67) and (68) for a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.coefficients import unit_branch
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.linearised import INPUT, RANGE, SLOPE, saturation_formula


def scaling(
    network: LayeredNetwork,
    kernel: float,
    method: str,
    dynamic_range: float,
    slope: float | None = None,
) -> float:
    """ρ* by the saturation argument, F25 eq. (67), or (68) for the method "large_depth".

    Examples
    --------
    >>> network = ResidualNetwork(depth=50)
    >>> round(scaling(network, 0.05, "saturation", 1.0), 4)
    0.1256
    """
    if not (network.skip_scales == 1).all():
        raise ValueError(f"network must have skip_scale=1 for the method {method}")
    if type(network).features is not ResidualNetwork.features:
        raise ValueError(f"network must be a ResidualNetwork for the method {method}")
    branch = unit_branch(network)
    if branch.weight == 0:
        raise ValueError(f"network must have weight_variance > 0 for the method {method}, got 0.0")
    limit = (validation.nonnegative("dynamic_range", dynamic_range) / 2) ** 2
    slope = _checked_slope(network, method, slope)
    if kernel >= limit:
        return 0.0
    if kernel == 0 == branch.bias:
        raise ValueError(f"K0 must be > 0 without biases for the method {method}, got 0.0")
    # The root of order L and the difference from one lose digits in deep networks.
    with mpmath.workdps(50):
        weight, bias = map(mpmath.sqrt, branch)
        formula = _number(method == "large_depth")
        return float(formula(slope, weight, bias, dynamic_range, float(kernel), network.depth))


def _checked_slope(network: LayeredNetwork, method: str, slope: float | None) -> float:
    if slope is None:
        value = abs(float(network.activation.slope_at_zero))
        if value == 0:
            raise ValueError(f"network must have φ'(0) ≠ 0 for the method {method}")
        return value
    value = validation.nonnegative("slope", slope)
    if value == 0:
        raise ValueError("slope must be > 0, got 0.0")
    return value


@lru_cache
def _number(large_depth: bool) -> Callable[..., Any]:
    symbols = (SLOPE, sym.WEIGHT, sym.BIAS, RANGE, INPUT, sym.DEPTH)
    return sp.lambdify(symbols, saturation_formula(large_depth).rhs, modules="mpmath")
