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

from fieldtheory.averages import GaussianAverage

STEP = sp.Symbol(r"\Delta t", positive=True)
# φ'(0), ..., φ''''(0).
SLOPES = tuple(sp.Symbol(rf"\phi_{n}", real=True) for n in range(1, 5))
# Covariances of u of the inputs i, j, k over Δt.
S_II, S_JJ = sp.symbols("S_{ii} S_{jj}", positive=True)
S_IJ, S_IK, S_JK = sp.symbols("S_{ij} S_{ik} S_{jk}", real=True)
_S_KK = sp.Symbol("S_{kk}", positive=True)
_COVARIANCE = sp.ImmutableMatrix([[S_II, S_IJ, S_IK], [S_IJ, S_JJ, S_JK], [S_IK, S_JK, _S_KK]])


class Increments(NamedTuple):
    """Coefficients of Δt and Δt² of the moments of φ(u_i), φ(u_j), and Δt² of a third cumulant.

    ``mean`` of φ(u_i), ``covariance`` of φ(u_i) and φ(u_j), each of orders 1 and 2;
    ``third_cumulant`` of φ(u_i), φ(u_j), φ(u_k), whose order 1 vanishes.
    """

    mean: tuple[sp.Expr, sp.Expr]
    covariance: tuple[sp.Expr, sp.Expr]
    third_cumulant: sp.Expr


@lru_cache
def increments(
    means: tuple[sp.Expr, ...] = (sp.S.Zero,) * 3,
    covariance: sp.ImmutableMatrix = _COVARIANCE,
) -> Increments:
    """The moments of an increment to second order in Δt.

    Parameters
    ----------
    means : tuple of sympy.Expr
        Of u_i, u_j and u_k over Δt, zero for centred parameters; of u_i and u_j alone, then without
        the third cumulant.
    covariance : sympy.ImmutableMatrix
        The same.

    Examples
    --------
    >>> found = increments()
    >>> found.mean[0], found.covariance[0]
    (S_{ii}*\\phi_2/2, S_{ij}*\\phi_1**2)
    >>> found.mean[1], found.covariance[1].subs(SLOPES[1], 0)
    (S_{ii}**2*\\phi_4/8, S_{ii}*S_{ij}*\\phi_1*\\phi_3/2 + S_{ij}*S_{jj}*\\phi_1*\\phi_3/2)
    """
    u, root = sp.symbols(f"u:{len(means)}", real=True), sp.Dummy("root")
    arguments = [root * v + root**2 * mean for v, mean in zip(u, means, strict=True)]
    phi = [sum(d * x**n / sp.factorial(n) for n, d in enumerate(SLOPES, 1)) for x in arguments]

    def average(polynomial: sp.Expr) -> list[sp.Expr]:
        """Coefficients of Δt and Δt²."""
        parts = [part.subs(root, 1) for part in by_degree(polynomial, (root,), (2, 4))]
        return [sp.expand(GaussianAverage(part, u, covariance).doit()) for part in parts]

    first = [average(f) for f in phi]
    product, third = average(phi[0] * phi[1]), sp.S.Zero
    if len(u) > 2:
        third = average(phi[0] * phi[1] * phi[2])[1]
        for one, (a, b) in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
            third -= first[one][0] * average(phi[a] * phi[b])[0]
    return Increments(
        (first[0][0], first[0][1]),
        (product[0], sp.expand(product[1] - first[0][0] * first[1][0])),
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
