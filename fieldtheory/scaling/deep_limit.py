"""The deep limit in symbols: layers become a flow, and the optimal scaling an integral.

With ρ² = T/L and γ = 1 a layer is one Euler step of length h = T/L. For L → ∞ the variance follows
dK/dt = F(K) for the time T; the first correction is that of the modified flow, which the steps
follow one order better. This goes beyond the papers, whose F25 eq. (68) has the linear part of F.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.recursion import carried, residual_kernel
from fieldtheory.theory import notation as sym
from fieldtheory.theory.elementary_averages import K_XX, LayerAverages, X, layer_averages
from fieldtheory.theory.notation import DEPTH

KERNEL = sp.Symbol("K", positive=True)
START = sp.Symbol("K^{(0)}", positive=True)
END = sp.Symbol(r"K^{*}_{\mathrm{out}}", positive=True)
TIME = sp.Symbol("T", positive=True)
STEP = sp.Symbol("h", positive=True)
_h = sp.Symbol("h", real=True)


def modified_flow(
    field: Sequence[sp.Expr], variables: Sequence[sp.Symbol], step: sp.Symbol = STEP
) -> list[sp.Expr]:
    """The flow that Euler steps follow one order better than the flow they are made from.

        y → y + h v(y)  is the flow of  v − (h/2) (Dv) v + O(h²)  for the time h

    Parameters
    ----------
    field : sequence of sympy.Expr
        The components of v.
    variables : sequence of sympy.Symbol
        The components of y.
    step : sympy.Symbol
        h.

    Returns
    -------
    list of sympy.Expr

    Notes
    -----
    The correction c of a flow v + h c is what makes its Taylor series y + h (v + h c) + (h²/2)
    (Dv) v end after the first two terms.

    Examples
    --------
    >>> K = sp.Symbol("K")
    >>> modified_flow([K**2], [K])
    [-K**3*h + K**2]
    """
    v = sp.Matrix(field)
    corrected = v - step / 2 * v.jacobian(sp.Matrix(variables)) * v
    return [sp.expand(entry) for entry in corrected]


@lru_cache
def flow_rate(averages: LayerAverages | None = None) -> sp.Expr:
    """F(K) = σ²_w M(K) + σ²_b, the rate at which the variance grows, dK/dt = F(K).

    A step of the recursion, K^(l) − K^(l-1) = ρ² [σ²_w M(K^(l-1)) + σ²_b] (F25 eqs. (29), (30)),
    over its length ρ².

    Parameters
    ----------
    averages : LayerAverages, optional
        M, that of a residual network whose φ is left open if not given.

    Returns
    -------
    sympy.Expr
        In σ_w, σ_b and ``KERNEL``.

    Examples
    --------
    >>> flow_rate().replace(sym.phi, sp.erf).doit().subs({KERNEL: sp.Rational(1, 2), sym.BIAS: 0})
    \\sigma_{w}**2/3
    """
    moment = (averages or layer_averages()).moment
    return step_rate(KERNEL, moment.xreplace({X: _h, K_XX: KERNEL}))


def step_rate(kernel: sp.Expr, average: sp.Expr) -> sp.Expr:
    """(K^(l) − K^(l-1))/ρ² of a layer with γ = 1, for a variance or a covariance.

    Parameters
    ----------
    kernel : sympy.Expr
        K^(l-1).
    average : sympy.Expr
        ⟨g⟩ over the signals of layer l − 1.

    Returns
    -------
    sympy.Expr

    Examples
    --------
    >>> K, M = sp.symbols("K M")
    >>> step_rate(K, M)
    M*\\sigma_{w}**2 + \\sigma_{b}**2
    """
    scale, mean = sp.Dummy("rho"), sp.Dummy("M")
    given = {"branch_scale": scale, "skip_scale": 1}
    layer = ResidualNetwork.layer(sym.parameters(ResidualNetwork, 1) | given)
    after = carried(layer.skip**2, kernel, residual_kernel(layer.weight, layer.bias, mean))
    return sp.expand((after - kernel) / scale**2).xreplace({mean: average})


def output_response(averages: LayerAverages | None = None) -> sp.Expr:
    """χ^out / σ²_w,out in the deep limit, in the output variance K: M'(K) F(K) / F(K^(0)).

    The derivative of the flow by its start, ∂K_T/∂K^(0) = F(K_T)/F(K^(0)), times that of the
    readout. Its maximum over K depends on σ²_b/σ²_w alone, not on depth or input.

    Parameters
    ----------
    averages : LayerAverages, optional
        As for `flow_rate`.

    Returns
    -------
    sympy.Expr

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

        c*² = ∫ dK/F(K) from K^(0) to K*_out,   the time from the input to the largest response

    Returns
    -------
    sympy.Eq

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

    Returns
    -------
    Correction

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
    known = {
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
        for derivative, value in known.items():
            expression = expression.subs(derivative, value)
        return expression

    shift = at_optimum(-sp.diff(slope, eps).subs(eps, 0).doit() / sp.diff(Phi(K), K, 2))
    time = at_optimum(sp.diff(T, eps).subs(eps, 0).doit()) + shift / end[0]
    return Correction(sp.simplify(shift), sp.simplify(time), T0, start, end, curvature)
