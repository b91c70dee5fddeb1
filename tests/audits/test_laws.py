"""The law of the mean square behind a branch, against draws of hidden units and branches."""

import numpy as np
import pytest
from scipy.special import ndtr

import fieldtheory as ft
from fieldtheory.audits.laws import score_behind

BEFORE, WIDTH, SCALE, VARIANCES = 0.8, 40, 0.6, (1.3, 0.7, 1.1)
FUNCTIONS = {
    "squared_relu": lambda u: np.maximum(u, 0) ** 2,
    "relu": lambda u: np.maximum(u, 0),
    "tanh": np.tanh,
}


def _drawn(phi, units, normalization, gated, rng, draws=40_000):
    read = 1.0 if normalization else BEFORE
    a = phi(rng.normal(size=(draws, units)) * (VARIANCES[0] * read) ** 0.5)
    if gated:
        a *= rng.normal(size=a.shape) * (VARIANCES[1] * read) ** 0.5
    x = rng.normal(size=WIDTH)
    f = rng.normal(size=(draws, WIDTH))
    f *= SCALE * (VARIANCES[2] * np.mean(a**2, axis=1, keepdims=True)) ** 0.5
    if normalization == "layer":
        x, f = x - x.mean(), f - f.mean(axis=1, keepdims=True)
    return np.mean((x * (BEFORE / np.mean(x**2)) ** 0.5 + f) ** 2, axis=1)


CASES = [
    ("squared_relu", 80, "rms", True),
    ("squared_relu", 20, None, True),
    ("relu", 20, "layer", False),
    ("tanh", 160, None, False),
]


@pytest.mark.parametrize(("name", "units", "normalization", "gated"), CASES)
def test_tails_are_those_of_draws(name, units, normalization, gated):
    network = ft.BlockNetwork(
        depth=1,
        width=WIDTH,
        activation=name,
        normalization=normalization,
        gated=gated,
        expansion=units / WIDTH,
        branch_scale=SCALE,
        inner_weight_variance=VARIANCES[0],
        gate_weight_variance=VARIANCES[1] if gated else None,
        outer_weight_variance=VARIANCES[2],
    )
    rng = np.random.default_rng(5)
    drawn = np.sort(_drawn(FUNCTIONS[name], units, normalization, gated, rng))
    for share in (1e-3, 0.02, 0.5, 0.98, 0.999):
        p = ndtr(score_behind(network, BEFORE, drawn[int(share * len(drawn))]))
        # Of binomial numbers, and a tenth of the smaller tail.
        error = (share * (1 - share) / len(drawn)) ** 0.5 + 0.1 * min(share, 1 - share)
        assert abs(p - share) < 4 * error
