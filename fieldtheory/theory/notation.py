"""The symbols of the theory, written as in the papers."""

from __future__ import annotations

from itertools import combinations_with_replacement

import sympy as sp

WIDTH = sp.Symbol("N", positive=True)
WEIGHT = sp.Symbol(r"\sigma_{w}", positive=True)
BIAS = sp.Symbol(r"\sigma_{b}", positive=True)
READOUT_WEIGHT = sp.Symbol(r"\sigma_{w,\mathrm{out}}", positive=True)
READOUT_BIAS = sp.Symbol(r"\sigma_{b,\mathrm{out}}", positive=True)
DEPTH = sp.Symbol("L", integer=True, positive=True)
phi = sp.Function("phi")


def pairs(inputs: int) -> list[tuple[int, int]]:
    """The kernel entries (α, β), α <= β, counted from zero: variances and covariances."""
    return list(combinations_with_replacement(range(inputs), 2))


def kernel(layer: int, pair: tuple[int, int] = (0, 0), inputs: int = 1) -> sp.Symbol:
    """The residual kernel C^(l)_{αβ}; a variance is positive, a covariance real."""
    kind = {"positive": True} if pair[0] == pair[1] else {"real": True}
    return sp.Symbol(f"C^{{({layer})}}{_pair_index(pair, inputs)}", **kind)


def conjugate(layer: int, pair: tuple[int, int] = (0, 0), inputs: int = 1) -> sp.Symbol:
    """The conjugate field C̃^(l)_{αβ}."""
    return sp.Symbol(rf"\tilde{{C}}^{{({layer})}}{_pair_index(pair, inputs)}")


def data_kernel(pair: tuple[int, int] = (0, 0), inputs: int = 1) -> sp.Symbol:
    """The kernel of the data, σ²_w,in/d_in x·x' + σ²_b,in."""
    kind = {"positive": True} if pair[0] == pair[1] else {"real": True}
    index = "" if inputs == 1 else rf", {pair[0] + 1} {pair[1] + 1}"
    return sp.Symbol(rf"C^{{(0)}}_{{\mathrm{{data}}{index}}}", **kind)


def signal(layer: int | sp.Expr, sample: int = 0, inputs: int = 1) -> sp.Symbol:
    """The signal h^(l)_α of one neuron."""
    index = "" if inputs == 1 else f"_{{{sample + 1}}}"
    return sp.Symbol(f"h^{{({layer})}}{index}", real=True)


def relative_width(layer: int) -> sp.Symbol:
    """ν_l, the width that feeds layer l relative to N; ν_0 = d_in/N."""
    return sp.Symbol(rf"\nu_{{{layer}}}", positive=True)


def branch_scale(layer: int) -> sp.Symbol:
    """The residual scaling ρ_l."""
    return sp.Symbol(rf"\rho_{{{layer}}}", positive=True)


def skip_scale(layer: int) -> sp.Symbol:
    """The scale γ_l of the skip connection."""
    return sp.Symbol(rf"\gamma_{{{layer}}}", real=True)


def _pair_index(pair: tuple[int, int], inputs: int) -> str:
    return "" if inputs == 1 else f"_{{{pair[0] + 1} {pair[1] + 1}}}"
