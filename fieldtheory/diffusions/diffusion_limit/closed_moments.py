"""Moments of the diffusion that close: for infinite width, and at every width where it is linear.

For D → ∞ the Gram matrix of ψ(x) is its mean, so that neurons are independent and each moves by
increments whose cumulants `increments` gives. Their rates are those of PF Corollary 3.3. For
φ''(0) = 0 the covariance holds at every width D. For φ''(0) ≠ 0 and D → ∞ the variance of what a
neuron has moved is V_ii = (2 φ'(0)²/φ''(0)) m_i, so that the mean m_i obeys one equation,
m' = α m² + β m + γ. PF section 3.4 states that such diffusions can explode, not when.

For ψ(x) = x and φ''(0) = 0 the diffusion is dx = φ'(0) (dW x + db). Its neurons meet in the Gram
matrix q_ij = (1/D) Σ_d x_d^i x_d^j alone, so that the generator maps polynomials in q_ij and in
what one neuron has moved, y_i = x_i − z_i, to such polynomials of no higher degree: moments obey
closed linear equations. Neither these nor the closed forms for D → ∞ are in PF.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import sympy as sp

from fieldtheory.diffusions.diffusion_limit.small_increments import (
    S_II,
    S_IJ,
    SLOPES,
    WIDTH,
    increments,
)
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

    >>> second_moment(GRAM)
    Q_{ij}*\\sigma_{w}**2 + \\sigma_{b}**2
    """
    return sym.BIAS**2 + sym.WEIGHT**2 * gram


@lru_cache
def wide_rates() -> WideRates:
    """The rates of means and covariances.

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


# By the number of the input.
_LETTERS = "ijkl"


def gram(first: int, second: int) -> sp.Symbol:
    """q_ij = (1/D) Σ_d x_d^i x_d^j, the inputs counted from zero.

    >>> gram(0, 1), gram(1, 0) == gram(0, 1)
    (q_{ij}, True)
    """
    i, j = sorted((first, second))
    kind = {"positive": True} if i == j else {"real": True}
    return sp.Symbol(f"q_{{{_LETTERS[i]}{_LETTERS[j]}}}", **kind)


def displacement(of: int) -> sp.Symbol:
    """y_i = x_i − z_i of one neuron."""
    return sp.Symbol(f"y_{{{_LETTERS[of]}}}", real=True)


def start(of: int) -> sp.Symbol:
    """z_i, where that neuron starts."""
    return sp.Symbol(f"z_{{{_LETTERS[of]}}}", real=True)


def covariance_rate(first: int, second: int) -> sp.Expr:
    """φ'(0)² (σ²_b + σ²_w q_ij), the quadratic covariation of a neuron (PF Corollary 3.3).

    >>> covariance_rate(0, 0)
    \\phi_1**2*(\\sigma_{b}**2 + \\sigma_{w}**2*q_{ii})
    """
    return SLOPES[0] ** 2 * second_moment(gram(first, second))


def generator(function: sp.Expr, inputs: int = 1) -> sp.Expr:
    """The rate of the mean of a polynomial in `gram` and `displacement` of at most four inputs.

        𝓛f = Σ_A (𝓛A) ∂_A f + (1/2) Σ_AB Γ(A, B) ∂_A ∂_B f,   A, B in {q_ij, y_i}

    >>> generator(gram(0, 0))
    \\phi_1**2*\\sigma_{b}**2 + \\phi_1**2*\\sigma_{w}**2*q_{ii}
    """
    drift, noise = _coordinates(inputs)
    present = [a for a in drift if function.has(a)]
    rate = sp.Add(*[drift[a] * function.diff(a) for a in present])
    for a in present:
        rate += sp.Add(*[noise[a, b] * function.diff(a, b) for b in present]) / 2
    return sp.expand(rate)


@lru_cache
def _coordinates(
    inputs: int,
) -> tuple[dict[sp.Symbol, sp.Expr], dict[tuple[sp.Symbol, sp.Symbol], sp.Expr]]:
    """𝓛A and Γ(A, B) of the coordinates, from the equation of every neuron and Itô's rule."""
    x = sp.symbols(f"x:{inputs}")
    S = sp.Matrix(inputs, inputs, covariance_rate)
    products = {gram(i, j): x[i] * x[j] for i, j in combinations_with_replacement(range(inputs), 2)}
    tagged = {x[i]: start(i) + displacement(i) for i in range(inputs)}

    def slope(product: sp.Expr) -> sp.Matrix:
        return sp.Matrix([product]).jacobian(x).T

    def mean(polynomial: sp.Expr) -> sp.Expr:
        """Over the neurons."""
        terms = sp.Poly(polynomial, *x).terms()
        return sp.Add(*[c * _of_powers(powers) for powers, c in terms])

    drift = {q: mean((S * sp.hessian(product, x)).trace() / 2) for q, product in products.items()}
    drift |= {displacement(i): sp.S.Zero for i in range(inputs)}
    noise = {
        (displacement(i), displacement(j)): S[i, j] for i in range(inputs) for j in range(inputs)
    }
    for q, product in products.items():
        for r, other in products.items():
            noise[q, r] = mean((slope(product).T * S * slope(other))[0]) / WIDTH
        for i in range(inputs):
            both = (S[i, :] * slope(product))[0].xreplace(tagged) / WIDTH
            noise[displacement(i), q] = noise[q, displacement(i)] = both
    return drift, noise


def _of_powers(powers: tuple[int, ...]) -> sp.Expr:
    """The mean over neurons of a product of two x, or of none."""
    which = [i for i, power in enumerate(powers) for _ in range(power)]
    return gram(*which) if which else sp.S.One


class MomentSystem(NamedTuple):
    """Moments with the closed linear equations that they obey, d⟨v⟩/dt = A ⟨v⟩.

    ``moments`` are the v in `gram` and `displacement`, the first of them 1; ``matrix`` is A, in the
    symbols ``parameters``; ``initial`` is v at t = 0, in `gram` and `start` of x_0.
    """

    moments: tuple[sp.Expr, ...]
    matrix: sp.ImmutableMatrix
    parameters: tuple[sp.Symbol, ...]
    initial: tuple[sp.Expr, ...]


@lru_cache
def exact_moment_system(wanted: tuple[sp.Expr, ...], inputs: int = 1) -> MomentSystem:
    """The smallest closed system with these monomials in `gram` and `displacement` as moments.

    >>> exact_moment_system((gram(0, 0) ** 2,)).moments
    (1, q_{ii}, q_{ii}**2)
    >>> exact_moment_system((displacement(0) ** 2,)).matrix[2, :]
    Matrix([[\\phi_1**2*\\sigma_{b}**2, \\phi_1**2*\\sigma_{w}**2, 0]])
    """
    coordinates = tuple(_coordinates(inputs)[0])
    rates: dict[sp.Expr, dict[sp.Expr, sp.Expr]] = {sp.S.One: {}}
    queue = list(wanted)
    while queue:
        moment = queue.pop()
        if moment in rates:
            continue
        terms = sp.Poly(generator(moment, inputs), *coordinates).terms()
        rates[moment] = {
            sp.Mul(*map(sp.Pow, coordinates, powers)): sp.factor(c) for powers, c in terms
        }
        queue.extend(rates[moment])
    moments = tuple(sorted(rates, key=lambda v: (_order(v, coordinates), str(v))))
    matrix = sp.ImmutableMatrix([[rates[row].get(v, 0) for v in moments] for row in moments])
    own = [*(start(i) for i in range(inputs) if matrix.has(start(i)))]
    parameters = (SLOPES[0], sym.WEIGHT, sym.BIAS, WIDTH, *own)
    unmoved = {displacement(i): sp.S.Zero for i in range(inputs)}
    return MomentSystem(moments, matrix, parameters, tuple(v.xreplace(unmoved) for v in moments))


def pair_moments() -> MomentSystem:
    """⟨q_ij⟩ and ⟨q_ij²⟩ of two inputs, with what they need.

    >>> pair_moments().moments
    (1, q_{ii}, q_{ij}, q_{jj}, q_{ii}*q_{jj}, q_{ij}**2)
    """
    return exact_moment_system((gram(0, 1) ** 2,), 2)


def neuron_moments() -> MomentSystem:
    """⟨y⟩ to ⟨y⁴⟩ of one neuron about its start, with what they need.

    >>> system = neuron_moments()
    >>> len(system.moments), system.initial[:4], system.parameters[-2:]
    (9, (1, 0, q_{ii}, 0), (D, z_{i}))
    """
    return exact_moment_system((displacement(0) ** 3, displacement(0) ** 4))


def _order(moment: sp.Expr, coordinates: Sequence[sp.Symbol]) -> int:
    """The degree in x: q counts twice."""
    degrees = [(2 if a.name.startswith("q") else 1, a) for a in coordinates]
    return sum(weight * int(sp.degree(moment, a)) for weight, a in degrees)
