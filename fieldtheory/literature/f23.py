"""Claims of F23, the earlier version of F25, where ρ is called α.

K. Fischer, D. Dahmen, M. Helias, Optimal signal propagation in ResNets through residual scaling.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.literature import f25_entropy, f25_prior, f25_propagators, f25_scaling, f25_theory
from fieldtheory.literature.claim import Case, bound, claims_of, double, formula, interval, number
from fieldtheory.literature.evidence import at
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.scaling import maximum_entropy as entropy
from fieldtheory.scaling import optimal_scaling
from fieldtheory.theory import linearised
from fieldtheory.theory import notation as sym
from fieldtheory.theory.linearised import SCALE, SLOPE
from fieldtheory.theory.notation import DEPTH

# The parameters of Fig. 5.
_K0, _FIG5 = 0.05, ResidualNetwork(depth=30)
_WEIGHTS = (1.0, 1.25, 1.5, 1.75, 2.0)
_UNIT_SLOPE = "φ'(0) = 1, where erf has 2/√π"


def _linearised(region: str, printed: sp.Expr, derived: Callable[[], sp.Expr], number: int) -> Case:
    """F25 has the formula with a slope at zero, and F23 without it."""
    return formula(
        region,
        printed.subs(SLOPE, 1),
        lambda: derived().subs(SLOPE, as_activation("erf").slope_at_zero),
        f"F25 ({number}) keeps φ'(0)",
        points=f25_scaling.SMALL_INPUT,
        convention=(_UNIT_SLOPE, lambda: derived().subs(SLOPE, 1)),
    )


def _optima(parameter: str, values: Sequence[float], **others: float) -> dict[str, float]:
    """ρ* at the values of one parameter in the network of Fig. 5."""
    name = {"depth": "L", "bias_variance": "σ_b²", "weight_variance": "σ_w²"}[parameter]
    with warnings.catch_warnings():
        # That ρ* = 0 is what Fig. 5(b) is about.
        warnings.simplefilter("ignore")
        network = _FIG5.replace(**others)
        return at(name, values, lambda v: optimal_scaling(network.replace(**{parameter: v}), _K0))


def _spread_of_heights(bias: Callable[[float], float]) -> Callable[[Any], float]:
    """Spread of the largest rescaled responses, relative to the smallest of them."""

    def spread(point: Any) -> float:
        heights = []
        for weight in _WEIGHTS:
            network = _FIG5.replace(weight_variance=weight, bias_variance=bias(weight))
            rho = float(optimal_scaling(network, _K0))
            response = solve(network.replace(branch_scale=rho), _K0).output_response
            heights.append(float(response) / network.readout_variances[0])
        return float(np.ptp(heights) / min(heights))

    return spread


_STATEMENTS = {
    "(7): K^(L) of the linearised network": _linearised(
        "φ = erf", f25_scaling.KERNEL, linearised.linearised_kernel, 66
    ),
    "(8): ρ* at which K^(L) of the linearised network is (V/2)²": _linearised(
        "φ = erf, K^(0) < (V/2)²",
        f25_scaling.SCALING,
        lambda: linearised.saturation_formula().rhs,
        67,
    ),
    "(9): ρ* at which K^(L) of the linearised network is (V/2)², deep networks": _linearised(
        "φ = erf, leading order in 1/L",
        f25_scaling.DEEP_SCALING,
        lambda: linearised.saturation_formula(large_depth=True).rhs,
        68,
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
        lambda: _optima("depth", (2, 5, 10, 20, 30)),
    ),
    "section 3.1: response of the output of the linearised network": formula(
        "φ'(0) = 1",
        sym.READOUT_WEIGHT**2 * (1 + (SCALE * sym.WEIGHT) ** 2) ** DEPTH,
        lambda: linearised.linearised_response().subs(SLOPE, 1),
    ),
    "Fig. 5(b), caption: ρ* > 0 at the fixed σ_b² = 1.75": interval(
        "σ_w² of Fig. 5(a)",
        (0.0, np.inf),
        lambda: _optima("weight_variance", _WEIGHTS, bias_variance=1.75),
        "the figure shows maxima at ρ > 0",
        meant=(
            "σ_w² = 1.75 for σ_b² = 1.75",
            (0.0, np.inf),
            lambda: _optima(
                "bias_variance", (0.05, 0.06, 0.07, 0.08, 0.09, 0.1), weight_variance=1.75
            ),
        ),
    ),
    "Fig. 5(c): spread of the heights of curves that collapse": [
        double(
            "σ_w² from 1 to 2, σ_b² = 0.05",
            sp.S.Zero,
            _spread_of_heights(lambda weight: 0.05),
            "they collapse exactly at fixed σ_b²/σ_w² alone",
        ),
        double(
            "σ_w² from 1 to 2, σ_b²/σ_w² = 0.04",
            sp.S.Zero,
            _spread_of_heights(lambda weight: weight * 0.05 / 1.25),
        ),
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
