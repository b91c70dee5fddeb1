"""The limit of infinite depth in symbols: layers become a flow, and the next order of 1/L with it.

With γ = 1 and ρ_l² = λ(l/L)²/L a layer is one Euler step of length λ²/L of a flow v, that of the
kernel and of the tangent kernel (SR eqs. (7), (8), Appendix A4). What the steps follow one order
better is the modified flow v − (h/2) (Dv) v, which gives the coefficient of 1/L. SR has neither the
coefficient nor the rates for other φ than ReLU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import family_action
from fieldtheory.theory.elementary_averages import (
    K_XX,
    LayerAverages,
    X,
    layer_averages,
)
from fieldtheory.theory.saddle_point import saddle_point
from fieldtheory.theory.tangent_kernel import family_tangent

KERNEL = sp.Symbol("K", positive=True)
P, Q = sp.symbols("p q", positive=True)
R = sp.Symbol("r", real=True)
TANGENT = sp.Symbol(r"\theta", real=True)
STEP = sp.Symbol("h", positive=True)
_DEPTH = sp.Symbol("L", positive=True)
_SCALE = sp.Symbol(r"\lambda", positive=True)
_h = sp.Symbol("h", real=True)


def modified_flow(
    field: Sequence[sp.Expr], variables: Sequence[sp.Symbol], step: sp.Symbol = STEP
) -> list[sp.Expr]:
    """The flow that Euler steps follow one order better than the flow they are made from.

        y → y + h v(y)  is the flow of  v − (h/2) (Dv) v + O(h²)  for the time h

    The correction c of a flow v + h c is what makes its Taylor series y + h (v + h c) + (h²/2)
    (Dv) v end after the first two terms.

    >>> K = sp.Symbol("K")
    >>> modified_flow([K**2], [K])
    [-K**3*h + K**2]
    """
    v = sp.Matrix(field)
    corrected = v - step / 2 * v.jacobian(sp.Matrix(variables)) * v
    return [sp.expand(entry) for entry in corrected]


@lru_cache
def _layer_step() -> tuple[sp.Expr, sp.Expr, sp.Symbol, sp.Symbol, sp.Symbol]:
    """L (K^(1) − K^(0))/λ² and L (Θ^(1) − Θ^(0))/λ² for L → ∞, and ⟨φφ⟩, ⟨φ'φ'⟩, Θ^(0)."""
    scales = {"branch_scale": _SCALE / sp.sqrt(_DEPTH), "skip_scale": sp.S.One}
    action = family_action(ResidualNetwork, 1, fixed=scales)
    residual = saddle_point(action).kernels[action.kernels[1]]
    average, gain, tangent = sp.Dummy("M"), sp.Dummy("D"), sp.Dummy("Theta")
    (node,) = residual.atoms(GaussianAverage)
    residual = residual.xreplace({node: average})
    before, after = action.covariance[0, 0], action.covariance[1, 1]
    after = after.xreplace({action.kernels[1]: residual})
    parameters = sym.parameters(ResidualNetwork, 1) | scales
    trained = family_tangent(ResidualNetwork, parameters)
    (slope,) = trained.growth.atoms(GaussianAverage)
    own = trained.weights * average + trained.biases
    carried = trained.growth.xreplace({slope: gain}) * tangent + own

    def limit(difference: sp.Expr) -> sp.Expr:
        return sp.expand(sp.limit(sp.expand(_DEPTH * difference / _SCALE**2), _DEPTH, sp.oo))

    return limit(after - before), limit(carried - tangent), average, gain, tangent


def step_rate(average: sp.Expr) -> sp.Expr:
    """σ²_w ⟨φφ⟩ + σ²_b, the limit of (K^(l) − K^(l-1))/ρ² for γ = 1 (SR eqs. (7), (8)).

    >>> step_rate(sp.Symbol("M"))
    M*\\sigma_{w}**2 + \\sigma_{b}**2
    """
    rate, _, placeholder, _, _ = _layer_step()
    return rate.xreplace({placeholder: average})


def tangent_rate(tangent: sp.Expr, average: sp.Expr, gain: sp.Expr) -> sp.Expr:
    """σ²_w ⟨φφ⟩ + σ²_b + σ²_w ⟨φ'φ'⟩ θ, the limit of (Θ^(l) − Θ^(l-1))/ρ² (SR eq. (9)).

    >>> tangent_rate(*sp.symbols("theta M D"))
    D*\\sigma_{w}**2*theta + M*\\sigma_{w}**2 + \\sigma_{b}**2
    """
    _, rate, *placeholders = _layer_step()
    return rate.xreplace(dict(zip(placeholders, (average, gain, tangent), strict=True)))


@lru_cache
def flow_rate(averages: LayerAverages | None = None) -> sp.Expr:
    """F(K) = σ²_w M(K) + σ²_b, the rate at which a variance grows, dK/dt = F(K), in ``KERNEL``.

    Examples
    --------
    >>> flow_rate().replace(sym.phi, sp.erf).doit().subs({KERNEL: sp.Rational(1, 2), sym.BIAS: 0})
    \\sigma_{w}**2/3
    """
    moment = (averages or layer_averages()).moment
    return step_rate(moment.xreplace({X: _h, K_XX: KERNEL}))


class EntryFlow(NamedTuple):
    """The flow of one entry of the kernel and the tangent kernel, and its linearisation.

    ``average`` is ⟨φφ⟩ with its derivatives by the variances and the covariance that it depends
    on, ``gain`` ⟨φ'φ'⟩ with its own; ``moves`` are changes of those variables and of θ. ``rates``
    are v for the kernel and θ, ``changes`` are (Dv) times the moves.
    """

    average: list[sp.Symbol]
    gain: list[sp.Symbol]
    moves: list[sp.Symbol]
    rates: list[sp.Expr]
    changes: list[sp.Expr]


@lru_cache
def entry_flow(inputs: int) -> EntryFlow:
    """The flow of a variance (``inputs`` = 1) or of the covariance of two inputs.

    >>> entry_flow(1).rates
    [A*\\sigma_{w}**2 + ..., A*\\sigma_{w}**2 + B*\\sigma_{w}**2*\\theta + \\sigma_{b}**2]
    """
    variables = (KERNEL,) if inputs == 1 else (P, Q, R)
    names = [str(variable) for variable in variables]
    A, B = (sp.Function(name)(*variables) for name in "AB")
    field = [step_rate(A), tangent_rate(TANGENT, A, B)]
    moves = [sp.Symbol(f"w_{name}") for name in (*names, "theta")]
    state = (*variables, TANGENT)
    linearised = [
        sp.Add(*[sp.diff(rate, y) * w for y, w in zip(state, moves, strict=True)]) for rate in field
    ]
    symbols: dict[sp.Expr, sp.Symbol] = {}
    for function, name in ((A, "A"), (B, "B")):
        symbols |= {
            function.diff(y): sp.Symbol(f"{name}_{of}")
            for y, of in zip(variables, names, strict=True)
        }
    plain = {A: sp.Symbol("A"), B: sp.Symbol("B")}

    def of(function: sp.Expr) -> list[sp.Symbol]:
        return [plain[function], *(symbols[function.diff(y)] for y in variables)]

    return EntryFlow(
        of(A),
        of(B),
        moves,
        [rate.xreplace(plain) for rate in field],
        [sp.expand(rate).xreplace(symbols).xreplace(plain) for rate in linearised],
    )


def displacement(change: Any, step: Any, rate: Any) -> Any:
    """w = e − (h/2) v, with which the first change e of a flow v by steps moves.

        y_l = q(t) + e(t) + ...,   de/dt = (Dv) e − (h/2) (Dv) v = (Dv) w

    of `modified_flow`, for steps h, of the order of 1/L: of one length, or of lengths h(t) that
    change slowly, t being their sum up to the middle of each.

    >>> K, e = sp.symbols("K e")
    >>> (modified,) = modified_flow([K**2], [K])
    >>> sp.expand(2 * K * displacement(e, STEP, K**2) - (2 * K * e + modified - K**2))
    0
    """
    return change - step / 2 * rate
