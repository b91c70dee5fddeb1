"""Claims of SR on infinite depth: Lemma 5, Propositions 7 and 8."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import sympy as sp

from fieldtheory.limits.infinite_depth import DepthLimit, depth_limit
from fieldtheory.literature.claim import claims_of, interval
from fieldtheory.literature.evidence import at
from fieldtheory.literature.sr_kernels import BIASED, SCALE, relu_step, stable_network
from fieldtheory.networks.residual import input_kernel
from fieldtheory.numerics.solution import solve
from fieldtheory.theory import notation as sym

# Inputs of different lengths, two of them parallel and two orthogonal.
INPUTS = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.5], [-0.6, 0.8], [-0.5, -1.0]])


@lru_cache
def limit_of(schedule: str) -> DepthLimit:
    """Infinite depth for `INPUTS` with σ_w² = 2."""
    network = stable_network(schedule, 1, **BIASED)
    return depth_limit(network, input_kernel(INPUTS, network))


def _rate(Q: float) -> float:
    """Ψ(x, x), from the variance Q(x, x)."""
    before = sym.kernel(0)
    values = {before: Q, SCALE: 1, sym.WEIGHT: sp.sqrt(2), sym.BIAS: sp.sqrt(2) / 2}
    return float((relu_step(1) - before).subs(values))


def _distances() -> dict[str, float]:
    """L sup |Q_{l|L} − q_t|, and its limit."""
    limit = limit_of("uniform")
    distances = {}
    steps = len(limit.places) - 1
    for depth in (steps, 4 * steps):
        network = stable_network("uniform", depth, **BIASED)
        Q = solve(network, limit.input_kernel).kernels[: depth + 1 : depth // steps]
        distances[f"L = {depth}"] = float(depth * np.abs(Q - limit.kernels).max())
    return distances | {"L → ∞": _next_order()}


def _next_order() -> float:
    return float(np.abs(limit_of("uniform").first_correction.kernels).max())


def tail_ratios(first: int) -> dict[str, float]:
    """sup |Q_L − Q_∞| over Σ_{k>=L+first} λ_k², for λ of section 4."""
    limit = limit_of("decreasing")

    def ratio(depth: int) -> float:
        (place,) = np.flatnonzero(limit.places == depth)
        last = stable_network("decreasing", depth).branch_scales[-1] ** 2
        tail = limit.remaining[place] + (0.0 if first else last)
        return float(np.abs(limit.kernels[-1] - limit.kernels[place]).max() / tail)

    return at("L", (4, 64, 1024), ratio)


def fast_tail_ratios(first: int) -> dict[str, float]:
    """The same for λ_l² = 2^(−l²), of which 12 layers are all, at the largest variance."""
    step = relu_step(1).subs({sym.WEIGHT: sp.sqrt(2), sym.BIAS: sp.sqrt(2) / 2})
    scales = [sp.Rational(1, 2 ** (l * l)) for l in range(13)]
    Q = [sp.Rational(float(limit_of("decreasing").input_kernel.max()))]
    for square in scales[1:]:
        Q.append(step.subs({sym.kernel(0): Q[-1], SCALE: sp.sqrt(square)}))
    return at("L", (1, 3, 5), lambda L: (Q[-1] - Q[L]) / sum(scales[L + first :]))


def _tangent_changes() -> dict[str, float]:
    """max |Θ_∞ − Θ_L| over Σ_{k>L} λ_k²."""
    limit = limit_of("decreasing")
    changes = np.abs(limit.tangent_kernels[-1] - limit.tangent_kernels).max(axis=(1, 2))
    return {
        f"L = {L}": float(changes[place] / limit.remaining[place])
        for L in (4, 64, 1024, 2**20)
        for place in np.flatnonzero(limit.places == L)
    }


def _between() -> tuple[float, float]:
    """Constants A and B of Proposition 7: Ψ grows from layer to layer."""
    limit = limit_of("decreasing")
    return _rate(float(limit.input_kernel.max())), _rate(float(limit.kernels[-1].max()))


_STATEMENTS = {
    "Lemma 5: L sup |Q_{l|L} − q_{l/L}|, not above its limit by more than 1 %": interval(
        "uniform scaling, σ_w² = 2, σ_b² = 1/2, 5 inputs and 21 places t",
        lambda: (0.0, 1.01 * _next_order()),
        _distances,
        "the limit is the next order of the flow, of the order 1/L",
    ),
    "Proposition 7: sup |Q_L − Q_∞| / Σ_{k>=L} λ_k², between constants A and B": [
        interval(
            "λ_l = 1/(√l ln(l+1)), A and B from Ψ_0 and Ψ_∞", _between, lambda: tail_ratios(0)
        ),
        interval(
            "λ_l² = 2^(−l²)",
            _between,
            lambda: fast_tail_ratios(0),
            "Q_∞ − Q_L starts with λ_{L+1}²",
            meant=("the sum over k > L", _between, lambda: fast_tail_ratios(1)),
        ),
    ],
    "Proposition 8: sup |Θ_L − Θ_∞| / Σ_{k>L} λ_k², bounded": interval(
        "λ_l = 1/(√l ln(l+1)), σ_b > 0, 5 inputs",
        # Ψ + Ψ' Θ at infinite depth, where it is largest, with Ψ' = σ_w²/2 = 1.
        lambda: (0.0, _between()[1] + float(limit_of("decreasing").tangent_kernels[-1].max())),
        _tangent_changes,
        "Θ_L converges as Q_L does, like 1/ln L here",
    ),
}

CLAIMS = claims_of("SR", _STATEMENTS)
