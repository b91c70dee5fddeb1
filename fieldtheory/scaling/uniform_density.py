"""The density q(h) = φ'(h)/R of the signal that makes φ(h) uniform, and averages over it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.integrands.steps import sift
from fieldtheory.networks.activations import Activation, h

FLOAT_DIGITS = 25

_s = sp.Symbol("s", positive=True)
_u = sp.Symbol("u", positive=True)
_REALS = (h, -sp.oo, sp.oo)
_GUARD = 10
_MAX_DEGREE = 12


@lru_cache
def _ends(phi: Activation) -> tuple[sp.Expr, sp.Expr]:
    """φ(−∞) and φ(∞), if finite."""
    try:
        # SymPy's limits at ±∞ itself have errors, such as atan(h³ + h) → π/2 for h → −∞.
        ends = tuple(sp.limit(phi(sign / _u), _u, 0) for sign in (-1, 1))
    except (NotImplementedError, TypeError) as error:
        # A TypeError is what SymPy makes of Max within Min, as in a clipped function.
        raise ValueError(f"activation must have limits that SymPy finds, got {phi.name}") from error
    if not all(end.is_number and end.is_finite for end in ends):
        raise ValueError(f"activation must have finite limits at ±∞, got {phi.name}")
    return ends


@lru_cache
def density(phi: Activation) -> sp.Expr:
    """q(h) = φ'(h)/R, the density of h that makes φ(h) uniform."""
    bottom, top = _ends(phi)
    # One by one: the tails of a term like 1 − tanh² cancel unless it is written as one.
    terms = [term.diff(h) for term in sp.Add.make_args(phi.expression)]
    slope = sp.Add(*[sp.simplify(sift(term, (h,))) for term in terms])
    if top == bottom or slope.has(sp.DiracDelta) or not _has_one_sign(slope):
        raise ValueError(f"activation must be continuous and strictly monotone, got {phi.name}")
    if _reach(phi, FLOAT_DIGITS) == mpmath.inf and _tail_exponent(slope) < 3.001:
        raise ValueError(
            f"activation must saturate faster than 1/h², for h² φ'(h) to have an integral, "
            f"got {phi.name}"
        )
    return slope / (top - bottom)


def _has_one_sign(slope: sp.Expr) -> bool:
    """Whether φ' has one sign, at points of all sizes; far out it may be lost to rounding."""
    function = sp.lambdify([h], slope, modules="mpmath")
    with mpmath.workdps(50):
        sizes = [mpmath.mpf(10) ** (mpmath.mpf(k) / 20) for k in range(-60, 61)]
        values = [(size, function(sign * size)) for size in sizes for sign in (-1, 1)]
        signs = {mpmath.sign(value) for size, value in values if value != 0 or size <= 10}
    return signs in ({1}, {-1})


def _reach(phi: Activation, digits: int) -> Any:
    """Point beyond which φ is as good as its limits; ∞ for algebraic tails."""
    function = sp.lambdify([h], phi.expression, modules="mpmath")
    with mpmath.workdps(5 * digits):
        bottom, top = (mpmath.mpmathify(end.evalf(5 * digits)) for end in _ends(phi))
        for size in (mpmath.mpf(2) ** k for k in range(15)):
            left = max(abs(function(-size) - bottom), abs(function(size) - top))
            if left * size**2 < abs(top - bottom) * mpmath.mpf(10) ** -digits:
                return size
    return mpmath.inf


def _tail_exponent(slope: sp.Expr) -> Any:
    """The power with which φ' falls at large |h|, the smaller of the two sides."""
    function = sp.lambdify([h], slope, modules="mpmath")
    with mpmath.workdps(500):
        near, far = mpmath.mpf(10) ** 60, mpmath.mpf(10) ** 61
        pairs = [(abs(function(sign * near)), abs(function(sign * far))) for sign in (-1, 1)]
        exponents = [mpmath.log10(a / b) for a, b in pairs if a != 0 and b != 0]
    return min(exponents, default=mpmath.inf)


def average(phi: Activation, F: sp.Expr, digits: int) -> Any:
    """⟨F(h)⟩_q by mpmath's double-exponential rule, with ⟨1⟩_q = 1 as a check of it."""
    working = digits + _GUARD
    with mpmath.workdps(working):
        weights, values = (sp.lambdify([h], f, modules="mpmath") for f in (density(phi), F))
        reach = _reach(phi, working)

        def weighted(x: Any) -> Any:
            weight = weights(x)
            return weight * values(x) if weight > 0 else mpmath.mpf(0)

        ends = [-reach, 0, reach]
        norm, norm_error = mpmath.quad(weights, ends, error=True, maxdegree=_MAX_DEGREE)
        result, error = mpmath.quad(weighted, ends, error=True, maxdegree=_MAX_DEGREE)
        allowed = mpmath.mpf(10) ** -digits
        if max(norm_error, abs(norm - 1)) > allowed or error > allowed * max(1, abs(result)):
            raise PrecisionError(f"the density of {phi.name} did not reach {digits} digits")
    with mpmath.workdps(digits):
        return +result


@lru_cache
def second_moment(phi: Activation) -> sp.Expr:
    """⟨h²⟩_q, in closed form where SymPy finds one quickly, else a number."""
    q = density(phi)
    # ⟨exp(s h)⟩_q generates the moments of densities that fall exponentially.
    moment = _derivative(q * sp.exp(_s * h), 2) if q.has(sp.cosh) else _integral(h**2 * q)
    return _confirmed(moment, phi, h**2)


@lru_cache
def log_density(phi: Activation) -> sp.Expr:
    """⟨ln q⟩_q, in closed form where SymPy finds one quickly, else a number."""
    q = density(phi)
    return _confirmed(_derivative(q ** (1 + _s), 1), phi, sp.log(q))


def _derivative(F: sp.Expr, order: int) -> sp.Expr | None:
    """A derivative of ∫ F(h) dh by s, at s = 0."""
    integral = _integral(F)
    return None if integral is None else sp.simplify(sp.limit(sp.diff(integral, _s, order), _s, 0))


def _integral(F: sp.Expr) -> sp.Expr | None:
    """∫ F(h) dh from SymPy's table of Meijer functions, which also fails quickly."""
    limits = _REALS
    if F.has(sp.cosh):
        # With u = exp(h) they are algebraic.
        F = sp.powsimp(sp.simplify(F.rewrite(sp.exp).subs(h, sp.log(_u)) / _u))
        limits = (_u, 0, sp.oo)
    elif sp.simplify(F - F.subs(h, -h)) == 0:
        F, limits = 2 * F.subs(h, _u), (_u, 0, sp.oo)
    integral = sp.integrate(F, limits, meijerg=True, conds="none")
    return None if integral.has(sp.Integral, sp.meijerg, sp.hyper, _u, h) else integral


def _confirmed(closed: sp.Expr | None, phi: Activation, F: sp.Expr) -> sp.Expr:
    """A closed form of ⟨F⟩_q if it agrees with quadrature, which takes its place otherwise."""
    number = sp.Float(average(phi, F, FLOAT_DIGITS), FLOAT_DIGITS)
    if closed is None or not closed.is_number:
        return number
    gap = abs(closed.evalf(FLOAT_DIGITS) - number)
    agrees = gap <= max(1, abs(number)) * sp.Float(10) ** (5 - FLOAT_DIGITS)
    return sp.expand_log(closed) if agrees else number
