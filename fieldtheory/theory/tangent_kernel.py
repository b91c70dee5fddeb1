"""The tangent kernel from its definition, a sum over all parameters of products of gradients.

    Θ_αβ^(l) = Σ_θ ∂h_iα^(l)/∂θ ∂h_iβ^(l)/∂θ        (SR section 5; Jacot et al., arXiv:1806.07572)

The gradients of one neuron are those by the weights and biases of its own layer, and by the chain
rule those of the neurons before it. Over random weights the latter have Σ_θ ∂h_j/∂θ ∂h_k/∂θ =
δ_jk Θ^(l-1), and sums over the N neurons of a wide layer are N averages over Gaussian signals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.averages import GaussianAverage
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.elementary_averages import K_XX, K_XY, K_YY, X, Y

PARAMETRIZATIONS = ("ntk", "standard")

# The signals of two inputs at the neuron itself and at one that stands for the N − 1 others.
_SIGNALS = np.array([sp.symbols(f"h_{sample}:2", real=True) for sample in "xy"], dtype=object)
_COUNTS = (sp.S.One, sym.WIDTH - 1)

Features = Callable[[Any], tuple[Any, ...]]
Branch = Callable[[tuple[Any, ...], Callable[..., Any]], Any]


class LayerTangent(NamedTuple):
    """Map of the tangent kernel by a layer: Θ' = growth Θ + weights ⟨g(x, y)⟩ + biases."""

    weights: sp.Expr
    biases: sp.Expr
    growth: sp.Expr


class _Parameter(NamedTuple):
    """A weight or bias θ: its variance, and how many it stands for."""

    symbol: sp.Symbol
    variance: sp.Expr
    count: sp.Expr


def checked_parametrization(value: Any) -> str:
    """The parametrisation of a name in any case, as the papers write NTK, or a ValueError.

    >>> checked_parametrization("NTK")
    'ntk'
    """
    plain = value.lower() if isinstance(value, str) else value
    normalised = plain if plain in PARAMETRIZATIONS else value
    return validation.choice("parametrization", normalised, PARAMETRIZATIONS)


def layer_tangent(
    branch: Branch, features: Features, skip: Any, parametrization: str = "ntk"
) -> LayerTangent:
    """One layer of the recursion of Θ from its residual with explicit weights, as `branch` has it.

    >>> a, c, gamma = sp.symbols("a c gamma", positive=True)
    >>> dense = lambda features, affine: affine(*features, a, c)
    >>> found = layer_tangent(dense, lambda h: (sym.phi(h),), gamma)
    >>> found.weights, found.biases, found.growth.coeff(a)
    (a, c, <Derivative(phi(x), x)*Derivative(phi(y), y)>_([[K_xx, K_xy], [K_xy, K_yy]]))
    >>> layer_tangent(dense, lambda h: (sym.phi(h),), gamma, "standard")[:2]
    (N, 1)
    """
    parametrization = checked_parametrization(parametrization)
    weights: list[_Parameter] = []
    biases: list[_Parameter] = []

    def affine(x: Any, weight_variance: Any, bias_variance: Any) -> Any:
        own = [_parameter(weight_variance / sym.WIDTH, n, parametrization) for n in _COUNTS]
        weights.extend(parameter for parameter, _ in own)
        products = x * np.array([entry for _, entry in own], dtype=object)
        total = products.sum(axis=-1, keepdims=True)
        if bias_variance is None:
            return total
        offset, entry = _parameter(bias_variance, sp.S.One, parametrization)
        biases.append(offset)
        return total + entry

    split = [features(h) for h in _SIGNALS.flat]
    psi = tuple(np.array(values, dtype=object).reshape(2, 2) for values in zip(*split, strict=True))
    residuals = branch(psi, affine)
    signals = [skip * _SIGNALS[s, 0] + residuals[s, 0] for s in range(2)]

    def mean(expr: sp.Expr) -> sp.Expr:
        """The average over weights and signals."""
        for theta in (*weights, *biases):
            expr = sp.expand(expr)
            expr = expr.coeff(theta.symbol, 0) + theta.variance * expr.coeff(theta.symbol, 2)
        return _over_signals(sp.expand(expr))

    def direct(own: list[_Parameter]) -> sp.Expr:
        terms = [t.count * signals[0].diff(t.symbol) * signals[1].diff(t.symbol) for t in own]
        return sp.simplify(mean(sp.Add(*terms)))

    chain = [
        n * signals[0].diff(x) * signals[1].diff(y)
        for n, x, y in zip(_COUNTS, *_SIGNALS, strict=True)
    ]
    observable = sp.Add(*[f * g for f, g in zip(features(X), features(Y), strict=True)])
    factor = sp.simplify(direct(weights) / _over_signals(observable))
    return LayerTangent(factor, direct(biases), _collected(mean(sp.Add(*chain))))


def family_tangent(
    family: type[LayeredNetwork],
    parameters: Mapping[str, Any],
    parametrization: str = "ntk",
    readout: bool = False,
) -> LayerTangent:
    """The recursion of a layer of a family of networks, from its definition by explicit weights.

    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> symbols = sym.parameters(ResidualNetwork, "l")
    >>> family_tangent(ResidualNetwork, symbols)[:2]
    (\\rho_{l}**2*\\sigma_{w}**2, \\rho_{l}**2*\\sigma_{b}**2)
    >>> family_tangent(ResidualNetwork, symbols, "standard")[:2]
    (N*\\rho_{l}**2, \\rho_{l}**2)
    """

    def features(h: Any) -> tuple[Any, ...]:
        return family.features(sym.phi, h, parameters)

    if not readout:
        skip = family.layer(parameters).skip
        return layer_tangent(
            lambda psi, affine: family.branch(psi, affine, parameters),
            features,
            skip,
            parametrization,
        )
    weight, bias, _ = family.readout(parameters)
    return layer_tangent(sum_of_features(weight, bias), features, 0, parametrization)


def sum_of_features(weight: sp.Expr, bias: sp.Expr) -> Branch:
    """A layer with weights of one variance for every feature, and one bias."""

    def branch(psi: tuple[Any, ...], affine: Callable[..., Any]) -> Any:
        first, *others = psi
        return affine(first, weight, bias) + sum(affine(x, weight, None) for x in others)

    return branch


def readin_tangent(
    weight_variance: Any, bias_variance: Any, parametrization: str = "ntk"
) -> tuple[sp.Expr, sp.Expr]:
    """The factor of K^(0) − σ²_b,in in Θ^(0), from the weights of the read-in, and what biases add.

    >>> readin_tangent(*sp.symbols("v u", positive=True))
    (1, u)
    >>> readin_tangent(*sp.symbols("v u", positive=True), "standard")
    (d/v, 1)
    """
    inputs = sp.Symbol("d", positive=True)
    (theta, weight), (offset, bias) = (
        _parameter(variance, sp.S.One, parametrization)
        for variance in (weight_variance / inputs, bias_variance)
    )
    one = sp.diff(weight, theta.symbol) ** 2
    return sp.simplify(one * inputs / weight_variance), sp.diff(bias, offset.symbol) ** 2


def _parameter(variance: Any, count: sp.Expr, parametrization: str) -> tuple[_Parameter, sp.Expr]:
    """A weight or bias that is trained, and the entry of the network that it makes."""
    theta = sp.Dummy("theta", real=True)
    if parametrization == "standard":
        return _Parameter(theta, variance, count), theta
    return _Parameter(theta, sp.S.One, count), sp.sqrt(variance) * theta


def _over_signals(expr: sp.Expr) -> sp.Expr:
    """The average over the signals of two inputs, the same for every neuron."""
    K = [[K_XX, K_XY], [K_XY, K_YY]]
    names = {h: name for row, name in zip(_SIGNALS, (X, Y), strict=True) for h in row}

    def average(term: sp.Expr) -> sp.Expr:
        constant, integrand = term.as_independent(*names, X, Y, as_Add=False)
        return constant * GaussianAverage(integrand.xreplace(names), (X, Y), K)

    return sp.Add(*[average(term) for term in sp.Add.make_args(expr)])


def _collected(expr: sp.Expr) -> sp.Expr:
    """Terms with the same average together, their factors simplified."""
    averages = sorted(expr.atoms(GaussianAverage), key=sp.default_sort_key)
    remainder, terms = expr, []
    for node in averages:
        factor = expr.coeff(node)
        remainder -= sp.expand(factor * node)
        terms.append(sp.simplify(factor) * node)
    return sp.simplify(remainder) + sp.Add(*terms)
