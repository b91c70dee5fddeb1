"""The deep limit in symbols: layers become a flow, and the optimal scaling an integral.

With ρ² = T/L and γ = 1 a layer is one Euler step of length h = T/L. For L → ∞ the variance follows
dK/dt = F(K) for the time T; the first correction is that of the modified flow, which the steps
follow one order better. This goes beyond the papers, whose F25 eq. (68) has the linear part of F.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from fieldtheory.theory import notation as sym
from fieldtheory.theory.depth_flow import KERNEL, STEP, flow_rate, modified_flow
from fieldtheory.theory.elementary_averages import LayerAverages
from fieldtheory.theory.notation import DEPTH

START = sp.Symbol("K^{(0)}", positive=True)
END = sp.Symbol(r"K^{*}_{\mathrm{out}}", positive=True)
TIME = sp.Symbol("T", positive=True)


def output_response(averages: LayerAverages | None = None) -> sp.Expr:
    """χ^out / σ²_w,out in the deep limit, in the output variance K: M'(K) F(K) / F(K^(0)).

    Examples
    --------
    >>> erf = output_response().replace(sym.phi, sp.erf).doit()
    >>> float(erf.subs({sym.WEIGHT: 1, sym.BIAS: 0, KERNEL: 0.3, START: 0.1}))
    1.23162...
    """
    F = flow_rate(averages)
    gain = sp.diff(F, KERNEL) / sym.WEIGHT**2
    return gain * F / F.subs(KERNEL, START)


def limit_scaling() -> sp.Eq:
    """The optimal scaling in the deep limit, ρ* = c*/√L with c* an integral over the flow.

    Examples
    --------
    >>> limit_scaling().rhs.has(sp.Integral)
    True
    """
    K = sp.Symbol("K", positive=True)
    time = sp.Integral(1 / flow_rate(), (K, START, END))
    return sp.Eq(sp.Symbol(r"\rho^{*}"), sp.sqrt(time) / sp.sqrt(DEPTH))


class Correction(NamedTuple):
    """The next order of the optimal scaling, ρ*² L = T_0 + T_1/L + O(L⁻²), and its symbols.

    ``shift`` is L times the first change of the variance at the optimum, and ``time`` T_1, in
    ``T0``, in F, F' and F'' at both ends and in the curvature of Φ = ln(M'F) at the optimum.
    """

    shift: sp.Expr
    time: sp.Expr
    T0: sp.Symbol
    start: tuple[sp.Symbol, ...]
    end: tuple[sp.Symbol, ...]
    curvature: sp.Symbol


@lru_cache
def correction() -> Correction:
    """The 1/L correction to the optimal scaling of a variance, from the modified flow.

    With the modified rate F̂ = F − (h/2) F F', h = T/L, the response and the time are

        ln χ^out = ln M'(K_T) + ln F̂(K_T) − ln F̂(K^(0)) + ln σ²_w,out,   T = ∫ dK/F̂(K).

    The maximum over K_T, expanded in 1/L around K*_out, gives the shift δ/L of K_T and T_1:

        δ = [T_0 F''_*/2 + (F'_* − F'_0)/(2 F_*)] / Φ''_*,
        T_1 = δ/F_* + (T_0/2) ln(F_*/F_0),   ρ* = (c*/√L) [1 + T_1/(2 T_0 L) + O(L⁻²)].

    Examples
    --------
    >>> correction().time.subs(correction().shift, sp.Symbol("delta")).free_symbols >= {
    ...     correction().T0}
    True
    """
    F, tau, Phi = map(sp.Function, ("F", "tau", "Phi"))
    K, eps = KERNEL, sp.Symbol("epsilon", positive=True)
    T0, curvature = sp.symbols("T_0 Phi_2")
    start = sp.symbols("F_0 F_0'")
    end = sp.symbols("F_* F_*' F_*''")
    (rate,) = modified_flow([F(K)], [K])

    def first_order(expression: sp.Expr) -> sp.Expr:
        return sp.diff(expression, STEP).subs(STEP, 0).doit()

    # h = ε T with ε = 1/L; τ(K) is the time of the flow from K^(0) to K.
    gain = sp.expand(first_order(sp.log(rate)) - first_order(sp.log(rate)).subs(K, START))
    delay = sp.integrate(sp.expand(first_order(1 / rate)), K)
    delay = delay - delay.subs(K, START)
    T = tau(K) / (1 - eps * delay)
    slope = sp.diff(Phi(K) + eps * T * gain, K)
    values = {
        sp.diff(Phi(K), K, 2): curvature,
        sp.diff(tau(K), K): 1 / F(K),
        tau(K): T0,
        sp.diff(F(K), K, 2): end[2],
        sp.diff(F(K), K): end[1],
        sp.diff(F(K), K).subs(K, START): start[1],
        F(START): start[0],
        F(K): end[0],
    }

    def at_optimum(expression: sp.Expr) -> sp.Expr:
        for derivative, value in values.items():
            expression = expression.subs(derivative, value)
        return expression

    shift = at_optimum(-sp.diff(slope, eps).subs(eps, 0).doit() / sp.diff(Phi(K), K, 2))
    time = at_optimum(sp.diff(T, eps).subs(eps, 0).doit()) + shift / end[0]
    return Correction(sp.simplify(shift), sp.simplify(time), T0, start, end, curvature)
