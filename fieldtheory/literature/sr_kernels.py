"""Claims of SR on kernels: equations (2)–(5), (7), (8), Definition 1, Lemmas 1 and 4.

SR writes Q_l for K^(l), f for what ReLU adds to the correlation, and λ_l for ρ_l, with γ = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.literature import pdlt_kernels
from fieldtheory.literature.claim import Case, bound, claims_of, double, formula, interval, number
from fieldtheory.literature.evidence import at
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork, input_kernel
from fieldtheory.numerics.solution import solve
from fieldtheory.theory import notation as sym
from fieldtheory.theory.evaluation import with_activation

SCALE = sp.Symbol("λ_l", positive=True)
INPUT = sp.Symbol("s_0", nonnegative=True)
RELU = as_activation("relu")
LAYERS = sp.Symbol("L", integer=True, nonnegative=True)
# Q_{l−1} of two inputs x and x': of x, of both, and of x'.
OWN, PAIR, OTHER = (sym.kernel(0, pair, 2) for pair in sym.pairs(2))
# A quarter of the variance of a layer is that of its bias.
BIASED = {"weight_variance": 2.0, "bias_variance": 0.5}
UNBIASED = {"weight_variance": 2.0, "bias_variance": 0.0}
_LAYER, _DEPTH = sp.symbols("l L", integer=True, positive=True)
ANGLE = sp.Symbol("u", positive=True)
# Inputs at different angles, and of different lengths.
_TWO = np.array([[1.0, 0.0], [0.6, 0.8]])
_POINTS = tuple(
    {
        OWN: sp.Rational(3, 2),
        PAIR: covariance,
        OTHER: sp.Rational(2, 3),
        SCALE: sp.Rational(1, 2),
        sym.WEIGHT: sp.sqrt(2),
        sym.BIAS: sp.Rational(1, 3),
    }
    for covariance in (sp.Rational(1, 3), sp.Rational(-3, 5), sp.Rational(99, 100))
)
_UNCORRELATED = ({**_POINTS[0], PAIR: sp.S.Zero},)
# The depth from which on the limit of L² (1 − C_L) is extrapolated, over four times as much.
_STEP = 250
_DEFINED = "f(C) √(Q(x,x) Q(x',x')) for (f(C)/C) Q(x,x')"


def stable_network(schedule: Any, depth: int, **parameters: Any) -> ResidualNetwork:
    """A ReLU network of SR, as (2) has it, with σ_w² = 2 and no bias unless given.

    >>> stable_network("uniform", 4).branch_scales
    array([0.5, 0.5, 0.5, 0.5])
    """
    settings = UNBIASED | parameters
    return ResidualNetwork(depth=depth, activation=RELU, branch_scale=schedule, **settings)


def correlations(network: ResidualNetwork, X: np.ndarray) -> np.ndarray:
    """C_L of (3), shape (P, P)."""
    return correlated(solve(network, input_kernel(X, network)).kernels[network.depth])


def correlated(K: np.ndarray) -> np.ndarray:
    """A kernel over the root of the product of both variances."""
    deviations = np.sqrt(np.diagonal(K))
    return np.asarray(K / deviations / deviations[:, None])


def scaled(scale: sp.Expr) -> dict[str, sp.Expr]:
    """Parameters of a layer with γ = 1 and a scale."""
    return sym.parameters(ResidualNetwork, "l") | {"branch_scale": scale, "skip_scale": sp.S.One}


@lru_cache
def next_kernel(inputs: int = 2, scale: sp.Expr = SCALE) -> sp.Expr:
    """Q_l of the first and the last input from Q_{l−1}, as the action has it, for every φ."""
    return pdlt_kernels.next_kernel(inputs, ResidualNetwork.layer(scaled(scale)))


@lru_cache
def relu_step(inputs: int = 2, scale: sp.Expr = SCALE) -> sp.Expr:
    """The same for ReLU, in closed form."""
    return with_activation(next_kernel(inputs, scale), RELU).doit()


@lru_cache
def variance(unbiased: bool = False) -> sp.Expr:
    """Q_L(x, x) of a standard ResNet from the recursion, with s_0 = σ_w² |x|²/d.

    Examples
    --------
    >>> sp.simplify(variance(unbiased=True) / INPUT)
    (\\sigma_{w}**2/2 + 1)**L
    """
    before = sym.kernel(0)
    step = sp.expand(relu_step(1, sp.S.One))
    growth, bias = step.coeff(before, 1), step.coeff(before, 0)
    Q, l = sp.Function("Q"), sp.Symbol("l", integer=True)
    rate = sp.Dummy("s", positive=True)
    solution = sp.rsolve(Q(l + 1) - (1 + rate) * Q(l) - bias, Q(l), {Q(0): INPUT + bias})
    solution = solution.subs(l, LAYERS).subs(rate, growth - 1)
    return sp.simplify(solution.subs(sym.BIAS, 0) if unbiased else solution)


@lru_cache
def distance_step() -> sp.Expr:
    """1 − C_l of a standard ResNet without bias for 1 − C_{l−1} = u², up to the order u³.

    >>> distance_step().coeff(ANGLE, 2)
    1
    """
    one = relu_step(1, sp.S.One).subs({sym.BIAS: 0, sym.kernel(0): 1})
    correlation = 1 - ANGLE**2
    step = relu_step(2, sp.S.One).subs({sym.BIAS: 0, OWN: 1, OTHER: 1, PAIR: correlation})
    # The angle of a small y > 0 over x is better kept as that of x over y.
    step = step.replace(sp.atan2, lambda y, x: sp.pi / 2 - sp.atan(x / y))
    series = sp.series(sp.simplify(step), ANGLE, 0, 4).removeO()
    return sp.collect(sp.expand(1 - series / one), ANGLE, sp.factor)


@lru_cache
def collapse() -> tuple[sp.Expr, sp.Expr]:
    """The power p and the limit of L^−p (1 − C_L) for L → ∞, from d(1 − C)/dL = −κ (1 − C)^q.

    Examples
    --------
    >>> collapse()[0], sp.simplify(collapse()[1].subs(sym.WEIGHT, sp.sqrt(2)) / sp.pi**2)
    (-2, 18)
    """
    change = sp.expand(ANGLE**2 - distance_step())
    half_power = sp.degree(change, ANGLE)
    kappa, q = change.coeff(ANGLE, half_power), sp.Rational(half_power, 2)
    power = 1 / (1 - q)
    return power, sp.factor(sp.simplify((kappa * (q - 1)) ** power))


def extra(C: sp.Expr) -> sp.Expr:
    """f of (4)."""
    return (sp.sqrt(1 - C**2) - C * sp.acos(C)) / sp.pi


def _rate(everywhere: bool = False) -> sp.Expr:
    """The bracket in (5), as printed or in a form that is defined at C = 0, too."""
    deviations = sp.sqrt(OWN * OTHER)
    C = PAIR / deviations
    of_pair = PAIR + extra(C) * deviations if everywhere else (1 + extra(C) / C) * PAIR
    return sym.BIAS**2 + sym.WEIGHT**2 / 2 * of_pair


def _any_activation() -> sp.Expr:
    """The line before (3), as the paper prints it."""
    signals = tuple(sym.signal(0, sample, 2) for sample in range(2))
    product = sym.phi(signals[0]) * sym.phi(signals[1])
    average = GaussianAverage(product, signals, [[OWN, PAIR], [PAIR, OTHER]])
    return PAIR + SCALE**2 * (sym.BIAS**2 + sym.WEIGHT**2 * average)


def _flow() -> sp.Expr:
    """The limit of L (Q_l − Q_{l−1}) for λ = 1/√L, L → ∞."""
    L = sp.Symbol("L", positive=True)
    change = sp.expand(L * (relu_step(2, 1 / sp.sqrt(L)) - PAIR))
    return sp.limit(change, L, sp.oo)


def _bound(bias: sp.Expr) -> sp.Expr:
    """Lemma 1."""
    return (1 + sym.WEIGHT**2 / 2) ** LAYERS * (bias**2 * (1 + 2 / sym.WEIGHT**2) + INPUT)


def _stays_bounded(scale: sp.Expr) -> sp.Expr:
    """1 if Σ_l λ_{l,L}² stays bounded as L → ∞, else 0, as SymPy finds it."""
    if not scale.has(_DEPTH):
        return sp.Integer(bool(sp.Sum(scale**2, (_LAYER, 1, sp.oo)).is_convergent()))
    total = sp.Sum(scale**2, (_LAYER, 1, _DEPTH)).doit()
    return sp.Integer(bool(sp.limit(total, _DEPTH, sp.oo).is_finite))


def _collapsed() -> dict[str, float]:
    """The limit of L² (1 − C_L) over that of `collapse`, for several σ_w²."""

    def ratio(weight: float) -> float:
        network = stable_network("none", 4 * _STEP, weight_variance=weight)
        angles = solve(network, input_kernel(_TWO, network)).decorrelation[:, 0, 1] ** -0.5
        near, far = (
            ((angles[4 * l] - 2 * angles[2 * l] + angles[l]) / l) ** -2 for l in (_STEP // 2, _STEP)
        )
        return (4 * far - near) / 3 / float(collapse()[1].subs(sym.WEIGHT, sp.sqrt(weight)))

    return at("σ_w²", (0.5, 1.0, 2.0), ratio)


def _ratios() -> dict[str, float]:
    """(1 − C_2L)/(1 − C_L) of inputs of different lengths."""
    X = _TWO * np.array([[1.0], [3.0]])

    def distance(depth: int) -> float:
        return float(1 - correlations(stable_network("none", depth, **BIASED), X)[0, 1])

    return at("L", (50, 100), lambda L: distance(2 * L) / distance(L))


def _at_all_correlations(
    region: str,
    printed: Callable[[bool], sp.Expr],
    derived: Callable[[], sp.Expr],
    size: str = "",
) -> list[Case]:
    """The cases C ≠ 0, and C = 0, where what is printed is 0/0."""
    sides = (lambda *_: printed(False)), lambda *_: derived()
    meant = _DEFINED, lambda *_: printed(True)
    return [
        number(f"{region}{size}, C ≠ 0", *sides, points=_POINTS),
        number(f"{region}, C = 0", *sides, "0/0", points=_UNCORRELATED, meant=meant),
    ]


_STATEMENTS = {
    "(2), text before (3): Q_l of two inputs from Q_{l−1}": formula(
        "every φ and λ_l", _any_activation, next_kernel
    ),
    "(3), (4), (5): Q_l of two inputs from Q_{l−1}": _at_all_correlations(
        "φ = relu", lambda everywhere: PAIR + SCALE**2 * _rate(everywhere), relu_step
    ),
    "(5): Q_0 of two inputs": double(
        "d = 2, σ_w² = 2, σ_b² = 1/2",
        lambda point: 0.5 + 2.0 * float(_TWO[0] @ _TWO[1]) / 2,
        lambda point: float(input_kernel(_TWO, stable_network("none", 1, **BIASED))[0, 1]),
    ),
    "Lemma 1: lower bound of Q_L(x, x) of a standard ResNet": [
        bound(
            "σ_b = 0, every L", _bound(sp.S.Zero), lambda: variance(unbiased=True), "with equality"
        ),
        bound(
            "σ_b > 0, every L",
            _bound(sym.BIAS),
            variance,
            "it lacks −2σ_b²/σ_w², with which it is Q_L(x, x) itself",
        ),
    ],
    "Definition 1: whether Σ_l λ_{l,L}² stays bounded, 1 or 0": [
        formula(f"λ_{{l,L}} = {text}", sp.Integer(bounded), partial(_stays_bounded, scale))
        for scale, text, bounded in (
            (1 / sp.sqrt(_DEPTH), "1/√L", 1),
            (1 / (sp.sqrt(_LAYER) * sp.log(_LAYER + 1)), "1/(√l ln(l+1))", 1),
            (sp.S.One, "1, standard ResNet", 0),
        )
    ],
    "Lemma 4: (1 − C_2L)/(1 − C_L) < 1/2, so that C_L → 1": interval(
        "standard ResNet, σ_b > 0, inputs of different lengths", (0.0, 0.5), _ratios
    ),
    "Lemma 4: the power of L in 1 − C_L": formula(
        "standard ResNet, σ_b = 0, L → ∞",
        sp.Integer(-2),
        lambda: collapse()[0],
        "L² (1 − C_L) → (9π²/2)(1 + 2/σ_w²)² for every pair of inputs at an angle",
    ),
    "Lemma 4: the limit of L² (1 − C_L) over (9π²/2)(1 + 2/σ_w²)², 1 to 1e-4": interval(
        "standard ResNet, σ_b = 0, σ_w² = 1/2, 1, 2",
        (1 - 1e-4, 1 + 1e-4),
        _collapsed,
        f"extrapolated from L = {_STEP // 2} to {4 * _STEP}, where it is 5 to 11 % below",
    ),
    "(7): Q_l of two inputs from Q_{l−1}": _at_all_correlations(
        "uniform scaling",
        lambda everywhere: PAIR + _rate(everywhere) / 7,
        lambda: relu_step(2, 1 / sp.sqrt(sp.Integer(7))),
        ", L = 7",
    ),
    "(8): dq_t/dt of two inputs": _at_all_correlations("uniform scaling", _rate, _flow),
}

CLAIMS = claims_of("SR", _STATEMENTS)
