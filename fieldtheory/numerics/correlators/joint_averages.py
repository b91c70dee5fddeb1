"""Correlators of two inputs in two layers from the averages of either input given what they share.

Given the factors ξ and η that the signals of two inputs have in common they are independent: of
averages F of functions of the signals of the first input and G of those of the second,

    ⟨F G⟩ = Σ_ξη w_ξη F(ξ, η) G(ξ, η).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Rounding of averages in units of the allowed difference of two rules, of which sizes count no more
# than themselves: what is left of averages less their products is not known better.
_ROUNDING = 1e-4


class Joint(NamedTuple):
    """What two inputs share in a pair of layers k <= l, with rows r(h) = 1, ψ_a, g.

    Parameters
    ----------
    weights : ndarray, shape (n, m) or (nodes,)
        Of ξ and η.
    early_weights, one : ndarray, shape (n,)
        Of ξ, and what stands for a function of it that is 1.
    alone : ndarray, shape (2, r, n)
        ⟨r(h^(k))⟩ of either input.
    of_squares : ndarray, shape (2, r, n)
        ⟨r(h^(k)) g(h^(l), h^(l))⟩ of either input, whatever η is; none for slopes.
    of_features : ndarray, shape (orders, 2, r, b, n, m) or (orders, 2, r, b, nodes)
        ⟨r(h^(k)) ψ_b(h^(l))⟩ of either input, and its derivatives by the mean of h^(l).
    divided : float
        What derivatives are divided by, that magnifies rounding: √q √(1 − d) of the input that
        gains less, for every derivative that is not one of ψ.
    """

    weights: np.ndarray
    early_weights: np.ndarray
    one: np.ndarray
    alone: np.ndarray
    of_squares: np.ndarray
    of_features: np.ndarray
    divided: float

    def total(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """⟨F G⟩ of arrays (..., n, m) or (..., nodes), and √(⟨F²⟩⟨G²⟩)."""
        return _total(self.weights, F, G)

    def early_total(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """The same of functions of ξ, arrays (..., n)."""
        return _total(self.early_weights, F, G)

    def correlators(self) -> np.ndarray:
        """⟨g_e^(k) ; g_e'^(l)⟩ and the sizes of what it is made of, shape (2, 3, 3)."""
        features, squares, alone = self.of_features[0], self.of_squares, self.alone
        found = np.zeros((2, 3, 3))
        for own, other in ((0, 1), (1, 0)):
            # Functions less their means, as the rest may be small.
            early, late = self._mean(alone[own, -1]), self._mean(squares[own, 0])
            moving = alone[own, -1] - early * self.one
            of_pair = features[own, -1] - early * features[own, 0]
            found[:, own, 2] = self.total(of_pair, features[other, 0])
            found[1, own, 2] += (
                _ROUNDING * early * self.total(features[own, 0], features[other, 0])[1]
            )
            of_pair = squares[own, 1:-1] - late * alone[own, 1:-1]
            found[:, 2, own] = self.early_total(of_pair, alone[other, 1:-1])
            found[1, 2, own] += _ROUNDING * late * self.early_total(*alone[:, 1:-1])[1]
            other_late = self._mean(squares[other, 0])
            of_other = squares[other, 0] - other_late * self.one
            found[:, own, other] = self.early_total(moving, of_other)
            found[1, own, other] += _ROUNDING * early * other_late
        found[:, 2, 2] = self.total(features[0, 1:-1], features[1, 1:-1])
        found[0, 2, 2] -= self._early * self.total(features[0, 0], features[1, 0])[0]
        return found

    def slopes(self) -> np.ndarray:
        """∂_e ⟨g^(l) ; g_e'^(k)⟩ and the sizes of what it is made of, shape (2, 3, 3)."""
        (F, first, second), alone, total = self.of_features, self.alone, self.total
        found = np.zeros((2, 3, 3))
        for own, other in ((0, 1), (1, 0)):
            means = self._mean(alone[own, -1]), self._mean(alone[other, -1])
            found[:, 2, own] = total(first[own, -1] - means[0] * first[own, 0], first[other, 0])
            of_own = total(second[own, -1] - means[0] * second[own, 0], F[other, 0])
            of_other = total(second[own, 0], F[other, -1] - means[1] * F[other, 0])
            crossed = total(second[own, 1:-1], F[other, 1:-1])
            crossed[0] -= self._early * total(second[own, 0], F[other, 0])[0]
            found[:, own, own], found[:, own, other] = of_own / 2, of_other / 2
            found[:, own, 2] = crossed / 2
        found[:, 2, 2] = total(first[0, 1:-1], first[1, 1:-1])
        found[0, 2, 2] -= self._early * total(first[0, 0], first[1, 0])[0]
        # Rounding that is small in what layers add to means.
        found[1] += min(_ROUNDING / self.divided, 1.0) * max(
            total(F[0], F[1])[1], total(first[0], first[1])[1]
        )
        return found

    @property
    def _early(self) -> float:
        """⟨g(h_α, h_β)⟩ of the earlier layer."""
        return float(self.early_total(self.alone[0, 1:-1], self.alone[1, 1:-1])[0])

    @property
    def largest(self) -> float:
        """⟨g⟩² of the input that has more of it, as large as derivatives make it."""
        return max(self._mean(of_one[-1]) for of_one in self.alone) ** 2 / min(self.divided, 1.0)

    def _mean(self, F: np.ndarray) -> float:
        return float(np.sum(self.early_weights * self.one * F))


def _total(weights: np.ndarray, F: np.ndarray, G: np.ndarray) -> np.ndarray:
    value, first, second = (np.sum(weights * a * b) for a, b in ((F, G), (F, F), (G, G)))
    return np.array([value, np.sqrt(first * second)])
