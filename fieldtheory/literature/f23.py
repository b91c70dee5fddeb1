"""Claims of F23, the earlier version of F25, where ρ is called α.

K. Fischer, D. Dahmen, M. Helias, Optimal signal propagation in ResNets through residual scaling.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.literature import (
    f25_entropy,
    f25_prior,
    f25_propagators,
    f25_scaling,
    f25_theory,
)
from fieldtheory.literature.claim import (
    Statements,
    bound,
    claims_of,
    double,
    formula,
    interval,
    number,
)
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.scaling import maximum_entropy as entropy
from fieldtheory.scaling import optimal_scaling
from fieldtheory.scaling.rescaling import rescaled_by_weights
from fieldtheory.theory import linearised
from fieldtheory.theory import notation as sym
from fieldtheory.theory.linearised import INPUT, RANGE, SCALE, SLOPE
from fieldtheory.theory.notation import DEPTH

# The parameters of Figs. 4 and 5.
_DEPTHS = (2, 5, 10, 20, 30)
_K0 = 0.05
_FIG5 = ResidualNetwork(depth=30)
_WEIGHTS = (1.0, 1.25, 1.5, 1.75, 2.0)
_BIASES = (0.05, 0.06, 0.07, 0.08, 0.09, 0.1)

_ERF_SLOPE = as_activation("erf").slope_at_zero
_GROWTH = (1 + (SCALE * sym.WEIGHT) ** 2) ** DEPTH
_RATIO = ((sym.WEIGHT * RANGE / 2) ** 2 + sym.BIAS**2) / (sym.WEIGHT**2 * INPUT + sym.BIAS**2)
_KERNEL = _GROWTH * INPUT + (sym.BIAS / sym.WEIGHT) ** 2 * (_GROWTH - 1)
_SCALING = sp.sqrt(_RATIO ** (1 / DEPTH) - 1) / sym.WEIGHT
_DEEP_SCALING = sp.sqrt(1 / DEPTH) * sp.sqrt(sp.log(_RATIO) / sym.WEIGHT**2)
_UNIT_SLOPE = "φ'(0) = 1, where erf has 2/√π"
_SMALL_INPUT = ({RANGE: 1, INPUT: sp.Rational(1, 20)},)


def _optima(networks: Mapping[str, ResidualNetwork]) -> dict[str, float]:
    with warnings.catch_warnings():
        # That ρ* = 0 is what Fig. 5(b) is about.
        warnings.simplefilter("ignore")
        return {name: float(optimal_scaling(net, _K0)) for name, net in networks.items()}


def _optima_of_biases() -> dict[str, float]:
    """Of σ_w² = 1.75 and the σ_b² of Fig. 5(b)."""
    networks = {f"σ_b² = {bias:g}": _FIG5.replace(bias_variance=bias) for bias in _BIASES}
    return _optima({name: net.replace(weight_variance=1.75) for name, net in networks.items()})


def _spread_of_heights(networks: Sequence[ResidualNetwork]) -> float:
    """How far the largest rescaled responses lie apart, relative to the smallest of them."""
    heights = []
    for network in networks:
        rho = float(optimal_scaling(network, _K0))
        response = solve(network.replace(branch_scale=rho), _K0).output_response
        heights.append(float(rescaled_by_weights(network, rho, response)[1]))
    return float(np.ptp(heights) / min(heights))


def _fixed_biases(point: Any) -> float:
    return _spread_of_heights([_FIG5.replace(weight_variance=weight) for weight in _WEIGHTS])


def _fixed_ratio(point: Any) -> float:
    pairs = [(weight, weight * 0.05 / 1.25) for weight in _WEIGHTS]
    return _spread_of_heights(
        [_FIG5.replace(weight_variance=weight, bias_variance=bias) for weight, bias in pairs]
    )


_STATEMENTS: Statements = {
    "(7): K^(L) of the linearised network": formula(
        "φ = erf",
        _KERNEL,
        lambda: linearised.linearised_kernel().subs(SLOPE, _ERF_SLOPE),
        "F25 (66) keeps φ'(0)",
        convention=(_UNIT_SLOPE, lambda: linearised.linearised_kernel().subs(SLOPE, 1)),
    ),
    "(8): ρ* at which K^(L) of the linearised network is (V/2)²": formula(
        "φ = erf, K^(0) < (V/2)²",
        _SCALING,
        lambda: linearised.saturation_formula().rhs.subs(SLOPE, _ERF_SLOPE),
        "F25 (67) keeps φ'(0)",
        points=_SMALL_INPUT,
        convention=(_UNIT_SLOPE, lambda: linearised.saturation_formula().rhs.subs(SLOPE, 1)),
    ),
    "(9): ρ* at which K^(L) of the linearised network is (V/2)², deep networks": formula(
        "φ = erf, leading order in 1/L",
        _DEEP_SCALING,
        lambda: linearised.saturation_formula(large_depth=True).rhs.subs(SLOPE, _ERF_SLOPE),
        "F25 (68) keeps φ'(0)",
        points=_SMALL_INPUT,
        convention=(
            _UNIT_SLOPE,
            lambda: linearised.saturation_formula(large_depth=True).rhs.subs(SLOPE, 1),
        ),
    ),
    "(9): the power of 1/L in the largest term that (9) neglects": bound(
        "L → ∞",
        sp.S.One,
        lambda: -f25_scaling.neglected_power(),
        "O(1/L) is a bound; the term is of the order L^(-3/2)",
        wrong=sp.Integer(2),
    ),
    "section 3: ρ* of a variance lies between 0.1 and 0.3": interval(
        "the network and depths of Fig. 4",
        (0.1, 0.3),
        lambda: _optima({f"L = {L}": _FIG5.replace(depth=L) for L in _DEPTHS}),
    ),
    "section 3.1: response of the output of the linearised network": formula(
        "φ'(0) = 1",
        sym.READOUT_WEIGHT**2 * _GROWTH,
        lambda: linearised.linearised_response().subs(SLOPE, 1),
    ),
    "Fig. 5(b), caption: ρ* > 0 at the fixed σ_b² = 1.75": interval(
        "σ_w² of Fig. 5(a)",
        (0.0, np.inf),
        lambda: _optima(
            {
                f"σ_w² = {weight:g}": _FIG5.replace(weight_variance=weight, bias_variance=1.75)
                for weight in _WEIGHTS
            }
        ),
        "the figure shows maxima at ρ > 0",
        meant=("σ_w² = 1.75 for σ_b² = 1.75", (0.0, np.inf), _optima_of_biases),
    ),
    "Fig. 5(c): spread of the heights of curves that collapse": [
        double(
            "σ_w² from 1 to 2, σ_b² = 0.05",
            sp.S.Zero,
            _fixed_biases,
            "they collapse exactly at fixed σ_b²/σ_w² alone",
        ),
        double("σ_w² from 1 to 2, σ_b²/σ_w² = 0.04", sp.S.Zero, _fixed_ratio),
    ],
    "appendix B: ∂D_KL/∂σ² for φ = erf": formula(
        "every σ²",
        f25_entropy.SLOPE,
        lambda: sp.diff(entropy.divergence_formula(), entropy.VARIANCE),
        "the derivative is 1/(2σ²) − 1/(4σ⁴), as for F25 (142)",
    ),
    "appendix B: σ² at which erf(h) is closest to uniform": number(
        "φ = erf",
        sp.Rational(1, 4),
        lambda point, digits: entropy.precise_variance("erf", digits),
        "erf(h) is exactly uniform at σ² = 1/2",
    ),
}

# Equations that F23 shares with F25, by their number there.
_SHARED = {
    "(2)": "(25), (29)",
    "(3)": "(30)",
    "(4)": "(56)–(60)",
    "(5)": "(55)",
    "(6)": "(65)",
    "text after (5)": "(61)",
    "(S4)": "(7), (8), (72), (90), (135)",
    "(S6)–(S9)": "(11)–(15)",
    "(S10)": "(27), (28), (103), (107)",
    "(S11)": "(41)",
    "(S12)–(S14)": "(46)–(48), (122)–(124)",
}
_PARTS = f25_prior.CLAIMS, f25_theory.CLAIMS, f25_propagators.CLAIMS, f25_scaling.CLAIMS
CLAIMS = claims_of("F23", _STATEMENTS) + tuple(
    replace(claim, paper="F23", equation=own)
    for own, theirs in _SHARED.items()
    for part in _PARTS
    for claim in part
    if claim.equation == theirs
)
