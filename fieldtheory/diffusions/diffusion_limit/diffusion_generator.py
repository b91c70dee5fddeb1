"""The generator of a linear diffusion, and the moments on which it closes at every width.

For ψ(x) = x and φ''(0) = 0 the diffusion of PF Corollary 3.3 is dx = φ'(0) (dW x + db). Its
neurons meet in the Gram matrix q_ij = (1/D) Σ_d x_d^i x_d^j alone, so that the generator maps
polynomials in q_ij and in what one neuron has moved, y_i = x_i − z_i, to such polynomials of no
higher degree: moments obey closed linear equations. They are not in PF.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import sympy as sp

from fieldtheory.diffusions.diffusion_limit.small_increments import SLOPES, WIDTH
from fieldtheory.theory import notation as sym

# By the number of the input.
_LETTERS = "ijkl"


def gram(first: int, second: int) -> sp.Symbol:
    """q_ij = (1/D) Σ_d x_d^i x_d^j, the inputs counted from zero.

    Examples
    --------
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

    Examples
    --------
    >>> covariance_rate(0, 0)
    \\phi_1**2*(\\sigma_{b}**2 + \\sigma_{w}**2*q_{ii})
    """
    return SLOPES[0] ** 2 * (sym.BIAS**2 + sym.WEIGHT**2 * gram(first, second))


def generator(function: sp.Expr, inputs: int = 1) -> sp.Expr:
    """The rate of the mean of a polynomial in `gram` and `displacement` of at most four inputs.

        𝓛f = Σ_A (𝓛A) ∂_A f + (1/2) Σ_AB Γ(A, B) ∂_A ∂_B f,   A, B in {q_ij, y_i}

    Examples
    --------
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

    Of at most four inputs; exact at every width D of the linear diffusion, ψ(x) = x, φ''(0) = 0.

    Examples
    --------
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

    Examples
    --------
    >>> pair_moments().moments
    (1, q_{ii}, q_{ij}, q_{jj}, q_{ii}*q_{jj}, q_{ij}**2)
    """
    return exact_moment_system((gram(0, 1) ** 2,), 2)


def neuron_moments() -> MomentSystem:
    """⟨y⟩ to ⟨y⁴⟩ of one neuron about its start, with what they need.

    Examples
    --------
    >>> system = neuron_moments()
    >>> len(system.moments), system.initial[:4], system.parameters[-2:]
    (9, (1, 0, q_{ii}, 0), (D, z_{i}))
    """
    return exact_moment_system((displacement(0) ** 3, displacement(0) ** 4))


def _order(moment: sp.Expr, coordinates: Sequence[sp.Symbol]) -> int:
    """The degree in x: q counts twice."""
    degrees = [(2 if a.name.startswith("q") else 1, a) for a in coordinates]
    return sum(weight * int(sp.degree(moment, a)) for weight, a in degrees)
