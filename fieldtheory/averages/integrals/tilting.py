"""Averages of error functions under a tilted Gaussian, and Price's theorem over them, in float64.

A term exp(−hᵀAh/2) erf(b h_i) erf(b' h_j) is tilted: the Gaussian factor changes the covariance to
K' = (1 + KA)⁻¹K, weighs with det(1 + KA)^(−1/2), and what is left is C. Williams' angle (1998),

    ⟨erf u erf v⟩ = (2/π) atan2(2c, √(1 + 2a + 2b + 4(ab − c²))).

Products of more error functions lose two of them under the derivatives of Price's theorem: with
K(t) the covariance in which that between two groups of variables is multiplied by t,

    ⟨F;G⟩ = ∫_0^1 dt Σ_ij K_ij ⟨∂_iF ∂_jG⟩_{K(t)},    i in the group of F, j in that of G.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import composite

# Orders of the rule on each panel in t, and the allowed error relative to the modulus.
_ORDERS = (10, 16, 24, 36)
_TOLERANCE = 1e-12
_MOST_FORMS = 2
_TINY = float(np.finfo(float).tiny)


class Term(NamedTuple):
    """coefficient · exp(−hᵀ curvature h/2) · Π erf(slope h_index)."""

    coefficient: sp.Expr
    curvature: sp.ImmutableMatrix
    forms: tuple[tuple[int, sp.Expr], ...]


class Path(NamedTuple):
    """F and G of variables of their own, and the terms of every ∂_iF ∂_jG."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    slopes: tuple[tuple[int, int, tuple[Term, ...]], ...]


def terms_of(F: sp.Expr, variables: Sequence[sp.Expr]) -> tuple[Term, ...] | None:
    """F as a sum of `Term`, those that average to zero left out; None where it is not one.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> [t.forms for t in terms_of(sp.erf(x) * sp.erf(y) * sp.exp(-(x**2)), (x, y))]
    [((0, 1), (1, 1))]
    >>> terms_of(sp.tanh(x), (x,)) is None
    True
    """
    found = [_term(term, variables) for term in sp.Add.make_args(sp.expand(F))]
    if None in found:
        return None
    return tuple(term for term in found if term is not None and len(term.forms) % 2 == 0)


def _term(F: sp.Expr, variables: Sequence[sp.Expr]) -> Term | None:
    coefficient, exponent, forms = sp.S.One, sp.S.Zero, []
    for factor in sp.Mul.make_args(F):
        base, power = factor.as_base_exp()
        if not factor.has(*variables):
            coefficient *= factor
        elif isinstance(factor, sp.exp):
            exponent += factor.args[0]
        elif isinstance(base, sp.erf) and power.is_Integer and power > 0:
            form = _form(base.args[0], variables)
            if form is None:
                return None
            forms += [form] * int(power)
        else:
            return None
    if len(forms) > _MOST_FORMS and len(forms) % 2 == 0:
        return None
    exponent = sp.expand(exponent)
    if not exponent.is_polynomial(*variables):
        return None
    curvature = -sp.hessian(exponent, list(variables))
    if curvature.has(*variables) or exponent.has(sp.I):
        return None
    h = sp.Matrix(list(variables))
    if sp.expand(exponent + (h.T * curvature * h)[0] / 2) != 0:
        return None
    return Term(coefficient, sp.ImmutableMatrix(curvature), tuple(forms))


def _form(argument: sp.Expr, variables: Sequence[sp.Expr]) -> tuple[int, sp.Expr] | None:
    for i, v in enumerate(variables):
        slope = argument / v
        if not slope.has(*variables):
            return i, slope
    return None


def averaged(terms: Sequence[Term]) -> Callable:
    """⟨F⟩ of a sum of terms as a function of covariances (m, d, d); shape (m,)."""
    compiled = [_compiled(term) for term in terms]

    def compute(K: np.ndarray) -> np.ndarray:
        return sum((term(K) for term in compiled), np.zeros(len(K)))

    return compute


def _compiled(term: Term) -> Callable:
    weight = float(term.coefficient)
    A = np.array(term.curvature.tolist(), dtype=float)
    forms = [(i, float(slope)) for i, slope in term.forms]

    def compute(K: np.ndarray) -> np.ndarray:
        mixing = np.eye(len(A)) + K @ A
        value = weight / np.sqrt(np.linalg.det(mixing))
        if forms:
            (i, p), (j, q) = forms
            # The tilted covariance is needed for the variables of the error functions only.
            tilted = np.linalg.solve(mixing, K[:, :, [i, j]])
            a, b = p * p * tilted[:, i, 0], q * q * tilted[:, j, 1]
            c = p * q * (tilted[:, i, 1] + tilted[:, j, 0]) / 2
            minor = np.maximum(a * b - c * c, 0.0)
            value = value * (2 / np.pi) * np.arctan2(2 * c, np.sqrt(1 + 2 * a + 2 * b + 4 * minor))
        return value

    return compute


def path_of(F: sp.Expr, G: sp.Expr, variables: Sequence[sp.Expr]) -> Path | None:
    """What Price's theorem needs for ⟨F;G⟩, or None where an inner average has no closed form."""
    first = [i for i, v in enumerate(variables) if F.has(v)]
    second = [j for j, v in enumerate(variables) if G.has(v)]
    # A variable of both counts as two equal ones.
    own = {variables[j]: sp.Dummy(real=True) for j in second}
    G = G.xreplace(own)
    names = [*(variables[i] for i in first), *own.values()]
    slopes = []
    for i in first:
        for j in second:
            slope = sp.expand(F.diff(variables[i])) * sp.expand(G.diff(own[variables[j]]))
            terms = terms_of(slope, names)
            if terms is None:
                return None
            slopes.append((i, j, terms))
    return Path(tuple(first), tuple(second), tuple(slopes))


def halves_of(F: sp.Expr, variables: Sequence[sp.Expr]) -> tuple[sp.Expr, sp.Expr] | None:
    """A product of three or four error functions as two factors that `path_of` and `terms_of` take.

    Examples
    --------
    >>> x, y, z = sp.symbols("x y z", real=True)
    >>> halves_of(sp.erf(x) ** 2 * sp.erf(y) * sp.erf(z), (x, y, z))
    (erf(x)**2, erf(y)*erf(z))
    """
    factors = sp.Mul.make_args(F)
    if F.is_Add or any(sum(f.has(v) for v in variables) != 1 for f in factors):
        return None
    single = [sp.Mul(*[f for f in factors if f.has(v)]) for v in variables]
    for size in range(1, len(single) // 2 + 1):
        for chosen in combinations(range(len(single)), size):
            first = sp.Mul(*[single[i] for i in chosen])
            second = sp.Mul(*[f for i, f in enumerate(single) if i not in chosen])
            if all(terms_of(part, variables) is not None for part in (first, second)) and path_of(
                first, second, variables
            ):
                return first, second
    return None


def connected(path: Path) -> Callable:
    """⟨F;G⟩ as a function of one covariance (d, d).

    Raises
    ------
    QuadratureError
        If two orders differ by more than 1e-12 of the integral of the modulus.
    """
    compiled = [(i, j, averaged(terms)) for i, j, terms in path.slopes if terms]
    split = len(path.first)
    chosen = [*path.first, *path.second]

    def compute(K: np.ndarray) -> float:
        joint = K[np.ix_(chosen, chosen)]
        apart = joint.copy()
        apart[:split, split:] = apart[split:, :split] = 0.0

        def slope(t: np.ndarray) -> np.ndarray:
            moving = apart + t[:, None, None] * (joint - apart)
            return sum((K[i, j] * term(moving) for i, j, term in compiled), np.zeros(len(t)))

        # The inner average varies on the scale 1/K of the distance from the full covariance.
        halvings = 3 + max(0, int(np.ceil(np.log2(max(np.diag(K).max(), 1.0)))))
        cuts = np.concatenate([[0.0], 1 - 0.5 ** np.arange(1, halvings), [1.0]])
        previous, error = np.nan, np.nan
        for order in _ORDERS:
            nodes, weights = composite(cuts, order)
            values = slope(nodes)
            value, size = weights @ values, weights @ np.abs(values)
            error = abs(value - previous) / max(size, _TINY)
            if error <= _TOLERANCE:
                return float(value)
            previous = value
        raise QuadratureError(
            f"Price's theorem at the covariance {K.tolist()} did not converge: "
            f"its relative error is about {error:.1e}"
        )

    return compute
