"""Claims of PF on the diffusion limit: (3), (6) to (17), Assumption 3.2, Theorem 3.1, corollaries.

Drift and quadratic covariation are derived for two neurons and two inputs: arguments of φ are
linear in independent Gaussian variables, from the definition of the parameters, and their means and
covariances go into the expansion of φ. The printed side has the formulas of the paper.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.diffusions.diffusion_limit import small_increments as limit
from fieldtheory.diffusions.diffusion_limit.diffusion_conditions import diffusion_conditions
from fieldtheory.diffusions.diffusion_limit.small_increments import SLOPES, by_degree
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_solution import DiffusionSolution, solve_diffusion
from fieldtheory.literature.claim import claims_of, formula, interval
from fieldtheory.networks.activations import as_activation
from fieldtheory.theory import notation as sym

NEURONS = 2
FIRST, SECOND = SLOPES[:2]
_CORRECTED_DRIFT = "I_D makes a matrix of the drift; it is a vector of ones"
_ONE_NOISE = (
    "‖ψ(x)‖ dB with a vector B has the law of one input; several inputs share dB^W ψ(x^(i))"
)


def _matrix(name: str, size: int = NEURONS) -> sp.Matrix:
    return sp.Matrix(size, size, lambda k, l: sp.Symbol(f"{name}_{k + 1}{l + 1}", real=True))


# ψ(x) of two inputs, and means of the biases.
ONE, OTHER, _BIAS_MEANS, _NOISE_B = (
    sp.Matrix(sp.symbols(f"{name}_1:3", real=True)) for name in ("ψ^i", "ψ^j", "μ^b", "B^b")
)
_WEIGHT_MEANS, _ROWS, _COLUMNS, _BIASES, _NOISE_W = map(
    _matrix, ("μ^W", "σ^WO", "σ^WI", "σ^b", "B")
)
_ALL_WEIGHTS = _matrix("σ^W", NEURONS**2)
# dB^W and dB^b over √dt.
_NOISES = [*_NOISE_W, *_NOISE_B]


class Law(NamedTuple):
    """Weights and biases in the increments of Brownian motion, and their drift."""

    weights: sp.Matrix
    biases: sp.Matrix
    weight_drift: sp.Matrix
    bias_drift: sp.Matrix


def full() -> Law:
    """Assumption 3.1: (8), (9), with columns of a matrix one below the other."""
    weights = (_ALL_WEIGHTS * _NOISE_W.vec()).reshape(NEURONS, NEURONS).T
    return Law(weights, _BIASES * _NOISE_B, _WEIGHT_MEANS, _BIAS_MEANS)


def matrix_normal() -> Law:
    """Assumption 3.3."""
    return full()._replace(weights=_ROWS * _NOISE_W * _COLUMNS)


def independent() -> Law:
    """Assumption 3.4."""
    weights = sym.WEIGHT / sp.sqrt(NEURONS) * _NOISE_W
    return Law(weights, sym.BIAS * _NOISE_B, sp.zeros(NEURONS), sp.zeros(NEURONS, 1))


def noise(law: Law, features: sp.Matrix) -> sp.Matrix:
    """dW ψ(x) + db without drift."""
    return law.weights * features + law.biases


def covariance(one: sp.Matrix, other: sp.Matrix) -> sp.Matrix:
    """Of vectors that are linear in the Brownian increments, over dt."""
    return (one.jacobian(_NOISES) * other.jacobian(_NOISES).T).applyfunc(sp.expand)


def drift(law: Law, features: sp.Matrix = ONE) -> sp.Matrix:
    """The instantaneous mean of the layer, from the moments of φ(u)."""
    rate = limit.law_increments().mean[0]
    mean = law.weight_drift * features + law.bias_drift
    sums = noise(law, features)
    spread = covariance(sums, sums)
    values = [{limit.MU_O: mean[o], limit.V_OO: spread[o, o]} for o in range(NEURONS)]
    return sp.Matrix([sp.expand(rate.subs(value)) for value in values])


def covariation(law: Law, one: sp.Matrix = ONE, other: sp.Matrix = OTHER) -> sp.Matrix:
    """The instantaneous covariance of the layers of two inputs, from the moments of φ(u)."""
    rate = limit.law_increments().covariance[0]
    sums = covariance(noise(law, one), noise(law, other))
    return sums.applyfunc(lambda entry: sp.expand(rate.subs(limit.V_OP, entry)))


def _general_variance(one: sp.Matrix, other: sp.Matrix) -> sp.Matrix:
    """(ψᵀ ⊗ I) Σ^W (ψ' ⊗ I) + Σ^b."""
    left, right = (sp.kronecker_product(psi.T, sp.eye(NEURONS)) for psi in (one, other))
    return left * _ALL_WEIGHTS * _ALL_WEIGHTS.T * right.T + _BIASES * _BIASES.T


def _normal_variance(one: sp.Matrix, other: sp.Matrix) -> sp.Matrix:
    """Σ^b + Σ^WO ψᵀ Σ^WI ψ'."""
    inner = (one.T * _COLUMNS.T * _COLUMNS * other)[0]
    return _BIASES * _BIASES.T + _ROWS * _ROWS.T * inner


def _second(one: sp.Matrix, other: sp.Matrix) -> sp.Expr:
    """σ_b² + σ_w² ⟨ψ, ψ'⟩/D."""
    return sym.BIAS**2 + sym.WEIGHT**2 / NEURONS * one.dot(other)


def _printed_drift(variance: sp.Matrix) -> sp.Matrix:
    """φ'(0) (μ^b + μ^W ψ) + (1/2) φ''(0) diag(V)."""
    means = _BIAS_MEANS + _WEIGHT_MEANS * ONE
    diagonal = sp.Matrix(variance.diagonal()).reshape(NEURONS, 1)
    return (FIRST * means + SECOND / 2 * diagonal).applyfunc(sp.expand)


def _printed_covariation(variance: sp.Matrix) -> sp.Matrix:
    return (FIRST**2 * variance).applyfunc(sp.expand)


def _shared_norms() -> sp.Matrix:
    """d[x^(i), x^(j)] of (17) with one vector of noise for both, ‖ψ(x^(i))‖ and ‖ψ(x^(j))‖."""
    lengths = sp.sqrt(ONE.dot(ONE)) * sp.sqrt(OTHER.dot(OTHER))
    return FIRST**2 * (sym.BIAS**2 + sym.WEIGHT**2 / NEURONS * lengths) * sp.eye(NEURONS)


def _fourth_moment() -> sp.Expr:
    """lim E[φ(u)⁴]/Δt, the part of φ⁴ that is of second degree in u."""
    u = sp.Symbol("u")
    phi = sum(d * u**n / sp.factorial(n) for n, d in enumerate(SLOPES, 1))
    return by_degree(phi**4, (u,), (2,))[0]


@lru_cache
def _solved(activation: Any, input_activation: Any, depth: int | None) -> DiffusionSolution:
    phis = {"activation": activation, "input_activation": input_activation}
    return solve_diffusion(DiffusionNetwork(depth=depth, **phis), [0.0, 1.0])


def _error(phi: str, psi: str, depth: int) -> float:
    """The largest difference of mean and covariance at T = 1 from those of infinite depth."""
    deep, finite = (_solved(phi, psi, layers) for layers in (None, depth))
    mean, spread = deep.mean[-1] - finite.mean[-1], deep.covariance[-1] - finite.covariance[-1]
    return float(max(np.abs(mean).max(), np.abs(spread).max()))


def _decreases(*cases: tuple[str, str]) -> dict[str, float]:
    """The error of 256 layers over that of 16."""
    names = {pair: "φ = {}, ψ = {}".format(*pair) for pair in cases}
    return {names[pair]: _error(*pair, 256) / _error(*pair, 16) for pair in cases}


def irregularities(names: tuple[str, ...]) -> dict[str, float]:
    """Number of conditions of Assumption 3.2 that fail for φ; ψ(x) = x."""
    counts = {}
    for name in names:
        conditions = diffusion_conditions(as_activation(name), as_activation("linear"))
        counts[name] = float(sum(c.source == "PF Assumption 3.2" for c in conditions.failing))
    return counts


def _kept(places: tuple[float, ...]) -> np.ndarray:
    """|tanh(A x + a) − x| at some x, for A and a that keep the first two."""
    x = np.array(places)
    before = np.arctanh(x)
    A = (before[1] - before[0]) / (x[1] - x[0])
    return np.asarray(np.abs(np.tanh(A * (x - x[0]) + before[0]) - x))


_SMOOTH = ("tanh", "swish", "gelu", "erf", "sin")
_TWO = "D = 2, every φ, two inputs"
_ONE_INPUT = "D = 2, every φ, one input"

_STATEMENTS = {
    "(3): lim E[φ(u)⁴]/Δt for Δt → 0": formula(
        "δ = 2, every φ with φ(0) = 0",
        sp.S.Zero,
        _fourth_moment,
        "for other δ the modulus of Δx is meant",
    ),
    "(6): error of 256 steps of Euler over that of 16, below 1/8": interval(
        "D → ∞, φ(u) = u, whose network is the discretized diffusion",
        (0.0, 0.125),
        lambda: _decreases(("linear", "linear"), ("linear", "tanh")),
        "the error falls as 1/L",
    ),
    "section 3, text before 3.1: the larger |φ(A x + a) − x| of a scalar layer at two "
    "x, not zero for any A and a": interval(
        "φ = tanh, x = −0.5 and 0.8",
        lambda: (1e-6, np.inf),
        lambda: {"A (x − x') = φ⁻¹(x) − φ⁻¹(x')": float(_kept((-0.5, 0.8)).max())},
        "one x leaves a line of (A, a), a second one a point of it: two can be kept",
    ),
    "section 3, text before 3.1: |φ(A x + a) − x| of a scalar layer for A and a that "
    "keep two other x, not zero": interval(
        "φ = tanh, x = −0.5, 0.8 and 0.4",
        lambda: (1e-2, np.inf),
        lambda: {"x = 0.4": float(_kept((-0.5, 0.8, 0.4))[2])},
        "a third x cannot be kept unless φ⁻¹ is linear: increments do not vanish for all x",
    ),
    "(7), (8), (9), (10): covariance of ΔW ψ(x) + Δb over Δt, ΔW and Δb as in (8), (9)": formula(
        "D = 2, full covariance",
        lambda: _general_variance(ONE, OTHER).applyfunc(sp.expand),
        lambda: covariance(noise(full(), ONE), noise(full(), OTHER)),
    ),
    "Assumption 3.2: number of conditions on φ that fail": interval(
        f"φ = {', '.join(_SMOOTH)}", (-0.5, 0.5), lambda: irregularities(_SMOOTH)
    ),
    "(11), Theorem 3.1: drift of a neuron": formula(
        "every φ and Gaussian law",
        FIRST * limit.MU_O + SECOND * limit.V_OO / 2,
        lambda: limit.law_increments().mean[0],
    ),
    "(11), Theorem 3.1: instantaneous covariance of two neurons": formula(
        "every φ and Gaussian law, two inputs",
        FIRST**2 * limit.V_OP,
        lambda: limit.law_increments().covariance[0],
    ),
    "Theorem 2.1, Theorem 3.1: error of mean and covariance at L = 256 over that at L = "
    "16, below 1/8": interval(
        "D → ∞, T = 1, inputs 0 and 1",
        (0.0, 0.125),
        lambda: _decreases(("tanh", "linear"), ("swish", "linear"), ("swish", "tanh")),
        "the error falls as 1/L",
    ),
    "(12), Corollary 3.1: drift, with d[Wψ(x)] + d[b] for diag(V)": formula(
        "D = 2, every φ, full covariance",
        lambda: _printed_drift(_general_variance(ONE, ONE)),
        lambda: drift(full()),
    ),
    "(13), Corollary 3.1: quadratic covariation of two inputs": formula(
        "D = 2, every φ, full covariance",
        lambda: _printed_covariation(_general_variance(ONE, OTHER)),
        lambda: covariation(full()),
    ),
    "text after Assumption 3.3: covariance of the entries of A ζ B": formula(
        "D = 2",
        # (A Aᵀ)_op (Bᵀ B)_ij, columns one below the other.
        lambda: sp.kronecker_product(_COLUMNS.T * _COLUMNS, _ROWS * _ROWS.T).applyfunc(sp.expand),
        lambda: covariance(*(2 * [(_ROWS * _NOISE_W * _COLUMNS).vec()])),
    ),
    "(14), Corollary 3.2: drift": formula(
        "D = 2, every φ, matrix normal weights",
        lambda: _printed_drift(_normal_variance(ONE, ONE)),
        lambda: drift(matrix_normal()),
    ),
    "(14), Corollary 3.2: quadratic covariation of two inputs": formula(
        "D = 2, every φ, matrix normal weights, two inputs",
        lambda: _printed_covariation(_normal_variance(ONE, OTHER)),
        lambda: covariation(matrix_normal()),
    ),
    "(15), (16): covariance of ΔW ψ(x) + Δb over Δt": formula(
        "D = 2",
        lambda: (_second(ONE, OTHER) * sp.eye(NEURONS)).applyfunc(sp.expand),
        lambda: covariance(noise(independent(), ONE), noise(independent(), OTHER)),
    ),
    "(17), Corollary 3.3: columns of the drift": formula(
        "D = 2, I_D as printed",
        sp.Integer((_second(ONE, ONE) * sp.eye(NEURONS)).cols),
        lambda: sp.Integer(drift(independent()).cols),
        _CORRECTED_DRIFT,
        points=({},),
        meant=("a vector of ones for I_D", sp.S.One),
    ),
    "(17), Corollary 3.3: drift": formula(
        "D = 2, every φ, a vector of ones for I_D",
        lambda: (SECOND / 2 * _second(ONE, ONE) * sp.ones(NEURONS, 1)).applyfunc(sp.expand),
        lambda: drift(independent()),
    ),
    "(17), Corollary 3.3: columns of the noise of the weights": formula(
        "D = 2, dB^W a D × D matrix as in Assumption 3.4",
        sp.Integer((sp.sqrt(ONE.dot(ONE)) * _NOISE_W).cols),
        lambda: sp.Integer(noise(independent(), ONE).cols),
        _ONE_NOISE,
    ),
    "(17), Corollary 3.3: quadratic variation, with a vector B of independent Brownian "
    "motions": formula(
        _ONE_INPUT,
        lambda: _printed_covariation(_second(ONE, ONE) * sp.eye(NEURONS)),
        lambda: covariation(independent(), ONE, ONE),
    ),
    "(17), Corollary 3.3: quadratic covariation, from ‖ψ(x^(i))‖ dB and ‖ψ(x^(j))‖ dB of "
    "the first line": formula(_TWO, _shared_norms, lambda: covariation(independent()), _ONE_NOISE),
    "(17), last line, Corollary 3.3: quadratic covariation of two inputs": formula(
        _TWO,
        lambda: _printed_covariation(_second(ONE, OTHER) * sp.eye(NEURONS)),
        lambda: covariation(independent()),
    ),
}

CLAIMS = claims_of("PF", _STATEMENTS)
