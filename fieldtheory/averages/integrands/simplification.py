"""What an average is worth before any integral is done: constants, parity, independence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.utilities.iterables import connected_components

from fieldtheory.averages.integrands.breakpoints import has_steps
from fieldtheory.averages.integrands.steps import step_form

_ODD = (sp.erf, sp.erfi, sp.tanh, sp.sinh, sp.asinh, sp.sin, sp.tan, sp.atan, sp.sign)
_EVEN = (sp.cos, sp.cosh, sp.Abs)


def simplified(
    cls: type,
    F: sp.Expr,
    names: sp.Tuple,
    K: sp.ImmutableMatrix,
    notes: list[str] | None = None,
) -> sp.Expr:
    """The average ⟨F⟩ as a ``cls`` node over the variables it needs, times and plus constants.

    What was done is added to ``notes``.
    """
    done = [] if notes is None else notes
    certain = {v: sp.S.Zero for i, v in enumerate(names) if K[i, i] == 0}
    if certain:
        F = F.subs(certain)
        done.append("a variable without variance is zero")
    used = _used(F, names)
    if not used:
        return F
    if len(used) < len(names):
        names, K = sp.Tuple(*[names[i] for i in used]), K.extract(used, used)
        done.append("unused variables integrated out")
    constant, F = F.as_independent(*names, as_Add=True) if F.is_Add else (sp.S.Zero, F)
    factor, F = _common_factor(F, names)
    if constant != 0:
        done.append("constant summand taken out")
    if factor != 1:
        done.append("constant factor taken out")
    if _is_odd(F, names):
        done.append("odd integrand dropped")
        return constant
    groups = _independent_groups(F, K, names)
    if len(groups) == 1:
        return constant + factor * sp.Expr.__new__(cls, F, names, K)
    done.append(f"{len(groups)} independent groups of variables")
    parts = [
        simplified(cls, part, sp.Tuple(*[names[i] for i in group]), K.extract(group, group), notes)
        for part, group in groups
    ]
    return constant + factor * sp.Mul(*parts)


def _used(F: sp.Expr, names: sp.Tuple) -> list[int]:
    present = F.free_symbols
    return [i for i, v in enumerate(names) if (v in present if v.is_Symbol else F.has(v))]


def _common_factor(F: sp.Expr, names: sp.Tuple) -> tuple[sp.Expr, sp.Expr]:
    """Split F into a factor without the variables, common to all summands, and the rest."""
    if not F.is_Add:
        return F.as_independent(*names, as_Add=False)
    split = [term.as_independent(*names, as_Add=False) for term in F.args]
    numbers, symbols = zip(*[c.as_coeff_Mul() for c, _ in split], strict=True)
    factor = sp.gcd(list(numbers)) if all(n.is_Rational for n in numbers) else sp.S.One
    if len(set(symbols)) == 1:
        factor *= symbols[0]
    return factor, sp.Add(*[(c / factor) * remainder for c, remainder in split])


def observable(F: sp.Expr, names: sp.Tuple) -> tuple[sp.Expr, list[sp.Expr], sp.Expr]:
    """F without the constants a connected correlator drops, its variables, and its factor."""
    if F.is_Add:
        F = F.as_independent(*names, as_Add=True)[1]
    factor, F = _common_factor(F, names)
    return F, [names[i] for i in _used(F, names)], factor


def odd_in_all(functions: Sequence[sp.Expr], names: sp.Tuple) -> bool:
    """Whether each function is even or odd in the variables together, and the product is odd."""
    parities = [parity(F, set(names)) for F in functions]
    return None not in parities and parities.count(-1) % 2 == 1


def _is_odd(F: sp.Expr, names: sp.Tuple) -> bool:
    sign = parity(F, set(names))
    if sign is not None or F.atoms(AppliedUndef) or F.has(sp.exp) or not has_steps(F):
        return sign == -1
    if _differs_from_odd(F, names):
        return False
    return sp.expand(step_form(F.xreplace({v: -v for v in names})) + step_form(F)) == 0


def _differs_from_odd(F: sp.Expr, names: sp.Tuple) -> bool:
    """Whether F is not odd at one point, a test that spares expanding its steps."""
    point = {v: sp.Rational(2 * i + 3, 7) for i, v in enumerate(names)}
    here, there = (F.xreplace({v: s * x for v, x in point.items()}).evalf(15) for s in (1, -1))
    if not (here.is_Float or here.is_Rational) or not (there.is_Float or there.is_Rational):
        return False
    return bool(abs(here + there) > sp.Float(1e-6) * (abs(here) + abs(there)))


def parity(F: sp.Expr, names: set) -> int | None:
    """1 if F is even, −1 if it is odd in the variables together, else None."""
    if F in names:
        return -1
    if not F.has_xfree(names):
        return 1
    parities = [parity(arg, names) for arg in F.args]
    if F.is_Add:
        return parities[0] if len(set(parities)) == 1 else None
    if all(sign == 1 for sign in parities):
        return 1
    if None in parities:
        return None
    if F.is_Mul:
        return int(sp.prod(parities))
    if F.is_Pow and F.exp.is_Integer:
        return 1 if F.exp.is_even else -1
    if isinstance(F, _ODD):
        return -1
    return 1 if isinstance(F, _EVEN) else None


def separated(F: sp.Expr, x: sp.Expr, y: sp.Expr) -> list[tuple[sp.Expr, sp.Expr]] | None:
    """F as Σ f(x) g(y), the pairs (f, g); None if it is no such sum.

    Only factors that mix the variables are expanded.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> separated(sp.tanh(x) * (x + y), x, y)
    [(x*tanh(x), 1), (tanh(x), y)]
    """
    factors = sp.Mul.make_args(F)
    mixed = sp.Mul(*[f for f in factors if f.has(x) and f.has(y)])
    if any(f.has(x) and f.has(y) for piece in mixed.args for f in sp.Mul.make_args(piece)):
        # Not otherwise: products of denominators, multiplied out, are none.
        mixed = sp.expand(mixed)
    only_y = sp.Mul(*[f for f in factors if f.has(y) and not f.has(x)])
    only_x = sp.Mul(*[f for f in factors if not f.has(y)])
    by_y: dict[sp.Expr, sp.Expr] = {}
    for piece in sp.Add.make_args(mixed):
        in_y: list[sp.Expr] = []
        in_x: list[sp.Expr] = []
        for factor in sp.Mul.make_args(piece):
            if factor.has(x) and factor.has(y):
                return None
            (in_y if factor.has(y) else in_x).append(factor)
        key = sp.Mul(*in_y)
        by_y[key] = by_y.get(key, sp.S.Zero) + sp.Mul(*in_x)
    return [(only_x * f, only_y * g) for g, f in by_y.items()]


def _independent_groups(
    F: sp.Expr, K: sp.ImmutableMatrix, names: sp.Tuple
) -> list[tuple[sp.Expr, list[int]]]:
    """Factors of F that depend on mutually independent variables, with those variables."""
    factors = sp.Mul.make_args(F)
    if len(names) == 1 or len(factors) == 1:
        return [(F, list(range(len(names))))]
    used = [_used(factor, names) for factor in factors]
    pairs = [(i, j) for i, j in combinations(range(len(names)), 2) if K[i, j] != 0]
    pairs += [(indices[0], j) for indices in used for j in indices[1:]]
    groups = map(sorted, connected_components((range(len(names)), pairs)))
    return [
        (sp.Mul(*[f for f, own in zip(factors, used, strict=True) if own[0] in group]), group)
        for group in sorted(groups)
    ]
