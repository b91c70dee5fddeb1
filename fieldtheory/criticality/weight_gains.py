"""Gains: factors of the weights' standard deviation that keep the variance 1, or gradients."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import mpmath

from fieldtheory.criticality.universality import CriticalPoint, critical_point
from fieldtheory.networks.activations import Activation, as_activation
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.networks.residual import FeedForwardNetwork
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.tables import table_text

# Digits to which floats are told from 0 and 1, and guard digits of others.
_DIGITS, _GUARD = 12, 10
_WORDS = {
    "forward": "g that keeps K = 1",
    "parallel": "χ_∥ for it, the factor of a small change of K",
    "perpendicular": "χ_⊥ for it, the factor of a squared gradient",
    "backward": "g that keeps gradients at K = 1",
    "bias_variance": "σ²_b with which this keeps K = 1 as well",
}


@dataclass(frozen=True)
class Gain:
    """Gains of an activation, the result of `gain`; it prints as a table with its meaning below.

    Parameters
    ----------
    activation : Activation
    forward : number
        g with g²⟨φ²⟩ = 1, for which K = 1 is a fixed point without biases.
    parallel, perpendicular : number
        χ_∥ and χ_⊥ there, by which a layer multiplies a small change of K and squared gradients.
    backward, bias_variance : number
        g with g²⟨φ'²⟩ = 1, and σ²_b = 1 − ⟨φ²⟩/⟨φ'²⟩ for which K = 1 is then a fixed point; None
        where it would be negative. All with ⟨φ'²⟩ are None where φ jumps, as it diverges there.
    critical : CriticalPoint or None
        Where χ_∥ = χ_⊥ = 1, with g² = C_W and in floats; None if there is no such point.

    Examples
    --------
    >>> gain("sign")
    Gain(sign: forward 1, parallel 0)
    """

    activation: Activation
    forward: Any
    parallel: Any
    perpendicular: Any
    backward: Any
    bias_variance: Any
    critical: CriticalPoint | None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for every number: ``quantity``, ``value``, a float or None, and ``meaning``."""
        floats = {n: None if (x := getattr(self, n)) is None else float(x) for n in _WORDS}
        return [{"quantity": n, "value": x, "meaning": _WORDS[n]} for n, x in floats.items()]

    def __str__(self) -> str:
        table = table_text(self.rows, f"gains, φ = {self.activation.name}")
        excess = abs(float(self.parallel)) - 1
        fate = "neutral" if abs(excess) < 10**-_DIGITS else "unstable" if excess > 0 else "stable"
        lines = [table, f"K = 1 is a {fate} fixed point of the forward gain."]
        if self.backward is None:
            lines.append("⟨φ'²⟩ diverges, as where φ jumps: no gain keeps gradients.")
        return "\n".join([*lines, str(self.critical or "There is no critical point.")])

    def __repr__(self) -> str:
        numbers = [f"{r['quantity']} {r['value']:.6g}" for r in self.rows if r["value"] is not None]
        return f"Gain({self.activation.name}: {', '.join(numbers)})"


@named_arguments
def gain(activation: Any, digits: int | None = None, proven: bool = False) -> Gain:
    """The gains g of weights W ~ N(0, g²/fan-in) that keep the variance K = 1, and gradients.

        forward: g²⟨φ²⟩ = 1,   backward: g²⟨φ'²⟩ = 1,   averages over N(0, 1)

    the fixed point K = g² M(K) and χ_⊥ = 1 at K = 1 (PDLT-B (B.12), (B.16) for γ = 0).

    Parameters
    ----------
    activation : str, Activation, sympy.Expr or callable
        φ, as for `ResidualNetwork`.
    digits, proven
        As for `solve`, with its errors: numbers of mpmath, and balls that contain the gains.

    Examples
    --------
    >>> gain("arctan")
    Gain(arctan: forward 1.49121, parallel 0.560819, perpendicular 1.11185, backward 1.41421,
         bias_variance 0.100598)
    >>> print(gain("tanh", digits=20, proven=True).forward.str(21))
    [1.59253741972283142777 +/- 4.39e-22]
    """
    phi = as_activation(activation)

    def moments(psi: Activation) -> tuple[Any, ...]:
        """⟨ψ²⟩ and its derivative at K = 1, of a layer with g = 1."""
        layer = FeedForwardNetwork(depth=1, activation=psi, weight_variance=1, bias_variance=0)
        solution = solve(layer, 1, digits=digits, proven=proven)  # type: ignore[call-overload]
        both = solution.kernels[1], solution.response[1]
        return both if digits else tuple(map(float, both))

    M, change = moments(phi)
    slope: Any = None
    slopes = critical = None
    with suppress(ValueError):
        critical = critical_point(phi)
    with suppress(ValueError):
        slopes = layer_functions(phi).averages.slopes
    if slopes is not None:
        # ⟨φ'²⟩, which for φ' = const is M'.
        slope = moments(Activation(phi.pieces.slope))[0] if slopes.free_symbols else change
    precision: Any = mpmath
    if proven:
        from fieldtheory.precision.balls import ctx as precision
    with precision.workdps((digits or _DIGITS) + _GUARD):
        if slope is None:
            return Gain(phi, 1 / M**0.5, change / M, None, None, None, critical)
        bias = 1 - M / slope
        if not proven and abs(bias) < mpmath.mpf(10) ** -(digits or _DIGITS):
            bias = abs(0 * bias)
        bias = None if bias < 0 else bias
        return Gain(phi, 1 / M**0.5, change / M, slope / M, 1 / slope**0.5, bias, critical)
