"""A signal in two layers: functions of the later one, given the earlier one.

A signal y = A x + ν ξ of a later layer is that of an earlier one, x, and what the layers between
add, which is independent of it. As functions of what is added,

    ψ_i(x) = ⟨ψ(A x + ν ξ) h_i(ξ)⟩,        ⟨ψ^(n)(A x + ν ξ) h_i(ξ)⟩ = √((i+n)!/i!) ψ_{i+n}/νⁿ,

the latter also where ψ has kinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.numerics.kinks.kinked_planes import (
    BESIDE,
    ORDER,
    distinct,
    graded,
    hermite,
    on_panels,
)
from fieldtheory.numerics.observables.product_rules import Function

# Radius of the integrals over the earlier signal and what is added, their widest panels, and
# the phase of h_i on one.
REACH, _WIDEST, _PHASE = 8.6, 1.0, 6.0
# Ends of panels beside a kink that is seen with noise, in deviations of that.
_SEEN = np.array([2.5, 5.5, 9.0])


class LaterSignal(NamedTuple):
    """Functions of y at nodes z of x = σ z.

    Parameters
    ----------
    z, roots : ndarray, shape (n,)
        Nodes and square roots of their weights.
    early : ndarray, shape (functions, n)
        ψ(x).
    later : ndarray, shape (functions, n, orders)
        ψ_i(x).
    square : ndarray, shape (n,)
        Σ ⟨ψ²(y)⟩ given x.
    basis : ndarray, shape (orders, n)
        h_m(z) times the roots.
    """

    z: np.ndarray
    roots: np.ndarray
    early: np.ndarray
    later: np.ndarray
    square: np.ndarray
    basis: np.ndarray


def later_signal(
    psi: Sequence[Function],
    kinks: Sequence[float],
    deviations: tuple[float, float, float],
    orders: tuple[int, int],
) -> LaterSignal:
    """Functions ψ of a signal in a later layer.

    Parameters
    ----------
    psi : sequence of callable
        Of arrays.
    kinks : sequence of float
        Where any of them is not smooth, or changes fastest.
    deviations : tuple of float
        σ, A σ and ν of x = σ z and y = A σ z + ν ξ.
    orders : tuple of int
        How many h_i(ξ) and how many h_m(z).

    Examples
    --------
    >>> found = later_signal([np.tanh], (0.0,), (1.0, 0.9, 0.3), (4, 8))
    >>> slope = found.later[0, :, 1] / 0.3  # ⟨tanh'(y)⟩ given x
    >>> h, w = np.polynomial.hermite_e.hermegauss(60)
    >>> y = np.multiply.outer(0.9 * found.z, np.ones(60)) + 0.3 * h
    >>> bool(np.allclose(slope, (1 / np.cosh(y) ** 2) @ (w / w.sum()), atol=1e-12))
    True
    """
    sigma, along, noise = deviations
    z, weights = composite(_cuts(kinks, deviations, orders[1]), ORDER)
    roots = np.sqrt(weights * np.exp(-z * z / 2) / np.sqrt(2 * np.pi))
    x = sigma * z
    early = np.stack([each(x) for each in psi])
    basis = hermite(orders[1], z) * roots
    if not noise:
        y = early if along == sigma else np.stack([each(along * z) for each in psi])
        later = np.zeros((*y.shape, orders[0]))
        later[..., 0] = y
        return LaterSignal(z, roots, early, later, (y**2).sum(axis=0), basis)
    values, xi = _added(psi, kinks, along * z, noise, orders[0])
    bells = hermite(orders[0], xi) * np.exp(-xi * xi / 2) / np.sqrt(2 * np.pi)
    return LaterSignal(z, roots, early, values[:-1] @ bells.T, values[-1] @ bells[0], basis)


def _added(
    psi: Sequence[Function], kinks: Sequence[float], centres: np.ndarray, noise: float, orders: int
) -> tuple[np.ndarray, np.ndarray]:
    """ψ and Σψ² times weights at nodes of ξ, (functions + 1, n, nodes), and these."""
    edges = _even(REACH, orders)
    beside = graded(BESIDE / noise, edges[1] - edges[0])
    around = np.concatenate([-beside, [0.0], beside])
    cuts = [(kink - centres[:, None]) / noise + around for kink in kinks]

    def of_rows(row: np.ndarray, xi: np.ndarray) -> np.ndarray:
        y = centres[row] + noise * xi
        values = np.stack([each(y) for each in psi])
        return np.concatenate([values, (values**2).sum(axis=0, keepdims=True)])

    return on_panels(of_rows, edges, np.concatenate(cuts, axis=1)), composite(edges, ORDER)[0]


def _cuts(
    kinks: Sequence[float], deviations: tuple[float, float, float], orders: int
) -> np.ndarray:
    """Ends of panels of z: at kinks of x, and beside those of y as far as these are seen."""
    edges = _even(REACH, orders)
    widest = edges[1] - edges[0]
    sigma, along, noise = deviations
    cuts = [edges]
    for width, seen in ((sigma, 0.0), (abs(along), noise)):
        if not width:
            continue
        beside = seen / width * _SEEN
        beside = np.concatenate([beside[beside < widest], graded(BESIDE / width, widest)])
        for kink in kinks:
            centre = kink / width * (np.sign(along) if seen else 1.0)
            cuts += [np.array([centre]), centre + beside, centre - beside]
    found = distinct(np.concatenate(cuts))
    return found[np.abs(found) <= REACH]


def _even(reach: float, orders: int) -> np.ndarray:
    width = min(_WIDEST, _PHASE / np.sqrt(orders))
    return np.linspace(-reach, reach, int(np.ceil(2 * reach / width)) + 1)
