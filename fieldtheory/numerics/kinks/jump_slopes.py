"""∂⟨g(x) ; g(y)⟩/∂K_xx of functions with jumps, where x is hardly more than y.

Of x = A y + noise of the variance q the derivative is ⟨g''(x) ; g(y)⟩/2, which jumps make as large
as 1/√q. From K_xx, K_yy and K_xy the noise would be a difference. Given x, y is a Gaussian of the
mean A K_yy x/K_xx and the variance K_yy q/K_xx, over which g is averaged, and g'' is a function
with δ and δ' at the kinks,

    ⟨δ(x − κ) f(y)⟩ = p(κ) F(κ),        ⟨δ'(x − κ) f(y)⟩ = −∂_κ (p(κ) F(κ)),

with the density p of x and F(κ) = ⟨f(y)⟩ at x = κ.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.numerics.kinks.kinked_features import Curvature
from fieldtheory.numerics.kinks.kinked_planes import BESIDE, ORDER, REACH, graded
from fieldtheory.numerics.kinks.parallel_nodes import SIGHT, beside
from fieldtheory.numerics.kinks.smoothed_features import averages
from fieldtheory.theory.elementary_averages import X

# Noise relative to K_xx that is small; widths of panels in deviations.
SMALL, PANEL = 1e-3, 3.0


def slope(
    g: sp.Expr, bent: Curvature, mean: float, variances: tuple[float, float], A: float, q: float
) -> float:
    """∂⟨g(x) ; g(y)⟩/∂K_xx.

    Parameters
    ----------
    g : sympy.Expr
        In ``X``.
    bent : Curvature
        g''.
    mean : float
        ⟨g(y)⟩.
    variances : tuple
        K_xx and K_yy.
    A, q : float
        q > 0.
    """
    K_xx, K_yy = variances
    kinks = tuple(jump.place for jump in bent.jumps)
    share, noise = A * K_yy / K_xx, float(np.sqrt(K_yy * q / K_xx))
    function = vectorised([X], g)

    def centred(y: np.ndarray) -> np.ndarray:
        return np.broadcast_to(function(y), np.shape(y))[None] - mean

    def given(x: np.ndarray) -> np.ndarray:
        """⟨g(y)⟩ − ⟨g⟩ and its derivative by x, x ascending."""
        means = share * x
        order = slice(None, None, -1 if share < 0 else 1)
        found = averages(centred, kinks, noise, means[order], PANEL, (0, 1))[0][:, order]
        return found * np.array([[1.0], [share / noise]])

    def density(x: np.ndarray) -> np.ndarray:
        return np.exp(-x * x / (2 * K_xx)) / np.sqrt(2 * np.pi * K_xx)

    at = np.array(kinks)
    jumps, of_slopes = np.array([jump.sizes for jump in bent.jumps]).T
    F, slopes = given(at)
    found = float(np.sum(density(at) * (of_slopes * F - jumps * (slopes - at / K_xx * F))))
    x, weights = composite(edges_given(kinks, share, noise, float(np.sqrt(K_xx))), ORDER)
    curved = bent.between(x)
    if np.any(curved):
        found += float(np.sum(weights * density(x) * curved * given(x)[0]))
    return found / 2


def edges_given(
    kinks: tuple[float, ...], share: float, noise: float, deviation: float
) -> np.ndarray:
    """Ends of panels of x for averages over y given x, of the mean share·x and of the noise."""
    reach, widest = REACH * deviation, PANEL * deviation
    edges = [np.linspace(-reach, reach, int(2 * reach / widest) + 2)]
    around, places = np.append(0.0, graded(BESIDE, widest)), list(kinks)
    if abs(share) * reach > noise:
        seen = noise / abs(share)
        around = np.append(beside(PANEL * seen, SIGHT * seen, widest), around)
        places += [kink / share for kink in kinks]
    for place in places:
        edges += [place + around, place - around]
    return np.unique(np.clip(np.concatenate(edges), -reach, reach))
