"""Drift, diffusion and next order of residual networks with small parameters, for every law.

Of neurons o, p and inputs i, j the arguments u of φ are Gaussian given the layer before, with
means μ_o Δt and covariances V_op^ij Δt. Taylor's polynomial of φ at 0 gives the moments of φ(u):
the order Δt is the instantaneous mean and covariance of PF eqs. (1), (2) and so Theorem 3.1; the
next order, the error of finite depth, is not in PF. μ and V are those of Corollaries 3.1 to 3.3.
"""

from __future__ import annotations

import sympy as sp

from fieldtheory.theory import notation as sym
from fieldtheory.theory.diffusion_generator import WIDTH
from fieldtheory.theory.small_increments import Increments, increments

# Neurons, and what is summed over.
O, P, K, M = sp.symbols("o p k m", integer=True, positive=True)
# Means of u over Δt, and its covariances over Δt.
MU_O, MU_P = sp.symbols(r"\mu^{(i)}_{o} \mu^{(j)}_{p}", real=True)
V_OO, V_PP = sp.symbols(r"V^{(ii)}_{oo} V^{(jj)}_{pp}", nonnegative=True)
V_OP = sp.Symbol(r"V^{(ij)}_{op}", real=True)
psi = sp.Function("psi", real=True)
_X = {name: sp.IndexedBase(f"x^{{({name})}}", real=True) for name in "ij"}
LAWS = ("independent", "matrix normal", "full")


def law_increments() -> Increments:
    """The moments of an increment to second order in Δt, for any Gaussian law of the parameters.

    Those of φ(u_o^i) and φ(u_p^j), without the third cumulant.

    Examples
    --------
    >>> found = law_increments()
    >>> found.mean[0], found.covariance[0]
    (V^{(ii)}_{oo}*\\phi_2/2 + \\mu^{(i)}_{o}*\\phi_1, V^{(ij)}_{op}*\\phi_1**2)
    """
    return increments((MU_O, MU_P), sp.ImmutableMatrix([[V_OO, V_OP], [V_OP, V_PP]]))


def noise_mean(law: str, of: str = "i", neuron: sp.Expr = O) -> sp.Expr:
    """μ_o = μ^b_o + Σ_k μ^W_ok ψ(x_k); zero for independent parameters (PF Assumption 3.4).

    Examples
    --------
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

    Parameters
    ----------
    law : {"independent", "matrix normal", "full"}
        PF Assumptions 3.4, 3.3 and 3.1.
    inputs : str
        Two letters of i, j.
    neurons : pair of sympy.Expr

    Returns
    -------
    sympy.Expr
        In ψ(x_k) = ``psi(x[k])``.

    Examples
    --------
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

    Examples
    --------
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
