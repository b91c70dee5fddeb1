"""Ball arithmetic by python-flint: numbers, compiled expressions and Gaussian tails."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import sympy as sp

try:
    from flint import acb, arb, arb_mat, arb_poly, ctx
except ImportError as error:
    raise ImportError(
        "enclosures need python-flint: pip install 'fieldtheory-networks[proven]'"
    ) from error

__all__ = [
    "acb",
    "arb",
    "arb_mat",
    "arb_poly",
    "attempts",
    "compiled",
    "constant",
    "ctx",
    "exact",
    "has_known_cuts",
    "real_functions",
    "power",
    "power_tail",
]


# Bits that a few dozen layers may lose.
_GUARD = 28


def attempts(digits: int) -> list[int]:
    """Precisions in bits that are tried for so many decimal digits."""
    least = math.ceil(digits * math.log2(10)) + _GUARD
    return [least, 2 * least, 4 * least]


def exact(value: Any) -> Any:
    """A number without a radius: the midpoint of a ball, or a dyadic fraction."""
    if isinstance(value, sp.Rational):
        return arb(int(value.p)) / int(value.q)
    return value.mid()


def constant(value: sp.Expr) -> Any:
    """A number of SymPy as a ball."""
    return compiled(value, ())() * arb(1)


def compiled(
    form: sp.Expr, symbols: tuple[sp.Symbol, ...], in_plane: bool = False
) -> Callable[..., Any]:
    """An expression as a function of balls, at the present precision."""
    return _compiled(form, symbols, in_plane, ctx.prec)


@lru_cache(maxsize=1024)
def _compiled(
    form: sp.Expr, symbols: tuple[sp.Symbol, ...], in_plane: bool, precision: int
) -> Callable[..., Any]:
    flag = [sp.Symbol("analytic")] if in_plane else []
    library = {**real_functions(), **(_PLANE if in_plane else {})}
    if in_plane:
        for function in (sp.atan2, sp.atan):
            form = form.replace(
                function, lambda *u: _arc(sp.Mul(u[0], *[1 / v for v in u[1:]]), flag[0])
            )
        form = form.replace(
            lambda e: e.is_Pow and not e.exp.is_Integer,
            lambda e: _root(e.base, flag[0]) ** (2 * e.exp),
        )
    form = form.replace(
        lambda e: e.is_Pow and e.exp.is_Integer,
        lambda e: _power(e.base, e.exp) if e.exp > 0 else 1 / _power(e.base, -e.exp),
    )
    return sp.lambdify([*symbols, *flag], form, modules=[library, "mpmath"], cse=True)


def has_known_cuts(form: sp.Expr) -> bool:
    """Whether an expression can be compiled for the complex plane: all its cuts are checked."""
    return all((2 * power.exp).is_Integer for power in form.atoms(sp.Pow)) and all(
        isinstance(f, sp.atan2 | sp.atan | sp.exp | sp.erf) for f in form.atoms(sp.Function)
    )


_arc, _root, _power = map(sp.Function, ("arc", "root", "power"))


def power(base: Any, exponent: int) -> Any:
    """A product, as powers of balls around zero are not finite in Arb."""
    return math.prod([base] * (exponent - 1), start=base)


def _arc_of(w: Any, analytic: bool) -> Any:
    """arctan, whose cuts run from ±i along the imaginary axis."""
    if analytic and not (abs(w) < 1 or not w.real.contains(0)):
        return acb("nan")
    return w.atan()


# A determinant that rounding leaves around zero is not negative.
_LINE = {
    "atan2": lambda y, x: arb.atan2(arb(y), arb(x)),
    "sqrt": lambda u: arb(u).nonnegative_part().sqrt(),
}
_PLANE = {
    "arc": _arc_of,
    "root": lambda u, analytic: acb(u).sqrt(analytic=analytic),
}
_COMMON = {
    "mpf": arb,
    "power": power,
    **{
        name: (lambda u, name=name: getattr(u if isinstance(u, acb) else arb(u), name)())
        for name in ("exp", "erf", "tanh", "sin", "cos", "atan", "asin", "acos", "log")
    },
}


def real_functions() -> dict[str, Any]:
    """Numbers and functions by their names in the printer of mpmath, in balls at this precision."""
    return {**_COMMON, **_LINE, "pi": arb.pi()}


def power_tail(bound: Any, K: Any, reach: Any) -> Any:
    """⟨P(|h|)⟩ over |h| > reach: Σ p_k (2K)^(k/2) Γ((k+1)/2, reach²/(2K))/√π."""
    total = arb(0)
    for k, factor in enumerate(bound.coeffs()):
        gamma = (reach * reach / (2 * K)).gamma_upper(arb(k + 1) / 2)
        total += factor * (2 * K).sqrt() ** k * gamma
    return total / arb.pi().sqrt()
