"""Estimates of the orders in 1/N beyond the leading one that simulated networks have."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from fieldtheory.montecarlo.compared_quantities import Measured
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.numerics.fields import FIELDS
from fieldtheory.numerics.solution import Solution
from fieldtheory.numerics.symmetric_matrices import unpacked


def relative_variances(ensemble: Ensemble) -> np.ndarray:
    """ε_l, the largest relative variance of the kernels of the hidden layers before l, (L+2,).

    Relative to the variances of the inputs: Var C_αβ / (C_αα C_ββ), likewise for K. Layer 1 has no
    kernels before it that fluctuate, so its averages are exact at any width.
    """
    layers = np.arange(len(ensemble.mean))
    of_residuals = ensemble.covariance[layers, layers]
    of_kernels = ensemble.kernel_covariance[layers, layers]
    found = np.zeros(len(layers))
    parts = ((ensemble.mean, of_residuals), (ensemble.kernel_mean, of_kernels))
    for mean, variance in parts:
        size = _sizes(mean, ensemble.input_kernel.ndim > 0) ** 2
        relative = np.divide(variance, size, out=np.zeros_like(variance), where=size > 0)
        found = np.maximum(found, relative.reshape(len(layers), -1).max(axis=1))
    return np.concatenate([[0.0], np.maximum.accumulate(found)[:-1]])


def theory(quantity: Measured, name: str = "") -> np.ndarray:
    """The field, or another one, as simulations have it: every pair of inputs with itself.

    Where they have two different pairs of inputs it is left as it is.
    """
    name = name or quantity.field.name
    values = np.asarray(getattr(quantity.solution, name))
    several = quantity.solution.input_kernel.ndim and not quantity.across
    if several and FIELDS[name].of_inputs == ("pair", "pair_"):
        return unpacked(np.diagonal(values, axis1=-2, axis2=-1), True)
    return values


def reference(quantity: Measured) -> np.ndarray:
    """To what deviations from a field are relative, of its shape.

    √(K_αα K_ββ) for kernels, √(Var Var) for covariances of layers, √(V_pp V_qq) for the vertex of
    two pairs of inputs, else the size of the field.
    """
    values, field = theory(quantity), quantity.field
    if quantity.across:
        own = np.diagonal(values, axis1=-2, axis2=-1)
        if len(field.dims) > 1:
            spread = np.sqrt(np.maximum(np.diagonal(own).T, 0.0))
            return spread[:, None, :, None] * spread[:, None, :]
        spread = np.sqrt(np.abs(own))
        return spread[..., :, None] * spread[..., None, :]
    if len(field.dims) > 1:
        spread = np.sqrt(np.maximum(np.moveaxis(np.diagonal(values), -1, 0), 0.0))
        return spread[:, None] * spread
    if field.of_kernels:
        return _sizes(values, quantity.solution.input_kernel.ndim > 0)
    return np.abs(values)


def sizes(
    quantity: Measured, spreads: list[np.ndarray], own: np.ndarray, order: int = 0
) -> np.ndarray:
    """The size of what an extrapolation over several widths leaves out, of the shape of a field.

    With q = q_0 + q_1/N + ..., the polynomial through the values at k widths has the coefficients
    q_j up to q_k e_{k-j}(1/N_1, ..., 1/N_k), the elementary symmetric polynomial; for j = 0 that is
    the product of all 1/N_i. q_k/N^k is taken as (n ε)^k times the size of the field, where n is
    the number of gains a_l M' that are multiplied in a response, and 1 otherwise.

    Parameters
    ----------
    quantity : Measured
    spreads : list of ndarray, shape (L+2,)
        ε_l for every width, see `relative_variances`.
    own : ndarray, shape (L+2,)
        ε_l for the width of the solution, to which q_j/N^j belongs.
    order : int
        j.
    """
    k, epsilon, field = len(spreads), np.zeros_like(own), quantity.field
    for chosen in combinations(spreads, k - order):
        epsilon = epsilon + own**order * np.prod(chosen, axis=0)
    size = reference(quantity)
    if len(field.dims) > 1:
        return _broadcast(np.maximum(epsilon[:, None], epsilon), size) * size
    epsilon = _broadcast(epsilon[: len(size)], size) if field.dims else epsilon[-1]
    if field.simulated.startswith("SimulatedResponse"):
        epsilon = epsilon * _gains(quantity.solution).get(field.name, 1.0) ** k
    return epsilon * size


def _gains(solution: Solution) -> dict[str, np.ndarray]:
    """The number of gains in every response, each counted with its share in the factor it is in.

    χ^(l) is a product of factors γ_k² + gain_k, in which gain_k has the share η^(k)/χ^(k).
    """
    eta, chi = solution.residual_response, solution.response
    share = np.divide(np.abs(eta), np.abs(chi), out=np.ones_like(eta), where=chi != 0)
    share[0] = 0.0
    total = np.cumsum(share, axis=0)
    before = np.concatenate([np.zeros_like(total[:1]), total[:-1]])
    return {
        "residual_response": 1 + before,
        "response": total,
        "output_response": 1 + total[-1],
    }


def _sizes(kernels: np.ndarray, matrix: bool) -> np.ndarray:
    """√(K_αα K_ββ) for every pair of inputs; K itself for one input."""
    if not matrix:
        return np.abs(kernels)
    own = np.sqrt(np.maximum(np.diagonal(kernels, axis1=-2, axis2=-1), 0.0))
    return own[..., :, None] * own[..., None, :]


def _broadcast(layers: np.ndarray, field: np.ndarray) -> np.ndarray:
    return layers.reshape(*layers.shape, *[1] * (field.ndim - layers.ndim))
