"""Claims of F25 on the action, the Hessian, the propagators and Price's theorem.

Matrices are those of two residual layers, L = 2, with one ρ, γ = 1 and φ left open; [k,l] counts
their rows and columns from the input, 0, to the output, 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage, precise
from fieldtheory.literature.checks import (
    COVARIANCE,
    VARIANCE_X,
    VARIANCE_Y,
    density_score,
    x,
    y,
)
from fieldtheory.literature.claim import Statements, claims_of, formula, number
from fieldtheory.theory import notation as sym
from fieldtheory.theory.derivation import Derivation, derive
from fieldtheory.theory.linearised import SCALE

PAPER = "F25"

_L = 2
_LAYERS = range(_L + 2)
_EVERY_ROW = "L = 2, every row"
_OUT = sym.READOUT_WEIGHT
_READOUT = "the readout row has σ_w,out² for σ_w²"


@lru_cache
def _theory() -> Derivation:
    return derive(_L)


def _weight(layer: int, readout: sp.Symbol) -> sp.Expr:
    """σ_w², and for the readout what a formula has there."""
    return (sym.WEIGHT if layer <= _L else readout) ** 2


def _kernel(k: int, l: int) -> sp.Expr:
    """K^(k,l), the covariance of the signals of two layers."""
    return _theory().network_action.covariance[k, l]


def _relative_width(layer: int) -> sp.Expr:
    """ν_0 = d_in/N and ν_l = 1 for l > 0, as the text before (20) sets."""
    return sym.INPUT_WIDTH if layer == 0 else sp.S.One


def _branch(layer: int) -> sp.Expr:
    """ρ² for residual layers and 1 for the readout, as the cases of the equations have it."""
    return SCALE**2 if layer <= _L else sp.S.One


def _gain(layer: int) -> sp.Expr:
    """⟨φ'² + φφ''⟩ at K^(layer)."""
    signal = sym.signal(layer)
    slope, curvature = (sp.diff(sym.phi(signal), signal, order) for order in (1, 2))
    F = slope**2 + curvature * sym.phi(signal)
    return GaussianAverage(F, signal, _kernel(layer, layer))


def _printed_source(readout: sp.Symbol = sym.WEIGHT) -> sp.Matrix:
    """Eq. (39)."""

    def entry(k: int, l: int) -> sp.Expr:
        if k == 0 or l == 0:
            return sp.S.Zero
        h1, h2 = sym.signal(k - 1), sym.signal(l - 1)
        F, G = sym.phi(h1) ** 2, sym.phi(h2) ** 2
        if k == l:
            correlator = ConnectedCorrelator(F, G, h1, _kernel(k - 1, k - 1))
        else:
            K = [[_kernel(a - 1, b - 1) for b in (k, l)] for a in (k, l)]
            correlator = ConnectedCorrelator(F, G, (h1, h2), K)
        weights = _weight(k, readout) * _weight(l, readout)
        return sym.WIDTH * weights * _branch(k) * _branch(l) * correlator

    return sp.Matrix(_L + 2, _L + 2, entry)


def _printed_mixed(readout: sp.Symbol = sym.WEIGHT) -> sp.Matrix:
    """Eq. (41)."""

    def entry(k: int, l: int) -> sp.Expr:
        found = -sym.WIDTH * _relative_width(l) if k == l else sp.S.Zero
        if k > l:
            found += sym.WIDTH * _weight(k, readout) * _gain(k - 1) * _branch(k)
        return found

    return sp.Matrix(_L + 2, _L + 2, entry)


def _printed_response(readout: sp.Symbol = sym.WEIGHT) -> sp.Matrix:
    """Eq. (49), from layer to layer."""
    G12 = sp.zeros(_L + 2)
    for l in _LAYERS:
        for m in _LAYERS:
            history = sum(G12[k, m] for k in range(l))
            found = sp.KroneckerDelta(l, m) / (sym.WIDTH * _relative_width(l))
            if l > 0:
                found += _branch(l) * _weight(l, readout) * _gain(l - 1) * history
            G12[l, m] = found
    return G12


def _response() -> sp.Matrix:
    return _theory().propagator.G12


def _input_response() -> sp.Expr:
    """η^(0) = N G12^(00), its definition (50)."""
    return sym.WIDTH * _theory().propagator.G12[0, 0]


def _kernel_variance(layer: int, diagonal: bool) -> sp.Expr:
    """Var K^(l) of K^(l) = Σ_k C^(k): of all pairs of layers, or of the diagonal ones alone."""
    G11 = _theory().propagator.G11
    layers = range(layer + 1)
    return sum(
        (G11[k, m] for k in layers for m in layers if k == m or not diagonal), start=sp.S.Zero
    )


def _printed_data_action(factor: sp.Expr = sym.WIDTH) -> sp.Expr:
    """What eqs. (98) and (99) have in C̃^(0), with K_data = σ²_w,in/d_in x·x + σ²_b,in."""
    C, conjugate, data = sym.kernel(0), sym.conjugate(0), sym.data_kernel()
    return sym.WIDTH * sym.INPUT_WIDTH * conjugate * (factor * data - C)


def _data_action() -> sp.Expr:
    others = {sym.conjugate(l): 0 for l in range(1, _L + 2)}
    return sp.expand(sp.expand_log(_theory().action.subs(others).doit(), force=True))


def _price(size: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """⟨∂_k ∂_l f⟩, and ∂⟨f⟩/∂K_kl from the derivative of the Gaussian density, φ = erf.

    f = φ(x)² for a variance, and φ(x)φ(y) for a covariance, where K_kl = K_lk is one variable.
    """
    variables = (x, y)[:size]
    f = sp.erf(x) * sp.erf(variables[-1])
    K = [[VARIANCE_X, COVARIANCE], [COVARIANCE, VARIANCE_Y]]
    K = [row[:size] for row in K[:size]]

    def curvature(point: Mapping[Any, Any], digits: int) -> Any:
        F = sp.diff(f, x, variables[-1])
        return precise.average(sp.expand(F), variables, K, digits)

    def slope(point: Mapping[Any, Any], digits: int) -> Any:
        return precise.average(sp.expand(f * density_score(size)), variables, K, digits)

    return curvature, slope


_CURVATURE, _SLOPE_OF_VARIANCE = _price(1)
_MIXED_CURVATURE, _SLOPE_OF_COVARIANCE = _price(2)
_HALF = "the factor 1/2 of (137)", lambda point, digits: _CURVATURE(point, digits) / 2

_STATEMENTS: Statements = {
    "(39): S22, the fluctuations of the conjugate fields": formula(
        _EVERY_ROW,
        _printed_source,
        lambda: _theory().hessian.S22,
        meant=(_READOUT, lambda: _printed_source(_OUT)),
    ),
    "(41): S21, the derivative by C and C̃": formula(
        _EVERY_ROW,
        _printed_mixed,
        lambda: _theory().hessian.S21,
        meant=(_READOUT, lambda: _printed_mixed(_OUT)),
    ),
    "(42): ∂⟨φ²⟩/∂K, Price's theorem for one variable": number(
        "φ = erf, K = 7/10", _CURVATURE, _SLOPE_OF_VARIANCE, meant=_HALF
    ),
    "(49): G12, the response": formula(
        _EVERY_ROW, _printed_response, _response, meant=(_READOUT, lambda: _printed_response(_OUT))
    ),
    "text after (51): η^(0) = N/d_in, of the definition (50)": formula(
        "d_in = ν_0 N", 1 / sym.INPUT_WIDTH, _input_response
    ),
    "(57): η^(0) as the derivative ∂C^(0)/∂K^(0) = 1": formula(
        "d_in = ν_0 N",
        sp.S.One,
        _input_response,
        "the definition (50) gives N/d_in; the package reports derivatives, as (57) does",
        convention=("d_in = N", lambda: _input_response().subs(sym.INPUT_WIDTH, 1)),
    ),
    "(96), (99): terms of the action in C̃^(0)": formula(
        "L = 2",
        _printed_data_action,
        _data_action,
        meant=("the term of the data over N", lambda: _printed_data_action(sp.S.One)),
    ),
    "(109): K^(2) = K^(1) + C^(1)": formula(
        "l = 2",
        lambda: _kernel(1, 1) + sym.kernel(1),
        lambda: _kernel(2, 2),
        meant=("K^(l) = K^(l-1) + C^(l)", lambda: _kernel(1, 1) + sym.kernel(2)),
    ),
    "(116): ∂⟨φφ⟩/∂K_αβ, Price's theorem for a pair": number(
        "α ≠ β, K_αβ = K_βα one variable, φ = erf", _MIXED_CURVATURE, _SLOPE_OF_COVARIANCE
    ),
    "(116): ∂⟨φφ⟩/∂K_αα, Price's theorem for a variance": number(
        "α = β, φ = erf", _CURVATURE, _SLOPE_OF_VARIANCE, meant=_HALF
    ),
    "text after (133): Var K^(l) as the sum of Var C^(k) alone": [
        formula(
            "l = 1",
            lambda: _kernel_variance(1, diagonal=True),
            lambda: _kernel_variance(1, diagonal=False),
        ),
        formula(
            "l = 2",
            lambda: _kernel_variance(2, diagonal=True),
            lambda: _kernel_variance(2, diagonal=False),
            meant=("the sum over all pairs of layers", lambda: _kernel_variance(2, False)),
        ),
    ],
    "(137): ∂⟨f⟩/∂C_kk, Price's theorem": number("k = l, f = erf²", _HALF[1], _SLOPE_OF_VARIANCE),
    "(137): ∂⟨f⟩/∂C_kl, Price's theorem": number(
        "k ≠ l, C_kl and C_lk two variables, f = erf erf",
        lambda point, digits: _MIXED_CURVATURE(point, digits) / 2,
        # Half of the derivative by the pair belongs to either.
        lambda point, digits: _SLOPE_OF_COVARIANCE(point, digits) / 2,
    ),
}

CLAIMS = claims_of(PAPER, _STATEMENTS)
