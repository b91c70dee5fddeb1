"""Averages of one signal beside δ-functions, which derivatives of kinked functions of another are.

Given what two inputs share, ξ and η, the signals of an input in two layers are Gaussians,

    x = e ξ + σ ζ,        y = A x + m η + τ ζ',        s² = A² σ² + τ²,

and with the density p of y and R(κ) = ⟨r(x)⟩ at y = κ, where x is left the deviation σ τ/s,

    ⟨r(x) δ(y − κ)⟩ = p(κ) R(κ),        ⟨r(x) δ'(y − κ)⟩ = −∂_κ (p R).

Nothing is divided by the noise τ that is small where layers add little, as it is of differences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fieldtheory.numerics.kinks.parallel_nodes import Signals
from fieldtheory.numerics.kinks.smoothed_features import Functions, Smoothed
from fieldtheory.numerics.neurons.hermite_modes import Jump


def at_kinks(
    rows: Functions,
    centres: Sequence[float],
    jumps: Sequence[Sequence[Jump]],
    one: Signals,
    shared: tuple[np.ndarray, np.ndarray],
    panel: float,
) -> np.ndarray:
    """What δ-functions are of ⟨r(x) ψ_b'(y)⟩ and ⟨r(x) ψ_b''(y)⟩, shape (2, rows, b, *shape).

    Parameters
    ----------
    rows : callable
        The r, an array to values (rows, *shape).
    centres : sequence of float
        Where the r have kinks or change fastest.
    jumps : sequence of sequence of Jump
        Of every ψ_b, those of orders 0 and 1.
    one : Signals
        With noise.
    shared : tuple
        ξ and η, arrays that broadcast to the shape.
    panel : float
        The widest panel in deviations of the noise.
    """
    xi, eta = np.broadcast_arrays(*shared)
    s = one.s
    noise, seen = one.sigma * one.tau / s, one.A * one.sigma**2 / s**2
    found = np.zeros((2, len(rows(np.zeros(1))), len(jumps), *xi.shape))
    for place in sorted({jump.place for of_one in jumps for jump in of_one}):
        u = (place - one.A * one.e * xi - one.m * eta) / s
        density = np.exp(-u * u / 2) / (np.sqrt(2 * np.pi) * s)
        # The mean of x at y = κ, less κ: that of x would be rounded more than it has noise.
        beyond = (one.tau / s) ** 2 * (one.e * xi - place)
        beyond += seen * ((1 - one.A) * place - one.m * eta)
        at = rows(np.array([place]))

        def moving(d: np.ndarray, place: float = place, at: np.ndarray = at) -> np.ndarray:
            """What r is more than at κ, so that constants have no slope by rounding."""
            return rows(place + d) - at.reshape(-1, *[1] * d.ndim)

        reach, apart = float(np.abs(beyond).max()), [centre - place for centre in centres]
        smoothed = Smoothed.of(moving, apart, noise, reach, np.inf, panel, (0, 1))
        R, slope = np.swapaxes(smoothed(beyond).reshape(-1, 2, *xi.shape), 0, 1)
        met = density * (R + at.reshape(-1, *[1] * xi.ndim))
        # −∂_κ of it.
        moved = met * u / s - density * slope * (seen / noise)
        for b, of_one in enumerate(jumps):
            for jump in of_one:
                if jump.place == place:
                    by_jump, by_kink = jump.sizes
                    found[0, :, b] += by_jump * met
                    found[1, :, b] += by_kink * met + by_jump * moved
    return found
