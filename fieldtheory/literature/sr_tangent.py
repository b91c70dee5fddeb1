"""Claims of SR on gradients: Proposition 1, equation (9) and the tangent kernel without scaling."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.literature.claim import bound, claims_of, formula, interval
from fieldtheory.literature.evidence import at
from fieldtheory.literature.sr_kernels import (
    ANGLE,
    BIASED,
    INPUT,
    LAYERS,
    RELU,
    SCALE,
    collapse,
    scaled,
    stable_network,
    variance,
)
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.tangent.tangent_result import tangent_kernels
from fieldtheory.theory import notation as sym
from fieldtheory.theory.elementary_averages import K_XX, K_XY, K_YY, X, Y
from fieldtheory.theory.evaluation import with_activation
from fieldtheory.theory.tangent_kernel import family_tangent

_NEXT = sp.Symbol("λ_{l+1}", positive=True)
_TANGENT = sp.Symbol("Θ_l", real=True)
_LAYER = sp.Symbol("l", integer=True, positive=True)
_GROWTH = 1 + sym.WEIGHT**2 / 2
_INPUT_VARIANCE = 1.5

_K = [[K_XX, K_XY], [K_XY, K_YY]]


def _printed_step(scale: sp.Expr) -> sp.Expr:
    """(9)."""
    activity, slope = (
        sym.WEIGHT**2 * GaussianAverage(F(X) * F(Y), (X, Y), _K)
        for F in (sym.phi, lambda h: sym.phi(h).diff(h))
    )
    return _TANGENT + scale**2 * (sym.BIAS**2 + activity + slope * _TANGENT)


def _step(scale: sp.Expr) -> sp.Expr:
    """Θ_{l+1} from Θ_l as gradients by explicit weights have it, the layer l + 1 having a scale."""
    layer = family_tangent(ResidualNetwork, scaled(scale))
    average = GaussianAverage(sym.phi(X) * sym.phi(Y), (X, Y), _K)
    return layer.growth * _TANGENT + layer.weights * average + layer.biases


@lru_cache
def _carried(correlation: sp.Expr) -> sp.Expr:
    """The factor of Θ_l in a standard ResNet, for ReLU and inputs of one norm."""
    growth = family_tangent(ResidualNetwork, scaled(sp.S.One)).growth
    values = {K_XX: 1, K_YY: 1, K_XY: correlation}
    closed = with_activation(growth, RELU).doit().subs(values)
    return closed.replace(sp.atan2, lambda y, x: sp.pi / 2 - sp.atan(x / y))


@lru_cache
def remaining_correlation() -> sp.Expr:
    """The limit of Θ_L(x, x')/√(Θ_L(x, x) Θ_L(x', x')) without scaling, for x ∦ x'.

    >>> remaining_correlation()
    1/4
    """
    kept = sp.series(_carried(1 - ANGLE**2), ANGLE, 0, 2).removeO()
    loss = -sp.expand(kept).coeff(ANGLE, 1) / sp.limit(kept, ANGLE, 0)
    power, limit = collapse()
    # u = √(1 − C) falls as its limit over l.
    alpha = sp.simplify(loss * sp.sqrt(limit) / (-power / 2))
    return sp.simplify(1 / (1 + alpha))


def layer_gradient() -> sp.Expr:
    """Σ E|∂y_L/∂W_l|² over the weights of layer l in a standard ResNet without bias, N → ∞."""
    layer = family_tangent(ResidualNetwork, scaled(sp.S.One))
    one = with_activation(GaussianAverage(sym.phi(X) ** 2, X, K_XX), RELU).doit() / K_XX
    before = variance(unbiased=True).subs(LAYERS, _LAYER - 1)
    behind = sp.limit(_carried(1 - ANGLE**2), ANGLE, 0) ** (LAYERS - _LAYER)
    return layer.weights * one * before * behind


def entry_gradient() -> sp.Expr:
    """E|∂y_L^1/∂W_l^11|² in a standard ResNet of width N without bias."""
    gain = sp.limit(_carried(1 - ANGLE**2), ANGLE, 0)
    chain = 1 + (gain ** (LAYERS - _LAYER) - 1) / sym.WIDTH
    before = variance(unbiased=True).subs(LAYERS, _LAYER - 1)
    return chain * with_activation(GaussianAverage(sym.phi(X) ** 2, X, before), RELU).doit()


def _training(printed: bool) -> sp.Expr:
    """The derivative of the printed F_τ(x), and the gradient flow at the printed F_τ(X)."""
    rate, own, both, time = sp.symbols("η Θ_X Θ_xX τ", positive=True)
    y, start = sp.symbols("y F_0", real=True)
    response = (1 - sp.exp(-rate * own * time)) * (y - start) / own
    return (both * response).diff(time) if printed else -rate * both * (start + own * response - y)


def _relative(gradient: sp.Expr, layer: int) -> float:
    """Limit of a gradient over (1 + σ_w²/2)^L for N → ∞ and then L → ∞."""
    wide = sp.limit(gradient.subs(_LAYER, layer), sym.WIDTH, sp.oo)
    one = {sym.WEIGHT: sp.sqrt(2), INPUT: 1}
    return float(sp.limit(sp.simplify((wide / _GROWTH**LAYERS).subs(one)), LAYERS, sp.oo))


def _largest() -> dict[str, float]:
    """The largest of Σ E|∂y_L/∂W_l|² over the layers l, over the exponential in the bound."""
    depth, ratios = 20, {}
    for schedule in ("uniform", "decreasing", "none"):
        network = stable_network(schedule, depth, **BIASED, input_dim=1)
        frozen = dict.fromkeys(network.trained, 0.0)
        size = np.exp(network.weight_variance / 2 * network.schedule.sum_of_squares)
        gradients = [
            tangent_kernels(network, _INPUT_VARIANCE, frozen | {"readin_weight": 1.0}),
            *(
                tangent_kernels(network, _INPUT_VARIANCE, frozen | {"weight": alone})
                for alone in np.eye(depth)
            ),
        ]
        largest = max(gradient.tangent_kernels[depth] for gradient in gradients)
        ratios[network.schedule.formula] = float(largest / size)
    return ratios


_STATEMENTS = {
    "Proposition 1: max_l Σ E|∂y_L/∂W_l|² / exp(σ_w²/2 Σ λ²), below a constant C": interval(
        "sum over the weights of a layer, l = 0 to L = 20, N → ∞",
        (0.0, _INPUT_VARIANCE + 2 * BIASED["bias_variance"] / BIASED["weight_variance"]),
        _largest,
        "C = Q_0 + 2σ_b²/σ_w² serves every L and λ_{l,L}, from Π (1 + λ² σ_w²/2)",
    ),
    "Proposition 1: lower bound κ (1 + σ_w²/2)^L of Σ E|∂y_L/∂W_l|²": bound(
        "λ = 1, σ_b = 0, sum over the weights of a layer, every l from 1 to L",
        sym.WEIGHT**2 / 2 * INPUT * _GROWTH ** (LAYERS - 1),
        layer_gradient,
        "with equality for this κ: the same in every layer",
    ),
    "Proposition 1: limit of E|∂y_L/∂W_l|²/(1 + σ_w²/2)^L for L → ∞, positive": [
        interval(
            "λ = 1, σ_b = 0, sum over the weights of layer 1, N → ∞",
            (0.0, np.inf),
            lambda: at("l", (1,), partial(_relative, layer_gradient())),
        ),
        interval(
            "λ = 1, σ_b = 0, W_1^11 alone and y_L^1, N → ∞",
            (0.0, np.inf),
            lambda: at("l", (1,), partial(_relative, entry_gradient())),
            "y_L^1 depends on W_1^11 by the skip connections but for 1/N: E|∂y/∂W|² → Q_0/2 "
            "at every L; the bound holds for the sum over the weights of the layer",
        ),
    ],
    "(9): Θ_{l+1} from Θ_l": [
        formula(
            "every φ and λ_l",
            lambda: _printed_step(SCALE),
            lambda: _step(_NEXT),
            "there is no λ_0",
            meant=("λ_{l+1}, that of the layer l + 1", lambda: _printed_step(_NEXT)),
        ),
        formula(
            "every φ, one λ for all layers", lambda: _printed_step(SCALE), lambda: _step(SCALE)
        ),
    ],
    "section 5, F_τ: dF_τ(x)/dτ = −η Θ(x, X)(F_τ(X) − y)": formula(
        "N = 1 training input", lambda: _training(True), lambda: _training(False)
    ),
    "section 5: limit of Θ_L(x, x')/√(Θ_L(x, x) Θ_L(x', x')), 1 if it is trivial as in "
    "Lemma 4": formula(
        "standard ResNet, σ_b = 0, x not parallel to x'",
        sp.S.One,
        remaining_correlation,
        "it tells inputs apart: 1 for x = x', 1/4 for others, of full rank on any inputs",
    ),
}

CLAIMS = claims_of("SR", _STATEMENTS)
