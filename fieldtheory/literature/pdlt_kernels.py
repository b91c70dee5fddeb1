"""Claims of PDLT-B on kernels, susceptibilities and criticality, sections B.1 and B.2.

Its σ is φ here. Where φ is left open, its averages are compared as integrands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage, precise
from fieldtheory.literature.claim import claims_of, formula, number
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.family import Coefficients
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import chain_action
from fieldtheory.theory.elementary_averages import K_XX, K_XY, K_YY, X, Y, layer_averages
from fieldtheory.theory.saddle_point import saddle_point

WEIGHT, BIAS = sp.symbols("C_W C_b", positive=True)
SKIP = sp.Symbol("γ", real=True)
SLOPE, SECOND, THIRD = sp.symbols("σ_1 σ_2 σ_3", real=True, nonzero=True)
# a_1 of (B.30), of a smooth φ with φ(0) = 0.
BEND = THIRD / SLOPE + sp.Rational(3, 4) * (SECOND / SLOPE) ** 2
# Of a scale-invariant φ; generic ones.
UP, DOWN = sp.Integer(1), sp.Rational(1, 5)
A2, A4 = ((UP**n + DOWN**n) / 2 for n in (2, 4))
KERNEL = K_XX
LINEAR = UP * sp.Max(0, X) + DOWN * sp.Min(0, X)

_VARIANCE = sp.Rational(7, 10)


def expansion(order: int) -> sp.Expr:
    """φ(x) of a smooth activation with φ(0) = 0 up to an order in x.

    Examples
    --------
    >>> expansion(2)
    x**2*σ_2/2 + x*σ_1
    """
    derivatives = (SLOPE, SECOND, THIRD)[:order]
    return sp.Add(*[d * X**n / sp.factorial(n) for n, d in enumerate(derivatives, 1)])


def leading(expression: sp.Expr, order: int) -> sp.Expr:
    """A polynomial in K up to an order.

    Examples
    --------
    >>> leading(1 + KERNEL + KERNEL**2, 1)
    K_xx + 1
    """
    terms = sp.Poly(sp.expand(expression), KERNEL).all_coeffs()[::-1]
    return sp.Add(*[c * KERNEL**n for n, c in enumerate(terms[: order + 1])])


def one_average(expression: sp.Expr) -> sp.Expr:
    """A sum of averages over one variable X as the average of one integrand, plus the rest."""
    nodes = sorted(expression.atoms(GaussianAverage), key=sp.default_sort_key)
    expanded = sp.expand(expression)
    integrand = sp.Add(*[expanded.coeff(node) * node.integrand for node in nodes])
    remainder = expanded.subs(dict.fromkeys(nodes, 0))
    return remainder + GaussianAverage(sp.expand(integrand.doit()), X, KERNEL)


_LAYER = Coefficients(WEIGHT, BIAS, SKIP)


def next_kernel(inputs: int, coefficients: Coefficients = _LAYER) -> sp.Expr:
    """K^(1) of the first and the last input from K^(0), as the action has it, for every φ."""
    action = chain_action(1, inputs, lambda h: (sym.phi(h),), lambda layer: coefficients)
    residual = saddle_point(action).kernels
    count = len(sym.pairs(inputs))
    # Signals of layer 0, then of layer 1.
    covariance = action.covariance[inputs, 2 * inputs - 1]
    return covariance.xreplace({C: residual[C] for C in action.kernels[count:]})


def _printed_kernel(inputs: int) -> sp.Expr:
    """(B.11) and (B.12)."""
    signals = tuple(sym.signal(0, sample, inputs) for sample in range(inputs))
    pairs = {pair: sym.kernel(0, pair, inputs) for pair in sym.pairs(inputs)}
    K = [[pairs[min(a, b), max(a, b)] for b in range(inputs)] for a in range(inputs)]
    product = sym.phi(signals[0]) * sym.phi(signals[-1])
    return BIAS + WEIGHT * GaussianAverage(product, signals, K) + SKIP**2 * K[0][-1]


@lru_cache
def _second_order() -> tuple[sp.Expr, sp.Expr]:
    """The factors of K_[2] and K_[1]² in the next (C_++ + C_−− − 2C_+−)/4, for C_W = 1."""
    own, pair = layer_averages().moment, layer_averages().covariance

    def equal(expression: sp.Expr) -> sp.Expr:
        nodes = expression.atoms(GaussianAverage)
        both = {node: GaussianAverage(node.integrand.subs(Y, X), X, KERNEL) for node in nodes}
        return expression.xreplace(both)

    of_x, of_y, of_both = (equal(pair.diff(entry)) for entry in (K_XX, K_YY, K_XY))
    distance = (own.diff(KERNEL) - of_x - of_y + of_both) / 2
    curvature = pair.diff(K_XX, 2) + pair.diff(K_YY, 2) - 2 * pair.diff(K_XX, K_YY)
    return distance, (own.diff(KERNEL, 2) - equal(curvature)) / 4


def _slope_squared() -> sp.Expr:
    return GaussianAverage(sym.phi(X).diff(X) ** 2, X, KERNEL)


def _susceptibility(F: sp.Expr, factor: sp.Expr) -> Callable[..., Any]:
    """γ² + factor · ⟨F⟩ at K = 7/10, for γ = 1/2."""

    def susceptibility(point: Mapping[Any, Any], digits: int) -> Any:
        average = precise.average(sp.expand(F), (X,), [[_VARIANCE]], digits)
        return sp.Rational(1, 4) + factor * average

    return susceptibility


def susceptibilities_of(phi: sp.Expr, weight: sp.Expr) -> sp.Matrix:
    """χ_∥ and χ_⊥ as functions of K, for a φ(x) whose averages have closed forms.

    >>> susceptibilities_of(X, 1 - SKIP**2).T
    Matrix([[1, 1]])
    """
    own = GaussianAverage(phi**2, X, KERNEL).doit().diff(KERNEL)
    slope = GaussianAverage(sp.expand(phi.diff(X) ** 2), X, KERNEL).doit()
    return (weight * sp.Matrix([own, slope])).applyfunc(lambda e: sp.simplify(SKIP**2 + e))


def _decay() -> sp.Expr:
    """κ of K^(l) = κ/l, from −κ/l² = a_1 (1 − γ²) (κ/l)², with a_1 of (B.30) from the average."""
    moment = GaussianAverage(expansion(3) ** 2, X, KERNEL).doit()
    bend = sp.expand(sp.expand(moment).coeff(KERNEL, 2) / SLOPE**2)
    decay = sp.Symbol("kappa", positive=True)
    (solution,) = sp.solve(-1 - bend * (1 - SKIP**2) * decay, decay)
    return solution


_Z = sp.symbols("z_1:3", real=True)
_FIRST, _SECOND = sp.symbols("s_11 s_21", real=True), sp.symbols("s_12 s_22", real=True)


def _printed_two_point(gamma: sp.Expr) -> sp.Expr:
    """(B.8), (B.10)."""
    products = _FIRST[0] * _SECOND[0] + _FIRST[1] * _SECOND[1]
    return sp.expand(BIAS + WEIGHT / 2 * products + gamma**2 * _Z[0] * _Z[1])


def _two_point(gamma: sp.Expr) -> sp.Expr:
    """E[z' z'] of one neuron and two inputs over the weights of a layer of two neurons."""
    one, other, bias = weights = sp.symbols("W_1 W_2 b")
    first, second = (
        bias + one * s[0] + other * s[1] + gamma * z
        for s, z in zip((_FIRST, _SECOND), _Z, strict=True)
    )
    product = sp.expand(first * second)
    squares = [product.coeff(w, 2) for w in weights]
    means = product.subs(dict.fromkeys(weights, 0))
    return sp.expand(means + WEIGHT / 2 * (squares[0] + squares[1]) + BIAS * squares[2])


_XI, _SCALE = sp.Symbol("ξ", real=True), sp.Symbol("ξ", positive=True)
_RATES = sp.symbols("λ_W λ_b", positive=True)
_BLOCKS, _MIXED, _BEFORE = sp.symbols("G_RR G_Rz G_zz", real=True)


def _correlator() -> sp.Expr:
    """The average of (ξR + γz)²."""
    R, z = sp.symbols("R z", real=True)
    averages = {R**2: _BLOCKS, z**2: _BEFORE, R * z: _MIXED}
    return sp.expand((_XI * R + SKIP * z) ** 2).subs(averages)


def _scaled() -> sp.Matrix:
    """Coefficients of a layer with ξ itself."""
    parameters = {"skip_scale": SKIP, "weight_variance": WEIGHT, "bias_variance": BIAS}
    return sp.Matrix(list(ResidualNetwork.layer(parameters | {"branch_scale": _SCALE})))


def _after_a_step(scale: sp.Expr, square: sp.Expr) -> sp.Matrix:
    """z' of two neurons after gradient descent by a step with the rates square · λ."""
    W = sp.Matrix(2, 2, sp.symbols("W_1:3_1:3", real=True))
    b, z, s, g = (sp.Matrix(sp.symbols(f"{name}_1:3", real=True)) for name in "bzsg")
    output = scale * (b + W * s) + SKIP * z
    rates = dict.fromkeys(W, square * _RATES[0] / 2) | dict.fromkeys(b, square * _RATES[1])
    steps = {p: p - rate * (g.T * output)[0].diff(p) for p, rate in rates.items()}
    # Of parameters ξ W and ξ b where ξ is not a factor itself.
    start = {p: p if scale == _SCALE else _SCALE * p for p in rates}
    return output.xreplace(steps).xreplace(start).expand()


_ONES = sp.ones(2, 1)
_CRITICAL = (1 - SKIP**2) / SLOPE**2

_STATEMENTS = {
    "(B.6): a_l, c_l and γ_l, with ξ in the variances": formula(
        "every ξ and γ",
        sp.Matrix([_SCALE**2 * WEIGHT, _SCALE**2 * BIAS, SKIP]),
        _scaled,
    ),
    "text before (B.6): z' after a step of gradient descent, with ξ in λ_W and λ_b": formula(
        "n = 2, every ξ, γ, φ and loss",
        lambda: _after_a_step(sp.S.One, _SCALE**2),
        lambda: _after_a_step(_SCALE, sp.S.One),
        "of W ↦ ξW and b ↦ ξb, λ ↦ ξ²λ at any n: z' of a layer is the same function of z",
        instances=1,
    ),
    "(B.8): E[z' z'] of two inputs over the weights of a layer": formula(
        "n = 2, every φ and γ",
        lambda: _printed_two_point(SKIP),
        lambda: _two_point(SKIP),
        instances=1,
    ),
    "(B.10): E[z' z'] of two inputs over the weights of a layer, γ = 0": formula(
        "n = 2, every φ",
        lambda: _printed_two_point(sp.S.Zero),
        lambda: _two_point(sp.S.Zero),
        instances=1,
    ),
    "(B.44): G_zz^(l+1) of any block": formula(
        "every ξ and γ",
        SKIP**2 * _BEFORE + 2 * SKIP * _XI * _MIXED + _XI**2 * _BLOCKS,
        _correlator,
    ),
    "(B.45): G_zz^(l) − G_zz^(l+1), zero at criticality": formula(
        "every ξ and γ",
        (1 - SKIP**2) * _BEFORE - (_XI**2 * _BLOCKS + 2 * SKIP * _XI * _MIXED),
        lambda: _BEFORE - _correlator(),
    ),
    "(B.11): K^(l+1) of two inputs": formula(
        "every φ and γ", lambda: _printed_kernel(2), lambda: next_kernel(2)
    ),
    "(B.12), (B.17): K^(l+1) of one input": formula(
        "every φ and γ", lambda: _printed_kernel(1), lambda: next_kernel(1)
    ),
    "(B.14), (B.16): δδK_[2]^(l+1), the factor χ_⊥ of δδK_[2]": formula(
        "every φ and γ, second order in δ, without γ² and C_W",
        lambda: one_average(_slope_squared()),
        lambda: one_average(_second_order()[0]),
    ),
    "(B.14), (B.18): δδK_[2]^(l+1), the factor h = χ_⊥'/2 of (δK_[1])²": formula(
        "every φ and γ, second order in δ, without C_W",
        lambda: one_average(_slope_squared().diff(KERNEL) / 2),
        lambda: one_average(_second_order()[1]),
    ),
    "(B.13), (B.15): χ_∥, the derivative of (B.12)": [
        number(
            f"φ = {name}, K = 7/10",
            _susceptibility(phi**2 * (X**2 - _VARIANCE), 1 / (2 * _VARIANCE) ** 2),
            _susceptibility(phi.diff(X) ** 2 + phi * phi.diff(X, 2), sp.Rational(1, 2)),
        )
        for name, phi in (("tanh", sp.tanh(X)), ("gelu", as_activation("gelu")(X)))
    ],
    "(B.19), (B.20): χ_∥ and χ_⊥ for C_W = (1 − γ²)/A_2": formula(
        "φ = x above and x/5 below zero, every K and γ",
        _ONES,
        lambda: susceptibilities_of(LINEAR, (1 - SKIP**2) / A2),
        instances=1,
    ),
    "(B.19), (B.21): χ_∥ and χ_⊥ for C_W = (1 − γ²)/σ_1²": formula(
        "smooth φ with φ(0) = 0, K* = 0, every γ",
        _ONES,
        lambda: susceptibilities_of(expansion(3), _CRITICAL).applyfunc(
            lambda e: sp.limit(e, KERNEL, 0)
        ),
    ),
    "(B.27): ⟨φ⁴⟩ − ⟨φ²⟩²": formula(
        "φ = x above and x/5 below zero",
        (3 * A4 - A2**2) * KERNEL**2,
        lambda: ConnectedCorrelator(LINEAR**2, LINEAR**2, X, KERNEL).doit(),
        instances=1,
    ),
    "(B.30), (B.31): K^(l+1) to second order in K": formula(
        "smooth φ with φ(0) = 0, a_1 = σ_3/σ_1 + (3/4)(σ_2/σ_1)²",
        lambda: KERNEL + BEND * (1 - SKIP**2) * KERNEL**2,
        lambda: leading(
            SKIP**2 * KERNEL + _CRITICAL * GaussianAverage(expansion(3) ** 2, X, KERNEL).doit(),
            2,
        ),
    ),
    "(B.32): l K^(l) in deep layers": formula(
        "smooth φ with φ(0) = 0, a_1 < 0",
        lambda: 1 / (-BEND * (1 - SKIP**2)),
        _decay,
        points=({SLOPE: sp.Integer(1), SECOND: sp.Rational(1, 3), THIRD: sp.Integer(-2)},),
    ),
    "(B.33): χ_∥ to first order in K": formula(
        "smooth φ with φ(0) = 0",
        lambda: 1 + 2 * (1 - SKIP**2) * BEND * KERNEL,
        lambda: leading(susceptibilities_of(expansion(3), _CRITICAL)[0], 1),
    ),
    "(B.34): ⟨φ⁴⟩ − ⟨φ²⟩² to second order in K": formula(
        "smooth φ with φ(0) = 0",
        2 * SLOPE**4 * KERNEL**2,
        lambda: leading(
            ConnectedCorrelator(expansion(3) ** 2, expansion(3) ** 2, X, KERNEL).doit(), 2
        ),
    ),
}

CLAIMS = claims_of("PDLT-B", _STATEMENTS)
