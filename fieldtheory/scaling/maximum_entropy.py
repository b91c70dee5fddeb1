"""Maximum entropy: the variance of the signal at which φ(h) is closest to uniform (F25 appendix E).

With y = φ(h) as the variable of integration the divergence of F25 eq. (140) becomes that between
two densities of h, q(h) = φ'(h)/R of a uniform y with R = φ(∞) − φ(−∞), and the Gaussian of h:

    D_KL(uniform ‖ p_φ) = ∫ dy (1/R) [ln(1/R) − ln p_φ(y)] = ∫ dh q(h) [ln q(h) − ln N(h; 0, σ²)]

Only ln N depends on σ², so the divergence needs ⟨ln q⟩_q and ⟨h²⟩_q of a φ, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.activations import Activation, as_activation, h
from fieldtheory.scaling.uniform_density import (
    FLOAT_DIGITS,
    average,
    density,
    log_density,
    second_moment,
)

VARIANCE = sp.Symbol(r"\sigma^{2}", positive=True)

_SECOND_MOMENT = sp.Symbol("second_moment", positive=True)
_LOG_DENSITY = sp.Symbol("log_density", real=True)
_GUARD = 10


def divergence_formula(activation: str | Activation | sp.Expr = "erf") -> sp.Expr:
    """D_KL of a uniform distribution from that of φ(h), h ~ N(0, σ²) (F25 eqs. (140), (141)).

    Examples
    --------
    >>> sp.expand(divergence_formula() - sp.log(2 * VARIANCE) / 2)
    -1/2 + 1/(4*\\sigma^{2})
    """
    phi = as_activation(activation)
    values = {_SECOND_MOMENT: second_moment(phi), _LOG_DENSITY: log_density(phi)}
    return _divergence().xreplace(values)


def variance_formula(activation: str | Activation | sp.Expr = "erf") -> sp.Expr:
    """The σ² with the smallest divergence, ⟨h²⟩ under the density q(h) = φ'(h)/R.

    Examples
    --------
    >>> variance_formula("erf"), variance_formula("tanh"), variance_formula("logistic")
    (1/2, pi**2/12, pi**2/3)
    """
    return _minimum().xreplace({_SECOND_MOMENT: second_moment(as_activation(activation))})


def divergence(activation: str | Activation | sp.Expr, variance: Any) -> float | np.ndarray:
    """D_KL of a uniform distribution from that of φ(h), h ~ N(0, σ²), in float64.

    Examples
    --------
    >>> divergence("erf", [0.25, 0.5])
    array([0.15342641, 0.        ])
    """
    variances = validation.finite_array("variance", variance)
    if (variances <= 0).any():
        raise ValueError(f"variance must be > 0, got {float(variances.min())!r}")
    second, smallest = _float_moments(as_activation(activation))
    value = _float_function()(second, smallest, variances)
    return float(value) if variances.ndim == 0 else value


def maximum_entropy_variance(activation: str | Activation | sp.Expr = "erf") -> float:
    """The σ² at which φ(h), h ~ N(0, σ²), is closest to uniform (F25 appendix E, corrected).

    Parameters
    ----------
    activation : str, Activation or sympy.Expr
        φ, strictly monotone with finite limits.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If φ is unbounded or not strictly monotone, or if ⟨h²⟩_q diverges.

    Examples
    --------
    >>> maximum_entropy_variance("erf"), round(maximum_entropy_variance("tanh"), 6)
    (0.5, 0.822467)
    """
    return _float_moments(as_activation(activation))[0]


def precise_variance(activation: str | Activation | sp.Expr, digits: int = 50) -> Any:
    """`maximum_entropy_variance` to a given number of digits, by integrating h² φ'(h)/R.

    Examples
    --------
    >>> print(precise_variance("erf", digits=30))
    0.5
    """
    return average(as_activation(activation), h**2, validation.integer("digits", digits, 1))


def precise_divergence(
    activation: str | Activation | sp.Expr, variance: Any, digits: int = 50
) -> Any:
    """D_KL to a given number of digits, by integrating its definition (F25 eq. (140)).

    Examples
    --------
    >>> print(mpmath.nstr(precise_divergence("erf", 0.25, digits=30), 20))
    0.15342640972002734529
    """
    phi = as_activation(activation)
    digits = validation.integer("digits", digits, 1)
    with mpmath.workdps(digits + _GUARD):
        number = mpmath.mpmathify(variance)
        if not (mpmath.isfinite(number) and number > 0):
            raise ValueError(f"variance must be a finite real number > 0, got {variance!r}")
        exact = sp.Float(number, digits + _GUARD)
        log_ratio = sp.log(density(phi)) - _log_gaussian().subs(VARIANCE, exact)
    return average(phi, log_ratio, digits)


def _log_gaussian() -> sp.Expr:
    gaussian = sp.exp(-(h**2) / (2 * VARIANCE)) / sp.sqrt(2 * sp.pi * VARIANCE)
    return sp.expand_log(sp.log(gaussian), force=True)


@lru_cache
def _divergence() -> sp.Expr:
    """D_KL in ⟨h²⟩_q, ⟨ln q⟩_q and σ²."""
    return _LOG_DENSITY - _log_gaussian().subs(h**2, _SECOND_MOMENT)


@lru_cache
def _minimum() -> sp.Expr:
    (variance,) = sp.solve(sp.diff(_divergence(), VARIANCE), VARIANCE)
    return variance


@lru_cache
def _float_function() -> Callable[..., Any]:
    """D_KL(⟨h²⟩_q, smallest D_KL, σ²); the difference from the smallest one is free of ⟨ln q⟩_q."""
    above = _divergence() - _divergence().subs(VARIANCE, _minimum())
    smallest = sp.Symbol("smallest")
    return sp.lambdify([_SECOND_MOMENT, smallest, VARIANCE], smallest + sp.logcombine(above))


@lru_cache
def _float_moments(phi: Activation) -> tuple[float, float]:
    """⟨h²⟩_q and the smallest divergence of φ."""
    second = precise_variance(phi, FLOAT_DIGITS)
    smallest = precise_divergence(phi, second, FLOAT_DIGITS)
    return float(second), float(mpmath.chop(smallest, mpmath.mpf(10) ** (5 - FLOAT_DIGITS)))
