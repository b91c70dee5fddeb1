"""Claims of F25 on maximum entropy, appendix E."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import sympy as sp

from fieldtheory.literature.claim import claims_of, formula, number
from fieldtheory.networks.activations import as_activation, h
from fieldtheory.scaling import maximum_entropy as entropy
from fieldtheory.scaling.maximum_entropy import VARIANCE
from fieldtheory.scaling.uniform_density import average

# Eq. (141).
DIVERGENCE = sp.log(sp.sqrt(2)) + sp.log(VARIANCE) / 2 + (1 / (2 * VARIANCE) - 1) / 2
# Eq. (142).
SLOPE = 1 / VARIANCE - 1 / (4 * VARIANCE**2)

_SLOPE_OF_ERF = sp.diff(sp.erf(h), h)
_SQUARED = "the square of φ^(-1), as in the third line of (140)"
_VARIANCES = tuple({VARIANCE: sp.Rational(v)} for v in ("1/100", "1/4", "1/2", "1", "100"))


def _density(square: sp.Expr) -> sp.Expr:
    """(139) at y = φ(h), with h, or its square, where φ^(-1)(y)² should stand."""
    return sp.exp(-square / (2 * VARIANCE)) / (sp.sqrt(2 * sp.pi * VARIANCE) * _SLOPE_OF_ERF)


def _printed_divergence_step(point: Mapping[Any, Any], digits: int, power: int = 1) -> Any:
    """The second line of eq. (140) with y = erf(h), integrated over h."""
    variance = point[VARIANCE]
    integrand = (
        sp.log(sp.Rational(1, 2)) / 2
        + h**power / (4 * variance)
        + sp.log(sp.sqrt(2 * sp.pi * variance) * _SLOPE_OF_ERF) / 2
    )
    # ⟨·⟩ over the density φ'/2 of the uniform variable; dy = φ' dh.
    return 2 * average(as_activation("erf"), integrand, digits)


def _divergence(point: Mapping[Any, Any], digits: int) -> Any:
    return entropy.precise_divergence("erf", point[VARIANCE], digits)


_STATEMENTS = {
    "(139): density of y = erf(h), h ~ N(0, σ²)": formula(
        "every h",
        lambda: _density(h),
        lambda: sp.exp(-(h**2) / (2 * VARIANCE)) / sp.sqrt(2 * sp.pi * VARIANCE) / _SLOPE_OF_ERF,
        meant=(_SQUARED, lambda: _density(h**2)),
    ),
    "(140), second line: D_KL of a uniform variable from erf(h)": number(
        "φ = erf",
        _printed_divergence_step,
        _divergence,
        points=_VARIANCES,
        meant=(_SQUARED, partial(_printed_divergence_step, power=2)),
    ),
    "(141): D_KL of a uniform variable from erf(h)": [
        number("φ = erf", DIVERGENCE, _divergence, points=_VARIANCES),
        formula("every σ²", DIVERGENCE, entropy.divergence_formula),
    ],
    "text before (142): sign of ∂²D_KL/∂(σ²)² where D_KL is said to be largest": formula(
        "σ² = 1/2, where ∂D_KL/∂σ² = 0",
        sp.Integer(-1),
        lambda: sp.sign(sp.diff(entropy.divergence_formula(), VARIANCE, 2)).subs(
            VARIANCE, entropy.variance_formula()
        ),
        "the divergence is smallest there",
    ),
    "(142): ∂D_KL/∂σ² for φ = erf": formula(
        "every σ²",
        SLOPE,
        lambda: sp.diff(entropy.divergence_formula(), VARIANCE),
        "the derivative of (141) is 1/(2σ²) − 1/(4σ⁴)",
    ),
    "text after (142): σ² at which erf(h) is closest to uniform": number(
        "φ = erf",
        sp.Rational(1, 4),
        lambda point, digits: entropy.precise_variance("erf", digits),
        "erf(h) is exactly uniform at σ² = 1/2; 1/4 is the condition V = 1 of section III.1",
    ),
}

CLAIMS = claims_of("F25", _STATEMENTS)
