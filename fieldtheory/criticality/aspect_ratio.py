"""The optimal ratio of depth to width, and the skip scale for a given ratio: PDLT-B (B.36)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import optimize

from fieldtheory import validation
from fieldtheory.criticality.vertex_growth import vertex_slope
from fieldtheory.networks.activations import Activation, as_activation
from fieldtheory.networks.parameters import named_arguments

# Skip scales between which the largest ν is looked for.
_GRID = np.linspace(0.0, 1.0, 41)


@named_arguments
def optimal_aspect_ratio(
    activation: Any, skip_scale: Any, outputs: int = 1, closure: bool = False
) -> Any:
    """The ratio of depth to width at which outputs share most information at initialisation.

        r* = L/N = [4/(20 + 3 n_L)] / ν(γ)     (PDLT-B (B.36))

    with ν of `vertex_slope`: the mutual information of two sets of n_L outputs grows with ν r and
    falls again, with its maximum at ν r = 4/(20 + 3 n_L) (PDLT (A.73)).

    Parameters
    ----------
    activation : str, Activation, sympy.Expr or callable
        φ.
    skip_scale : float or array_like
        γ from −1 to 1.
    outputs : int
        n_L >= 1.
    closure : bool
        With ν as PDLT-B prints it, (B.29), (B.35).

    Returns
    -------
    float or ndarray
        r*, of the shape of ``skip_scale``; ∞ at γ = ±1.

    Raises
    ------
    TypeError, ValueError
        As `vertex_slope`, or if ``outputs`` < 1.

    Notes
    -----
    PDLT-B says after (B.36) that r* increases with γ. With the exact ν that is so for |a_+| = |a_−|
    and in the class K* = 0 of smooth φ; for ReLU r* first decreases, up to γ² = 0.20.

    Examples
    --------
    >>> gamma = [0.0, 0.5, 0.9]
    >>> optimal_aspect_ratio("relu", gamma, closure=True).round(4)
    array([0.0348, 0.0488, 0.2185])
    >>> optimal_aspect_ratio("relu", gamma).round(4)
    array([0.0348, 0.0268, 0.0686])
    """
    best = _best(outputs)
    nu = np.asarray(vertex_slope(activation, skip_scale, closure))
    with np.errstate(divide="ignore"):
        ratios = best / nu
    return float(ratios) if ratios.ndim == 0 else ratios


@named_arguments
def optimal_skip_scale(
    activation: Any, aspect_ratio: float, outputs: int = 1, closure: bool = False
) -> float:
    """The skip scale at which outputs share most information, for a given depth and width.

    The inverse of `optimal_aspect_ratio`: ν(γ*) r = 4/(20 + 3 n_L) (PDLT-B, after (B.36)). For
    networks so shallow that no γ reaches that, γ* is where ν is largest, since the information
    grows with ν r up to there. Weights and biases then are those of
    `critical_network` at γ*.

    Parameters
    ----------
    activation : str, Activation, sympy.Expr or callable
        φ.
    aspect_ratio : float
        r = L/N > 0.
    outputs : int
        n_L >= 1.
    closure : bool
        With ν as PDLT-B prints it.

    Returns
    -------
    float
        γ*, 0 <= γ* < 1. Where two γ solve the equation, the larger one, which goes on to
        1 − γ*² ∝ 1/r.

    Raises
    ------
    TypeError, ValueError
        If ``aspect_ratio`` is not a positive number, or as `optimal_aspect_ratio`.

    Notes
    -----
    PDLT-B has γ* = 0 for r < r*(γ = 0). That holds where ν decreases with γ. For ReLU the exact ν
    is largest at γ = 0.45, so that skip connections help shallower networks, too.

    Examples
    --------
    >>> [round(optimal_skip_scale("relu", r, closure=True), 4) for r in (0.01, 0.1, 1.0)]
    [0.0, 0.7774, 0.9783]
    >>> [round(optimal_skip_scale("relu", r), 4) for r in (0.01, 0.1, 1.0)]
    [0.4488, 0.935, 0.9941]
    """
    phi = as_activation(activation)
    wanted = _best(outputs) / validation.positive("aspect_ratio", aspect_ratio)
    top, highest = _largest(phi, closure)
    if wanted >= highest:
        return top

    def excess(gamma: float) -> float:
        return float(vertex_slope(phi, gamma, closure)) / wanted - 1

    return float(optimize.brentq(excess, top, 1.0, xtol=1e-15, rtol=1e-14))


def _best(outputs: int) -> float:
    """ν r at the largest mutual information."""
    return 4 / (20 + 3 * validation.integer("outputs", outputs, 1))


@lru_cache(maxsize=64)
def _largest(phi: Activation, closure: bool) -> tuple[float, float]:
    """The γ >= 0 with the largest ν, and that ν."""
    values = vertex_slope(phi, _GRID, closure)
    index = int(values.argmax())
    if index == 0:
        return 0.0, float(values[0])
    optimum = optimize.minimize_scalar(
        lambda gamma: -float(vertex_slope(phi, float(gamma), closure)),
        bounds=(_GRID[index - 1], _GRID[index + 1]),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(optimum.x), float(-optimum.fun)
