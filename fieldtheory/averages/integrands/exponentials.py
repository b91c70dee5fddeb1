"""Exponentials as symbols, so that SymPy does not take them apart, and in forms without overflow.

Ratios and logarithms of 1 + exp(u), and of cosh(u), become functions that do not overflow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import reduce

import numpy as np
import sympy as sp
from scipy.special import expit

# The highest powers of one exponential: of others polynomials would take SymPy minutes.
_HIGHEST = 24


def factored(F: sp.Expr) -> sp.Expr:
    """F factored, the exponentials in it and √π as symbols.

    >>> h = sp.Symbol("h")
    >>> factored(sp.exp(2 * h) - 2 * sp.exp(h) + 1)
    (exp(h) - 1)**2
    """
    root = sp.Dummy(positive=True)
    factors = with_masks(F, lambda masked: sp.factor(masked.xreplace({sp.pi: root**2})))
    return factors.xreplace({root: sp.sqrt(sp.pi)})


def expanded(F: sp.Expr) -> sp.Expr:
    """Products multiplied out, but for denominators, whose sums cancel near their roots.

    Examples
    --------
    >>> h = sp.Symbol("h")
    >>> expanded((h + 1) * h / (1 + (h - 1) ** 2) ** 2)
    h**2/((h - 1)**2 + 1)**2 + h/((h - 1)**2 + 1)**2
    """
    quotients = (p for p in F.atoms(sp.Pow) if p.exp.is_negative and p.base.is_Add)
    masks = {p: sp.Dummy() for p in quotients if p.base.is_polynomial()}
    return sp.expand(F.xreplace(masks)).xreplace({mask: p for p, mask in masks.items()})


def merged(F: sp.Expr) -> sp.Expr:
    """F with one exponential in each product: apart they may be zero times infinity.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> merged(x * sp.exp(2 * x, evaluate=False) * sp.exp(-(x**2)))
    x*exp(-x**2 + 2*x)
    """

    def one(product: sp.Expr) -> sp.Expr:
        exponents = [e.exp for e in product.args if isinstance(e, sp.exp)]
        others = [e for e in product.args if not isinstance(e, sp.exp)]
        return sp.Mul(*others, sp.exp(sp.Add(*exponents)))

    return F.replace(lambda e: e.is_Mul and sum(isinstance(a, sp.exp) for a in e.args) > 1, one)


def with_masks(F: sp.Expr, function: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """``function`` of F with a symbol for each exponential, and integer powers of it."""
    symbols: dict[sp.Expr, sp.Dummy] = {}
    masks = {}
    # The exponentials e^{cu} and their numbers c, by u.
    numbers: dict[sp.Expr, dict[sp.Expr, sp.Expr]] = defaultdict(dict)
    for e in F.atoms(sp.exp):
        content, primitive = e.exp.as_content_primitive()
        numbers[primitive][e] = content
    for u, contents in numbers.items():
        unit = reduce(sp.gcd, contents.values())
        for e, content in contents.items():
            power = content / unit
            base, power = (unit * u, power) if power <= _HIGHEST else (content * u, sp.S.One)
            masks[e] = symbols.setdefault(sp.exp(base), sp.Dummy(positive=True)) ** power
    back = {symbol: e for e, symbol in symbols.items()}
    return function(F.xreplace(masks)).xreplace(back)


_EXPIT, _SOFTPLUS, _LOG_COSH = map(sp.Function, ("expit", "softplus", "log_cosh"))
# Operations up to which a sum is factored.
_LONGEST = 200


def _log_cosh(u: np.ndarray) -> np.ndarray:
    size = np.abs(u)
    small = np.log1p(2 * np.sinh(np.minimum(size, 1.0) / 2) ** 2)
    return np.where(size < 1, small, size + np.log1p(np.exp(-2 * size)) - np.log(2.0))


FUNCTIONS = {
    "expit": expit,
    "softplus": lambda u: np.logaddexp(0.0, u),
    "log_cosh": _log_cosh,
}


def without_overflow(F: sp.Expr) -> sp.Expr:
    """F with log(1 + eᵘ) as softplus(u), log cosh u, and e^(mu)/(1 + eᵘ)^n by one function each.

    >>> h = sp.Symbol("h", real=True)
    >>> without_overflow(sp.log(1 + sp.exp(h)).diff(h)), without_overflow(1 / (1 + sp.exp(-h)))
    (expit(h), expit(h))
    """
    F = F.replace(sp.log, _logarithm)
    if any(e.base.func == sp.cosh and e.exp.is_negative for e in F.atoms(sp.Pow)):
        # Powers of cosh come together.
        F = F.replace(sp.sinh, lambda u: sp.tanh(u) * sp.cosh(u))
    F = F.replace(lambda e: e.is_Pow, _inverse)
    with_ratios = _with_ratios(F)
    if with_ratios.has(sp.exp):
        # An exponential inside of a sum may belong to a ratio outside of it.
        with_ratios = min(
            with_ratios, _with_ratios(expanded(F)), key=lambda E: len(E.atoms(sp.exp))
        )
    return _factored(with_ratios)


def _with_ratios(F: sp.Expr) -> sp.Expr:
    return F.replace(lambda e: e.is_Mul and e.has(_EXPIT), _product)


def _logarithm(argument: sp.Expr) -> sp.Expr:
    if isinstance(argument, sp.cosh):
        return _LOG_COSH(*argument.args)
    u = _exponent_of(argument)
    return sp.log(argument) if u is None else _SOFTPLUS(u)


def _exponent_of(expr: sp.Expr) -> sp.Expr | None:
    """u of 1 + eᵘ, None for other expressions."""
    if expr.is_Add and len(expr.args) == 2 and sp.S.One in expr.args:
        other = expr.args[1] if expr.args[0] == 1 else expr.args[0]
        return other.exp if isinstance(other, sp.exp) else None
    return None


def _inverse(power: sp.Expr) -> sp.Expr:
    """(1 + eᵘ)^(−n) as a power of the logistic function; multiplied out, it is no power."""
    base, exponent = power.args
    if not (base.is_Add and base.has(sp.exp) and exponent.is_Integer and exponent.is_negative):
        return power
    product = sp.S.One
    for factor in sp.Mul.make_args(factored(base)):
        part, order = factor.as_base_exp()
        u = _exponent_of(part)
        product *= factor**exponent if u is None else _EXPIT(-u) ** (-exponent * order)
    return product


def _product(product: sp.Expr) -> sp.Expr:
    """e^(mu) s(−u)^n as s(u)^m s(−u)^(n−m)."""
    # Products of two variables have one exponential of both.
    exponentials = [f for f in product.args if isinstance(f, sp.exp)]
    terms = [(e, term) for e in exponentials for term in sp.Add.make_args(e.exp)]
    for factor in product.args:
        base, n = factor.as_base_exp()
        if not isinstance(base, _EXPIT):
            continue
        u = -base.args[0]
        # That of u = a h + b is one of a multiple of a h.
        slope = u.as_independent(*u.free_symbols, as_Add=True)[1]
        for exponential, term in terms:
            m = term / slope
            if m.is_Integer and 0 < m <= n:
                others = [f for f in product.args if f not in (factor, exponential)]
                others.append(sp.exp(sp.expand(exponential.exp - m * u)))
                return _product(sp.Mul(*others, _EXPIT(u) ** m, base ** (n - m)))
    return product


def _factored(F: sp.Expr) -> sp.Expr:
    """F as a product in s, 1 − s and 1 − 2s, whose sums cancel for large arguments."""
    arguments = {e.args[0] for e in F.atoms(_EXPIT)}
    signs = {-u if u.could_extract_minus_sign() else u for u in arguments}
    if len(signs) != 1 or F.count_ops() > _LONGEST:
        return F
    (u,) = signs
    s = sp.Dummy("s", positive=True)
    product = factored(F.xreplace({_EXPIT(u): s, _EXPIT(-u): 1 - s}))
    back = {1 - s: _EXPIT(-u), s - 1: -_EXPIT(-u), 2 * s - 1: sp.tanh(u / 2), s: _EXPIT(u)}
    return product.xreplace(back | {1 - 2 * s: -sp.tanh(u / 2)})
