"""Critical weights and biases of an activation: PDLT-B (B.19)-(B.21), and the edge of chaos."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from fieldtheory import validation
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.criticality.small_variance import (
    SmallVariance,
    small_variance,
    variances_around_scale,
)
from fieldtheory.networks.activations import Activation, as_activation
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions

SCALE_INVARIANT, VANISHING, HALF_STABLE = "scale-invariant", "K*=0", "half-stable"


@dataclass(frozen=True, kw_only=True)
class CriticalPoint:
    """Critical point of a residual network: the result of `critical_point`.

    Parameters
    ----------
    activation : Activation
    skip_scale : float
        γ.
    kind : {"scale-invariant", "K*=0", "half-stable"}
        The universality class.
    weight_variance, bias_variance : float
        C_W and C_b, the σ²_w and σ²_b of a network with ρ = 1.
    kernel : float or None
        The fixed point K*; None where every variance is one (scale-invariant).
    small : SmallVariance or None
        The expansion of M(K) at K = 0; None for the half-stable class.

    Examples
    --------
    >>> critical_point("tanh", 0.5)
    CriticalPoint(tanh, γ = 0.5: K*=0, C_W = 0.75, C_b = 0; M(K) = K - 2 K^2 + ...)
    >>> critical_point("relu", 0.5)
    CriticalPoint(relu, γ = 0.5: scale-invariant, C_W = 1.5, C_b = 0; M(K) = 0.5 K)
    """

    activation: Activation
    skip_scale: float
    kind: str
    weight_variance: float
    bias_variance: float
    kernel: float | None
    small: SmallVariance | None

    def __repr__(self) -> str:
        variances = f"C_W = {self.weight_variance:.6g}, C_b = {self.bias_variance:.6g}"
        head = f"{self.activation.name}, γ = {self.skip_scale:g}: {self.kind}, {variances}"
        if self.small is None:
            return f"CriticalPoint({head}; K* = {self.kernel:.6g})"
        return f"CriticalPoint({head}; {_expansion(self.small)})"


@named_arguments
def critical_point(activation: Any, skip_scale: float = 0.0) -> CriticalPoint:
    """Weights and biases at which a residual network neither amplifies nor damps signals.

        χ_∥(K*) = 1,   χ_⊥(K*) = 1,   K* = C_b + C_W M(K*) + γ² K*     (PDLT-B (B.19), (B.12))

    The class of the activation is found from φ:

    ``"scale-invariant"``
        φ(h) = a_± h on either side of zero (ReLU, leaky ReLU, linear, |h|): every K* is a fixed
        point, C_b = 0, C_W = (1 − γ²)/A_2 with A_2 = (a_+² + a_−²)/2 (B.20).
    ``"K*=0"``
        φ(0) = 0, φ'(0) ≠ 0, and M(K) bends below A_2 K (tanh, erf, sin, softsign, ELU): C_b = 0,
        C_W = (1 − γ²)/A_2 with A_2 = M'(0), which is φ'(0)² where φ has no kink at zero (B.21).
    ``"half-stable"``
        All others that have K* > 0 with ⟨φφ''⟩ = 0 at K* and C_b > 0 (GELU, swish). PDLT has
        this class for γ = 0 (section 5.3.4); with skip connections C_W and C_b are 1 − γ² times
        theirs.

    Parameters
    ----------
    activation : str, Activation, sympy.Expr or callable
        φ, as for `ResidualNetwork`.
    skip_scale : float
        γ, of every layer; −1 < γ < 1.

    Returns
    -------
    CriticalPoint

    Raises
    ------
    ValueError
        If |γ| >= 1, where C_W = 0 alone solves the conditions, or if the activation has no critical
        point; the message says why.

    Notes
    -----
    PDLT takes φ smooth at zero in the class K* = 0, and M(K) = A_2 (K + a_1 K² + ...) as in (B.30).
    Where φ' or φ'' jumps at zero the first correction is K^(3/2) instead.

    Examples
    --------
    >>> critical_point("gelu").kernel.__round__(4)
    3.5616
    >>> critical_point("softplus")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: activation must have a critical point, softplus has none: φ(0) = 0.693147 ...
    """
    phi = as_activation(activation)
    gamma = checked_skip_scale(skip_scale)
    reason, small = "", None
    try:
        small = small_variance(phi)
    except ValueError as error:
        reason = str(error)
    strength = 1 - gamma**2
    if small is not None and (small.scale_invariant or small.bend < 0):
        return CriticalPoint(
            activation=phi,
            skip_scale=gamma,
            kind=SCALE_INVARIANT if small.scale_invariant else VANISHING,
            weight_variance=strength / float(small.second_moment),
            bias_variance=0.0,
            kernel=None if small.scale_invariant else 0.0,
            small=small,
        )
    if small is not None:
        reason = "kernels grow away from K* = 0, since M(K) bends above its tangent there"
    try:
        solution, elsewhere = _half_stable(phi), "no K* > 0 has ⟨φφ''⟩ = 0 with C_b >= 0"
    except ValueError as error:
        solution, elsewhere = None, f"no K* > 0 has a finite ⟨φ'²⟩: {error}"
    if solution is None:
        raise ValueError(
            f"activation must have a critical point, {phi.name} has none: {reason}; and {elsewhere}"
        )
    weight, bias, kernel = solution
    return CriticalPoint(
        activation=phi,
        skip_scale=gamma,
        kind=HALF_STABLE,
        weight_variance=strength * weight,
        bias_variance=strength * bias,
        kernel=kernel,
        small=None,
    )


def critical_network(
    activation: Any, skip_scale: float = 0.0, depth: int = 50, **parameters: Any
) -> ResidualNetwork:
    """A residual network with critical weights and biases, see `critical_point`.

    Its kernels and responses neither grow nor fall off exponentially with depth:
    σ²_w = (1 − γ²)/A_2 and σ_b = 0 for ReLU, tanh, erf, ... (PDLT-B (B.20), (B.21)), with ρ = 1.

    Parameters
    ----------
    activation : str, Activation, sympy.Expr or callable
        φ.
    skip_scale : float
        γ of every layer, −1 < γ < 1.
    depth : int
        L.
    **parameters
        Others of `ResidualNetwork`, such as ``width``. Read-in and readout, which have no skip
        connection, get the weights and biases that are critical for γ = 0 unless given.

    Returns
    -------
    ResidualNetwork

    Raises
    ------
    TypeError
        For parameters that are given by criticality (``branch_scale``, ``weight_variance``,
        ``bias_variance``), or are unknown.
    ValueError
        As `critical_point`.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.critical_network("relu", skip_scale=0.8, depth=100, width=300)
    >>> round(net.weight_variance, 6), round(net.readout_weight_variance, 6)
    (0.72, 2.0)
    >>> s = ft.solve(net, 0.05)
    >>> s.kernels[[0, 100, 101]].round(6), s.response[[0, 100]].round(6)
    (array([0.05, 0.05, 0.05]), array([1., 1.]))
    """
    for name in ("branch_scale", "weight_variance", "bias_variance"):
        if name in parameters:
            raise TypeError(f"{name} is fixed by criticality, got {parameters[name]!r}")
    point = critical_point(activation, skip_scale)
    ends = {
        f"{end}_{kind}_variance": value / (1 - point.skip_scale**2)
        for end in ("readin", "readout")
        for kind, value in (("weight", point.weight_variance), ("bias", point.bias_variance))
    }
    return ResidualNetwork(
        depth=depth,
        activation=point.activation,
        skip_scale=point.skip_scale,
        weight_variance=point.weight_variance,
        bias_variance=point.bias_variance,
        **(ends | parameters),
    )


def checked_skip_scale(value: Any) -> float:
    """γ as a float between −1 and 1, or raise in the same words whatever it is.

    Examples
    --------
    >>> checked_skip_scale(0)
    0.0
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    if number and abs(float(value)) < 1:
        return float(value)
    raise (ValueError if number else TypeError)(
        f"skip_scale must be a number between -1 and 1, got {validation.excerpt(value)}: at γ² = 1 "
        "no weights are critical (PDLT-B, after (B.21))"
    )


@lru_cache(maxsize=64)
def _half_stable(phi: Activation) -> tuple[float, float, float] | None:
    """C_W, C_b and K* for γ = 0 at the smallest K* > 0 with M' = ⟨φ'²⟩ and C_b >= 0."""
    averages, searched = layer_functions(phi), variances_around_scale(phi)

    def excess(K: Any) -> Any:
        """⟨φφ''⟩ = M'(K) − ⟨φ'²⟩, relative to ⟨φ'²⟩."""
        return averages.susceptibility(K) / averages.slope_square(K) - 1

    def excess_or_nan(K: float) -> float:
        try:
            return float(excess(K))
        except QuadratureError:
            return np.nan

    with np.errstate(all="ignore"):
        try:
            values = excess(searched)
        except QuadratureError:
            # Of functions that grow as exp(h) for instance, at large variances.
            values = np.array([excess_or_nan(K) for K in searched])
    # Larger on either side of a root, so that rounding is taken for none, and smaller at it, where
    # a change of sign may be a jump of lost digits.
    least = 1e-9
    clear = np.isfinite(values) & (np.abs(values) > least)
    for low, high in zip(np.flatnonzero(clear)[:-1], np.flatnonzero(clear)[1:], strict=True):
        if values[low] * values[high] > 0:
            continue
        K = float(optimize.brentq(excess, searched[low], searched[high], xtol=1e-300, rtol=1e-14))
        if not abs(excess_or_nan(K)) <= least:
            continue
        weight = 1 / float(averages.susceptibility(K))
        bias = K - weight * float(averages.second_moment(K))
        if weight > 0 and bias >= 0:
            return weight, bias, K
    return None


def _expansion(small: SmallVariance) -> str:
    A2 = float(small.second_moment)
    head = f"M(K) = {'' if A2 == 1 else f'{A2:.6g} '}"
    if small.scale_invariant:
        return f"{head}K"
    if not small.power.is_finite:
        return f"{head}K but for terms smaller than every power of K"
    bend = float(small.bend)
    series = f"K {'-' if bend < 0 else '+'} {abs(bend):.6g} K^{small.power}"
    return f"{head}({series} + ...)" if A2 != 1 else f"{head}{series} + ..."


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
