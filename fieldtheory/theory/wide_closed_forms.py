"""Closed forms of the wide limit for ψ(x) = x: exponentials for φ''(0) = 0, else a Riccati mean.

For φ''(0) = 0 the covariance holds at every width D; its coefficient of Δt, the error of finite
depth, for wide networks alone. Neither is in PF.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from fieldtheory.theory import notation as sym
from fieldtheory.theory.riccati_mean import ALPHA, BETA, GAMMA, TIME, riccati
from fieldtheory.theory.small_increments import S_II, S_IJ, S_JJ, SLOPES
from fieldtheory.theory.wide_diffusion import CHANGE, GROWTH, second_moment, wide_rates

# (1/D) Σ_d z_d^i z_d^j of two inputs, z_i z_j if they are copied to every neuron; means of each.
Z_IJ = sp.Symbol(r"\overline{z_{i} z_{j}}", real=True)
Z_I, Z_J = sp.symbols(r"\bar{z}_{i} \bar{z}_{j}", real=True)
# φ'(0)² σ²_w.
RATE = sp.Symbol(r"\lambda", positive=True)


class ClosedForm(NamedTuple):
    """Mean m_i and covariance V_ij at time t = `TIME` of what a neuron has moved.

    ``mean_change`` and ``covariance_change`` are their coefficients of Δt, in the S_ij = σ²_b +
    σ²_w z_i z_j of the start; None where they are not known. For a Riccati mean ``covariance`` is
    the variance, j = i, and ``where`` says what α, β, γ are. ``explosion_time`` is oo where there
    is none.
    """

    mean: sp.Expr
    covariance: sp.Expr
    mean_change: sp.Expr | None
    covariance_change: sp.Expr | None
    explosion_time: sp.Expr
    where: dict[sp.Symbol, sp.Expr]


@lru_cache
def linear_covariance() -> sp.Expr:
    """V_ij = (z_i z_j + σ²_b/σ²_w) (e^(φ'(0)² σ²_w t) − 1) for ψ(x) = x and φ''(0) = 0.

    Examples
    --------
    >>> linear_covariance().subs(TIME, 0)
    0
    """
    V = sp.Function("V")
    rate = wide_rates().covariance.subs(S_IJ, second_moment(Z_IJ + V(TIME)))
    solved = sp.dsolve(V(TIME).diff(TIME) - rate, V(TIME), ics={V(0): 0}).rhs
    growth = sp.exp(SLOPES[0] ** 2 * sym.WEIGHT**2 * TIME)
    return sp.factor(sp.expand(solved).coeff(growth)) * (growth - 1)


@lru_cache
def linear_change() -> tuple[sp.Expr, sp.Expr]:
    """The coefficients of Δt of the mean and the covariance for ψ(x) = x and φ''(0) = 0.

    In `S_II`, `S_JJ`, `S_IJ` of the start and `RATE`.

    Examples
    --------
    >>> linear_change()[0]
    S_{ii}**2*\\phi_4*(exp(\\lambda*t) - 1)*(exp(\\lambda*t) + 1)/(16*\\lambda)
    """
    rates = wide_rates()
    growth = sp.exp(RATE * TIME)
    per_weight = RATE / SLOPES[0] ** 2
    # Q_ij grows as S_ij does, less σ²_b.
    grown = {s: s * growth for s in (S_II, S_IJ, S_JJ)}
    grown |= {GROWTH: RATE * S_IJ * growth / per_weight, sym.WEIGHT: sp.sqrt(per_weight)}
    flat = {SLOPES[1]: 0, CHANGE: 0}
    mean = _integrated(rates.mean_change.subs(flat).subs(grown, simultaneous=True))
    # The mean moves Q_ij as well.
    carried = RATE * (Z_J * mean + Z_I * mean.subs(S_II, S_JJ))
    source = rates.covariance_change.subs(flat).subs(grown, simultaneous=True) + carried
    return sp.factor(mean), sp.factor(growth * _integrated(sp.expand(source) / growth))


def closed_form(slopes: Sequence[sp.Expr] = SLOPES) -> ClosedForm:
    """The closed form for ψ(x) = x and given derivatives of φ at 0.

    Parameters
    ----------
    slopes : sequence of sympy.Expr
        φ'(0) to φ''''(0).

    Returns
    -------
    ClosedForm

    Examples
    --------
    >>> closed_form((1, 0, -2, 0)).mean_change, closed_form((1, 1, 0, 0)).covariance
    (0, 2*m)
    """
    put = dict(zip(SLOPES, map(sp.sympify, slopes), strict=True))
    if put[SLOPES[1]] == 0:
        rate = SLOPES[0] ** 2 * sym.WEIGHT**2
        mean, covariance = (sp.factor(change.subs(put)) for change in linear_change())
        if put[SLOPES[0]] != 0:
            mean, covariance = (c.subs(RATE, rate.subs(put)) for c in (mean, covariance))
        else:
            mean, covariance = (sp.limit(c, RATE, 0) for c in (mean, covariance))
        limit = linear_covariance().subs(put)
        return ClosedForm(sp.S.Zero, limit, mean, covariance, sp.oo, {})
    found = riccati()
    where = dict(zip((ALPHA, BETA, GAMMA), (c.subs(put) for c in found.coefficients), strict=True))
    return ClosedForm(found.mean, found.variance.subs(put), None, None, found.explosion_time, where)


def _integrated(rate: sp.Expr) -> sp.Expr:
    """∫_0^t of exponentials."""
    return sp.integrate(sp.expand(rate), (TIME, 0, TIME)) if rate != 0 else sp.S.Zero
