"""The network with φ(h) = φ'(0) h, and the scaling at which it fills the dynamic range.

F25 eqs. (62)-(68), with (62) from the saddle point of the action and the rest solved from it.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import family_action
from fieldtheory.theory.notation import DEPTH
from fieldtheory.theory.saddle_point import saddle_point

SLOPE = sp.Symbol(r"\phi'(0)", positive=True)
RANGE = sp.Symbol(r"\mathcal{V}", positive=True)
INPUT = sp.Symbol("K^{(0)}", positive=True)
SCALE = sym.branch_scale()
LAYER = sp.Symbol("l", integer=True, positive=True)


@lru_cache
def linearised_rows(depth: int) -> tuple[sp.Expr, ...]:
    """C^(0), ..., C^(L+1) of a network with φ(h) = φ'(0) h, each in the kernels before (F25 (62)).

        C^(l) = ρ² σ²_w φ'(0)² Σ_{k<l} C^(k) + ρ² σ²_b,   l = 1, ..., L

    The rows are those of the saddle point of the action for γ = 1 and one ρ, with the average
    ⟨φ²⟩ = φ'(0)² K^(l-1) of the linear function.

    >>> linearised_rows(1)[1]
    K^{(0)}*\\phi'(0)**2*\\rho**2*\\sigma_{w}**2 + \\rho**2*\\sigma_{b}**2
    """
    action = family_action(
        ResidualNetwork, depth, fixed={"branch_scale": SCALE, "skip_scale": sp.S.One}
    )
    initial = {sym.kernel(0): INPUT, sym.data_kernel(): INPUT}
    rows = saddle_point(action).kernels.values()
    linear = [row.replace(sym.phi, lambda h: SLOPE * h).doit() for row in rows]
    return tuple(sp.expand(row.xreplace(initial)) for row in linear)


@lru_cache
def linearised_residual_kernel() -> sp.Expr:
    """C^(l) of the linearised network in closed form, l >= 1 (F25 eq. (64)).

    Examples
    --------
    >>> print(linearised_residual_kernel().subs(LAYER, 1))
    \\rho**2*(K^{(0)}*\\phi'(0)**2*\\sigma_{w}**2 + \\sigma_{b}**2)
    """
    _, first, second, third, _ = linearised_rows(3)
    gain = sp.cancel((third - second) / sym.kernel(2))
    C = sp.Function("C")
    recursion = C(LAYER) - C(LAYER - 1) - gain * C(LAYER - 1)
    return sp.factor(sp.rsolve(recursion, C(LAYER), {C(1): first}))


@lru_cache
def linearised_kernel() -> sp.Expr:
    """K^(L) = Σ_{k<=L} C^(k) of the linearised network (F25 eqs. (65), (66)).

        K^(L) = (1 + ρ² σ²_w φ'(0)²)^L (K^(0) + σ²_b/(φ'(0)² σ²_w)) − σ²_b/(φ'(0)² σ²_w)

    >>> sp.factor(linearised_kernel().subs(sym.BIAS, 0))
    K^{(0)}*(\\phi'(0)**2*\\rho**2*\\sigma_{w}**2 + 1)**L
    """
    k = sp.Dummy("k", integer=True, positive=True)
    kernels = sp.summation(linearised_residual_kernel().subs(LAYER, k), (k, 1, DEPTH))
    return sp.collect(sp.expand(sp.simplify(INPUT + kernels)), _growth(DEPTH))


@lru_cache
def linearised_response() -> sp.Expr:
    """∂K^(L+1)/∂K^(0) = σ²_w,out φ'(0)² (1 + ρ² σ²_w φ'(0)²)^L of the linearised network.

    Examples
    --------
    >>> linearised_response()
    \\phi'(0)**2*\\sigma_{w,\\mathrm{out}}**2*(\\phi'(0)**2*\\rho**2*\\sigma_{w}**2 + 1)**L
    """
    readout = sp.diff(linearised_rows(1)[-1], INPUT)
    return readout * sp.powsimp(sp.diff(linearised_kernel(), INPUT))


@lru_cache
def saturation_formula(large_depth: bool = False) -> sp.Eq:
    """The ρ* at which K^(L) of the linearised network is (V/2)², F25 (67), or (68) for L → ∞.

    >>> saturation_formula(large_depth=True).rhs.subs({sym.BIAS: 0, RANGE: 2, INPUT: sp.exp(-4)})
    2/(sqrt(L)*\\phi'(0)*\\sigma_{w})
    """
    scale = _series()[0]
    if not large_depth:
        growth = sp.Dummy("growth", positive=True)
        (square,) = sp.solve(_growth(1) - growth, SCALE**2)
        scale = sp.sqrt(sp.factor(square)).subs(growth, _ratio() ** (1 / DEPTH))
    return sp.Eq(sp.Symbol(r"\rho^{*}"), scale)


@lru_cache
def neglected_term() -> sp.Expr:
    """Term that (67) adds to its large-depth form (68) at the next order, L^{-3/2}.

        ρ_(67) − ρ_(68) = (ln R)^{3/2} / (4 σ_w φ'(0)) L^{-3/2} + O(L^{-5/2})
        R = (σ²_w φ'(0)² (V/2)² + σ²_b) / (σ²_w φ'(0)² K^(0) + σ²_b)

    F25 states the order L^{-1} below (68).

    >>> neglected_term().subs({sym.BIAS: 0, RANGE: 2, INPUT: sp.exp(-4)})
    2/(L**(3/2)*\\phi'(0)*\\sigma_{w})
    """
    return _series()[1]


def _growth(depth: sp.Expr) -> sp.Expr:
    """(1 + ρ² σ²_w φ'(0)²)^L."""
    return (1 + (SCALE * sym.WEIGHT * SLOPE) ** 2) ** depth


@lru_cache
def _ratio() -> sp.Expr:
    """The growth by which K^(L) reaches (V/2)²."""
    growth, end = sp.symbols("growth end", positive=True)
    kernel = linearised_kernel().subs(_growth(DEPTH), growth)
    (solution,) = sp.solve(kernel - end, growth)
    return sp.factor(solution).subs(end, (RANGE / 2) ** 2)


@lru_cache
def _series() -> tuple[sp.Expr, sp.Expr]:
    """The first two terms of (67) for L → ∞."""
    x, log = sp.symbols("x log", positive=True)
    expansion = sp.series(sp.sqrt((sp.exp(x * log) - 1) / x), x, 0, 2).removeO()
    prefactor = sp.sqrt(x) / (sym.WEIGHT * SLOPE)
    first, second = (prefactor * expansion.coeff(x, n) * x**n for n in range(2))
    values = {x: 1 / DEPTH, log: sp.log(_ratio())}
    return first.subs(values), second.subs(values)
