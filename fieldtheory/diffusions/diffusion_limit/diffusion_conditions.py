"""What PF asks of φ and ψ for a diffusion limit, checked one by one, and what follows if it fails.

Theorem 3.1 wants Assumption 3.2: φ(0) = 0, φ three times and ψ two times continuously
differentiable, φ'' and φ''' growing at most exponentially, ψ locally bounded. Assumption 2.3
keeps the diffusion from exploding (PF section 3.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import mpmath
import sympy as sp

from fieldtheory.averages.integrands.breakpoints import pieces_of
from fieldtheory.diffusions.diffusion_network import number_text
from fieldtheory.networks.activations import Activation, h

# Distances 10⁸ and 10¹⁶ between which powers are compared, at several points each in case that one
# is a zero.
_DISTANCES, _STRETCHES = (8, 16), (1.0, 1.0371, 1.213, 1.377, 1.7391)
_BREAKS_OF_PHI = (
    "increments do not shrink with Δt: there is no limit",
    "increments have means of order √Δt, which add up to infinity: there is no limit",
    "the mean of both sides drives the drift; the error of depth L is O(1/√L)",
    "the limit stands; the error of depth L is O(1/√L)",
)
_NOT_FINITE = "increments have means that Δt does not bound; no limit is given here"


@dataclass(frozen=True)
class Condition:
    """One condition: what is asked, by which assumption of PF, and whether it holds."""

    asked: str
    source: str
    holds: bool
    found: str
    consequence: str = ""


@dataclass(frozen=True)
class DiffusionConditions:
    """The conditions for a diffusion limit of φ and ψ, printed as a table.

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
        kink = first_break(self.activation, 3, [sp.S.Zero])
        smooth = kink is None or (kink.order > 1 and kink.finite)
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

    >>> from fieldtheory.networks.activations import as_activation
    >>> found = diffusion_conditions(as_activation("swish"), as_activation("linear"))
    >>> found.theorem_applies, found.cannot_explode
    (True, False)
    >>> print(found.failing[0].asked, "→", found.failing[0].consequence)
    ψ grows at most as √x, as φ''(0) ≠ 0 → the diffusion may explode at a finite time
    """
    phi, psi = activation, input_activation
    second = sp.simplify(sp.Add(*phi.sides(2)) / 2)
    value, slopes = phi(0), phi.sides(1)[::-1]
    vanishes = Condition(
        *("φ(0) = 0", _REGULARITY, value == 0, f"φ(0) = {number_text(value)}", _BREAKS_OF_PHI[0])
    )
    noise = Condition(
        *("φ'(0) ≠ 0", "PF eq. (11)", any(slopes)),
        "φ'(0) = " + " and ".join(dict.fromkeys(map(number_text, slopes))),
        "the limit has no noise: it is a differential equation",
    )
    tails = ("φ'', φ''' grow at most exponentially", _REGULARITY, True, "at most exponential")
    return DiffusionConditions(
        phi,
        psi,
        (
            vanishes,
            _smooth(phi),
            noise,
            Condition(*tails),
            Condition("ψ locally bounded", _REGULARITY, True, "finite for every x"),
            _smooth_input(psi),
            _linear_growth(psi, not (second.is_finite and second)),
        ),
    )


def _smooth(phi: Activation) -> Condition:
    asked = "φ three times continuously differentiable"
    # One at 0 says more.
    kink = first_break(phi, 3, [sp.S.Zero]) or first_break(phi, 3)
    if kink is None:
        return Condition(asked, _REGULARITY, True, "smooth")
    consequence = _BREAKS_OF_PHI[kink.order] if kink.finite or not kink.order else _NOT_FINITE
    if kink.point != 0:
        consequence = "the limit is made of φ near 0 alone and stands"
    return Condition(asked, _REGULARITY, False, kink.words("φ"), consequence)


def _smooth_input(psi: Activation) -> Condition:
    asked = "ψ two times continuously differentiable"
    kink = first_break(psi, 2)
    if kink is None:
        return Condition(asked, _REGULARITY, True, "smooth")
    consequence = (
        "ψ is locally Lipschitz: the diffusion has one solution, and Theorem 2.1 holds"
        if kink.order and kink.finite
        else "PF does not say whether the diffusion exists and has one law"
    )
    return Condition(asked, _REGULARITY, False, kink.words("ψ"), consequence)


def _linear_growth(psi: Activation, straight: bool) -> Condition:
    """Of the noise, and of the drift but for φ''(0) = 0, where there is none."""
    power = growth_power(psi.expression)
    limit = 1 if straight else sp.S.Half
    asked = (
        f"ψ grows at most as {'x' if straight else '√x'}, as φ''(0) {'=' if straight else '≠'} 0"
    )
    if power is None:
        statement = "faster than any power"
    elif power < 0.04:  # of a logarithm
        statement = "ψ does not grow as a power"
    else:
        statement = f"ψ grows as x^{power:.3g}".removesuffix("^1")
    holds = power is not None and power <= float(limit) + 0.01
    consequence = "the diffusion may explode at a finite time"
    return Condition(asked, _GROWTH, holds, statement, consequence)


class Break(NamedTuple):
    """The lowest derivative that is not continuous, where, and whether it is finite there."""

    order: int
    point: sp.Expr
    finite: bool

    def words(self, name: str) -> str:
        """ψ' jumps at 0."""
        verb = "jumps" if self.finite else "is not finite"
        primes = "'" * self.order
        return f"{name}{primes} {verb} at {number_text(self.point)}"


def first_break(
    activation: Activation, order: int, points: Iterable[sp.Expr] | None = None
) -> Break | None:
    """The lowest derivative up to an order that is not continuous, at some points or anywhere.

    >>> from fieldtheory.networks.activations import as_activation
    >>> first_break(as_activation("tanh"), 3), first_break(as_activation("softsign"), 3)
    (None, Break(order=2, point=0, finite=True))
    """
    if points is None:
        points = sorted(_suspects(activation), key=lambda p: (p != 0, float(p)))
    for n in range(order + 1):
        for point in points:
            below, above = activation.sides(n, point)
            finite = bool(below.is_finite and above.is_finite)
            if below != above or not finite:
                return Break(n, point, finite)
    return None


def _suspects(activation: Activation) -> set[sp.Expr]:
    """Points where φ may not be smooth: its breakpoints, and zeros of arguments of roots."""
    points = set(activation.pieces.points)
    for branch in activation.pieces.branches:
        for power in branch.atoms(sp.Pow, sp.log):
            base = power.args[0]
            smooth = isinstance(power, sp.Pow) and power.exp.is_integer and power.exp.is_nonnegative
            if not smooth and base.has(h):
                zeros = sp.solveset(base, h, sp.S.Reals)
                points |= set(zeros) if isinstance(zeros, sp.FiniteSet) else set()
    return {point for point in points if point.is_real}


def growth_power(expression: sp.Expr) -> float | None:
    """p of the fastest power |x|^p as which a function of ``h`` grows on either side; 0 if bounded.

    >>> growth_power(sp.sqrt(1 + h**2)), growth_power(sp.tanh(h)), growth_power(sp.exp(h))
    (1.0, 0.0, None)
    """
    branches = pieces_of(expression, h).branches
    near, far = (
        max(
            _log_size(branch, sign * 10.0**k)
            for branch, sign in ((branches[0], -1), (branches[-1], 1))
        )
        for k in _DISTANCES
    )
    power = float((far - near) / ((_DISTANCES[1] - _DISTANCES[0]) * mpmath.log(10)))
    return None if power > _DISTANCES[0] ** 2 else round(power, 6)


def _log_size(branch: sp.Expr, place: float) -> mpmath.mpf:
    """ln of the largest modulus of a function near a point, at least 0."""
    function = sp.lambdify([h], branch, "mpmath")
    with mpmath.workdps(40):
        values = [function(mpmath.mpf(place * stretch)) for stretch in _STRETCHES]
        return mpmath.log(max(1, *(abs(mpmath.mpmathify(value)) for value in values)))
