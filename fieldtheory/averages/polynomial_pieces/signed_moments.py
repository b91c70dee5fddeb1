"""Averages of products of powers and signs of Gaussian variables, for many covariances at once.

By Stein's lemma a power goes, and a δ-function that a sign leaves conditions the other variables,

    ⟨h_i R⟩ = ⟨h_i⟩ ⟨R⟩ + Σ_j K_ij ⟨∂_j R⟩,   ∂ sign(h) = 2 δ(h)

(as R. Kan and C. Robotti 2017 for orthants), until averages of signs are left (see `signs`). What
two averages share is found once.

Singular covariances are those with independent noise in the limit of none: variables that the
conditions leave no variance have the signs of what they leave of that noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.polynomial_pieces import signs

# Part of a variance that may be rounding of what the others leave of it.
_ROUNDING = 1e-14
# Part of a deviation below which a mean is rounding, and a mean in deviations that fixes a sign.
_NO_MEAN, _FAR = 1e-7, 40.0

# Powers of all variables, and whether their signs are there.
Powers = tuple[int, ...]
Signs = tuple[int, ...]


class SignedMoments:
    """⟨Π_k h_k^p_k sign(h_k)^e_k⟩ of Gaussian variables.

    Parameters
    ----------
    K : ndarray, shape (d, d, m)
        Covariances, positive semidefinite.
    means : ndarray, shape (d, m), optional
        Zero if not given.

    Examples
    --------
    >>> moments = SignedMoments(np.array([[4.0]])[..., None])
    >>> moments.average((2,), (0,)), (moments.average((1,), (1,)) * np.sqrt(np.pi / 2)).round(12)
    (array([4.]), array([2.]))
    """

    def __init__(self, K: np.ndarray, means: np.ndarray | None = None) -> None:
        self._K, self._means = K, means
        self._variances = K[range(len(K)), range(len(K))]
        self._known: dict[tuple[Powers, Signs], np.ndarray] = {}
        self._relatives: dict[frozenset[int], SignedMoments] = {frozenset(): self}
        self._fixed: frozenset[int] = frozenset()
        self._parent: tuple[SignedMoments, int] | None = None

    def average(self, powers: Powers, with_sign: Signs) -> np.ndarray:
        """⟨Π_k h_k^p_k sign(h_k)^e_k⟩, shape (m,), of at most four signs."""
        key = powers, with_sign
        if key not in self._known:
            self._known[key] = self._found(powers, with_sign)
        return self._known[key]

    def _found(self, powers: Powers, with_sign: Signs) -> np.ndarray:
        total = np.zeros(self._K.shape[-1])
        if self._means is None and (sum(powers) + sum(with_sign)) % 2:
            return total
        raised = [i for i, power in enumerate(powers) if power]
        if not raised:
            left = [i for i, present in enumerate(with_sign) if present]
            return signs.product(*self._of_signs(left))
        i = raised[0]
        lower = _less(powers, i)
        if self._means is not None:
            total += self._means[i] * self.average(lower, with_sign)
        for j, power in enumerate(lower):
            if power:
                total += power * self._K[i, j] * self.average(_less(lower, j), with_sign)
            elif with_sign[j]:
                rest = self._given(j).average(lower, _less(with_sign, j))
                total += 2 * self._K[i, j] * self._density(j) * rest
        return total

    def _of_signs(self, left: list[int]) -> tuple[np.ndarray, np.ndarray | None]:
        """Covariances and means of some variables; those of noise where there is nothing else."""
        K, means = self._K[left][:, left], None if self._means is None else self._means[left]
        scales = self._variances[left]
        none = (K[range(len(left)), range(len(left))] <= 0) & (scales > 0)
        if not none.any():
            return K, means
        K = np.where(none[:, None] | none, 0.0, K)
        K += np.where(none[:, None] & none, self._noise[left][:, left], 0.0)
        if means is not None:
            # A mean is infinite compared with the noise, or is none.
            own = np.sqrt(np.maximum(K[range(len(left)), range(len(left))], 0.0))
            there = np.abs(means) > _NO_MEAN * np.sqrt(scales)
            means = np.where(none, np.where(there, np.sign(means) * _FAR * own, 0.0), means)
        return K, means

    @property
    def _noise(self) -> np.ndarray:
        """The covariance of what the conditions leave of independent noise."""
        if self._parent is None:
            return np.eye(len(self._K))[..., None] * self._variances
        before, j = self._parent
        own, N = before._K[j, j], before._noise
        slopes = before._K[j] / np.where(own > 0, own, np.inf)
        crossed = slopes[:, None] * N[j]
        return N - crossed - np.swapaxes(crossed, 0, 1) + slopes[:, None] * slopes * N[j, j]

    def _density(self, j: int) -> np.ndarray:
        """⟨δ(h_j)⟩; zero where only rounding is left of h_j, as then nothing depends on it."""
        own = self._K[j, j]
        safe = np.where(own > 0, own, 1.0)
        exponent = 0.0 if self._means is None else self._means[j] ** 2 / (2 * safe)
        return np.where(own > 0, np.exp(-exponent) / np.sqrt(2 * np.pi * safe), 0.0)

    def _given(self, j: int) -> SignedMoments:
        """The same of the other variables given h_j = 0."""
        fixed = self._fixed | {j}
        if fixed not in self._relatives:
            found = self._relatives[fixed] = SignedMoments(*self._conditioned(j))
            found._variances, found._relatives = self._variances, self._relatives
            found._fixed, found._parent = fixed, (self, j)
        return self._relatives[fixed]

    def _conditioned(self, j: int) -> tuple[np.ndarray, np.ndarray | None]:
        K, own = self._K, self._K[j, j]
        slopes = K[j] / np.where(own > 0, own, np.inf)
        given = K - slopes[:, None] * K[j]
        for k, variance in enumerate(self._variances):
            # Variances of nearly equal variables are small differences.
            rest = determinant(K[k, k], own, K[j, k]) / np.where(own > 0, own, np.inf)
            rest = np.where(own > 0, rest, K[k, k])
            given[k, k] = rest
            given[k] = given[:, k] = np.where(rest <= _ROUNDING * variance, 0.0, given[k])
        return given, None if self._means is None else self._means - slopes * self._means[j]


def _less(counts: Sequence[int], j: int) -> tuple[int, ...]:
    return (*counts[:j], counts[j] - 1, *counts[j + 1 :])
