"""Moments of a layer's increment φ(u) for small Gaussian u, expanded in the step Δt.

Given the layer before, u = W ψ(x) + b of neurons o, p and inputs i, j is Gaussian with means μ_o Δt
and covariances V_op^ij Δt, S_ij Δt for one neuron and independent parameters, so that Taylor's
polynomial of φ at 0 and Isserlis' theorem give every order in Δt. The first order are the
instantaneous mean and covariance of PF eqs. (1), (2), from which its Theorem 3.1 follows; the next
one is the error of finite depth, which PF does not give. μ and V are those of Corollaries 3.1 to
3.3.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.theory import notation as sym

WIDTH = sp.Symbol("D", positive=True)
STEP = sp.Symbol(r"\Delta t", positive=True)
# φ'(0), ..., φ''''(0).
SLOPES = tuple(sp.Symbol(rf"\phi_{n}", real=True) for n in range(1, 5))
# Covariances of u of the inputs i, j, k over Δt.
S_II, S_JJ = sp.symbols("S_{ii} S_{jj}", positive=True)
S_IJ, S_IK, S_JK = sp.symbols("S_{ij} S_{ik} S_{jk}", real=True)
_S_KK = sp.Symbol("S_{kk}", positive=True)
_COVARIANCE = sp.ImmutableMatrix([[S_II, S_IJ, S_IK], [S_IJ, S_JJ, S_JK], [S_IK, S_JK, _S_KK]])

# Neurons, and what is summed over.
O, P, K, M = sp.symbols("o p k m", integer=True, positive=True)
# Means of u over Δt, and its covariances over Δt.
MU_O, MU_P = sp.symbols(r"\mu^{(i)}_{o} \mu^{(j)}_{p}", real=True)
V_OO, V_PP = sp.symbols(r"V^{(ii)}_{oo} V^{(jj)}_{pp}", nonnegative=True)
V_OP = sp.Symbol(r"V^{(ij)}_{op}", real=True)
psi = sp.Function("psi", real=True)
_X = {name: sp.IndexedBase(f"x^{{({name})}}", real=True) for name in "ij"}
LAWS = ("independent", "matrix normal", "full")


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


def law_increments() -> Increments:
    """The moments of an increment to second order in Δt, for any Gaussian law of the parameters.

    >>> found = law_increments()
    >>> found.mean[0], found.covariance[0]
    (V^{(ii)}_{oo}*\\phi_2/2 + \\mu^{(i)}_{o}*\\phi_1, V^{(ij)}_{op}*\\phi_1**2)
    """
    return increments((MU_O, MU_P), sp.ImmutableMatrix([[V_OO, V_OP], [V_OP, V_PP]]))


def noise_mean(law: str, of: str = "i", neuron: sp.Expr = O) -> sp.Expr:
    """μ_o = μ^b_o + Σ_k μ^W_ok ψ(x_k); zero for independent parameters (PF Assumption 3.4).

    >>> noise_mean("independent"), noise_mean("full").has(psi)
    (0, True)
    """
    if law == LAWS[0]:
        return sp.S.Zero
    weights, biases = sp.IndexedBase(r"\mu^{W}", real=True), sp.IndexedBase(r"\mu^{b}", real=True)
    x = _X[of]
    return biases[neuron] + sp.Sum(weights[neuron, K] * psi(x[K]), (K, 1, WIDTH))


def noise_covariance(
    law: str, inputs: str = "ij", neurons: tuple[sp.Expr, sp.Expr] = (O, P)
) -> sp.Expr:
    """V_op^ij, the covariance of W ψ(x^(i)) + b and W ψ(x^(j)) + b over Δt.

    >>> noise_covariance("independent").has(sp.KroneckerDelta)
    True
    """
    (o, p), x, y = neurons, _X[inputs[0]], _X[inputs[1]]
    if law == LAWS[0]:
        gram = sp.Sum(psi(x[K]) * psi(y[K]), (K, 1, WIDTH)) / WIDTH
        return sp.KroneckerDelta(o, p) * (sym.BIAS**2 + sym.WEIGHT**2 * gram)
    biases = sp.IndexedBase(r"\Sigma^{b}", real=True)[o, p]
    pair = psi(x[K]) * psi(y[M])
    limits = (K, 1, WIDTH), (M, 1, WIDTH)
    if law == LAWS[1]:
        rows = sp.IndexedBase(r"\Sigma^{W_O}", real=True)[o, p]
        columns = sp.IndexedBase(r"\Sigma^{W_I}", real=True)[K, M]
        return biases + rows * sp.Sum(columns * pair, *limits)
    weights = sp.IndexedBase(r"\Sigma^{W}", real=True)[o, K, p, M]
    return biases + sp.Sum(weights * pair, *limits)


def of_law(expression: sp.Expr, law: str) -> sp.Expr:
    """An expression in μ and V with those of a law put in.

    >>> of_law(MU_O + V_OP, "independent") == noise_covariance("independent")
    True
    """
    return expression.xreplace(
        {
            MU_O: noise_mean(law),
            MU_P: noise_mean(law, "j", P),
            V_OO: noise_covariance(law, "ii", (O, O)),
            V_PP: noise_covariance(law, "jj", (P, P)),
            V_OP: noise_covariance(law),
        }
    )


def one_input(expression: sp.Expr) -> sp.Expr:
    """An expression of inputs i and j with j = i."""
    return expression.xreplace({_X["j"]: _X["i"], _X["j"].label: _X["i"].label})
