"""The wide limit of residual diffusions: rates of means and covariances, and their order Δt.

For D → ∞ the Gram matrix of ψ(x) is its mean, so that neurons are independent and each moves by
increments whose cumulants `increments` gives. Their rates are those of PF Corollary 3.3; the wide
limit itself, which PF expects in section 4.2, and the error of finite depth are not in PF.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from fieldtheory.theory import notation as sym
from fieldtheory.theory.depth_flow import displacement
from fieldtheory.theory.small_increments import S_II, S_IJ, S_IK, S_JK, increments

# The Gram entry Q_ij = ⟨(1/D) Σ_d ψ(x_d^i) ψ(x_d^j)⟩, how fast it grows, its coefficient of Δt.
GRAM = sp.Symbol("Q_{ij}", real=True)
GROWTH = sp.Symbol(r"\dot{Q}_{ij}", real=True)
CHANGE = sp.Symbol(r"\delta Q_{ij}", real=True)


class WideRates(NamedTuple):
    """Rates in S_ij = σ²_b + σ²_w Q_ij, for what one neuron has moved from its start.

    ``mean`` dm_i/dt and ``covariance`` dV_ij/dt of the limit L → ∞, in `S_II` and `S_IJ`.

    At finite depth m_i + Δt δm_i, V_ij + Δt δV_ij and a third cumulant Δt κ_iij, up to Δt²:
    ``mean_change`` dδm_i/dt, in `S_II` and `GROWTH`, `CHANGE` at j = i; ``covariance_change``
    dδV_ij/dt; ``third_cumulant`` dκ_iij/dt in `S_II` and `S_IJ`. All are for Δt = 1.
    """

    mean: sp.Expr
    covariance: sp.Expr
    mean_change: sp.Expr
    covariance_change: sp.Expr
    third_cumulant: sp.Expr


def second_moment(gram: sp.Expr) -> sp.Expr:
    """S_ij = σ²_b + σ²_w Q_ij, the covariance of u = W ψ(x) + b over Δt (PF section 3.4).

    Examples
    --------
    >>> second_moment(GRAM)
    Q_{ij}*\\sigma_{w}**2 + \\sigma_{b}**2
    """
    return sym.BIAS**2 + sym.WEIGHT**2 * gram


@lru_cache
def wide_rates() -> WideRates:
    """The rates of means, covariances and what finite depth adds to them.

    Returns
    -------
    WideRates

    Notes
    -----
    A layer is an Euler step of length Δt of the rates plus Δt times the next order of the moments;
    such steps follow the flow whose first change is that of `displacement`.

    Examples
    --------
    >>> from fieldtheory.theory.small_increments import SLOPES
    >>> found = wide_rates()
    >>> found.mean, found.covariance
    (S_{ii}*\\phi_2/2, S_{ij}*\\phi_1**2)
    >>> found.mean_change.subs(SLOPES[1], 0), found.third_cumulant.subs(SLOPES[1], 0)
    (S_{ii}**2*\\phi_4/8, 0)
    """
    moments = increments()
    step = displacement(CHANGE, sp.S.One, GROWTH)

    def change(rate: sp.Expr, entry: sp.Symbol, following: sp.Expr) -> sp.Expr:
        return sp.expand(rate.diff(entry) * second_moment(GRAM).diff(GRAM) * step + following)

    equal = {S_IK: S_IJ, S_IJ: S_II, S_JK: S_IJ}
    return WideRates(
        moments.mean[0],
        moments.covariance[0],
        change(moments.mean[0], S_II, moments.mean[1]),
        change(moments.covariance[0], S_IJ, moments.covariance[1]),
        sp.expand(moments.third_cumulant.subs(equal, simultaneous=True)),
    )
