"""Claims of PDLT-B on the four-point vertex and what follows for depth and width, section B.3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.criticality import (
    closure_four_point,
    critical_network,
    optimal_aspect_ratio,
    optimal_skip_scale,
    vertex_slope,
)
from fieldtheory.literature.claim import claims_of, double, formula, interval
from fieldtheory.literature.evidence import at
from fieldtheory.literature.pdlt_kernels import KERNEL, SKIP, SLOPE, WEIGHT, expansion
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.theory import notation as sym
from fieldtheory.theory.elementary_averages import X, Y

_NETWORK = ResidualNetwork(
    depth=4, activation=as_activation("tanh"), skip_scale=0.8, weight_variance=1.5
)
_PAIR = np.array([[1.0, 0.4], [0.4, 0.7]])
_HALF = float(np.sqrt(0.5))
_RELU = critical_network("relu", _HALF, depth=2)
_SKIPS = tuple(float(gamma) for gamma in np.linspace(0.1, 0.9, 9))
_NOT_ALL = "connected correlators of different layers are missing, of the same order 1/n"


def _closure(network: ResidualNetwork, layer: int) -> Callable[[Mapping[Any, Any]], float]:
    """(B.26) with K^(0) = 1."""
    return lambda point: float(closure_four_point(network, 1.0)[layer])


def _exact(network: ResidualNetwork, layer: int) -> Callable[[Mapping[Any, Any]], float]:
    """V^(l) from the propagators, to order 1/N."""
    return lambda point: float(solve(network, 1.0).four_point[layer])


# Signals of one neuron and four inputs, and their covariance.
_Z = sp.symbols("z_1:5", real=True)
_K = sp.ImmutableMatrix(
    4, 4, lambda a, b: sp.Symbol(f"K_{min(a, b) + 1}{max(a, b) + 1}", real=True)
)
_FIRST, _SECOND = (sym.phi(_Z[a]) * sym.phi(_Z[a + 1]) for a in (0, 2))


def _printed_first_vertex() -> sp.Expr:
    """(B.25) after the first residual layer, where V vanishes before."""

    def average(F: sp.Expr) -> sp.Expr:
        return GaussianAverage(F, _Z, _K)

    mixed = average(_FIRST * _Z[2] * _Z[3]) - _K[2, 3] * average(_FIRST)
    mixed += average(_SECOND * _Z[0] * _Z[1]) - _K[0, 1] * average(_SECOND)
    own = average(_FIRST * _SECOND) - average(_FIRST) * average(_SECOND)
    return WEIGHT**2 * own + WEIGHT * SKIP**2 * mixed


def _first_vertex() -> sp.Expr:
    """N times the covariance of P_12 of one neuron and P_34 of another, P = E[h h' | h^(0)]."""

    def connected(F: sp.Expr, G: sp.Expr) -> sp.Expr:
        return ConnectedCorrelator(F, G, _Z, _K).rewrite(GaussianAverage)

    mixed = connected(_Z[0] * _Z[1], _SECOND) + connected(_Z[2] * _Z[3], _FIRST)
    vertex = WEIGHT**2 * connected(_FIRST, _SECOND) + WEIGHT * SKIP**2 * mixed
    moments = {GaussianAverage(_Z[a] * _Z[b], _Z, _K): _K[a, b] for a in range(4) for b in range(4)}
    return vertex.xreplace(moments)


def _printed_slope(up: float, down: float, gamma: float) -> float:
    """(B.29)."""
    A2, A4 = (up**2 + down**2) / 2, (up**4 + down**4) / 2
    return (1 - gamma**2) * ((1 - gamma**2) * (3 * A4 / A2**2 - 1) + 4 * gamma**2)


def _slopes(activation: str, closure: bool) -> dict[str, float]:
    """dν/dγ by γ, from differences."""
    step = 1e-4

    def slope(gamma: float) -> float:
        low, high = vertex_slope(activation, np.array([gamma - step, gamma + step]), closure)
        return (high - low) / (2 * step)

    return at("γ", _SKIPS, slope)


def _steps(activation: str) -> dict[str, float]:
    """Growth of r* from one γ to the next."""
    ratios = dict(zip(_SKIPS, np.diff(optimal_aspect_ratio(activation, _SKIPS)), strict=False))
    return at("γ", ratios, ratios.__getitem__)


def _below_threshold(activation: str) -> float:
    """γ* of a network with half of the optimal depth of one without skip connections."""
    return optimal_skip_scale(activation, optimal_aspect_ratio(activation, 0.0) / 2)


def _power(activation: str) -> dict[str, float]:
    """d ln(1 − γ*²)/d ln r."""
    first, second = (1 - optimal_skip_scale(activation, r) ** 2 for r in (1e3, 1e4))
    return {"r = 10³ to 10⁴": float(np.log10(second / first))}


def _vanishing_slope() -> sp.Expr:
    """ν from all correlations between layers, to leading order in K."""
    c, A, growth = sp.symbols("c A s", positive=True)
    square = expansion(1) ** 2
    K = [[KERNEL, c * KERNEL], [c * KERNEL, KERNEL]]
    Q = sp.expand(ConnectedCorrelator(square, square.subs(X, Y), (X, Y), K).doit())
    weight = (1 - SKIP**2) / SLOPE**2
    both = 2 * Q.coeff(c, 2) * SKIP**2 / (1 - SKIP**2)
    (ratio,) = sp.solve(-A + 4 * A - growth, A)
    return sp.simplify(ratio.subs(growth, weight**2 * (Q.subs(c, 1) + both) / KERNEL**2))


_STATEMENTS = {
    "(B.24), (B.25): four-point vertex of four inputs": formula(
        "every φ and γ, first residual layer", _printed_first_vertex, _first_vertex
    ),
    "(B.24), (B.25): V_(12)(12) of two inputs": [
        double(
            f"φ = relu, γ² = 1/2, {place} residual layer",
            lambda point, l=l: float(closure_four_point(_RELU, _PAIR)[l][1, 1]),
            lambda point, l=l: float(solve(_RELU, _PAIR).four_point[l][1, 1]),
            "" if l == 1 else _NOT_ALL,
        )
        for l, place in ((1, "first"), (2, "second"))
    ],
    "(B.26): four-point vertex V": [
        double(
            "φ = tanh, γ = 0.8, first residual layer", _closure(_NETWORK, 1), _exact(_NETWORK, 1)
        ),
        double(
            "φ = tanh, γ = 0.8, fourth residual layer",
            _closure(_NETWORK, 4),
            _exact(_NETWORK, 4),
            _NOT_ALL,
        ),
        double(
            "φ = tanh, γ = 0, fourth layer",
            _closure(_NETWORK.replace(skip_scale=0.0), 4),
            _exact(_NETWORK.replace(skip_scale=0.0), 4),
        ),
    ],
    "(B.28): V/K² at criticality": [
        double(
            "φ = relu, γ² = 1/2, second residual layer",
            lambda point: 2 * _printed_slope(1, 0, _HALF),
            _exact(_RELU, 2),
            _NOT_ALL,
        ),
        double(
            "φ = |h|, γ = 0.8, fourth residual layer",
            lambda point: 4 * _printed_slope(1, -1, 0.8),
            _exact(critical_network("abs", 0.8, depth=4), 4),
        ),
    ],
    "(B.29): ν of the scale-invariant class": [
        double(
            "φ = relu, γ² = 1/2",
            lambda point: _printed_slope(1, 0, _HALF),
            lambda point: float(vertex_slope("relu", _HALF)),
            _NOT_ALL,
        ),
        double(
            "φ = relu, γ = 0",
            lambda point: _printed_slope(1, 0, 0.0),
            lambda point: float(vertex_slope("relu", 0.0)),
        ),
        double(
            "|a_+| = |a_−|, φ = |h|, γ = 0.8",
            lambda point: _printed_slope(1, -1, 0.8),
            lambda point: float(vertex_slope("abs", 0.8)),
        ),
    ],
    "text after (B.29): dν/dγ < 0, of ν as (B.29) prints it": interval(
        "φ = relu", (-np.inf, 0.0), lambda: _slopes("relu", closure=True)
    ),
    "text after (B.29): dν/dγ < 0": [
        interval(
            "φ = relu, ν to order 1/n",
            (-np.inf, 0.0),
            lambda: _slopes("relu", closure=False),
            "φ² has a first Hermite component where |a_+| ≠ |a_−|: ν rises before it falls",
        ),
        interval("|a_+| = |a_−|, φ = |h|", (-np.inf, 0.0), lambda: _slopes("abs", closure=False)),
    ],
    "(B.35): ν of the K* = 0 class": formula(
        "smooth φ with φ(0) = 0, all correlations between layers",
        sp.Rational(2, 3) * (1 - SKIP**4),
        _vanishing_slope,
    ),
    "text after (B.35): dν/dγ < 0": interval(
        "φ = tanh", (-np.inf, 0.0), lambda: _slopes("tanh", closure=False)
    ),
    "text after (B.36): r* grows with γ": [
        interval(
            "φ = relu, n_L = 1", (0.0, np.inf), lambda: _steps("relu"), "it falls up to γ² = 0.20"
        ),
        interval("φ = tanh, n_L = 1", (0.0, np.inf), lambda: _steps("tanh")),
    ],
    "text before (B.37): γ* = 0 for r < r*(γ = 0)": [
        double(
            "φ = relu, r = r*(0)/2",
            sp.S.Zero,
            lambda point: _below_threshold("relu"),
            "skip connections raise ν and with it the mutual information of shallow networks",
        ),
        double("φ = tanh, r = r*(0)/2", sp.S.Zero, lambda point: _below_threshold("tanh")),
    ],
    "(B.37): ν(γ*(r)) r over 4/(20 + 3 n_L), 1 to 1e-6": interval(
        "φ = tanh, n_L = 1",
        (1 - 1e-6, 1 + 1e-6),
        # V/(n G²) at the optimal γ of a network, over its value at the threshold.
        lambda: at(
            "r",
            (1.0, 10.0, 1e3),
            lambda r: vertex_slope("tanh", float(optimal_skip_scale("tanh", r))) * r * 23 / 4,
        ),
    ),
    "footnote 8: the power of r in 1 − γ*², −1": interval(
        "φ = relu, r ≫ r*(0)", (-1.01, -0.99), lambda: _power("relu")
    ),
}

CLAIMS = claims_of("PDLT-B", _STATEMENTS)
