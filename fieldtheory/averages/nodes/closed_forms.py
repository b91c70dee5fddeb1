"""Closed forms of Gaussian averages, by a few reductions that end in three elementary integrals.

Steps and their δ-functions, polynomials and exponentials are removed one after the other:

* δ(h_i − a) conditions the other variables on h_i = a, its derivatives after integrating by parts;
* exp(−hᵀQh + bᵀh) tilts the Gaussian to the covariance (K⁻¹ + 2Q)⁻¹ and shifts it;
* a factor h_i becomes Σ_j K_ij ∂_j (Stein's lemma, the first-order companion of Price's theorem).

What is left are products of error functions, signs and steps of linear forms. With variances a, b
and the covariance c of the forms u and v (J.-P. Cho and L. Saul 2009 for the steps; C. Williams
1998 for erf):

    ⟨sgn u sgn v⟩ = (2/π) atan2(c, √(ab−c²))
    ⟨erf u sgn v⟩ = (2/π) atan2(√2 c, √(b + 2(ab−c²)))
    ⟨erf u erf v⟩ = (2/π) atan2(2c, √(1 + 2a + 2b + 4(ab−c²)))

They are written with atan2 because asin loses half the digits where its argument approaches one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import sympy as sp
from sympy import DiracDelta, Heaviside, erf

from fieldtheory.averages.integrands.exponentials import with_masks
from fieldtheory.averages.integrands.steps import sift, step_form
from fieldtheory.averages.nodes.base import times
from fieldtheory.averages.nodes.deltas import Conditional, NoClosedForm, condition, density

_MAX_TERMS = 400
# Powers of variables whose means are fractions of the covariances have sums of thousands of terms.
_MAX_SHIFTED = 2

# What steps, exponentials and the elementary integrals take in.
_REMOVED = (
    *(sp.exp, sp.sin, sp.cos, sp.sinh, sp.cosh, erf, sp.erfc),
    *(Heaviside, DiracDelta, sp.sign, sp.Abs, sp.Piecewise),
)


@lru_cache(maxsize=128)
def closed_form(F: sp.Expr, variables: tuple, K: sp.ImmutableMatrix) -> sp.Expr | None:
    """The average ⟨F⟩_{N(0,K)} in elementary functions, or None where no rule applies.

    Examples
    --------
    >>> import sympy as sp
    >>> x, y = sp.symbols("x y", real=True)
    >>> closed_form(sp.cos(x), (x,), sp.ImmutableMatrix([[3]]))
    exp(-3/2)
    >>> closed_form(sp.tanh(x), (x,), sp.ImmutableMatrix([[3]])) is None
    True
    """
    unknown = [f for f in F.atoms(sp.Function) if not isinstance(f, _REMOVED)]
    if any(argument.has(*variables) for f in unknown for argument in f.args):
        return None
    powers = [p for p in F.atoms(sp.Pow) if p.base.has(*variables)]
    if not all(p.exp.is_Integer and p.exp > 0 for p in powers):
        # A quotient.
        return None
    try:
        F = step_form(F).replace(sp.erfc, lambda u: 1 - erf(u))
    except ValueError:
        # Kinks that cannot be located, as those of |sin(x)|.
        return None
    F = F.rewrite(sp.exp) if F.has(sp.sinh, sp.cosh) else F
    oscillating, F, i = sp.S.Zero, sp.expand(F), sp.I
    if F.has(sp.sin, sp.cos):
        oscillating, F = _split_oscillating(F, variables, K)
        F = F.replace(sp.sin, lambda u: (sp.exp(i * u) - sp.exp(-i * u)) / (2 * i))
        F = sp.expand(F.replace(sp.cos, lambda u: (sp.exp(i * u) + sp.exp(-i * u)) / 2))
    # Terms with many error functions come first: they fail if any does.
    terms = sorted(sp.Add.make_args(F), key=count_erf, reverse=True)
    if len(terms) > _MAX_TERMS:
        return None
    centre = dict.fromkeys(variables, 0)
    for term in terms:
        # Of three and more error functions every derivative by parts removes one and shifts the
        # others: no rule is left for two of a form that is not centred, found after minutes.
        if count_erf(term) > 2 and any(u.args[0].subs(centre) != 0 for u in term.atoms(erf)):
            return None
    try:
        total = sp.Add(oscillating, *[_term(term, variables, K) for term in terms])
    except NoClosedForm:
        return None
    return _tidy(total)


def _split_oscillating(F: sp.Expr, variables: tuple, K: sp.Matrix) -> tuple[sp.Expr, sp.Expr]:
    """The average of the products of sines and cosines among the terms, and the other terms."""
    value, others = sp.S.Zero, []
    for term in sp.Add.make_args(F):
        constant, product = term.as_independent(*variables, as_Add=False)
        try:
            value += times(constant, _oscillating(product, variables, K))
        except NoClosedForm:
            others.append(term)
    return value, sp.Add(*others)


def _oscillating(F: sp.Expr, variables: tuple, K: sp.Matrix) -> sp.Expr:
    """⟨Π of sines and cosines⟩ = Σ Re(c e^{iω}) exp(−kᵀKk/2) for Π = Σ c e^{i(k·h + ω)}."""
    terms = {(sp.S.Zero,) * (len(variables) + 1): 1 + 0j}
    for factor in sp.Mul.make_args(F):
        base, power = factor.as_base_exp()
        if not isinstance(base, sp.sin | sp.cos) or not (power.is_Integer and power > 0):
            raise NoClosedForm
        _, weights, offset = linear_form(base, variables)
        half = complex(0.5) if isinstance(base, sp.cos) else -0.5j
        for _ in range(int(power)):
            raised: dict[tuple[sp.Expr, ...], complex] = {}
            for form, c in terms.items():
                for sign, part in ((1, half), (-1, half.conjugate())):
                    key = tuple(a + sign * b for a, b in zip(form, (*weights, offset), strict=True))
                    raised[key] = raised.get(key, 0) + c * part
            terms = raised
    total = sp.S.Zero
    for (*k, w), c in terms.items():
        form = Linear("phase", tuple(k), w)
        # Powers of two, so that the coefficients are exact.
        factor = sp.Rational(c.real) * sp.cos(w) - sp.Rational(c.imag) * sp.sin(w)
        total += factor * sp.exp(sp.expand(-covariance_of(form, form, K) / 2))
    return total


def _tidy(expr: sp.Expr) -> sp.Expr:
    if expr.has(sp.I):
        expr = sp.expand(expr, power_exp=False)
        expr = sp.re(expr.replace(sp.exp, _of_complex)) if expr.has(sp.I) else expr
    if expr.has(sp.exp):
        # Single factors over- and underflow at large variance.
        expr = sp.powsimp(expr, combine="exp")
    # Terms with different exponentials, or with an angle, have no common factor.
    if expr.is_Add and not expr.has(sp.atan2, sp.atan) and len(expr.atoms(sp.exp)) <= 1:
        return with_masks(expr, _together) if expr.has(sp.exp) else _together(expr)
    return expr


def _of_complex(exponent: sp.Expr) -> sp.Expr:
    """e^(u + iv) by cos v and sin v, and a decay that stays one, no cosh u − sinh u."""
    exponent = sp.expand(exponent)
    v = exponent.coeff(sp.I)
    return sp.exp(sp.expand(exponent - sp.I * v)) * (sp.cos(v) + sp.I * sp.sin(v))


def _together(expr: sp.Expr) -> sp.Expr:
    """Over one denominator, or one for each root where that is too long."""
    # The terms of M' and its like cancel to leading order at large variance.
    joined = _fraction(expr)
    if joined is not None:
        return joined
    groups: dict[frozenset, list[sp.Expr]] = {}
    for term in expr.args:
        roots = frozenset(p.base for p in term.atoms(sp.Pow) if not p.exp.is_Integer)
        groups.setdefault(roots, []).append(term)
    sums = [sp.Add(*terms) for terms in groups.values()]
    return sp.Add(*[_fraction(total) or total for total in sums])


def _fraction(expr: sp.Expr) -> sp.Expr | None:
    """A short sum over one denominator, None where it is not short."""
    if not (expr.is_Add and len(expr.args) <= 12):
        return None
    numerator, denominator = sp.factor_terms(sp.together(expr)).as_numer_denom()
    return sp.factor(numerator) / denominator if numerator.count_ops() < 200 else None


def _term(F: sp.Expr, variables: tuple, K: sp.Matrix) -> sp.Expr:
    constant, F = F.as_independent(*variables, as_Add=False)
    if F == 1 or constant == 0:
        return constant
    used = [i for i, v in enumerate(variables) if F.has(v)]
    variables, K = tuple(variables[i] for i in used), K.extract(used, used)
    if F.has(DiracDelta):
        conditioned = condition(F, variables, K, Conditional(_sum, density))
        return times(constant, conditioned)
    for rule in (_tilt, _stein):
        reduced = rule(F, variables, K)
        if reduced is not None:
            return times(constant, reduced)
    forms: list[Linear] = []
    for factor in sp.Mul.make_args(F):
        base, power = factor.as_base_exp()
        if not isinstance(base, erf | Heaviside) or not (power.is_Integer and power > 0):
            raise NoClosedForm
        repeats = int(power) if isinstance(base, erf) else 1
        forms += [linear_form(base, variables)] * repeats
    return times(constant, _product(forms, K))


def _sum(F: sp.Expr, variables: tuple, K: sp.Matrix) -> sp.Expr:
    return sp.Add(*[_term(term, variables, K) for term in sp.Add.make_args(sp.expand(F))])


def _tilt(F: sp.Expr, variables: tuple, K: sp.Matrix) -> sp.Expr | None:
    exponentials = [f for f in sp.Mul.make_args(F) if isinstance(f, sp.exp)]
    if not exponentials:
        return None
    exponent = sp.expand(sp.Add(*[f.args[0] for f in exponentials]))
    polynomial = polynomial_of(exponent, variables)
    if polynomial is None or polynomial.total_degree() > 2:
        raise NoClosedForm
    cofactor = F / sp.Mul(*exponentials)
    curvature = -sp.hessian(exponent, variables)
    at_zero = dict.fromkeys(variables, 0)
    slope = sp.Matrix([sp.diff(exponent, v).subs(at_zero) for v in variables])
    determinant, tilted = _tilted_covariance(K, curvature)
    if any(value.is_nonpositive for value in (determinant, *tilted.diagonal())):
        raise NoClosedForm
    shift = tilted * slope
    prefactor = sp.exp((slope.T * tilted * slope)[0] / 2) / sp.sqrt(determinant)
    if any(shift):
        if cofactor.has(Heaviside) and any(value.has(sp.I) for value in shift):
            # Steps are not analytic: no shift into the complex plane.
            raise NoClosedForm
        powers = polynomial_of(cofactor, variables)
        if powers is not None and powers.total_degree() > _MAX_SHIFTED:
            raise NoClosedForm
        if has_shifted_pair(cofactor, dict(zip(variables, shift, strict=True))):
            raise NoClosedForm
        means = {v: v + shift[i] for i, v in enumerate(variables)}
        cofactor = cofactor.subs(means, simultaneous=True)
    return times(prefactor, _sum(cofactor, variables, sp.ImmutableMatrix(tilted)))


def _tilted_covariance(K: sp.Matrix, X: sp.Matrix) -> tuple[sp.Expr, sp.Matrix]:
    """det(1+KX) and (K⁻¹+X)⁻¹, for one and two variables without subtracting large terms."""
    size = K.shape[0]
    if X.is_zero_matrix:
        return sp.S.One, K
    if size > 2:
        mixing = sp.eye(size) + K * X
        return mixing.det(), mixing.inv() * K
    minor = K.det() if size == 2 else sp.S.Zero
    determinant = 1 + (K * X).trace() + (X.det() * minor if size == 2 else 0)
    adjugate = X.adjugate() * minor if size == 2 else sp.zeros(1)
    return determinant, (K + adjugate) / determinant


def _stein(F: sp.Expr, variables: tuple, K: sp.Matrix) -> sp.Expr | None:
    for i, x in enumerate(variables):
        power = next((f for f in sp.Mul.make_args(F) if f.as_base_exp()[0] == x), None)
        if power is None:
            continue
        degree = power.as_base_exp()[1]
        if not (degree.is_Integer and degree > 0):
            raise NoClosedForm
        if power == F:
            return sp.S.Zero if degree % 2 else sp.factorial2(degree - 1) * K[i, i] ** (degree / 2)
        cofactor = F / x
        total = sp.S.Zero
        for j, y in enumerate(variables):
            if K[i, j] != 0:
                slope = sift(sp.expand(cofactor.diff(y)), variables)
                total += times(K[i, j], _sum(slope, variables, K))
        return total
    return None


class Linear(NamedTuple):
    """An error function or sign of the linear form Σ_i weights_i h_i + offset."""

    kind: str
    weights: tuple[sp.Expr, ...]
    offset: sp.Expr


def count_erf(term: sp.Expr) -> int:
    """Number of error functions in a product."""
    powers = [factor.as_base_exp() for factor in sp.Mul.make_args(term)]
    return sum(int(power) for base, power in powers if isinstance(base, erf) and power.is_Integer)


def has_shifted_pair(product: sp.Expr, means: dict[sp.Expr, sp.Expr]) -> bool:
    """Whether two error functions or steps, one not of a centred form, are left about the means."""
    functions = (erf, Heaviside)
    forms = [f for f in sp.Mul.make_args(product) if isinstance(f.as_base_exp()[0], functions)]
    offsets = [f.as_base_exp()[0].args[0].subs(means) for f in forms]
    steps = sum(isinstance(form, Heaviside) for form in forms)
    if steps + count_erf(product) < 2 or all(offset == 0 for offset in offsets):
        return False
    return bool((product / sp.Mul(*forms)).subs(means) != 0)


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


def _single(form: Linear, K: sp.Matrix) -> sp.Expr:
    variance = covariance_of(form, form, K)
    spread = 1 + 2 * variance if form.kind == "erf" else 2 * variance
    return erf(form.offset / sp.sqrt(spread))


def covariance_of(u: Linear, v: Linear, K: sp.Matrix) -> sp.Expr:
    """The covariance of two linear forms."""
    pairs = range(len(u.weights))
    return sp.Add(*[u.weights[i] * K[i, j] * v.weights[j] for i in pairs for j in pairs])


def polynomial_of(expr: sp.Expr, variables: tuple) -> sp.Poly | None:
    """The expression as a polynomial, if it is one."""
    return sp.Poly(expr, *variables) if expr.is_polynomial(*variables) else None
