"""The line of critical weights and biases of feed-forward networks, the edge of chaos."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from fieldtheory import validation
from fieldtheory.criticality.small_variance import variances_around_scale
from fieldtheory.criticality.universality import critical_point
from fieldtheory.networks.activations import Activation, as_activation
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions


class EdgeOfChaos(NamedTuple):
    """A point of the line: σ²_w, σ²_b, and K*, None where every variance is a fixed point.

    Parameters
    ----------
    weight_variance, bias_variance : float
    kernel : float or None

    Examples
    --------
    >>> EdgeOfChaos(2.0, 0.0, None).weight_variance
    2.0
    """

    weight_variance: float
    bias_variance: float
    kernel: float | None


@named_arguments
def edge_of_chaos(activation: Any, bias_variance: float = 0.0) -> EdgeOfChaos:
    """The weights at which nearby inputs neither approach nor leave each other, given the biases.

        χ_⊥ = σ²_w ⟨φ'²⟩_K* = 1,   K* = σ²_b + σ²_w ⟨φ²⟩_K*

    in feed-forward networks (PDLT-B (B.16), (B.12) for γ = 0; PF section 1 takes parameters on this
    line). At ``bias_variance`` = 0 it is the `critical_point`. For a bias variance > 0 the smallest
    K* is taken; χ_∥, which moves the variance, is then below 1 for tanh and the like.

    Parameters
    ----------
    activation : str, Activation, sympy.Expr or callable
        φ, as for `fieldtheory.FeedForwardNetwork`.
    bias_variance : float
        σ²_b >= 0.

    Returns
    -------
    EdgeOfChaos

    Raises
    ------
    ValueError
        If there is no such point, as for ReLU with biases.

    Examples
    --------
    >>> found = edge_of_chaos("tanh", 0.05)
    >>> round(found.weight_variance, 4), round(found.kernel, 4)
    (1.761, 0.57)
    >>> edge_of_chaos("relu")
    EdgeOfChaos(weight_variance=2.0, bias_variance=0.0, kernel=None)
    """
    phi = as_activation(activation)
    bias = validation.nonnegative("bias_variance", bias_variance)
    if bias == 0:
        point = critical_point(phi)
        if point.bias_variance == 0:
            return EdgeOfChaos(point.weight_variance, 0.0, point.kernel)
    kernel = _fixed_point(phi, bias)
    return EdgeOfChaos(1 / float(layer_functions(phi).slope_square(kernel)), bias, kernel)


def _fixed_point(phi: Activation, bias: float) -> float:
    averages = layer_functions(phi)

    def excess(K: Any) -> Any:
        """K − σ²_w ⟨φ²⟩ − σ²_b with σ²_w = 1/⟨φ'²⟩."""
        return K - averages.second_moment(K) / averages.slope_square(K) - bias

    searched = variances_around_scale(phi)
    # K* is larger than the variance of the bias.
    searched = np.append(bias, searched[searched > bias]) if bias else searched
    with np.errstate(all="ignore"):
        values = excess(searched)
    crossings = np.flatnonzero((values[:-1] <= 0) & (values[1:] > 0))
    if not len(crossings):
        raise ValueError(
            f"bias_variance must be one of the edge of chaos, {phi.name} has none at {bias:g}"
        )
    low, high = searched[crossings[0] : crossings[0] + 2]
    return float(optimize.brentq(excess, low, high, xtol=1e-300, rtol=1e-14))
