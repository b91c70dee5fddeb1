"""Claims of PF on its experiments: Fig. 1, sections 4.1 and 4.2, without the trained networks.

PF does not say which point of the edge of chaos it takes for tanh; several are tried.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_solution import solve_diffusion
from fieldtheory.diffusions.layers_drawn import input_layer, layers_drawn
from fieldtheory.diffusions.pf_claims.pf_properties import (
    at_end,
    correlations,
    deep,
    growth,
    of_pairs,
)
from fieldtheory.literature.claim import claims_of, formula, interval, unchecked
from fieldtheory.literature.evidence import at
from fieldtheory.literature.sr_kernels import correlated
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import FeedForwardNetwork, input_kernel
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from fieldtheory.numerics.solution import solve

_GRID = (-2.0, -1.0, 0.0, 1.0, 2.0)
# ReLU networks without bias are 0 at z = 0.
_WITHOUT_ZERO = tuple(z for z in _GRID if z)
_CLOSE = 0.95


def edge_of_chaos(variance: float) -> tuple[float, float]:
    """σ_w² and σ_b² of tanh networks with K* = ``variance`` and χ_⊥ = 1, see PDLT-B (B.16).

    >>> [round(float(number), 4) for number in edge_of_chaos(0.5)]
    [1.688, 0.038]
    """
    averages = layer_functions(as_activation("tanh"))
    weight = 1 / averages.covariance_susceptibility(variance, variance, variance)
    return float(weight), float(variance - weight * averages.second_moment(variance))


@lru_cache
def feed_forward(
    activation: Any, weight_variance: float, bias_variance: float, inputs: tuple[float, ...]
) -> np.ndarray:
    """Covariances of the last of 500 layers of wide networks without skip connections."""
    variances: Any = {"weight_variance": weight_variance, "bias_variance": bias_variance}
    network = FeedForwardNetwork(depth=500, activation=activation, input_dim=1, **variances)
    K0 = input_kernel(np.array(inputs)[:, None], network)
    return solve(network, K0).kernels[network.depth]


def _on_the_edge() -> dict[str, float]:
    """The smallest correlation of all pairs of inputs, for variances at which networks rest."""
    correlations = {}
    for weight, bias in map(edge_of_chaos, (0.5, 1.0)):
        K = feed_forward("tanh", weight, bias, _GRID)
        correlations[f"σ_w² = {weight:.3g}, σ_b² = {bias:.3g}"] = float(correlated(K).min())
    return correlations


def _without_bias(activation: str, weight_variance: float) -> dict[str, float]:
    K = feed_forward(activation, weight_variance, 0.0, _WITHOUT_ZERO)
    return of_pairs(_WITHOUT_ZERO, correlated(K))


def _on_one_edge(resting: float) -> float:
    """ln of the ratio of the largest to the smallest variance of x_last over the inputs."""
    K = feed_forward("tanh", *edge_of_chaos(resting), _GRID)
    return float(np.ptp(np.log(np.diagonal(K))))


def _variances_of_relu() -> dict[str, float]:
    """ln of the ratio of variances of x_last for z = 2 and 1, and for z = −2 and 1."""
    variances = np.diagonal(feed_forward("relu", 2.0, 0.0, _WITHOUT_ZERO))
    K = dict(zip(_WITHOUT_ZERO, variances, strict=True))
    return at("z", (-2, 2), lambda z: np.log(K[z] / K[1]))


def _deviations() -> dict[str, float]:
    """Differences of variances of network and diffusion, over the errors of 10,000 draws each."""
    one, other = (
        np.diagonal(
            solve_diffusion(
                DiffusionNetwork(depth=500, activation=as_activation(phi)), [0.0, 1.0]
            ).covariance[-1]
        )
        for phi in ("tanh", "linear")
    )
    scores = (one - other) / np.sqrt(2 / 10_000 * (one**2 + other**2))
    return at("z", (0, 1), lambda z: scores[z])


@lru_cache
def _scores(activation: Any) -> dict[str, float]:
    """Differences of means and second moments of network and diffusion in standard errors."""
    draws, moments = 1000, []
    network = DiffusionNetwork(depth=100, width=20, activation=activation)
    start = input_layer(network, [0.0, 1.0])
    for method in ("weights", "sde"):
        generator = np.random.default_rng([1, method == "sde"])
        *_, last = layers_drawn(network, start, method, generator, draws)
        x, y = np.ascontiguousarray((start[:, 0] + last.displacements[:, :, 0]).T)
        moments.append({"x(0)": x, "x(1)": y, "x(0)²": x**2, "x(1)²": y**2, "x(0) x(1)": x * y})
    scores = {}
    for name, first in moments[0].items():
        second = moments[1][name]
        error = np.sqrt((first.var() + second.var()) / draws)
        scores[f"⟨{name}⟩"] = float((first.mean() - second.mean()) / error)
    return scores


def _between_outputs(activation: str, inputs: tuple[float, ...] = _GRID) -> dict[str, float]:
    return of_pairs(inputs, correlations(deep(activation, inputs)))


def _fluctuation(width: int) -> float:
    """D Var q/⟨q⟩² for z = 1."""
    limit = deep("tanh", (0.0, 1.0), width=width)
    return float(width * at_end(limit.gram_variance)[1, 1] / limit.gram[-1, 1, 1] ** 2)


def _explosions() -> dict[str, float]:
    times: Any = deep("swish", _GRID).explosion_time
    return {f"z = {z:g}": float(time) for z, time in zip(_GRID, times, strict=True)}


_SAME_AS = "σ_w = σ_b = T = 1, L → ∞, z = −2, −1, 0, 1, 2"

_STATEMENTS = {
    "section 4.3, Fig. 5: losses and accuracies of trained networks on MNIST": unchecked(
        "φ = tanh", "percent", lambda: "it takes MNIST and training; see fieldtheory figures"
    ),
    "section 4.1, Fig. 2: difference of variances of ResNet and SDE over its error for "
    "10,000 draws, |z| < 2": interval(
        "φ = tanh, L = 500, D → ∞, z = 0 and 1",
        (-2.0, 2.0),
        _deviations,
        "L = 500 lowers variances by about 1 or 2 %, which ten times as many draws would show",
    ),
    "section 4.1, Fig. 2: differences of moments of x_T,1 of ResNet and SDE in standard "
    "errors, |z| < 4": interval(
        "φ = tanh, drawn 1000 times, L = 100, D = 20, z = 0 and 1",
        (-4.0, 4.0),
        lambda: _scores("tanh"),
    ),
    "section 4.1: differences of moments of x_T,1 of ResNet and SDE in standard errors, "
    "|z| < 4": interval(
        "φ = swish, drawn 1000 times, L = 100, D = 20, z = 0 and 1",
        (-4.0, 4.0),
        lambda: _scores("swish"),
    ),
    "section 4.1: φ'(0) and φ''(0)": formula(
        "φ = swish",
        sp.Matrix([1, 1]) / 2,
        lambda: sp.Matrix(DiffusionNetwork(activation=as_activation("swish")).exact_slopes[:2]),
    ),
    "section 4.1: (|μ_x| + |σ_x|)/(1 + |x|) at large |x|, not bounded": interval(
        "φ = swish, ψ = x, D = 3",
        lambda: (1e4, np.inf),
        lambda: dict([list(growth("swish", "linear").items())[-1]]),
        "it grows as |x|: Assumption 2.3 is not satisfied",
    ),
    f"section 4.2, Figs. 3, 4: output correlations, below {_CLOSE}": [
        interval(
            f"φ = tanh, every D, {_SAME_AS}",
            (-1.0, _CLOSE),
            lambda: _between_outputs("tanh"),
            "(1 + z z')/√((1 + z²)(1 + z'²)) for σ_w = σ_b",
        ),
        interval(
            f"φ = swish, D → ∞, {_SAME_AS}", (-1.0, _CLOSE), lambda: _between_outputs("swish")
        ),
    ],
    f"section 4.2, Figs. 3, 4: output correlations for different inputs, below {_CLOSE}": interval(
        "φ = tanh, z = 1.9 and 2",
        (-1.0, _CLOSE),
        lambda: _between_outputs("tanh", (1.9, 2.0)),
        "functions are continuous: 1 − ρ falls as (z − z')², and is small for equal signs",
        convention=("inputs at a distance of 1 or more", lambda: _between_outputs("tanh")),
    ),
    "section 4.2, doubly infinite setting: D Var q/⟨q⟩², bounded: q is not random for D "
    "→ ∞": interval(
        "φ = tanh, ψ = x, L → ∞, z = 1",
        (0.0, 10.0),
        lambda: at("D", (10, 500, 100_000), _fluctuation),
        "the limit is Gaussian, neurons independent; its covariance is that of every D",
    ),
    "section 4.2, doubly infinite setting: time T* at which the limit D → ∞ explodes, "
    "above T = 1": interval(
        "φ = swish, ψ = x, L → ∞, z from −2 to 2",
        (1.0, np.inf),
        _explosions,
        "so there is a limit for T < T*, and none beyond",
    ),
    f"section 4.2, Fig. 4: smallest correlation of feed-forward networks, above {_CLOSE}": interval(
        "φ = tanh, edge of chaos, σ_b² = 0.038 and 0.15, L = 500, z from −2 to 2",
        (_CLOSE, 1.0),
        _on_the_edge,
        "the smaller σ_b, the more layers it takes: 0.943 for σ_b² = 0.005",
    ),
    f"section 4.2, Fig. 4: correlations of feed-forward networks, above {_CLOSE}": [
        interval(
            "φ = relu, edge of chaos, σ_w² = 2, σ_b = 0, L = 500, z from −2 to 2",
            (_CLOSE, 1 + 1e-9),
            lambda: _without_bias("relu", 2.0),
        ),
        interval(
            "φ = tanh, edge of chaos, σ_w = 1, σ_b = 0, L = 500, z from −2 to 2",
            (_CLOSE, 1 + 1e-9),
            lambda: _without_bias("tanh", 1.0),
            "the paper leaves σ_b open; without a bias outputs are odd",
            convention=("σ_b > 0, such as σ_b² = 0.038", _on_the_edge),
        ),
    ],
    "section 1, Fig. 1: ln of the ratio of variances of x_last over inputs, below 0.01: "
    "no discernible impact": interval(
        "φ = tanh, edge of chaos, σ_b² = 0.038 and 0.15, L = 500, z from −2 to 2",
        (-0.01, 0.01),
        lambda: at("K*", (0.5, 1.0), _on_one_edge),
    ),
    "section 1, Fig. 1: ln of the ratio of variances of x_last for |z| = 2 and 1, above "
    "0: the input affects it": interval(
        "φ = relu, edge of chaos, σ_w² = 2, σ_b = 0, L = 500",
        (1e-2, np.inf),
        _variances_of_relu,
        "it is ln 4: functions are a multiple of |z| on either side of 0",
    ),
}

CLAIMS = claims_of("PF", _STATEMENTS)
