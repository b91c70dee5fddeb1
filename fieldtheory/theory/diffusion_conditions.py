"""What PF asks of φ and ψ for a diffusion limit, checked one by one, and what follows if it fails.

Theorem 3.1 wants Assumption 3.2: φ(0) = 0, φ three times and ψ two times continuously
differentiable, φ'' and φ''' growing at most exponentially, ψ locally bounded. Assumption 2.3
keeps the diffusion from exploding (PF section 3.4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import mpmath
import sympy as sp

from fieldtheory.averages.integrands.breakpoints import break_points, has_steps, pieces_of
from fieldtheory.networks.activations import Activation, h

# Closer to a kink than any other one, and farther than all.
_BESIDE, _FAR = sp.Rational(1, 10**20), 10**20
_DIGITS = 40
# Distances between which powers are compared, several points each in case that one is a zero.
_POWERS, _EXPONENTIALS = (8, 16), (3, 6)
_STRETCHES = (1.0, 1.0371, 1.213, 1.377, 1.7391)
_SLACK = 0.01
# The power that a logarithm seems to have between those distances.
_LOGARITHM = 0.04
_BREAKS_OF_PHI = (
    "increments do not shrink with Δt: there is no limit",
    "increments have means of order √Δt, which add up to infinity: there is no limit",
    "the mean of both sides drives the drift; the error of depth L is O(1/√L)",
    "the limit stands; the error of depth L is O(1/√L)",
)
_NOT_FINITE = "increments have means that Δt does not bound; no limit is given here"


@dataclass(frozen=True)
class Condition:
    """One condition: what is asked, by which assumption of PF, and whether it holds.

    ``found`` says what was found, ``consequence`` what follows where it does not hold.
    """

    asked: str
    source: str
    holds: bool
    found: str
    consequence: str = ""


@dataclass(frozen=True)
class DiffusionConditions:
    """The conditions for a diffusion limit of φ and ψ, printed as a table.

    Parameters
    ----------
    activation, input_activation : Activation
        φ and ψ.
    conditions : tuple of Condition

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> found = diffusion_conditions(as_activation("relu"), as_activation("linear"))
    >>> found.failing[0].found, found.has_limit
    ("φ' jumps at 0", False)
    """

    activation: Activation
    input_activation: Activation
    conditions: tuple[Condition, ...]

    @property
    def failing(self) -> tuple[Condition, ...]:
        """Those that do not hold."""
        return tuple(c for c in self.conditions if not c.holds)

    @property
    def has_limit(self) -> bool:
        """Whether the increments have drift and diffusion, also where PF's proof does not hold."""
        found = break_at_zero(self.activation, 3)
        smooth = found is None or (found.order > 1 and found.finite)
        return smooth and self.activation(0) == 0

    @property
    def theorem_applies(self) -> bool:
        """Whether Theorem 3.1 covers φ and ψ (PF Assumption 3.2)."""
        return not any(c.source == _REGULARITY for c in self.failing)

    @property
    def cannot_explode(self) -> bool:
        """Whether the diffusion has linear growth (PF Assumption 2.3)."""
        return not any(c.source == _GROWTH for c in self.failing)

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.conditions)

    def __str__(self) -> str:
        lines = [f"φ = {self.activation.name}, ψ = {self.input_activation.name}"]
        asked, sources = (
            [getattr(c, name) for c in self.conditions] for name in ("asked", "source")
        )
        widths = max(map(len, asked)), max(map(len, sources))
        for c in self.conditions:
            verdict = "holds" if c.holds else "fails"
            lines.append(f"{c.asked:{widths[0]}}  {c.source:{widths[1]}}  {verdict}  {c.found}")
            if not c.holds:
                lines.append(f"    → {c.consequence}")
        return "\n".join(lines)


_REGULARITY, _GROWTH = "PF Assumption 3.2", "PF Assumption 2.3"


@lru_cache
def diffusion_conditions(
    activation: Activation, input_activation: Activation
) -> DiffusionConditions:
    """Check what PF Assumptions 3.2 and 2.3 ask of φ and ψ.

    Parameters
    ----------
    activation, input_activation : Activation
        φ, also one that `DiffusionNetwork` refuses, and ψ.

    Returns
    -------
    DiffusionConditions

    Notes
    -----
    Kinks are located symbolically. Growth is judged by values up to |x| = 10¹⁶ for powers and 10⁶
    for exponentials: evidence, not a proof.

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> found = diffusion_conditions(as_activation("swish"), as_activation("linear"))
    >>> found.theorem_applies, found.cannot_explode
    (True, False)
    >>> print(found.failing[0].asked, "→", found.failing[0].consequence)
    ψ grows at most as √x, as φ''(0) ≠ 0 → the diffusion may explode at a finite time
    """
    phi, psi = activation, input_activation
    slope = _second_slope(phi)
    return DiffusionConditions(
        phi,
        psi,
        (
            _starts_at_zero(phi),
            _smooth(phi),
            _noise(phi),
            _at_most_exponential(phi),
            Condition("ψ locally bounded", _REGULARITY, True, "finite for every x"),
            _smooth_input(psi),
            _linear_growth(psi, slope),
        ),
    )


def _starts_at_zero(phi: Activation) -> Condition:
    value = phi(0)
    return Condition(
        "φ(0) = 0",
        _REGULARITY,
        value == 0,
        f"φ(0) = {_number(value)}",
        "increments do not shrink with Δt: there is no limit",
    )


def _smooth(phi: Activation) -> Condition:
    asked = "φ three times continuously differentiable"
    # One at 0 says more.
    found = break_at_zero(phi, 3) or first_break(phi, 3)
    if found is None:
        return Condition(asked, _REGULARITY, True, "smooth")
    consequence = _BREAKS_OF_PHI[found.order] if found.finite or not found.order else _NOT_FINITE
    if found.point != 0:
        consequence = "the limit is made of φ near 0 alone and stands"
    return Condition(asked, _REGULARITY, False, found.words("φ"), consequence)


def _smooth_input(psi: Activation) -> Condition:
    asked = "ψ two times continuously differentiable"
    found = first_break(psi, 2)
    if found is None:
        return Condition(asked, _REGULARITY, True, "smooth")
    consequence = (
        "ψ is locally Lipschitz: the diffusion has one solution, and Theorem 2.1 holds"
        if found.order and found.finite
        else "PF does not say whether the diffusion exists and has one law"
    )
    return Condition(asked, _REGULARITY, False, found.words("ψ"), consequence)


def _noise(phi: Activation) -> Condition:
    slopes = [_side(phi.expression, 1, sp.S.Zero, sign) for sign in (1, -1)]
    found = "φ'(0) = " + " and ".join(dict.fromkeys(map(_number, slopes)))
    consequence = "the limit has no noise: it is a differential equation"
    return Condition("φ'(0) ≠ 0", "PF eq. (11)", any(slopes), found, consequence)


def _at_most_exponential(phi: Activation) -> Condition:
    fast = [n for n in (2, 3) if not _grows_at_most_exponentially(phi.expression, n)]
    found = "at most exponential" if not fast else f"{_primed('φ', fast[0])} grows faster"
    return Condition(
        "φ'', φ''' grow at most exponentially",
        _REGULARITY,
        not fast,
        found,
        "moments of increments may be infinite or not small",
    )


def _linear_growth(psi: Activation, slope: sp.Expr | None) -> Condition:
    power = growth_power(psi.expression)
    # Without φ''(0) there is no drift to grow.
    straight = not slope
    limit = 1 if straight else sp.S.Half
    asked = (
        f"ψ grows at most as {'x' if straight else '√x'}, as φ''(0) {'=' if straight else '≠'} 0"
    )
    found = "faster than any power" if power is None else f"ψ grows as {_power_text(power)}"
    if power is not None and power < _LOGARITHM:
        found = "ψ does not grow as a power"
    holds = power is not None and power <= float(limit) + _SLACK
    consequence = "the diffusion may explode at a finite time"
    return Condition(asked, _GROWTH, holds, found, consequence)


class Break(NamedTuple):
    """The lowest derivative that is not continuous, where, and whether it is finite there."""

    order: int
    point: sp.Expr
    finite: bool

    def words(self, name: str) -> str:
        """ψ' jumps at 0."""
        verb = "jumps" if self.finite else "is not finite"
        return f"{_primed(name, self.order)} {verb} at {_number(self.point)}"


def first_break(activation: Activation, order: int) -> Break | None:
    """The lowest derivative up to an order that is not continuous.

    Of equal orders the one at 0; None if there is none.

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> first_break(as_activation("tanh"), 3), first_break(as_activation("softsign"), 3)
    (None, Break(order=2, point=0, finite=True))
    """
    expression = activation.expression
    points = sorted(_suspects(expression), key=lambda p: (p != 0, float(p)))
    return _first_break(expression, points, order)


def break_at_zero(activation: Activation, order: int) -> Break | None:
    """The lowest derivative up to an order that is not continuous at 0; None if there is none.

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> break_at_zero(as_activation("elu"), 3), break_at_zero(as_activation("hard tanh"), 3)
    (Break(order=2, point=0, finite=True), None)
    """
    return _first_break(activation.expression, [sp.S.Zero], order)


def _first_break(expression: sp.Expr, points: list[sp.Expr], order: int) -> Break | None:
    for n in range(order + 1):
        for point in points:
            plus, minus = (_side(expression, n, point, sign) for sign in (1, -1))
            finite = bool(plus.is_finite and minus.is_finite)
            if plus != minus or not finite:
                return Break(n, point, finite)
    return None


def _suspects(expression: sp.Expr) -> set[sp.Expr]:
    """Where a function may not be smooth: its kinks, and zeros of what roots are taken of."""
    points = set(break_points(expression, h)) if has_steps(expression) else set()
    for power in expression.atoms(sp.Pow, sp.log):
        base = power.args[0]
        if isinstance(power, sp.Pow) and (not base.has(h) or power.exp.is_nonnegative is True):
            if power.exp.is_integer or not base.has(h):
                continue
        zeros = sp.solveset(base, h, sp.S.Reals)
        points |= set(zeros) if isinstance(zeros, sp.FiniteSet) else set()
    return {point for point in points if point.is_real}


def _side(expression: sp.Expr, order: int, point: sp.Expr, sign: int) -> sp.Expr:
    """A derivative next to a point, on its right or left."""
    if has_steps(expression):
        expression = pieces_of(expression, h).at(point + sign * _BESIDE)
    derivative = expression.diff(h, order)
    value = derivative.subs(h, point)
    if value.has(sp.nan, sp.zoo, sp.oo):
        value = sp.limit(derivative, h, point, "+" if sign > 0 else "-")
    return sp.simplify(value)


def _second_slope(phi: Activation) -> sp.Expr | None:
    sides = [_side(phi.expression, 2, sp.S.Zero, sign) for sign in (1, -1)]
    mean = sp.simplify(sp.Add(*sides) / 2)
    return mean if mean.is_finite else None


def growth_power(expression: sp.Expr) -> float | None:
    """p of the fastest power |x|^p as which a function of ``h`` grows on either side; 0 if bounded.

    None for what grows faster than powers.

    Examples
    --------
    >>> growth_power(sp.sqrt(1 + h**2)), growth_power(sp.tanh(h)), growth_power(sp.exp(h))
    (1.0, 0.0, None)
    """
    sizes = [_log_size(expression, 0, 10.0**k) for k in _POWERS]
    near, far = (max(size, mpmath.mpf(0)) for size in sizes)
    distance = (_POWERS[1] - _POWERS[0]) * mpmath.log(10)
    power = float((far - near) / distance)
    return None if power > _POWERS[0] ** 2 else round(power, 6)


def _grows_at_most_exponentially(expression: sp.Expr, order: int) -> bool:
    sizes = [_log_size(expression, order, 10.0**k) for k in _EXPONENTIALS]
    near, far = (max(size, mpmath.mpf(1)) for size in sizes)
    distance = (_EXPONENTIALS[1] - _EXPONENTIALS[0]) * mpmath.log(10)
    return bool(mpmath.log(far / near) / distance <= 1 + _SLACK)


def _log_size(expression: sp.Expr, order: int, distance: float) -> mpmath.mpf:
    """ln of the largest modulus of a derivative near a distance from 0, on both sides."""
    largest = mpmath.mpf(0)
    for sign in (1, -1):
        side = pieces_of(expression, h).at(sign * _FAR) if has_steps(expression) else expression
        function = sp.lambdify([h], side.diff(h, order), "mpmath")
        with mpmath.workdps(_DIGITS):
            for stretch in _STRETCHES:
                value = abs(mpmath.mpmathify(function(mpmath.mpf(sign * distance * stretch))))
                largest = max(largest, value)
    return mpmath.log(largest) if largest else mpmath.mpf("-inf")


def _number(value: sp.Expr) -> str:
    return f"{float(value):.6g}" if value.is_finite else str(value)


def _power_text(power: float) -> str:
    return "x" if f"{power:.3g}" == "1" else f"x^{power:.3g}"


def _primed(name: str, order: int) -> str:
    return name + "'" * order
