"""Claims of SR on inference: (10), Theorem 2 and Proposition 10."""

from __future__ import annotations

from functools import partial
from math import comb

import numpy as np
import sympy as sp

from fieldtheory.inference.gaussian_process import condition
from fieldtheory.inference.kernel_function import kernel
from fieldtheory.literature.claim import bound, claims_of, formula, interval
from fieldtheory.literature.evidence import at
from fieldtheory.literature.sr_kernels import INPUT, LAYERS, stable_network, variance
from fieldtheory.literature.sr_limits import limit_of
from fieldtheory.theory import notation as sym

_NOISE = sp.Symbol("σ", positive=True)
_LABEL = sp.Symbol("y", real=True)
_LABELS = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
_ANGLES = np.arange(len(_LABELS))
_X = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
_NOISE_VARIANCE = 0.1


def _prior() -> tuple[sp.Symbol, sp.Matrix, sp.Matrix, sp.Matrix]:
    """Q(x, x), Q_N(x), Q_NN and y_N of N = 2 training inputs."""
    own = sp.Symbol("Q_0", positive=True)
    cross = sp.Matrix([sp.symbols("k_1 k_2", real=True)])
    a, b = sp.symbols("Q_11 Q_22", positive=True)
    c = sp.Symbol("Q_12", real=True)
    return own, cross, sp.Matrix([[a, c], [c, b]]), sp.Matrix(sp.symbols("y_1 y_2", real=True))


def _printed_posterior() -> sp.Matrix:
    """Mean and variance of (10) at one input."""
    own, cross, Q, y = _prior()
    inverse = (Q + _NOISE**2 * sp.eye(2)).inv()
    return sp.Matrix([cross * inverse * y, sp.Matrix([own]) - cross * inverse * cross.T])


def _posterior() -> sp.Matrix:
    """The same from the exponent of the joint density of f(x) and y, completed to a square."""
    own, cross, Q, y = _prior()
    corner = sp.Matrix([own])
    joint = sp.BlockMatrix([[corner, cross], [cross.T, Q + _NOISE**2 * sp.eye(2)]])
    precision = sp.Matrix(joint).inv()
    f = sp.Symbol("f", real=True)
    point = sp.Matrix([f, *y])
    exponent = sp.Poly((point.T * precision * point)[0] / 2, f)
    square, linear = exponent.coeff_monomial(f**2), exponent.coeff_monomial(f)
    return sp.Matrix([-linear / (2 * square), 1 / (2 * square)]).applyfunc(sp.factor)


def _room() -> sp.Matrix:
    """2√N − E exp(N kl(r_S ‖ r)) of N losses that are 0 or 1, at most; N = 1, 2, ...."""

    def moment(N: int) -> sp.Expr:
        terms = (comb(N, k) * k**k * (N - k) ** (N - k) for k in range(N + 1))
        return sp.Rational(sum(terms), N**N)

    return sp.Matrix([2 * sp.sqrt(N) - moment(N) for N in range(1, 41)])


def _divergence(schedule: str, depth: int, inputs: int) -> float:
    """KL(A_L ‖ P_L) with Q_L of σ_w² = 2, σ_b = 0 as prior."""
    prior = kernel(stable_network(schedule, depth), "kernel", depth)
    return condition(prior, _X[:inputs], _LABELS[:inputs], _NOISE_VARIANCE).divergence


def _over_depth(inputs: int) -> dict[str, float]:
    return at("L", (25, 100, 400), lambda L: _divergence("none", L, inputs) / L)


def _growth(inputs: int) -> float:
    """KL per layer between two depths over (N/2) ln(1 + σ_w²/2)."""
    first, last = 100, 400
    change = _divergence("none", last, inputs) - _divergence("none", first, inputs)
    return float(change / ((last - first) * inputs / 2 * np.log(2)))


def _bound(schedule: str) -> tuple[float, float]:
    """Bound of KL, as Q_L(x, x) <= Q_0 exp(σ_w²/2 Σ λ²) with Q_0 = 1."""
    largest = np.exp(limit_of(schedule).remaining[0]) / _NOISE_VARIANCE
    of_labels = (_LABELS**2).sum() / (4 * _NOISE_VARIANCE)
    return 0.0, float(0.5 * (len(_LABELS) * np.log1p(largest) + of_labels))


def _one_input() -> sp.Expr:
    """The limit of KL(A_L ‖ P_L)/L for N = 1, σ_b = 0 and σ_w² = 2."""
    Q = variance(unbiased=True).subs(sym.WEIGHT, sp.sqrt(2)).subs(INPUT, 1)
    total = Q + _NOISE**2
    divergence = (sp.log(total / _NOISE**2) - Q / total + _LABEL**2 * Q / total**2) / 2
    depth = sp.Symbol("L", positive=True)
    return sp.simplify(sp.limit((divergence / LAYERS).subs(LAYERS, depth), depth, sp.oo))


_STATEMENTS = {
    "(10): mean and variance of f(x) given y_N": formula("N = 2", _printed_posterior, _posterior),
    "Theorem 2: 2√N − E exp(N kl(r_S ‖ r)), not negative": bound(
        "N = 1 to 40, prior that does not depend on S",
        sp.zeros(40, 1),
        _room,
        "what is left of the proof holds for every N, loss and posterior",
    ),
    "Proposition 10: limit of KL(A_L ‖ P_L)/L, at least 1": bound(
        "standard ResNet, N = 1, σ_w² = 2, σ_b = 0",
        sp.S.One,
        _one_input,
        "it is (N/2) ln(1 + σ_w²/2): KL grows in proportion to L, below L for few inputs",
    ),
    "Proposition 10: KL(A_L ‖ P_L)/L, at least 1": [
        interval(
            "standard ResNet, N = 2, σ_w² = 2, σ² = 0.1",
            (1.0, np.inf),
            lambda: _over_depth(2),
            "it is (N/2) ln(1 + σ_w²/2) in deep networks: below 1 for N <= 2 and σ_w² = 2",
        ),
        interval(
            "standard ResNet, N = 5, σ_w² = 2, σ² = 0.1", (1.0, np.inf), lambda: _over_depth(5)
        ),
    ],
    "Proposition 10: dKL/dL over (N/2) ln(1 + σ_w²/2), one in deep networks": interval(
        "standard ResNet, L = 100 to 400: KL of the order L",
        (0.95, 1.05),
        lambda: at("N", (1, 2, 5), _growth),
    ),
    "Proposition 10: KL(A_L ‖ P_L), below a bound that does not depend on L": [
        interval(
            f"{schedule} scaling, N = 5, σ_w² = 2, σ² = 0.1",
            partial(_bound, schedule),
            partial(at, "L", (25, 100, 400), partial(_divergence, schedule, inputs=5)),
        )
        for schedule in ("uniform", "decreasing")
    ],
}

CLAIMS = claims_of("SR", _STATEMENTS)
