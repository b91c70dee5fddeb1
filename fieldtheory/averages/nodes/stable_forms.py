"""Closed forms of two variables rewritten so that float64 does not cancel.

SymPy multiplies out what a derivation has kept together: K_xx K_yy − K_xy² turns up in pieces, and
hyperbolic functions as differences of exponentials. Here they are put together again, as calls of
the functions of `exact_differences`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p
from sympy.core.function import AppliedUndef

from fieldtheory.averages.integrands import exact_differences

NUMPY: dict[str, Callable] = {
    "determinant": exact_differences.determinant,
    "exponential_difference": exact_differences.exponential_difference,
    "difference_variance": exact_differences.difference_variance,
    "arcsine": exact_differences.arcsine,
    "angle_from_opposite": exact_differences.angle_from_opposite,
}
determinant, _exponential_difference, difference_variance, _arcsine, _angle = map(
    sp.Function, NUMPY
)


def stable(value: sp.Expr, K: sp.ImmutableMatrix) -> sp.Expr:
    """An equal expression for float64, given the covariance K (1x1 or 2x2) of the average.

    Parameters
    ----------
    value : sympy.Expr
        A closed form.
    K : ImmutableMatrix
        Entries that occur in it; symbols, or the expression is left as it is.

    Returns
    -------
    sympy.Expr
        With the functions named in ``NUMPY``.

    Examples
    --------
    >>> a, b, c = sp.symbols("a b c")
    >>> stable(sp.sqrt(a * b - c**2 + a), sp.ImmutableMatrix([[a, c], [c, b]]))
    sqrt(a + determinant(a, b, c))
    """
    entries = (K[0, 0], K[-1, -1], K[0, -1])
    pair = K.shape == (2, 2) and len(set(entries)) == 3 and all(e.is_Symbol for e in entries)
    if pair:
        value = _without_conditional(value, *entries)
        if value.is_Add and len(value.args) == 2:
            one, other = value.args
            value = _bells(one, other, entries[2])
        value = value.replace(lambda e: e.is_Mul, lambda e: _with_density(e, *entries))
        value = value.replace(sp.erf, lambda x: sp.erf(sp.factor(x) if x.is_Add else x))
        value = _bottom_up(value, lambda e: _with_determinant(e, *entries))
        value = value.replace(sp.exp, lambda x: sp.exp(_with_difference(sp.expand(x), *entries)))
    return _bottom_up(_bottom_up(value, _exponential_pairs), _angles)


def _without_conditional(value: sp.Expr, a: sp.Expr, b: sp.Expr, c: sp.Expr) -> sp.Expr:
    """The value with conditional variances b − c²/a as det/a, where that takes 1/det away.

    What integrals over one variable given the other leave beside jumps: terms over det that cancel,
    in exponents and before them.
    """
    minor, left = a * b - c**2, sp.Dummy(positive=True)
    if not value.has(1 / minor):
        return value
    bells = [bell.args[0] for bell in value.atoms(sp.exp) if bell.has(1 / minor)]
    hidden = {call: sp.Dummy() for call in value.atoms(AppliedUndef)}
    factors = {f: sp.Dummy() for f in value.atoms(sp.exp, sp.erf)}
    for one, other in ((a, b), (b, a)):
        known = {other: (left + c**2) / one}
        exponents = [sp.together(sp.expand(x.xreplace(known))) for x in bells]
        masks = dict(hidden)
        if any(sp.fraction(x)[1].has(left) for x in exponents):
            masks |= factors
        found = value.xreplace(masks).xreplace(known)
        for kind in (sp.exp, sp.erf):
            found = found.replace(kind, lambda x, kind=kind: kind(sp.expand(x)))
        found = sp.expand(found, power_exp=False)
        powers = [term.as_powers_dict()[left] for term in sp.Add.make_args(found)]
        if min(powers) > -1:
            back = {left: determinant(a, b, c)} | {mask: node for node, mask in masks.items()}
            return found.xreplace(back)
    return value


def with_angles(value: sp.Expr, K: sp.ImmutableMatrix) -> sp.Expr:
    """A stable form of two variables with its angles by functions that know of variances of zero.

    Examples
    --------
    >>> a, b, c = sp.symbols("a b c")
    >>> K = sp.ImmutableMatrix([[a, c], [c, b]])
    >>> with_angles(stable(sp.atan2(c, sp.sqrt(a * b - c**2)), K), K)
    arcsine(a, b, c)
    """
    if K.shape != (2, 2):
        return value
    a, b, c = K[0, 0], K[1, 1], K[0, 1]
    root = sp.sqrt(determinant(a, b, c))
    angles = {sp.atan2(root, -c): _angle(a, b, c), sp.atan2(c, root): _arcsine(a, b, c)}
    return value.xreplace(angles)


def _with_density(product: sp.Expr, a: sp.Expr, b: sp.Expr, c: sp.Expr) -> sp.Expr:
    """The density of two variables at (s, t), which integrals make that of one times the rest.

    Its exponent is −(b s² − 2c s t + a t²)/(2 det), (a + b ∓ 2c) s² for s = ±t.
    """
    densities = [factor for factor in product.args if isinstance(factor, sp.exp)]
    if len(densities) < 2:
        return product
    minor, exponent = a * b - c**2, sp.Add(*[factor.args[0] for factor in densities])
    square = sp.cancel(-2 * minor * exponent)
    if not square.is_polynomial(a, b, c) or sp.Poly(square, a, b, c).total_degree() != 1:
        return product
    of_a, of_b, mixed = (square.coeff(entry, 1) for entry in (a, b, c))
    if of_a == of_b and abs(mixed) == 2 * of_a:
        square = of_a * difference_variance(a, b, -sp.sign(mixed) * c)
    rest = [factor for factor in product.args if factor not in densities]
    return sp.Mul(*rest) * sp.exp(-square / (2 * determinant(a, b, c)))


def _bells(one: sp.Expr, other: sp.Expr, c: sp.Expr) -> sp.Expr:
    """p − q = q [exp(ln(p/q)) − 1] of two bells that are one where the variables do not correlate.

    Bells are exponentials of rational functions times their roots.
    """
    for p, q in ((one, other), (other, one)):
        ratio = sp.powsimp(-p / q, combine="exp")
        factors = sp.Mul.make_args(ratio)
        gap = sp.Add(*[f.args[0] for f in factors if isinstance(f, sp.exp)])
        square = sp.Mul(*[f for f in factors if not isinstance(f, sp.exp)]) ** 2
        alike = square != 1 and _is_correction(gap, c) and _is_correction(square - 1, c)
        if not alike or p.subs(c, 0) <= 0:
            continue
        excess, gap = (_over_one_denominator(e) for e in (square - 1, gap))
        return -q * expm1(gap + log1p(excess) / 2)
    return one + other


def _is_correction(e: sp.Expr, c: sp.Expr) -> bool:
    """Whether a rational function vanishes with the covariance."""
    return e.is_rational_function(*e.free_symbols) and sp.cancel(e.subs(c, 0)) == 0


def _over_one_denominator(e: sp.Expr) -> sp.Expr:
    numerator, denominator = sp.fraction(sp.factor(e))
    return numerator / denominator


def _bottom_up(expr: sp.Expr, rule: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """The rule applied to every sum, innermost first."""
    if not expr.args:
        return expr
    args = [_bottom_up(arg, rule) for arg in expr.args]
    expr = expr.func(*args) if tuple(args) != expr.args else expr
    return rule(expr) if expr.is_Add else expr


def _with_determinant(total: sp.Expr, a: sp.Expr, b: sp.Expr, c: sp.Expr) -> sp.Expr:
    """The sum with every product a b written as det + c², where that makes it shorter."""
    minor = determinant(a, b, c)
    terms = []
    masks: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(_masked(total, masks), power_exp=False)):
        powers = term.as_powers_dict()
        shared = min(powers.get(a, 0), powers.get(b, 0))
        if not (shared == int(shared) and shared > 0):
            terms.append(term)
            continue
        rest = term / (a * b) ** shared
        terms += sp.Add.make_args(sp.expand(rest * (minor + c**2) ** shared))
    combined = sp.Add(*terms).xreplace({mask: part for part, mask in masks.items()})
    return combined if sp.count_ops(combined) < sp.count_ops(total) else total


def _masked(e: sp.Expr, masks: dict[sp.Expr, sp.Expr]) -> sp.Expr:
    """A polynomial in symbols, their roots and masks of the rest, which expanding leaves alone."""
    if e.is_Atom or (e.is_Pow and e.base.is_Symbol):
        return e
    if e.is_Add or e.is_Mul:
        return e.func(*[_masked(part, masks) for part in e.args])
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return _masked(e.base, masks) ** e.exp
    return masks.setdefault(e, sp.Dummy())


def _with_difference(exponent: sp.Expr, a: sp.Expr, b: sp.Expr, c: sp.Expr) -> sp.Expr:
    """−k (a + b − 2c) and −k (a + b + 2c) by the variance of the difference or of the sum."""
    k = -exponent.coeff(a, 1)
    rest = exponent + k * (a + b)
    if k == 0 or rest.has(a, b):
        return exponent
    for sign in (1, -1):
        if sp.expand(rest - 2 * k * sign * c) == 0:
            return -k * difference_variance(a, b, sign * c)
    return exponent


def _exponential_pairs(total: sp.Expr) -> sp.Expr:
    """α e^u − α e^v and α e^u + α e^v − 2α e^{(u+v)/2} by exponential differences."""
    found = [entry for term in total.args if (entry := _as_exponential(term))]
    for (p, u, alpha), (q, v, beta) in combinations(found, 2):
        gap = _expanded(u - v)
        for r, w, gamma in found:
            if alpha == beta == -gamma / 2 and _expanded(u + v - 2 * w) == 0:
                return (
                    total - p - q - r + alpha * _exponential_difference(u / 2, v / 2, gap / 2) ** 2
                )
    pairs = [
        (p + q, u, v, _expanded(u - v), alpha)
        for (p, u, alpha), (q, v, beta) in combinations(found, 2)
        if alpha == -beta
    ]
    if not pairs:
        return total
    # Exponents that differ by the covariance alone are the closest.
    terms, u, v, gap, alpha = min(pairs, key=lambda pair: len(sp.Add.make_args(pair[3])))
    rest = total - terms
    rest = _exponential_pairs(rest) if rest.is_Add else rest
    return rest + alpha * _exponential_difference(u, v, gap)


def _as_exponential(term: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
    """A term α e^u with u and α; a number is one with u = 0."""
    factors = sp.Mul.make_args(term)
    of_exp = [f for f in factors if isinstance(f, sp.exp)]
    alpha = sp.Mul(*[f for f in factors if not isinstance(f, sp.exp)])
    if not (of_exp or alpha.is_number):
        return None
    return term, sp.Add(*[f.args[0] for f in of_exp]), alpha


def _angles(total: sp.Expr) -> sp.Expr:
    """α [atan2(y, x) + π/2] as α atan2(x, −y), which keeps its digits where the angle is small."""
    for term in total.args:
        factors = [f for f in sp.Mul.make_args(term) if isinstance(f, sp.atan2)]
        if len(factors) != 1 or term.has(sp.exp):
            continue
        quarter = term / factors[0] * sp.pi / 2
        for other in total.args:
            ratio = other / quarter
            if ratio.is_Rational and ratio >= 1:
                y, x = factors[0].args
                turned = term / factors[0] * sp.atan2(x, -y)
                return total - term - other + turned + (ratio - 1) * quarter
    return total


def _expanded(expr: sp.Expr) -> sp.Expr:
    """Expanded, the variances of differences and sums written out."""
    return sp.expand(expr.replace(difference_variance, lambda a, b, c: a + b - 2 * c))
