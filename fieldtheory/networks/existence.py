"""Whether an activation is one whose averages over Gaussian signals are promised.

It is real on the whole line, smooth on scales above 1e-7 between kinks and jumps that are written
as such, and grows as a power or as polynomials times exp(a h). What float64 makes suspicious is
settled with more digits. Averages of unbounded functions are errors of the quadrature.

If φ grows as exp(c h²), ⟨φ²⟩ exists for variances below 1/(4c) only, which the kernels of a network
may pass at some layer: it is refused whatever c is. If it grows exponentially, its averages are
found by closed forms alone. φ is evaluated at points 0.01 apart near zero and by 2 % apart far
away, up to |h| = 10⁴; what is narrower is found if φ rises or ceases to be real towards it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from fieldtheory.averages.integrands.breakpoints import pieces_of

Numbers = Callable[[np.ndarray], np.ndarray]
Precise = Callable[[Any], Any]

# Enough for 1 − cos(h) and the like next to zero; points that are evaluated with them.
_DIGITS, _MOST = 80, 8
# Where φ is evaluated: evenly near zero, far away by factors, off the numbers that singularities
# are chosen at.
_HALF = np.append(np.arange(0.0, 12, 0.01), np.geomspace(12, 1e4, 350)) + 0.00271828
_GRID = np.append(-_HALF[::-1], _HALF)
# The smallest scale of h on which φ may vary.
_SCALE = 1e-7
# What is raised where a function has no value, or one that SymPy does not know how to get.
_NO_VALUE = (ArithmeticError, TypeError, ValueError, NameError, AttributeError)


@lru_cache(maxsize=1024)
def require_averages(phi: sp.Expr, h: sp.Symbol) -> None:
    """Refuse a function that is not real, grows too fast, or has hidden jumps."""
    unknown = phi.atoms(AppliedUndef)
    if unknown:
        raise ValueError(f"activation must be made of known functions, got {unknown.pop()}")
    _require_code(phi, h)
    _require_slow_phases(phi, h)
    numbers, precise = _in_float64(phi, h), _in_digits(phi, h)
    with mpmath.workdps(_DIGITS):
        _require_real(phi, numbers, precise)
        _require_slow_growth(phi, h, precise)
        _require_visible_jumps(phi, h, numbers, precise)


def _require_code(phi: sp.Expr, h: sp.Symbol) -> None:
    """Refuse functions that NumPy and SciPy do not have, or SymPy cannot differentiate."""
    if phi.diff(h).has(sp.Derivative):
        raise ValueError(f"activation must have a derivative that SymPy knows, got {phi}")
    try:
        with np.errstate(all="ignore"):
            _compiled(phi, h)(_GRID[:1])
    except NameError as error:
        raise ValueError(
            f"activation must be made of functions that NumPy or SciPy has, got {error.name} "
            f"in {phi}"
        ) from None
    except _NO_VALUE:
        pass


def _require_slow_phases(phi: sp.Expr, h: sp.Symbol) -> None:
    """Refuse oscillations whose phase grows exponentially: no panels resolve them."""
    for wave in phi.atoms(sp.sin, sp.cos):
        phase = _in_float64(wave.args[0], h)(np.array([-100.0, 100.0]))
        # Those that grow as h⁷ do not reach it.
        if (np.abs(phase) >= 1e15).any():
            raise ValueError(
                "activation must oscillate on scales that do not shrink exponentially, "
                f"got {wave} in {phi}"
            )


def _compiled(phi: sp.Expr, h: sp.Symbol) -> Numbers:
    extrema = {
        "amax": lambda values, axis: reduce(np.maximum, values),
        "amin": lambda values, axis: reduce(np.minimum, values),
    }
    return sp.lambdify([h], phi, [extrema, "scipy", "numpy"])


def _in_float64(phi: sp.Expr, h: sp.Symbol) -> Numbers:
    """φ of an array; NaN where it is not real, or more than float64 can tell."""
    function = _compiled(phi, h)

    def numbers(points: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            try:
                values = np.broadcast_to(function(points), points.shape)
            except _NO_VALUE:
                return np.full(points.shape, np.nan)
        if np.iscomplexobj(values):
            return np.where(values.imag == 0, values.real, np.nan)
        return values.astype(float)

    return numbers


def _in_digits(phi: sp.Expr, h: sp.Symbol) -> Precise:
    """φ of one number to the digits of mpmath; None where it has no value."""
    steps = {"Heaviside": lambda x, middle=0.5: (mpmath.sign(x) + 1) / 2 if x else middle}
    function = sp.lambdify([h], phi, [steps, "mpmath"])

    def precise(point: Any) -> Any:
        try:
            value = function(mpmath.mpf(point))
        except _NO_VALUE:
            try:
                value = phi.xreplace({h: sp.Float(point, _DIGITS)}).evalf(_DIGITS)
                value = mpmath.mpmathify(value)
            except _NO_VALUE:
                return None
        return value if mpmath.isfinite(value) else None

    return precise


def _require_real(phi: sp.Expr, numbers: Numbers, precise: Precise) -> None:
    # Both ends of every run of NaN, and first some points for an error that is easy to follow.
    changes = np.diff(np.isnan(numbers(_GRID)), prepend=False, append=False)
    ends = np.flatnonzero(changes) - np.arange(changes.sum()) % 2
    for point in (1, -1, 0, 2, -2, 10, -10, *sorted(_GRID[ends].tolist(), key=abs)[:_MOST]):
        value = precise(point)
        if value is not None and abs(mpmath.im(value)) > 1e-20 * abs(value):
            raise ValueError(
                f"activation must be real for every real h, got {phi}, "
                f"which is {complex(value):.3g} at h = {point:.6g}"
            )


def _require_slow_growth(phi: sp.Expr, h: sp.Symbol, precise: Precise) -> None:
    # Distances at which growth is measured, and the exponent after which it is enough.
    distances, enough = (1.0, 1.25, 2.0, *(4.0**k for k in range(1, 9))), 1e9
    for side in (1, -1):
        exponents, rates = [mpmath.mpf(0)], [mpmath.inf]
        for distance in distances:
            # Two points, in case that one is a zero.
            points = [side * distance, side * distance * 1.0371]
            sizes = [abs(precise(p) or 0) for p in points]
            # φ that oscillates may be near a zero at both.
            logarithms = [mpmath.log(max(size, mpmath.e)) for size in sizes]
            exponents.append(max(logarithms))
            rates.append(max(e / p**2 for e, p in zip(logarithms, points, strict=True)))
            if exponents[-1] > enough:
                break
        before, rate = rates[-2:]
        # A ratio that is no slower than exp(c h²).
        as_fast = 0.97
        if exponents[-1] > 1 and rate > as_fast * before:
            variance = f"; ⟨φ²⟩ is infinite from the variance {float(1 / (4 * rate)):.3g} on"
            raise ValueError(
                "activation must grow more slowly than every exp(c h²), so that its averages over "
                f"Gaussian h exist, got {phi}{variance if rate < before / as_fast else ''}"
            )
        # Over a factor of four of h ln|φ| doubles, to 10 at least.
        fast = exponents[-1] > max(10.0, 2.0 * exponents[-2])
        if fast and not _is_exponential(pieces_of(phi, h).branches[0 if side < 0 else -1], h):
            raise ValueError(
                "activation must grow as a power of h, or be made of polynomials times exp(a h), "
                f"sinh and cosh, whose averages have closed forms, got {phi}"
            )


def _is_exponential(F: sp.Expr, h: sp.Symbol) -> bool:
    """Whether F is a sum of polynomials times exp(a h + b)."""
    for function in (sp.sinh, sp.cosh):
        F = F.replace(function, lambda u, function=function: function(u).rewrite(sp.exp))
    F = sp.expand(F)
    powers = {e: sp.Dummy() for e in F.atoms(sp.exp)}
    linear = all(e.args[0].is_polynomial(h) and sp.degree(e.args[0], h) < 2 for e in powers)
    return linear and F.xreplace(powers).is_polynomial(h, *powers.values())


def _require_visible_jumps(phi: sp.Expr, h: sp.Symbol, numbers: Numbers, precise: Precise) -> None:
    try:
        breakpoints = [float(point) for point in pieces_of(phi, h).points]
    except ValueError as error:
        raise ValueError(
            f"activation must have finitely many kinks and jumps, got {phi}: {error}"
        ) from None
    jump, what = _jump(numbers, precise, breakpoints), "jumps"
    if jump is None and not breakpoints:
        # Kinks of φ²: where φ vanishes at its kinks, φ² has none.
        slope = phi * phi.diff(h)
        jump, what = _jump(_in_float64(slope, h), _in_digits(slope, h), breakpoints), "has φφ' jump"
    if jump is not None:
        place, below, above = jump
        raise ValueError(
            "activation must have its jumps and kinks written by sign, Heaviside, abs, max, min or "
            f"conditions and vary on scales above {_SCALE:.0e}, got {phi}, which {what} at "
            f"h = {place:.6g}, from {below:.6g} to {above:.6g}"
        )


def _jump(
    numbers: Numbers, precise: Precise, breakpoints: list[float]
) -> tuple[float, float, float] | None:
    """Place of a change within ``_SCALE`` as if the function jumped, but at known breakpoints."""
    # Of its change over a cell of the grid φ may have this part on the smallest scale.
    part = 1 / 16
    left, right = _GRID[:-1], _GRID[1:]
    low, high = (np.nan_to_num(numbers(points), nan=0.0) for points in (left, right))
    with np.errstate(all="ignore"):
        largest = np.abs(high - low)
        while (wide := right - left > _SCALE).any():
            middle = (left + right) / 2
            value = np.nan_to_num(numbers(middle), nan=0.0)
            first = np.abs(high - value) <= np.abs(value - low)
            upper, lower = wide & ~first, wide & first
            left, low = np.where(upper, middle, left), np.where(upper, value, low)
            right, high = np.where(lower, middle, right), np.where(lower, value, high)
            largest = np.maximum(largest, np.abs(high - low))
        change, size = np.abs(high - low), np.abs(high) + np.abs(low)
        candidates = np.flatnonzero((change > part * largest) & (change > _SCALE * size + 1e-290))
    for i in candidates[np.argsort(np.abs(left[candidates]))][:_MOST]:
        place = (left[i] + right[i]) / 2
        place = 0.0 if abs(place) < _SCALE else place
        if any(abs(place - point) <= 10 * _SCALE * max(1.0, abs(point)) for point in breakpoints):
            continue
        # Rounding may misplace it, and is all there is to it where numbers cancel.
        below, above = (precise(place + side * _SCALE) for side in (-1, 1))
        if below is None or above is None:
            continue
        if abs(above - below) > max(part * largest[i], _SCALE * (abs(above) + abs(below))):
            return float(place), float(below), float(above)
    return None
