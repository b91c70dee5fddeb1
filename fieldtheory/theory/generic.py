"""The theory for symbolic layers l, k, m: the formulas of F25 as they hold.

Each formula is a function of layer indices, symbols or integers. Its entries are taken from the
action of two layers; with symbols it is what the papers print.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.networks.family import Coefficients, LayeredNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action, chain_action
from fieldtheory.theory.hessian import Hessian, hessian
from fieldtheory.theory.saddle_point import saddle_point
from fieldtheory.theory.scales import Layers
from fieldtheory.theory.tangent_kernel import layer_tangent, sum_of_features
from fieldtheory.theory.typesetting.layer_quantities import (
    G12,
    S22,
    A,
    Bias,
    C,
    Conjugate,
    Earlier,
    JointAverage,
    K,
    RelativeWidth,
    ResidualResponse,
    SkipScale,
    Weight,
)

l, k, m, n, j = sp.symbols("l k m n j", integer=True, nonnegative=True)


@lru_cache
def _window(family: type[LayeredNetwork]) -> tuple[Action, Hessian]:
    """Two layers and a readout, in which every entry between layers occurs once."""

    def coefficients(layer: int) -> Coefficients:
        return Coefficients(Weight(layer), Bias(layer), SkipScale(layer))

    action = chain_action(2, 1, Layers(family).features, coefficients)
    return action, hessian(action)


def _at(expr: sp.Expr, layers: Mapping[int, Any]) -> sp.Expr:
    """An entry of the window with other indices for its layers l; signals are those of l − 1."""
    layers = {i: sp.sympify(index) for i, index in layers.items()}
    signals = {sym.signal(i - 1): sym.signal(index - 1) for i, index in layers.items()}
    places = {sym.signal(i - 1): index - 1 for i, index in layers.items()}

    def covariance(variables: list[sp.Symbol]) -> list[list[sp.Expr]]:
        at = [places[v] for v in variables]
        # The layers of a covariance in their order.
        return [
            [K(u) if u == v else K(*((u, v) if i < j else (v, u))) for j, v in enumerate(at)]
            for i, u in enumerate(at)
        ]

    rules: dict[sp.Expr, sp.Expr] = {}
    for i, index in layers.items():
        rules |= {kind(i): kind(index) for kind in (Weight, Bias, SkipScale)}
    return sym.over_signals(expr, signals, covariance).xreplace(rules)


def action(depth: sp.Expr, family: type[LayeredNetwork], readout_apart: bool = False) -> sp.Expr:
    """S(C, C̃) with sums over the layers (F25 eqs. (21), (22)), and perhaps the readout apart."""
    window, _ = _window(family)
    out = depth + 1

    def summed(term: Callable[[Any], sp.Expr], apart: bool) -> sp.Expr:
        if out.is_number:
            return sp.Add(*[term(sp.Integer(i)) for i in range(1, int(out) + 1)])
        return sp.Sum(term(l), (l, 1, depth)) + term(out) if apart else sp.Sum(term(l), (l, 1, out))

    constraints = summed(lambda i: window.relative_widths[2] * C(i) * Conjugate(i), False)
    constraints += window.relative_widths[0] * C(0) * Conjugate(0)
    sources = window.observables[0] * Conjugate(0)
    sources += summed(lambda i: Conjugate(i) * _at(window.observables[2], {2: i}), readout_apart)
    return sym.WIDTH * sp.log(JointAverage(sp.exp(sources))) - sym.WIDTH * constraints


def observable(l: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """g(h^(l), h^(l)), φ(h^(l))² for a residual network."""
    action, _ = _window(family)
    return _at((action.observables[2] - Bias(2)) / Weight(2), {2: l + 1})


def residual_kernel(l: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """C*^(l) for l >= 1 (F25 eq. (29), and (25) for the readout)."""
    action, _ = _window(family)
    return _at(saddle_point(action).kernels[action.kernels[2]], {2: l})


def kernel(l: Any) -> sp.Expr:
    """K^(l) = Σ_m A_lm² C^(m) for l <= L (F25 eq. (30) for γ = 1)."""
    return sp.Sum(A(l, m) ** 2 * C(m), (m, 0, l))


def susceptibility(l: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """M' at the kernel K^(l), ⟨φ'² + φφ''⟩ for a residual network."""
    return _gain(l + 1, family) / Weight(l + 1)


def mixed_block(k: Any, l: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """S21[k,l] (F25 eq. (41), with a_{L+1} = σ²_w,out)."""
    coupling = _gain(k, family) * A(k - 1, l) ** 2 * Earlier(l, k)
    return sym.WIDTH * (coupling - RelativeWidth(sp.sympify(k)) * sp.KroneckerDelta(k, l))


def source_block(k: Any, l: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """S22[k,l] for k, l >= 1 (F25 eq. (39), with a_{L+1} = σ²_w,out)."""
    _, blocks = _window(family)
    if sp.sympify(k) == l:
        return _at(blocks.S22[2, 2], {2: k})
    return _at(blocks.S22[1, 2], {1: k, 2: l})


def correlator(k: Any, l: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """⟨g;g⟩ of layers k and l, ⟨φ²;φ²⟩ for a residual network."""
    block = source_block(k + 1, l + 1, family)
    return block / (sym.WIDTH * Weight(k + 1) * Weight(l + 1))


def response_recursion(l: Any, m: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """G12[l,m] from earlier layers (F25 eq. (49)): row l of S21 G12 = −1, solved for the last."""
    history = sp.Sum(A(l - 1, k) ** 2 * G12(k, m), (k, m, l - 1))
    source = sp.KroneckerDelta(l, m) / (RelativeWidth(sp.sympify(l)) * sym.WIDTH)
    return source + _gain(l, family) * history


def response_product(l: Any, m: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """G12[l,m] for l > m, a running product over the layers between."""
    if isinstance(l, int) and isinstance(m, int):
        factors = sp.Mul(*[growth(i, family) for i in range(m + 1, l)])
    else:
        factors = sp.Product(growth(j, family), (j, m + 1, l - 1))
    return _gain(l, family) * factors / (sym.WIDTH * RelativeWidth(m))


def growth(l: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """γ_l² + a_l M'(K^(l-1)), by which the response of the kernel grows in layer l."""
    action, _ = _window(family)
    skip = action.covariance[1, 1].coeff(action.kernels[0])
    return _at(skip, {1: l}) + _gain(l, family)


def _gain(l: Any, family: type[LayeredNetwork]) -> sp.Expr:
    """a_l M'(K^(l-1)), what C^(l-1) adds to C^(l): S21 below its diagonal."""
    return _at(_window(family)[1].S21[2, 1] / sym.WIDTH, {2: l})


def tangent_growth(l: Any, family: type[LayeredNetwork], average: sp.Expr) -> sp.Expr:
    """γ_l² + a_l ⟨φ'φ'⟩, what layer l makes of the tangent kernel before it (SR eq. (9))."""
    carried = sp.expand(_tangent(family))
    # All that has the weights, a sum over features, is the one average.
    slopes = carried.coeff(Weight(1))
    remainder = sp.expand(carried - Weight(1) * slopes)
    return remainder.xreplace({SkipScale(1): SkipScale(l)}) + Weight(l) * average


def slope_square(l: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """⟨φ'²⟩ over the signals of layer l."""
    signal, slopes = sym.signal(l), sp.expand(_tangent(family)).coeff(Weight(1))
    one = slopes.replace(
        lambda e: isinstance(e, GaussianAverage),
        lambda e: e.integrand.xreplace(dict.fromkeys(e.variables, signal)),
    )
    return GaussianAverage(one, signal, K(sp.sympify(l)))


@lru_cache
def _tangent(family: type[LayeredNetwork]) -> sp.Expr:
    """Tangent kernel carried on by a layer, from its weights √(a/N) w_ij and √c b_i."""
    branch = sum_of_features(Weight(1), Bias(1))
    return layer_tangent(branch, Layers(family).features, SkipScale(1)).growth


def kernel_propagator(l: Any, m: Any) -> sp.Expr:
    """G11[l,m] = Σ_kn G12[l,k] S22[k,n] G12[m,n] (F25 eq. (131))."""
    return sp.Sum(G12(l, k) * S22(k, n) * G12(m, n), (k, 1, l), (n, 1, m))


def residual_response(l: Any, family: type[LayeredNetwork] = ResidualNetwork) -> sp.Expr:
    """η^(l) = N ν_0 G12[l,0] for l >= 1 from earlier layers (F25 eqs. (51), (59))."""
    row = response_recursion(l, sp.S.Zero, family).subs(sp.KroneckerDelta(l, 0), 0)
    return row.replace(G12, lambda layer, _: ResidualResponse(layer))


def kernel_covariance(k: Any, l: Any) -> sp.Expr:
    """K^(k,l) = Σ_m A_km A_lm C^(m), the covariance of the signals of two layers."""
    return sp.Sum(A(k, m) * A(l, m) * C(m), (m, 0, sp.Min(k, l)))
