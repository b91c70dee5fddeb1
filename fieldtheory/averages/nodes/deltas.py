"""δ-functions in Gaussian averages: δ(h_i − a) conditions the other variables on h_i = a.

Its derivatives do after integrating by parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import sympy as sp
from sympy import DiracDelta, Heaviside

from fieldtheory.averages.integrands.steps import first_derivative, sift
from fieldtheory.averages.nodes.base import times

# N(point; 0, variance) where the variance may be zero, for code that evaluates it.
DENSITY = sp.Function("density")


class NoClosedForm(Exception):
    """Raised inside the reductions when a term matches no rule."""


class Conditional(NamedTuple):
    """Notation of averages given a variable at the place of a δ-function."""

    # ⟨F⟩ for an integrand, its variables and their covariance.
    average: Callable[[sp.Expr, tuple, sp.Matrix], sp.Expr]
    # That of a Gaussian variable at a point, given its variance.
    density: Callable[[sp.Expr, sp.Expr], sp.Expr]


def without_deltas(
    F: sp.Expr, variables: Sequence[sp.Expr], K: sp.Matrix, conditional: Conditional
) -> tuple[sp.Expr, sp.Expr] | None:
    """Split ⟨F⟩ into what is left to average and the value of the terms with δ-functions."""
    factors: dict[sp.Expr, sp.Expr] = defaultdict(lambda: sp.S.Zero)
    for term in sp.Add.make_args(sp.expand(F)):
        deltas = [f for f in sp.Mul.make_args(term) if isinstance(f, DiracDelta)]
        if deltas:
            factors[deltas[0]] += term / deltas[0]
        elif term.has(DiracDelta):
            return None
    singular = [delta * factor for delta, factor in factors.items()]
    # Not expanded: a product f(x) g(y) stays one.
    smooth = F.replace(DiracDelta, lambda *_: sp.S.Zero)
    try:
        values = [condition(term, tuple(variables), K, conditional) for term in singular]
    except NoClosedForm:
        return None
    return smooth, sp.Add(*values)


def density(point: sp.Expr, variance: sp.Expr) -> sp.Expr:
    """N(point; 0, variance)."""
    return sp.exp(-(point**2) / (2 * variance)) / sp.sqrt(2 * sp.pi * variance)


def condition(F: sp.Expr, variables: tuple, K: sp.Matrix, conditional: Conditional) -> sp.Expr:
    """⟨F⟩ for a product with a δ-function as a factor."""
    delta = next((f for f in sp.Mul.make_args(F) if isinstance(f, DiracDelta)), sp.S.One)
    inside = [i for i, v in enumerate(variables) if delta.has(v)]
    if len(inside) != 1:
        raise NoClosedForm
    (i,) = inside
    x, cofactor = variables[i], F / delta
    slope = sp.diff(delta.args[0], x)
    if slope.has(x):
        raise NoClosedForm
    if len(delta.args) > 1:
        return _by_parts(delta, slope, cofactor, i, variables, K, conditional)
    point = -delta.args[0].subs(x, 0) / slope
    others = [j for j in range(len(variables)) if j != i]
    names = tuple(variables[j] for j in others)
    at_point = conditional.density(point, K[i, i]) / sp.Abs(slope)
    means = {variables[j]: variables[j] + K[i, j] / K[i, i] * point for j in others}
    cofactor = cofactor.subs(x, point).subs(means, simultaneous=True)
    if not others:
        return at_point * cofactor
    residual = sp.ImmutableMatrix(
        len(others),
        len(others),
        lambda r, s: (
            (K[others[r], others[s]] * K[i, i] - K[i, others[r]] * K[i, others[s]]) / K[i, i]
        ),
    )
    if residual.is_zero_matrix:
        # Parallel variables: both sides of a step count, δ-functions that meet diverge.
        cofactor = cofactor.subs(dict.fromkeys(names, 0))
        if cofactor.has(DiracDelta, sp.nan, sp.zoo):
            raise NoClosedForm
        return times(at_point, cofactor)
    return times(at_point, conditional.average(cofactor, names, residual))


def _by_parts(
    delta: sp.Expr,
    slope: sp.Expr,
    cofactor: sp.Expr,
    i: int,
    variables: tuple,
    K: sp.Matrix,
    conditional: Conditional,
) -> sp.Expr:
    """⟨δ^(n) G⟩ = −⟨δ^(n−1) DG⟩, DG = Σ_j (K_ij/K_ii) ∂_j G − (h_i/K_ii) G."""
    argument, order = delta.args
    if any(s.has(variables[i]) for s in cofactor.atoms(Heaviside, DiracDelta)):
        raise NoClosedForm
    lower = DiracDelta(argument, order - 1) if order > 1 else DiracDelta(argument)
    total = _average_terms(
        sift(variables[i] * lower * cofactor, variables), variables, K, conditional
    )
    total = times(1 / K[i, i], total)
    for j, y in enumerate(variables):
        change = sift(lower * first_derivative(cofactor, y), variables)
        total -= times(K[i, j] / K[i, i], _average_terms(change, variables, K, conditional))
    return times(1 / slope, total)


def _average_terms(F: sp.Expr, variables: tuple, K: sp.Matrix, conditional: Conditional) -> sp.Expr:
    terms = [term for term in sp.Add.make_args(sp.expand(F)) if term != 0]
    return sp.Add(*[condition(term, variables, K, conditional) for term in terms])
