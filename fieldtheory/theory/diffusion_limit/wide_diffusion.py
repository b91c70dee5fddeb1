"""The wide limit of residual diffusions: rates of means and covariances.

For D → ∞ the Gram matrix of ψ(x) is its mean, so that neurons are independent and each moves by
increments whose cumulants `increments` gives. Their rates are those of PF Corollary 3.3; the wide
limit itself, which PF expects in section 4.2, is not in PF.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from fieldtheory.theory import notation as sym
from fieldtheory.theory.diffusion_limit.small_increments import increments

# The Gram entry Q_ij = ⟨(1/D) Σ_d ψ(x_d^i) ψ(x_d^j)⟩.
GRAM = sp.Symbol("Q_{ij}", real=True)


class WideRates(NamedTuple):
    """Rates in S_ij = σ²_b + σ²_w Q_ij, for what one neuron has moved from its start.

    ``mean`` dm_i/dt and ``covariance`` dV_ij/dt of the limit L → ∞, in `S_II` and `S_IJ`.
    """

    mean: sp.Expr
    covariance: sp.Expr


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
    """The rates of means and covariances.

    Returns
    -------
    WideRates

    Examples
    --------
    >>> wide_rates()
    WideRates(mean=S_{ii}*\\phi_2/2, covariance=S_{ij}*\\phi_1**2)
    """
    moments = increments()
    return WideRates(moments.mean[0], moments.covariance[0])
