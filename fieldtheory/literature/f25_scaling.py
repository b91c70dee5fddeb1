"""Claims of F25 on the linearised network and the optimal scaling, section III."""

from __future__ import annotations

import numpy as np
import sympy as sp

from fieldtheory.inference import posterior
from fieldtheory.literature.claim import bound, claims_of, formula, interval
from fieldtheory.literature.evidence import at
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import FeedForwardNetwork, ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.scaling import mean_scaling, optimal_scaling
from fieldtheory.theory import linearised
from fieldtheory.theory import notation as sym
from fieldtheory.theory.linearised import INPUT, LAYER, RANGE, SCALE, SLOPE
from fieldtheory.theory.notation import DEPTH

_samples, _width = sp.symbols("P N", integer=True, positive=True)


def _linearised(layer: int) -> sp.Expr:
    """C^(layer) of the linearised network, written in its input alone."""
    rows: list[sp.Expr] = []
    for row in linearised.linearised_rows(3):
        rows.append(sp.expand(row.subs({sym.kernel(k): C for k, C in enumerate(rows)})))
    return rows[layer]


_GAIN = (SCALE * sym.WEIGHT * SLOPE) ** 2
_GROWTH = (1 + _GAIN) ** DEPTH
_SLOPES = (sym.WEIGHT * SLOPE) ** 2
_RATIO = (_SLOPES * (RANGE / 2) ** 2 + sym.BIAS**2) / (_SLOPES * INPUT + sym.BIAS**2)
# (66), (67) and (68).
KERNEL = _GROWTH * INPUT + sym.BIAS**2 / _SLOPES * (_GROWTH - 1)
SCALING = sp.sqrt(_RATIO ** (1 / DEPTH) - 1) / (sym.WEIGHT * SLOPE)
DEEP_SCALING = sp.sqrt(1 / DEPTH) * sp.sqrt(sp.log(_RATIO) / _SLOPES)


def neglected_power() -> sp.Expr:
    """The power of L in what the saturation formula adds to its large-depth form.

    >>> neglected_power()
    -3/2
    """
    return sp.simplify(DEPTH * sp.diff(sp.log(linearised.neglected_term()), DEPTH))


def _optima(entry: tuple[int, int]) -> dict[str, float]:
    """ρ* of an entry of the kernel by depth, in the network of Fig. 4."""
    K0 = np.array([[0.05, 0.03], [0.03, 0.05]])

    def optimum(depth: int) -> float:
        return np.asarray(optimal_scaling(ResidualNetwork(depth=depth), K0))[entry]

    return at("L", (10, 50, 100, 200), optimum)


_FFNET = FeedForwardNetwork(
    depth=1, activation=as_activation("erf"), weight_variance=1.2, bias_variance=0.2
)
# The input fills less than the dynamic range.
SMALL_INPUT = ({RANGE: 1, INPUT: sp.Rational(1, 20)},)


def _response_after_labels(depth: int) -> float:
    """χ_Y^out/χ^out of two inputs without labels, at ρ√L = 1."""
    K0 = 0.05 * np.cos(np.subtract.outer(*[(0.0, 1.3, 0.6, 0.9, 2.0)] * 2))
    net = ResidualNetwork(depth=depth, branch_scale=depth**-0.5, width=500)
    found = posterior(net, K0, [2.0, -2.0, 2.0], 0.2, samples=640)
    before = solve(net, K0).output_response[3, 4]
    return float(1 + found.output_response_shift[3, 4] / before)


_STATEMENTS = {
    "(63): C^(l) of the linearised network from C^(l-1)": [
        formula(
            "l = 1",
            _linearised(0) + _GAIN * _linearised(0),
            lambda: _linearised(1),
            "the input C^(0) lacks the bias of the other layers",
        ),
        formula(
            "l = 2, 3",
            lambda: sp.Matrix([_linearised(l) + _GAIN * _linearised(l) for l in (1, 2)]),
            lambda: sp.Matrix([_linearised(2), _linearised(3)]),
        ),
    ],
    "(64): C^(l) of the linearised network": formula(
        "l >= 1",
        (1 + _GAIN) ** (LAYER - 1) * _GAIN * INPUT
        + (1 + _GAIN) ** (LAYER - 1) * (SCALE * sym.BIAS) ** 2,
        linearised.linearised_residual_kernel,
    ),
    "(66): K^(L) of the linearised network": formula(
        "every L", KERNEL, linearised.linearised_kernel
    ),
    "(67): ρ* at which K^(L) of the linearised network is (V/2)²": formula(
        "K^(0) < (V/2)²",
        SCALING,
        lambda: linearised.saturation_formula().rhs,
        points=SMALL_INPUT,
    ),
    "(68): ρ* at which K^(L) of the linearised network is (V/2)², deep networks": formula(
        "leading order in 1/L",
        DEEP_SCALING,
        lambda: linearised.saturation_formula(large_depth=True).rhs,
        points=SMALL_INPUT,
    ),
    "text after (68): the power of 1/L in the largest term that (68) neglects": bound(
        "L → ∞",
        sp.S.One,
        lambda: -neglected_power(),
        "O(1/L) is a bound; the term is of the order L^(-3/2)",
        wrong=sp.Integer(2),
    ),
    "section III.1: ρ* of a variance lies between 0.1 and 0.3": interval(
        "the network and depths of Fig. 4", (0.1, 0.3), lambda: _optima((0, 0))
    ),
    "section II.3: C* of FFNets at large depth, below 0.01: it decays to zero": interval(
        "the network of Fig. 2",
        (-0.01, 0.01),
        lambda: at("L", (400,), lambda L: solve(_FFNET.replace(depth=L), 1.4).kernels[L]),
        "σ_b² = 0.2 keeps it at a fixed point",
    ),
    "section III.1: ρ* of a covariance lies between 0.1 and 0.3": interval(
        "the network and depths of Fig. 4, off-diagonal", (0.1, 0.3), lambda: _optima((0, 1))
    ),
    "section III.4: after training the response depends on L as before": interval(
        "ρ√L = 1, N = 500, labels of three inputs, to order 1/N; ratio of both over that at L = 4",
        (0.99, 1.01),
        lambda: at("L", (10, 20), lambda L: _response_after_labels(L) / _response_after_labels(4)),
    ),
    "Fig. 5, caption: mean of a constant 1 over the P variances, (1/N) Σ_α": formula(
        "every P and N",
        _samples / _width,
        lambda: sp.Integer(mean_scaling(np.ones((3, 3)))[0]),
        meant=("P for N, and P(P−1) for N(N−1)", sp.S.One),
    ),
}

CLAIMS = claims_of("F25", _STATEMENTS)
