"""Correlators of four signals of odd φ with kinks, of which one hardly correlates with the others.

Given the others a signal γ has a mean μ, as small as the correlations are, and a variance s²,

    ⟨ψ(a) ψ(b) ψ(c) ψ(γ)⟩ = Σ_j m_j/j! ⟨ψ(a) ψ(b) ψ(c) μ^j⟩,        m_j = ⟨ψ(sζ) He_j(ζ)⟩/s^j,

with odd j alone, of which few count. Averages of ψ(γ) would be differences, with the digits lost by
which correlations are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, factorial

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.averages.tolerance import tolerance
from fieldtheory.numerics.correlators.common_factors import joint_averages
from fieldtheory.numerics.kinks.kinked_planes import (
    ORDER,
    RESOLUTIONS,
    Plane,
    Resolution,
    factor_size,
    hermite,
)
from fieldtheory.numerics.observables.pair_grids import canonical

# Correlations that are weak, powers of them that are left out, and numbers of powers of μ.
WEAK, _LEFT_OUT, _COUNTS = 5e-2, 1e-14, (2, 4, 6, 8, 10, 12)
# Allowed difference of two resolutions, relative to the terms.
_ALLOWED = 3e-10
# 1 − t of directions that are the same.
_SAME = 1e-13
_TINY = float(np.finfo(float).tiny)

Function = Callable[[np.ndarray], np.ndarray]


def alone(K: np.ndarray, weak: float = WEAK) -> np.ndarray:
    """Which of four signals correlates weakly with all others, −1 unless it is one, shape (m,).

    Parameters
    ----------
    K : ndarray, shape (4, 4, m)
    weak : float
        Correlations that count as weak.

    Examples
    --------
    >>> K = np.ones((4, 4, 1))
    >>> K[2, [0, 1, 3]] = K[[0, 1, 3], 2] = 1e-5
    >>> alone(K), alone(np.eye(4)[..., None])
    (array([2]), array([-1]))
    """
    own = np.sqrt(np.einsum("iim->im", K))
    found = np.count_nonzero(np.abs(K) <= weak * own[:, None] * own, axis=1) == 3
    across = np.where(np.eye(4, dtype=bool)[..., None], 0.0, K)
    joined = np.any(across * found, axis=(0, 1)) & own.all(axis=0)
    return np.where((found.sum(axis=0) == 1) & joined, found.argmax(axis=0), -1)


def correlator(psi: Function, kinks: Sequence[float], K: np.ndarray, which: int) -> float:
    """⟨ψ(h_0) ψ(h_1) ; ψ(h_2) ψ(h_3)⟩ of signals with the covariance K.

    Parameters
    ----------
    psi : callable
        Odd.
    kinks : sequence of float
        With places where ψ changes fast.
    K : ndarray, shape (4, 4)
    which : int
        The one that is `alone`.

    Raises
    ------
    QuadratureError
        If two resolutions differ by more than 3e-10 of the terms, or a larger tolerance.
    """
    # The one that it is multiplied by in an observable, and the other two.
    partner = which ^ 1
    pair = [i for i in range(4) if i not in (which, partner)]
    others = [*pair, partner]
    previous, allowed = np.nan, max(_ALLOWED, tolerance())
    for resolution in RESOLUTIONS:
        terms = _Terms(psi, kinks, resolution)
        whole = terms.of_three(K, others, which)
        parts = terms.of_two(K[np.ix_(pair, pair)]) * terms.of_one(K, partner, which)
        value = whole - parts
        error = abs(value - previous) / max(abs(whole), abs(parts), _TINY)
        if error <= allowed:
            return value
        previous = value
    raise QuadratureError(
        f"the fluctuations of signals of which one hardly correlates with the others did not "
        f"converge: two rules differ by {error:.1e}, allowed is {allowed:.1e}"
    )


class _Terms:
    """The averages of one resolution."""

    def __init__(self, psi: Function, kinks: Sequence[float], resolution: Resolution) -> None:
        self.psi, self.kinks, self.resolution = psi, kinks, resolution

    def of_three(self, K: np.ndarray, others: Sequence[int], which: int) -> float:
        """⟨ψ ψ ψ ψ⟩."""
        weights, series = self._given(K, others, which)
        count = len(series)
        splits = []
        for last in range(3):
            (i, j), k = [place for place in range(3) if place != last], last
            a, b, c = others[i], others[j], others[k]
            first, second, t = canonical(
                K[np.ix_((a, b), (a, b))], K[np.ix_((c, c), (c, c))], K[np.ix_((a, b), (c, c))]
            )
            t = np.where(1 - t <= _SAME, 1.0, t)
            size = np.prod([factor_size(float(one)) for one in t if one < 1])
            splits.append((float(size), (i, j, k), first, second, t))
        _, (i, j, k), first, second, t = min(splits, key=lambda split: split[0])

        def of_two(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            mean = weights[i] * x + weights[j] * y
            return self.psi(x) * self.psi(y) * _powers(mean, count)

        def of_one(x: np.ndarray, _: np.ndarray) -> np.ndarray:
            return self.psi(x) * _powers(weights[k] * x, count)

        planes = [Plane(A, self.kinks) for A in (first, second)]
        M = joint_averages(planes, t, (of_two, of_one), self.resolution)
        return sum(
            series[n] * sum(comb(n, m) * float(M[m, n - m]) for m in range(n + 1))
            for n in range(1, count, 2)
        )

    def of_two(self, K: np.ndarray) -> float:
        """⟨ψ ψ⟩."""
        A, _, _ = canonical(K, K, K)
        none = np.zeros(2)
        one = Plane(np.zeros((2, 2)), ())

        def of_two(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return (self.psi(x) * self.psi(y))[None]

        def constant(x: np.ndarray, _: np.ndarray) -> np.ndarray:
            return np.ones((1, *x.shape))

        planes = [Plane(A, self.kinks), one]
        return float(joint_averages(planes, none, (of_two, constant), self.resolution)[0, 0])

    def of_one(self, K: np.ndarray, partner: int, which: int) -> float:
        """⟨ψ(c) ψ(γ)⟩."""
        (weight,), series = self._given(K, [partner], which)
        z, values = self._line(float(np.sqrt(K[partner, partner])))
        x = weight * np.sqrt(K[partner, partner]) * z
        return sum(series[n] * float(values @ x**n) for n in range(1, len(series), 2))

    def _line(self, deviation: float) -> tuple[np.ndarray, np.ndarray]:
        """Nodes z, and ψ(σz) times weights."""
        line = Plane(np.array([[deviation, 0.0]]), self.kinks)
        z, weights = composite(line.cuts((1.0, 1.0), self.resolution.panel), ORDER)
        bell = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        return z, self.psi(deviation * z) * weights * bell

    def _given(
        self, K: np.ndarray, others: Sequence[int], which: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """μ as weights of other signals, and m_j/j!, zero for even j."""
        deviations = np.sqrt(np.diag(K)[others])
        own = K[np.ix_(others, others)] / np.outer(deviations, deviations)
        # Signals that are the same share what one of them has.
        inverse = np.linalg.pinv(own, rcond=1e-13, hermitian=True)
        weights = inverse @ (K[others, which] / deviations) / deviations
        mean = float(weights @ K[others, which])
        s = float(np.sqrt(K[which, which] - mean))
        share = mean / K[which, which]
        count = next((n for n in _COUNTS if share ** (n / 2) < _LEFT_OUT), _COUNTS[-1])
        z, values = self._line(s)
        n = np.arange(count)
        series = hermite(count, z) @ values / s**n
        return weights, np.where(n % 2, series / np.sqrt([float(factorial(i)) for i in n]), 0.0)


def _powers(x: np.ndarray, count: int) -> np.ndarray:
    """1, x, x², ..., shape (count, *shape)."""
    return np.moveaxis(np.power.outer(x, np.arange(count)), -1, 0)
