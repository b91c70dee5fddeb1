"""Claims of PF on what diffusions are like: section 3.4 and the text on explosion in section 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.diffusions.diffusion_limit import small_increments as limit
from fieldtheory.diffusions.diffusion_limit.diffusion_derivation import derive_diffusion
from fieldtheory.diffusions.diffusion_limit.small_increments import S_II, SLOPES, STEP
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_solution import DiffusionSolution, solve_diffusion
from fieldtheory.diffusions.pf_claims.pf_limits import (
    NEURONS,
    ONE,
    OTHER,
    covariation,
    drift,
    independent,
)
from fieldtheory.literature.claim import claims_of, double, formula, interval
from fieldtheory.literature.evidence import at
from fieldtheory.literature.sr_kernels import correlated
from fieldtheory.networks.activations import as_activation, h

# x²/√(1 + x²) <= |x|.
_ROOT = as_activation(h / (1 + h**2) ** sp.Rational(1, 4))
_WIDTH = 3
_HORIZON = sp.Symbol("T", positive=True)
_POWER = sp.Symbol("γ", positive=True)
_RIGHT, _LEFT = sp.symbols("a_+ a_-", real=True)
_DEPTH = sp.Symbol("L", positive=True)
# ⟨φ(h)⟩ and ⟨φ(h)²⟩ of a φ with these slopes and h of variance S_ii.
_MEAN = (_RIGHT - _LEFT) * sp.sqrt(S_II / (2 * sp.pi))
_SQUARE = (_RIGHT**2 + _LEFT**2) * S_II / 2


@lru_cache
def deep(activation: Any, inputs: tuple[float, ...], **parameters: Any) -> DiffusionSolution:
    """Infinite depth, T = 1, ψ(x) = x and σ_w = σ_b = 1 unless given."""
    network = DiffusionNetwork(depth=None, activation=activation, **parameters)
    return solve_diffusion(network, inputs)


def correlations(solution: DiffusionSolution) -> np.ndarray:
    """Of x_T,1 for all pairs of inputs."""
    return correlated(solution.covariance[-1])


def of_pairs(inputs: tuple[float, ...], values: np.ndarray) -> dict[str, float]:
    """Entries of a matrix above its diagonal, by their inputs."""
    return {
        f"z = {inputs[i]:g}, {inputs[j]:g}": float(values[i, j])
        for i, j in zip(*np.triu_indices(len(inputs), 1), strict=True)
    }


def _correlated(bias: float) -> dict[str, float]:
    inputs = (-2.0, -1.0, 1.0, 2.0)
    return of_pairs(inputs, correlations(deep("tanh", inputs, bias_variance=bias)))


def at_end(values: Any) -> np.ndarray:
    """At T, of a result that not every network has."""
    return np.asarray(values[-1])


def _dependency() -> dict[str, float]:
    """Differences of mean and variance of x_T between z = 0 and z = 1, controlled by T."""
    differences = {}
    for horizon in (1.0, 4.0):
        limit_ = deep("tanh", (0.0, 1.0), horizon=horizon)
        deviation = float(np.sqrt(limit_.covariance[-1, 0, 0]))
        differences[f"mean, T = {horizon:g}"] = float(np.ptp(limit_.mean[-1])) / deviation
        variances = np.diagonal(limit_.covariance[-1])
        differences[f"ln of the variance, T = {horizon:g}"] = float(np.ptp(np.log(variances)))
    return differences


def _rates() -> sp.Matrix:
    """Drift and covariation."""
    moments = limit.law_increments()
    return sp.Matrix([moments.mean[0], moments.covariance[0]])


def _at_horizon(horizon: float, **variances: Any) -> Callable[[Mapping[Any, Any]], float]:
    """Covariance of x_T of two inputs in a swish network of the depth of a point."""

    def covariance(point: Mapping[Any, Any]) -> float:
        depth, phi = int(point[_DEPTH]), as_activation("swish")
        network = DiffusionNetwork(depth=depth, activation=phi, horizon=horizon, **variances)
        return float(solve_diffusion(network, [0.5, 1.0]).covariance[-1, 0, 1])

    return covariance


def _swapped() -> sp.Matrix:
    """Drift and covariation for the neurons the other way round."""
    exchange = dict(zip((*ONE, *OTHER), (*ONE[::-1], *OTHER[::-1]), strict=True))
    rates = drift(independent()).row_join(covariation(independent()))
    return rates.xreplace(exchange)


def _exchanged() -> sp.Matrix:
    order = sp.Matrix(NEURONS, NEURONS, lambda k, l: int(k + l == NEURONS - 1))
    rates = drift(independent())
    return (order * rates).row_join(order * covariation(independent()) * order)


def _of_norm(activation: str) -> sp.Expr:
    """Drift of a neuron at x = (3, 4) minus that at (5, 0), of the same norm."""
    psi, rate = as_activation(activation), drift(independent())[0]
    first, second = (
        rate.xreplace(dict(zip(ONE, map(psi, x), strict=True))) for x in ((3, 4), (5, 0))
    )
    return sp.expand(first - second)


def growth(activation: Any, input_activation: Any) -> dict[str, float]:
    """(|μ_x(x)| + |σ_x(x)|)/(1 + |x|) of D = 3 neurons along a direction, by |x|."""
    network = DiffusionNetwork(
        depth=None, width=_WIDTH, activation=activation, input_activation=input_activation
    )
    derivation = derive_diffusion(network)
    mean, spread = map(derivation.lambdify, ("instantaneous_mean", "quadratic_covariation"))
    direction = np.array([2.0, -1.0, 2.0]) / 3.0

    def at_length(length: float) -> float:
        x = length * direction
        size = np.linalg.norm(mean(x)) + np.sqrt(np.trace(spread(x, x)))
        return float(size / (1 + length))

    return at("|x|", (1.0, 1e3, 1e6), at_length)


def _bounded(*cases: tuple[str, Any]) -> dict[str, float]:
    return {
        f"{place}, φ = {phi}, ψ = {as_activation(psi).name}": value
        for phi, psi in cases
        for place, value in growth(phi, psi).items()
    }


def growth_bound(activation: Any) -> float:
    """C for σ_w = σ_b = 1 and ψ² <= 1 + |x|, or ψ² <= x² where φ''(0) = 0."""
    first, second = DiffusionNetwork(activation=activation).slopes[:2]
    return float(np.sqrt(_WIDTH) * (np.sqrt(2) * abs(first) + abs(second)))


@lru_cache
def time_to_infinity(activation: str) -> sp.Expr:
    """Feller's v(∞) of one neuron from x = 0, for ψ(x) = x and σ_w = σ_b = 1.

    >>> time_to_infinity("swish"), time_to_infinity("tanh")
    (2*pi, oo)
    """
    x, y = sp.symbols("x y", positive=True)
    variance = 1 + x**2
    phi = as_activation(activation).expression
    values = {limit.MU_O: 0, limit.V_OO: variance, limit.V_OP: variance}
    values |= {s: phi.diff(h, n).subs(h, 0) for n, s in enumerate(SLOPES, 1)}
    moments = limit.law_increments()
    mu, square = (sp.cancel(rate[0].subs(values)) for rate in (moments.mean, moments.covariance))
    scale = sp.exp(-sp.integrate(sp.cancel(2 * mu / square), (x, 0, x)))
    beyond = sp.integrate(scale, (x, y, sp.oo))
    if not beyond.is_finite:
        return sp.oo
    speed = (2 / (scale * square)).subs(x, y)
    return sp.integrate(sp.simplify(beyond * speed), (y, 0, sp.oo))


def _homogeneous() -> sp.Matrix:
    """E[φ(h Δt^γ)]/Δt and E[φ(h Δt^γ)²]/Δt, from the integrals over both sides."""
    v = sp.Symbol("v", positive=True)
    half = sp.exp(-(v**2) / (2 * S_II)) / sp.sqrt(2 * sp.pi * S_II)
    sides = (_RIGHT * v * STEP**_POWER, -_LEFT * v * STEP**_POWER)
    return sp.Matrix(
        [sp.integrate(sum(side**n for side in sides) * half, (v, 0, sp.oo)) / STEP for n in (1, 2)]
    )


def _mean_of_layer(point: Mapping[Any, Any]) -> float:
    """√Δt times the drift of the first ReLU layer, (x_1 − x_0)/Δt, for an input 0."""
    depth = int(point[_DEPTH])
    solution = solve_diffusion(
        DiffusionNetwork(depth=depth, activation=as_activation("relu")), [0.0]
    )
    return float(solution.mean[1, 0] * np.sqrt(depth))


_POSITIVE, _BELOW_ONE = (1e-3, np.inf), (-1.0, 1 - 1e-6)
_SCALE_FREE = "positively homogeneous φ, Gaussian h"

_STATEMENTS = {
    "text after Assumption 2.3: Feller's v(∞), finite where a diffusion that violates "
    "2.3 reaches infinity": interval(
        "D = 1, σ_w = σ_b = 1, x_0 = 0",
        (0.0, np.inf),
        lambda: {"φ = swish, ψ = x": float(time_to_infinity("swish"))},
        "at D = 1 it does so with probability 1, as −∞ cannot be reached",
    ),
    "section 3.4, input dependency: differences of mean (in deviations) and ln of the "
    "variance of x_T, z = 0 and 1, not zero": interval(
        "φ = tanh, ψ = x, L → ∞, T = 1 and 4",
        _POSITIVE,
        _dependency,
        "exact at every D; the mean is what fades as T grows",
    ),
    "section 3.4, flexible output distributions: output correlations, below 1": interval(
        "φ = tanh, ψ = x, σ_b = 1, copied inputs", _BELOW_ONE, lambda: _correlated(1.0)
    ),
    "section 3.4, flexible output distributions: output correlations, below 1 unless "
    "there are no weights": interval(
        "φ = tanh, ψ = x, σ_b = 0, copied inputs",
        _BELOW_ONE,
        lambda: _correlated(0.0),
        "without biases it takes ψ(x^(i)), ψ(x^(j)) that are not parallel; here x^(j) ∝ x^(i)",
    ),
    "section 3.4, flexible output distributions: excess kurtosis of x_T, not zero": interval(
        "φ = tanh, ψ = x, L → ∞, z = 0 and 1",
        _POSITIVE,
        lambda: at(
            "D",
            (1, 10, 500),
            lambda D: at_end(deep("tanh", (0.0, 1.0), width=D).kurtosis).min(),
        ),
        "it falls as 1/D: the joint law is Gaussian for D → ∞",
    ),
    "section 3.4, role of integration time: drift and covariation over T dt, from "
    "parameters that are scaled by T": formula(
        "every φ, ψ and Gaussian law",
        lambda: _HORIZON * _rates(),
        # With μ^b, μ^W, Σ^b, Σ^W times T.
        lambda: _rates().subs({s: _HORIZON * s for s in (limit.MU_O, limit.V_OO, limit.V_OP)}),
    ),
    "section 3.4, role of integration time: covariance of x_T for T = 1 and σ_w² = σ_b² = "
    "2, from T = 2 and σ_w² = σ_b² = 1": double(
        "φ = swish, D → ∞, L = 1, 10, 100",
        _at_horizon(1.0, weight_variance=2.0, bias_variance=2.0),
        _at_horizon(2.0),
        "it holds at every depth, not in the limit alone",
        points=tuple({_DEPTH: depth} for depth in (1, 10, 100)),
    ),
    "section 3.4, fully i.i.d. parameters: drift at x = (3, 4) minus that at (5, 0), zero if it "
    "depends on |x| alone": [
        formula("D = 2, ψ = x", sp.S.Zero, lambda: _of_norm("linear")),
        formula(
            "D = 2, ψ = tanh",
            sp.S.Zero,
            lambda: _of_norm("tanh"),
            "it depends on the norm of ψ(x), not of x",
        ),
    ],
    "section 3.4, fully i.i.d. parameters: drift and covariation for exchanged neurons": formula(
        "D = 2, every φ and ψ, two inputs",
        _exchanged,
        _swapped,
        "so that the law of the neurons is exchangeable if that of x_0 is",
    ),
    "section 3.4, explosive solutions, i): (|μ_x| + |σ_x|)/(1 + |x|), bounded": interval(
        "D = 3, ψ of at most square-root growth",
        lambda: (0.0, max(growth_bound(phi) for phi in ("tanh", "swish"))),
        lambda: _bounded(("swish", "tanh"), ("swish", _ROOT), ("tanh", _ROOT)),
        "the bound is √D (√2 |φ'(0)| + |φ''(0)|) for ψ² <= 1 + |x|",
    ),
    "section 3.4, explosive solutions, ii): (|μ_x| + |σ_x|)/(1 + |x|), bounded": interval(
        "D = 3, ψ of at most linear growth, φ''(0) = 0",
        lambda: (0.0, growth_bound("tanh")),
        lambda: _bounded(("tanh", "linear"), ("sin", "relu")),
    ),
    "section 3.4, non-smooth activations: E[φ(h Δt^γ)]/Δt and E[φ(h Δt^γ)²]/Δt": formula(
        _SCALE_FREE,
        sp.Matrix([_MEAN * STEP ** (_POWER - 1), _SQUARE * STEP ** (2 * _POWER - 1)]),
        _homogeneous,
    ),
    "section 3.4, non-smooth activations: √Δt times the drift of a layer, constant: the "
    "drift blows up": double(
        "φ = relu, γ = 1/2, z = 0, σ_b = 1, L = 4, 100, 1000",
        sp.sqrt(1 / (2 * sp.pi)),
        _mean_of_layer,
        "E[φ(h)] Δt^(−1/2)",
        points=tuple({_DEPTH: depth} for depth in (4, 100, 1000)),
    ),
    "section 3.4, non-smooth activations: drift, and E[φ²]/Δt for Δt → 0": formula(
        "positively homogeneous φ, Gaussian h, γ = 1",
        sp.Matrix([_MEAN, 0]),
        lambda: _homogeneous().subs(_POWER, 1).applyfunc(lambda m: sp.limit(m, STEP, 0)),
        "no noise: a differential equation with the drift E[φ(h)]",
    ),
}

CLAIMS = claims_of("PF", _STATEMENTS)
