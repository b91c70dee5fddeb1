"""The wide limit of residual diffusions: rates of means and covariances, closed forms for ψ(x) = x.

For D → ∞ the Gram matrix of ψ(x) is its mean, so that neurons are independent and each moves by
increments whose cumulants `increments` gives. Their rates are those of PF Corollary 3.3.

For φ''(0) = 0 the covariance holds at every width D. For φ''(0) ≠ 0 and D → ∞ the variance of what
a neuron has moved is V_ii = (2 φ'(0)²/φ''(0)) m_i, so that the mean m_i obeys one equation,
m' = α m² + β m + γ. PF section 3.4 states that such diffusions can explode, not when. The wide
limit, which PF expects in section 4.2, and its closed forms are not in PF.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import sympy as sp

from fieldtheory.diffusions.diffusion_limit.small_increments import S_II, S_IJ, SLOPES, increments
from fieldtheory.theory import notation as sym

TIME = sp.Symbol("t", nonnegative=True)
MEAN = sp.Symbol("m", real=True)
# (1/D) Σ_d z_d and (1/D) Σ_d z_d² of the input.
START, SQUARE = sp.Symbol(r"\bar{z}", real=True), sp.Symbol(r"q_{0}", nonnegative=True)
# Coefficients of m' = α m² + β m + γ, and the square root of |β² − 4 α γ|.
ALPHA, BETA, GAMMA = sp.symbols(r"\alpha \beta \gamma", real=True)
ROOT = sp.Symbol(r"\omega", positive=True)
# (1/D) Σ_d z_d^i z_d^j of two inputs, z_i z_j if they are copied to every neuron.
Z_IJ = sp.Symbol(r"\overline{z_{i} z_{j}}", real=True)


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

    Examples
    --------
    >>> wide_rates()
    WideRates(mean=S_{ii}*\\phi_2/2, covariance=S_{ij}*\\phi_1**2)
    """
    moments = increments()
    return WideRates(moments.mean[0], moments.covariance[0])


class ClosedForm(NamedTuple):
    """Mean m_i and covariance V_ij at time t = `TIME` of what a neuron has moved.

    For a Riccati mean ``covariance`` is
    the variance, j = i, and ``where`` says what α, β, γ are. ``explosion_time`` is oo where there
    is none.
    """

    mean: sp.Expr
    covariance: sp.Expr
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


def closed_form(slopes: Sequence[sp.Expr] = SLOPES) -> ClosedForm:
    """The closed form for ψ(x) = x and given derivatives of φ at 0.

    Parameters
    ----------
    slopes : sequence of sympy.Expr
        φ'(0) to φ''''(0).

    Examples
    --------
    >>> closed_form((1, 0, -2, 0)).mean, closed_form((1, 1, 0, 0)).covariance
    (0, 2*m)
    """
    put = dict(zip(SLOPES, map(sp.sympify, slopes), strict=True))
    if put[SLOPES[1]] == 0:
        return ClosedForm(sp.S.Zero, linear_covariance().subs(put), sp.oo, {})
    solution = riccati()
    where = dict(
        zip((ALPHA, BETA, GAMMA), (c.subs(put) for c in solution.coefficients), strict=True)
    )
    return ClosedForm(solution.mean, solution.variance.subs(put), solution.explosion_time, where)


class Riccati(NamedTuple):
    """m' = α m² + β m + γ with m(0) = 0.

    ``coefficients`` are α, β, γ in φ'(0), φ''(0), σ_w, σ_b, `START` and `SQUARE`, which
    ``parameters`` lists; ``variance`` is V_ii in `MEAN`. In `ALPHA`, `BETA`, `GAMMA`: ``mean`` is
    m(t), piecewise by the sign of β² − 4αγ, and ``explosion_time`` T*, oo where there is none.
    """

    coefficients: tuple[sp.Expr, sp.Expr, sp.Expr]
    parameters: tuple[sp.Symbol, ...]
    variance: sp.Expr
    mean: sp.Expr
    explosion_time: sp.Expr


@lru_cache
def riccati() -> Riccati:
    """The equation of the mean, its solution and when it explodes.

    Notes
    -----
    m = −w'/(α w) with w'' − β w' + αγ w = 0, w(0) = 1, w'(0) = 0: T* is the first zero of w. There
    is none for αγ <= 0, which is 0 here, nor for real roots and β <= 0.

    Examples
    --------
    >>> found = riccati()
    >>> swish = dict(zip(found.parameters, (sp.S.Half, sp.S.Half, 1, 1, 0, 0)))
    >>> values = [c.subs(swish) for c in found.coefficients]
    >>> at = dict(zip((ALPHA, BETA, GAMMA), values))
    >>> found.explosion_time.subs(at), found.mean.subs(at).subs(TIME, 1).n(6)
    (8*sqrt(3)*pi/9, 0.290926)
    """
    first, second = SLOPES[:2]
    rates = wide_rates()
    # The variance follows the mean: both grow as S_ii.
    variance = MEAN * sp.cancel(rates.covariance.subs(S_IJ, S_II) / rates.mean)
    # ⟨x²⟩ of a neuron that starts at z, averaged over neurons.
    gram = SQUARE + 2 * START * MEAN + MEAN**2 + variance
    rate = sp.Poly(sp.expand(rates.mean.subs(S_II, second_moment(gram))), MEAN)
    alpha, beta, gamma = (sp.factor(rate.coeff_monomial(MEAN**n)) for n in (2, 1, 0))
    parameters = (first, second, sym.WEIGHT, sym.BIAS, START, SQUARE)
    mean = _by_discriminant(means())
    never = (sp.oo, sp.Le(ALPHA * GAMMA, 0)), (sp.oo, sp.Le(BETA, 0))
    explosion = _by_discriminant(explosion_times(), *never)
    return Riccati((alpha, beta, gamma), parameters, variance, mean, explosion)


def means() -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """m of m' = α m² + β m + γ, m(0) = 0, for β² − 4αγ equal to −ω², ω² and 0.

    Examples
    --------
    >>> means()[1], means()[2]
    (2*\\gamma*tanh(\\omega*t/2)/(-\\beta*tanh(\\omega*t/2) + \\omega), 2*\\gamma*t/(-\\beta*t + 2))
    """
    half = ROOT * TIME / 2
    # Hyperbolic sines would overflow where tangents do not; cosines may vanish.
    parts = ((sp.sin(half), sp.cos(half) * ROOT), (sp.tanh(half), ROOT), (TIME, sp.Integer(2)))
    oscillating, growing, straight = (2 * GAMMA * u / (v - BETA * u) for u, v in parts)
    return oscillating, growing, straight


def explosion_times() -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """The first zero of w for β² − 4αγ equal to −ω², ω² and 0; the last two for β > 0 alone.

    Examples
    --------
    >>> explosion_times()[0]
    2*atan2(\\omega, \\beta)/\\omega
    """
    # tan(ωt/2) = ω/β within the first half turn, tanh(ωt/2) = ω/β with its digits kept.
    hyperbolic = sp.asinh(ROOT / (2 * sp.sqrt(ALPHA * GAMMA)))
    return 2 * sp.atan2(ROOT, BETA) / ROOT, 2 * hyperbolic / ROOT, 2 / BETA


def _by_discriminant(cases: tuple[sp.Expr, sp.Expr, sp.Expr], *first: Any) -> sp.Expr:
    discriminant = BETA**2 - 4 * ALPHA * GAMMA
    root = {ROOT: sp.sqrt(sp.Abs(discriminant))}
    oscillating, hyperbolic, linear = (case.subs(root) for case in cases)
    return sp.Piecewise(
        *first[:1],
        (oscillating, discriminant < 0),
        *first[1:],
        (hyperbolic, discriminant > 0),
        (linear, True),
    )
