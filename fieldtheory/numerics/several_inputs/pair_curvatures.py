"""Second derivatives of ⟨φ(h_α)φ(h_β)⟩ by K_αα, K_ββ and K_αβ.

Of analytic φ from Mehler's series ⟨φφ⟩ = Σ_n f_n(K_αα) f_n(K_ββ) cⁿ, whose derivatives shift the
orders of the Hermite coefficients f_n. With kinks and jumps these fall off slowly, and the first
derivatives are differentiated, which are analytic in the angle arccos c and in the logarithms of
the variances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.quadrature.one_variable import Coefficients
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.two_variables import PairAverages
from fieldtheory.numerics.infinite_width.homogeneous import lines_of
from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.several_inputs.pair_expansions import Signals


@dataclass(frozen=True)
class _Settings:
    """Numbers of the second derivatives."""

    # Orders of Mehler's series of analytic φ at most, at least, and how many e-foldings
    # correlations have to fall by; pairs that are summed at once.
    orders: int = 400
    fewest: int = 24
    decay: float = 46.0
    pairs: int = 4000
    # Nodes of a derivative, how far apart they are relative to the angle, and at most.
    nodes: int = 12
    share: float = 0.25
    widest: float = 0.3


_SETTINGS = _Settings()


def curvatures(signals: Signals, pairs: np.ndarray, used: np.ndarray) -> np.ndarray:
    """∂²⟨g⟩/∂K_e ∂K_e' with e = αα, ββ, αβ, shape (3, 3, L + 1, pairs)."""
    entries = [each[:, pairs] for each in signals.entries]
    if not signals.smooth:
        # Signals that are parallel to rounding stay so: there is no angle to differentiate by.
        used = used & ((signals.R[1, 1][:, pairs] > 0) | (entries[0] * entries[1] == 0))
    a, b, t = (each[used] for each in entries)
    result = np.zeros((3, 3, *used.shape))
    # A signal that vanishes leaves a series of one term.
    series = (a * b == 0) | signals.smooth
    hessian = np.zeros((3, 3, len(a)))
    for psi in signals.functions:
        of_kinks = _of_lines if lines_of(psi) else _by_differences
        for some, one in ((series, _hessian), (~series, of_kinks)):
            if some.any():
                hessian[:, :, some] += one(psi, a[some], b[some], t[some])
    result[:, :, used] = hessian
    return result


def mean_slopes(signals: Signals) -> np.ndarray:
    """⟨φ'(h_α) φ(h_β)⟩ of all layers and inputs, summed over the features, (L + 1, P, P)."""
    (alpha, beta), (a, b, t) = signals.pairs, signals.entries
    slopes = np.zeros_like(signals.K)
    for psi in signals.functions:
        rows = _by_series(psi, a.ravel(), b.ravel(), t.ravel(), [(1, 0), (0, 1)])
        first, second = rows.reshape(2, *a.shape)
        slopes[:, alpha, beta] += first
        slopes[:, beta, alpha] += np.where(alpha == beta, 0.0, second)
    return slopes


def _hessian(psi: Function, a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The Hessian by (a, b, t) of ⟨ψ(x)ψ(y)⟩, shape (3, 3, m)."""
    orders = [(4, 0), (0, 4), (2, 2), (3, 1), (1, 3)]
    aa, bb, tt, at, bt = _by_series(psi, a, b, t, orders)
    return np.array([[aa / 4, tt / 4, at / 2], [tt / 4, bb / 4, bt / 2], [at / 2, bt / 2, tt]])


def _by_series(
    psi: Function, a: np.ndarray, b: np.ndarray, t: np.ndarray, orders: list[tuple[int, int]]
) -> np.ndarray:
    """⟨ψ^(i)(x) ψ^(j)(y)⟩ for pairs of orders i, j of derivatives, shape (n, m)."""
    variances, places = np.unique([a, b], return_inverse=True)
    coefficients = Coefficients(psi, _SETTINGS.orders + 4)(variances)[0][:, :-1]
    f, g = places.reshape(2, -1)
    c = np.clip(ratio(t, np.sqrt(a * b)), -1.0, 1.0)
    x, y = (ratio(1.0, np.sqrt(K)) for K in (a, b))
    averages = np.zeros((len(orders), len(c)))
    # Pairs of about one correlation take about as many orders.
    sorted_pairs = np.argsort(np.abs(c))
    for some in np.array_split(sorted_pairs, -(-len(c) // _SETTINGS.pairs)):
        largest = float(np.clip(np.abs(c[some[-1]]), 1e-9, 1 - 1e-9))
        kept = min(_SETTINGS.orders, _SETTINGS.fewest + int(_SETTINGS.decay / -np.log(largest))) + 1
        n = np.arange(float(kept))
        powers, rows, columns = c[some, None] ** n, coefficients[f[some]], coefficients[g[some]]
        for each, (i, j) in zip(averages, orders, strict=True):
            raised = np.prod([n + 1 + m for m in range(i)], axis=0) ** 0.5
            raised = raised * np.prod([n + 1 + m for m in range(j)], axis=0) ** 0.5
            shifted = rows[:, i : i + kept], columns[:, j : j + kept]
            terms = np.einsum("n,mn,mn,mn->m", raised, *shifted, powers)
            each[some] = terms * x[some] ** i * y[some] ** j
    return averages


def _of_lines(psi: Function, a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The same of φ that is a line on either side of zero, which is of degree 1/2 in a and in b."""
    averages = PairAverages(psi)(a, b, t)[0]
    jump = np.diff(psi.slope(np.array([-1.0, 1.0])))[0]
    tt = jump**2 / (2 * np.pi * np.sqrt(determinant(a, b, t)))
    at, bt = (-t * tt / (2 * K) for K in (a, b))
    by_a, by_b = ((averages.value - t * averages.by_t) / (2 * K) for K in (a, b))
    aa, bb = ((-slope - t * mixed) / (2 * K) for slope, mixed, K in ((by_a, at, a), (by_b, bt, b)))
    ab = (by_b - t * bt) / (2 * a)
    return np.array([[aa, ab, at], [ab, bb, bt], [at, bt, tt]])


def _by_differences(psi: Function, a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The same from the first derivatives, at a fixed correlation and at fixed variances."""
    averages, root = PairAverages(psi), np.sqrt(a * b)
    angle = np.arctan2(np.sqrt(determinant(a, b, t)), t)
    small = np.minimum(angle, np.pi - angle)
    reach = np.minimum(_SETTINGS.share * small, _SETTINGS.widest)
    steps = chebyshev.chebpts1(_SETTINGS.nodes)
    # Of the polynomials that are one at a node each.
    cardinal = np.linalg.inv(chebyshev.chebvander(steps, len(steps) - 1))
    slope = chebyshev.chebval(0.0, chebyshev.chebder(cardinal))
    derivatives = []
    for direction in range(3):
        u, v, w = (np.multiply.outer(steps * (direction == d), reach) for d in range(3))
        x, y, theta = a * np.exp(u), b * np.exp(v), angle + w
        gradient = averages.at_angles(x.ravel(), y.ravel(), theta.ravel())
        rows = np.array([gradient.by_a, gradient.by_b, gradient.by_t]).reshape(3, *x.shape)
        derivatives.append(np.einsum("n,enm->em", slope, rows) / reach)
    by_a, by_b, by_angle = derivatives
    by_t = -by_angle / (root * np.sin(angle))
    # At a fixed covariance the correlation falls as variances grow.
    by_a, by_b = ((row - t * by_t / 2) / K for row, K in ((by_a, a), (by_b, b)))
    hessian = np.array([by_a, by_b, by_t])
    return (hessian + np.swapaxes(hessian, 0, 1)) / 2
