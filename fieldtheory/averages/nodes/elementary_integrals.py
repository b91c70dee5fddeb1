"""Averages of products of error functions, signs and steps of linear forms: elementary integrals.

With variances a, b and the covariance c of the forms u and v (J.-P. Cho and L. Saul 2009 for the
steps; C. Williams 1998 for erf):

    ⟨sgn u sgn v⟩ = (2/π) atan2(c, √(ab−c²))
    ⟨erf u sgn v⟩ = (2/π) atan2(√2 c, √(b + 2(ab−c²)))
    ⟨erf u erf v⟩ = (2/π) atan2(2c, √(1 + 2a + 2b + 4(ab−c²)))

They are written with atan2 because asin loses half the digits where its argument approaches one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sympy as sp
from sympy import Heaviside, erf


class NoClosedForm(Exception):
    """Raised inside the reductions when a term matches no rule."""


class Linear(NamedTuple):
    """An error function or sign of the linear form Σ_i weights_i h_i + offset."""

    kind: str
    weights: tuple[sp.Expr, ...]
    offset: sp.Expr


def count_erf(term: sp.Expr) -> int:
    """Number of error functions in a product."""
    powers = [factor.as_base_exp() for factor in sp.Mul.make_args(term)]
    return sum(int(power) for base, power in powers if isinstance(base, erf) and power.is_Integer)


def has_shifted_products(term: sp.Expr, variables: Sequence[sp.Expr]) -> bool:
    """Whether three or more error functions, one not of a centred form, leave two to integrate.

    Every derivative by parts removes one of them and shifts the others: no rule is left then, which
    `_stein` and `_tilt` may take minutes to find.
    """
    if count_erf(term) < 3:
        return False
    centre = dict.fromkeys(variables, 0)
    return any(form.args[0].subs(centre) != 0 for form in term.atoms(erf))


def has_shifted_pair(product: sp.Expr, means: dict[sp.Expr, sp.Expr]) -> bool:
    """Whether two error functions or steps, one not of a centred form, are left about the means.

    Where the polynomial that multiplies them is not zero there, its constant term leaves the pair
    alone: `_product` has no rule, and the other terms may take minutes.
    """
    functions = (erf, Heaviside)
    forms = [f for f in sp.Mul.make_args(product) if isinstance(f.as_base_exp()[0], functions)]
    offsets = [f.as_base_exp()[0].args[0].subs(means) for f in forms]
    steps = sum(isinstance(form, Heaviside) for form in forms)
    if steps + count_erf(product) < 2 or all(offset == 0 for offset in offsets):
        return False
    return bool((product / sp.Mul(*forms)).subs(means) != 0)


def elementary(F: sp.Expr, variables: tuple, K: sp.Matrix) -> sp.Expr:
    """⟨F⟩ of a product of error functions and steps."""
    forms: list[Linear] = []
    for factor in sp.Mul.make_args(F):
        base, power = factor.as_base_exp()
        if not isinstance(base, erf | Heaviside) or not (power.is_Integer and power > 0):
            raise NoClosedForm
        repeats = int(power) if isinstance(base, erf) else 1
        forms += [linear_form(base, variables)] * repeats
    return _product(forms, K)


def linear_form(function: sp.Expr, variables: tuple) -> Linear:
    """The linear form that a function is applied to."""
    argument = sp.expand(function.args[0])
    polynomial = polynomial_of(argument, variables)
    if polynomial is None or polynomial.total_degree() != 1:
        raise NoClosedForm
    weights = tuple(argument.coeff(v, 1) for v in variables)
    offset = argument.subs(dict.fromkeys(variables, 0))
    return Linear("erf" if isinstance(function, erf) else "step", weights, offset)


def _product(forms: list[Linear], K: sp.Matrix) -> sp.Expr:
    """⟨Π of error functions, signs and steps⟩; a step is half of one plus a sign."""
    for index, form in enumerate(forms):
        if form.kind == "step":
            others = forms[:index] + forms[index + 1 :]
            with_sign = _product([*others, form._replace(kind="sgn")], K)
            return (_product(others, K) + with_sign) / 2
    if not forms:
        return sp.S.One
    if len(forms) == 1:
        return _single(forms[0], K)
    if any(form.offset != 0 for form in forms):
        raise NoClosedForm
    if len(forms) % 2:
        return sp.S.Zero
    if len(forms) > 2:
        raise NoClosedForm
    u, v = forms
    return _pair(u, v, K)


def _single(form: Linear, K: sp.Matrix) -> sp.Expr:
    variance = covariance_of(form, form, K)
    spread = 1 + 2 * variance if form.kind == "erf" else 2 * variance
    return erf(form.offset / sp.sqrt(spread))


def _pair(u: Linear, v: Linear, K: sp.Matrix) -> sp.Expr:
    if u.kind == v.kind == "sgn" and u.weights == v.weights:
        return sp.S.One
    if v.kind == "erf":
        u, v = v, u
    a, b, c = covariance_of(u, u, K), covariance_of(v, v, K), covariance_of(u, v, K)
    minor = a * b - c**2 if not a == b == c else sp.S.Zero
    if u.kind == v.kind == "erf":
        angle = sp.atan2(2 * c, sp.sqrt(1 + 2 * a + 2 * b + 4 * minor))
    elif u.kind == "erf":
        angle = sp.atan2(sp.sqrt(2) * c, sp.sqrt(b + 2 * minor))
    else:
        angle = sp.atan2(c, sp.sqrt(minor))
    return 2 / sp.pi * angle


def covariance_of(u: Linear, v: Linear, K: sp.Matrix) -> sp.Expr:
    """The covariance of two linear forms."""
    pairs = range(len(u.weights))
    return sp.Add(*[u.weights[i] * K[i, j] * v.weights[j] for i in pairs for j in pairs])


def polynomial_of(expr: sp.Expr, variables: tuple) -> sp.Poly | None:
    """The expression as a polynomial, if it is one."""
    return sp.Poly(expr, *variables) if expr.is_polynomial(*variables) else None
