"""Derivatives of ⟨φ(x)φ(y)⟩ for y = ρx, φ with kinks and jumps, as one-sided limits of c → ±1.

The law of y given x becomes a point, so that Price's theorem leaves integrals over x between the
breakpoints, and at a breakpoint p of slope change s and jump J

    ∂/∂K_xx:  (1/2) N(p) s φ(ρp) − (J/2) d/dp [N(p) φ(ρp)],    ∂/∂K_xy:  J N(p) φ'(ρp) and mirrored.
"""

from itertools import pairwise

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)
REACH = 9.0


def derivatives(breakpoints, pieces, a, rho):
    """∂/∂K_xx and ∂/∂K_xy at the variances a and ρ²a, covariance ρa.

    ``pieces`` are functions that give φ, φ' and φ''. No two jumps may meet.
    """
    sigma = np.sqrt(a)

    def of(h, order):
        """φ and its derivatives, the mean of both sides at a breakpoint."""
        sides = [np.searchsorted(breakpoints, h, side) for side in ("left", "right")]
        values = [
            np.choose(side, [np.broadcast_to(piece(h)[order], np.shape(h)) for piece in pieces])
            for side in sides
        ]
        return sum(values) / 2

    def density(h, deviation):
        return np.exp(-((h / deviation) ** 2) / 2) / (np.sqrt(2 * np.pi) * deviation)

    cuts = {p for q in breakpoints for p in (q, q / rho) if abs(p) < REACH * sigma}
    cuts = sorted(cuts | {i * REACH * sigma / 4 for i in range(-4, 5)})
    by_xx = by_xy = 0.0
    for low, high in pairwise(cuts):
        h, weights = (low + high) / 2 + (high - low) / 2 * NODES, (high - low) / 2 * WEIGHTS
        weights = weights * density(h, sigma)
        by_xx += weights @ (of(h, 2) * of(rho * h, 0)) / 2
        by_xy += weights @ (of(h, 1) * of(rho * h, 1))
    for p, before, after in zip(breakpoints, pieces, pieces[1:], strict=False):
        jump, kink = (after(p)[n] - before(p)[n] for n in (0, 1))
        value, slope = of(rho * p, 0), of(rho * p, 1)
        by_xx += density(p, sigma) / 2 * (kink * value - jump * (rho * slope - p / a * value))
        by_xy += jump * density(p, sigma) * slope
        by_xy += jump * density(p, abs(rho) * sigma) * of(p / rho, 1)
    return float(by_xx), float(by_xy)
