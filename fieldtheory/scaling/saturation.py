"""The saturation argument: the scaling at which a linearised network fills the dynamic range."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.network import ResidualNetwork


@lru_cache
def saturation_formula(large_depth: bool = False) -> sp.Eq:
    """F25 eq. (67), or (68) for large depth, as an equation for ρ*.

    Returns
    -------
    sympy.Eq
        In the symbols σ_w, σ_b, φ'(0) (``slope``), V, K^(0) and L.
    """
    slope, weight, bias, V, K0, L = _saturation_symbols()
    gain = weight**2 * slope**2
    ratio = (gain * (V / 2) ** 2 + bias**2) / (gain * K0 + bias**2)
    growth = sp.log(ratio) / L if large_depth else ratio ** (1 / L) - 1
    return sp.Eq(sp.Symbol(r"\rho^{*}"), sp.sqrt(growth) / (weight * slope))


def _saturation_symbols() -> tuple[sp.Symbol, ...]:
    names = (r"\phi'(0)", r"\sigma_{w}", r"\sigma_{b}", r"\mathcal{V}", "K^{(0)}", "L")
    return tuple(sp.Symbol(name, positive=True) for name in names)


def scaling(
    network: ResidualNetwork, kernel: np.ndarray, method: str, dynamic_range: float
) -> float:
    if kernel.ndim:
        raise ValueError(f"K0 must be a variance for the method {method}, got {kernel.shape}")
    if not (network.skip_scales == 1).all():
        raise ValueError(f"network must have skip_scale=1 for the method {method}")
    limit = (validation.nonnegative("dynamic_range", dynamic_range) / 2) ** 2
    if kernel >= limit:
        return 0.0
    if kernel == 0 == network.bias_variance:
        raise ValueError(f"K0 must be > 0 without biases for the method {method}, got 0.0")
    slope = float(network.activation.slope_at_zero)
    if slope == 0:
        raise ValueError(f"network must have φ'(0) ≠ 0 for the method {method}")
    formula = sp.lambdify(
        _saturation_symbols(), saturation_formula(method == "large_depth").rhs, modules="math"
    )
    weight, bias = network.weight_variance**0.5, network.bias_variance**0.5
    return formula(abs(slope), weight, bias, dynamic_range, float(kernel), network.depth)
