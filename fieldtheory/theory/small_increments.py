"""Moments of a layer's increment φ(u) for small Gaussian u, expanded in the step Δt.

Given the layer before, u = W ψ(x) + b of several inputs is Gaussian with covariance S Δt, so that
Taylor's polynomial of φ at 0 and Isserlis' theorem give every order in Δt. The first order are the
instantaneous mean and covariance of PF eqs. (1), (2), from which its Theorem 3.1 follows; the next
one is the error of finite depth, which PF does not give.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import sympy as sp

STEP = sp.Symbol(r"\Delta t", positive=True)
# φ'(0), ..., φ''''(0).
SLOPES = tuple(sp.Symbol(rf"\phi_{n}", real=True) for n in range(1, 5))
# Covariances of u of the inputs i, j, k over Δt.
S_II, S_JJ = sp.symbols("S_{ii} S_{jj}", positive=True)
S_IJ, S_IK, S_JK = sp.symbols("S_{ij} S_{ik} S_{jk}", real=True)


class Increments(NamedTuple):
    """Coefficients of Δt and Δt² of the moments of φ(u_i), φ(u_j), and Δt² of a third cumulant.

    ``mean`` of φ(u_i), ``covariance`` of φ(u_i) and φ(u_j), each of orders 1 and 2;
    ``third_cumulant`` of φ(u_i), φ(u_j), φ(u_k), whose order 1 vanishes.
    """

    mean: tuple[sp.Expr, sp.Expr]
    covariance: tuple[sp.Expr, sp.Expr]
    third_cumulant: sp.Expr


@lru_cache
def increments() -> Increments:
    """The moments of an increment to second order in Δt, for centred parameters.

    Examples
    --------
    >>> found = increments()
    >>> found.mean[0], found.covariance[0]
    (S_{ii}*\\phi_2/2, S_{ij}*\\phi_1**2)
    >>> found.mean[1], found.covariance[1].subs(SLOPES[1], 0)
    (S_{ii}**2*\\phi_4/8, S_{ii}*S_{ij}*\\phi_1*\\phi_3/2 + S_{ij}*S_{jj}*\\phi_1*\\phi_3/2)
    """
    u = sp.symbols("u_i u_j u_k")
    S_KK = sp.Dummy("S_kk", positive=True)
    S = sp.Matrix([[S_II, S_IJ, S_IK], [S_IJ, S_JJ, S_JK], [S_IK, S_JK, S_KK]])
    phi = [sum(d * v**n / sp.factorial(n) for n, d in enumerate(SLOPES, 1)) for v in u]

    def average(polynomial: sp.Expr) -> list[sp.Expr]:
        """Coefficients of Δt^0, Δt, Δt²."""
        return [gaussian_moment(part, u, S) for part in by_degree(polynomial, u, (0, 2, 4))]

    means = [average(f) for f in phi]
    covariance = average(phi[0] * phi[1])
    covariance = [covariance[1], covariance[2] - means[0][1] * means[1][1]]
    third = average(phi[0] * phi[1] * phi[2])[2]
    for one, (a, b) in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        third -= means[one][1] * average(phi[a] * phi[b])[1]
    return Increments(
        (sp.expand(means[0][1]), sp.expand(means[0][2])),
        (sp.expand(covariance[0]), sp.expand(covariance[1])),
        sp.expand(third),
    )


def by_degree(
    polynomial: sp.Expr, variables: tuple[sp.Symbol, ...], degrees: tuple[int, ...]
) -> list[sp.Expr]:
    """The parts of a polynomial of given total degrees.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> by_degree((1 + x + x * y) ** 2, (x, y), (1, 2))
    [2*x, x**2 + 2*x*y]
    """
    terms = sp.Poly(sp.expand(polynomial), *variables).terms()
    return [
        sum(
            (
                c * sp.prod(v**p for v, p in zip(variables, powers, strict=True))
                for powers, c in terms
                if sum(powers) == degree
            ),
            sp.S.Zero,
        )
        for degree in degrees
    ]


def gaussian_moment(
    polynomial: sp.Expr, variables: tuple[sp.Symbol, ...], covariance: sp.Matrix
) -> sp.Expr:
    """The average of a polynomial over centred Gaussian variables, by Isserlis' theorem.

    Examples
    --------
    >>> x, y, a, b, c = sp.symbols("x y a b c")
    >>> gaussian_moment(x**3 * y + x**2, (x, y), sp.Matrix([[a, c], [c, b]]))
    3*a*c + a
    """
    found = sp.S.Zero
    for powers, coefficient in sp.Poly(polynomial, *variables).terms():
        indices = [i for i, power in enumerate(powers) for _ in range(power)]
        found += coefficient * _pairings(tuple(indices), covariance)
    return sp.expand(found)


def _pairings(indices: tuple[int, ...], covariance: sp.Matrix) -> sp.Expr:
    if not indices:
        return sp.S.One
    if len(indices) % 2:
        return sp.S.Zero
    first, rest = indices[0], indices[1:]
    return sum(
        covariance[first, other] * _pairings(rest[:k] + rest[k + 1 :], covariance)
        for k, other in enumerate(rest)
    )
