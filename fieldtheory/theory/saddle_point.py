"""The saddle point dS = 0: the NNGP recursion."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action
from fieldtheory.theory.typesetting.latex import Typeset


@dataclass(frozen=True, repr=False)
class SaddlePoint(Typeset):
    """The stationary point of the action, C* layer by layer and C̃* = 0 (F25 eqs. (25), (26))."""

    kernels: dict[sp.Symbol, sp.Expr]
    conjugates: dict[sp.Symbol, sp.Expr]


def saddle_point(action: Action) -> SaddlePoint:
    """Solve ∂S/∂C̃ = 0 and ∂S/∂C = 0."""
    kernels = {}
    for j, kernel in enumerate(action.kernels):
        if action.derivative((), (j,)) != 0:
            raise ArithmeticError(f"the action depends on {kernel} where all conjugates vanish")
        constraint = action.derivative((j,)) / sym.WIDTH
        slope = -action.relative_widths[j]
        kernels[kernel] = sp.expand((slope * kernel - constraint) / slope)
    conjugates = {conjugate: sp.S.Zero for conjugate in action.conjugates}
    return SaddlePoint(kernels, conjugates)
