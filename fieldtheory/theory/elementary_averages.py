"""The elementary averages of a layer, from derivatives of the action of one layer and a readout.

With a_l = 1 and c_l = 0 the first derivative of the action by a conjugate is the average of the
observable g, and the second one by the conjugates of two layers its connected correlator. Every
number and formula of the theory is made of these and their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.averages.integrands.breakpoints import break_points, has_steps
from fieldtheory.averages.integrands.steps import step_form
from fieldtheory.networks.family import Coefficients, LayeredNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import chain_action

X, Y = sp.symbols("x y", real=True)
K_XX, K_YY = sp.symbols("K_xx K_yy", positive=True)
K_XY = sp.Symbol("K_xy", real=True)
_SKIP = sp.Symbol("gamma", real=True)
# What is left of (ψ(h + ε) − ψ(h))²/ε from ε to ε² if ψ'² is not integrable at h.
_AS_STEEP = 0.9
# Differences over 1e-20 keep 40 digits.
_RISE_DIGITS = 80

Features = Callable[[Any, Any, Mapping[str, Any]], tuple]


@dataclass(frozen=True)
class LayerAverages:
    """The averages of the observable g(x, y) = Σ_k ψ_k(x) ψ_k(y) of two signals x and y.

    ``moment`` ⟨g(x, x)⟩ in the variance ``K_XX``; ``covariance`` ⟨g(x, y)⟩ in ``K_XX``, ``K_YY``
    and ``K_XY``, as ``connected`` ⟨g(x, x) ; g(y, y)⟩ of one input in two layers.
    """

    observable: sp.Expr
    moment: sp.Expr
    covariance: sp.Expr
    connected: sp.Expr

    @property
    def square(self) -> sp.Expr:
        """g(x, x), for a residual network φ², without steps where they cancel as in sign²."""
        square = self.observable.subs(Y, X)
        form = step_form(square)
        return square if has_steps(form) else form

    @property
    def slope_square(self) -> sp.Expr:
        """⟨Σ_k ψ_k'²⟩ in the variance ``K_XX``, for a residual network ⟨φ'²⟩."""
        return GaussianAverage(self.slopes, X, K_XX)

    @property
    def slopes(self) -> sp.Expr:
        """Σ_k ψ_k'(x)², for a residual network φ'²."""
        _require_square_slopes(self.observable)
        # Nothing jumps, so that all δ-functions come with a factor that vanishes.
        slopes = self.observable.diff(X, Y).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
        return slopes.subs(Y, X)


@lru_cache(maxsize=256)
def layer_averages(
    features: Features = ResidualNetwork.features,
    activation: Callable[[Any], sp.Expr] | None = None,
    parameters: tuple[tuple[str, Any], ...] = (),
) -> LayerAverages:
    """The averages of a layer, derived from the action.

        M = ∂S/∂C̃^(1) / N,   ⟨g;g⟩ = ∂²S/∂C̃^(1)∂C̃^(2) / N   at C̃ = 0, a_l = 1, c_l = 0

    but for the constraint in ∂S/∂C̃: cumulants of the action's population. ⟨g(x, y)⟩ is likewise
    from the field of two inputs (F25 eqs. (29), (108), (39)).

    >>> layer_averages().moment, layer_averages().moment.diff(K_XX)
    (<phi(x)**2>_(K_xx), <phi(x)*Derivative(phi(x), (x, 2)) + Derivative(phi(x), x)**2>_(K_xx))
    """
    phi = sym.phi if activation is None else activation
    psi = list(map(sp.sympify, features(phi, X, dict(parameters))))
    (population,) = chain_action(
        depth=1,
        inputs=2,
        features=lambda h: tuple(f.xreplace({X: h}) for f in psi),
        coefficients=lambda l: Coefficients(1, 0, _SKIP),
    ).populations
    # The signals of both inputs, and that of the first one in the next layer.
    names = dict(zip(population.variables, (X, Y, Y), strict=False))
    entries = {(X, X): K_XX, (Y, Y): K_YY, (X, Y): K_XY, (Y, X): K_XY}

    def covariance(signals: list[sp.Symbol]) -> list[list[sp.Expr]]:
        return [[entries[names[u], names[v]] for v in signals] for u in signals]

    # Fields of the first layer are numbers 3 to 5, those of (11), (12), (22), then of the next.
    averages = [
        sym.over_signals(population.cumulant(fields) / sym.WIDTH, names, covariance)
        for fields in ((3,), (4,), (3, 6))
    ]
    return LayerAverages(sp.Add(*[f * f.xreplace({X: Y}) for f in psi]), *averages)


def network_averages(network: LayeredNetwork) -> LayerAverages:
    """The averages of the layers of a network, its φ put in.

    >>> network_averages(ResidualNetwork(depth=1, activation="linear")).moment.doit()
    K_xx
    """
    features = type(network).features
    return layer_averages(features, network.activation, network.feature_parameters)


def _require_square_slopes(observable: sp.Expr) -> None:
    """Refuse a g(x, y) = Σ_k ψ_k(x) ψ_k(y) with infinite ⟨ψ_k'²⟩."""
    if not has_steps(observable):
        return
    # Rounded numbers: SymPy would look for factors of exact ones under a root.
    near, nearer = (sp.Float(10, _RISE_DIGITS) ** -power for power in (10, 20))

    def rise(point: sp.Expr, distance: sp.Expr, ends: tuple[int, int]) -> Any:
        first, second = (point.evalf(_RISE_DIGITS) + end * distance for end in ends)
        pairs = ((first, first, 1), (second, second, 1), (first, second, -2))
        square = sp.Add(*[sign * observable.subs({X: x, Y: y}) for x, y, sign in pairs])
        return abs(sp.N(square / distance, 15, maxn=300))

    for point in break_points(observable, X):
        for ends in ((-2, -1), (-1, 1), (1, 2)):
            far, close = (rise(point, distance, ends) for distance in (near, nearer))
            if far > near / 10**6 and close > _AS_STEEP * far:
                raise ValueError(
                    "activation must have no jumps and no slope as steep as that of √h, since its "
                    f"tangent kernel ∝ ⟨φ'²⟩ diverges, got one at h = {float(point):.6g}"
                )
