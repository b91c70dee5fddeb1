"""Correlators of two inputs in two layers by the factors that their signals have in common.

The signal of a later layer is h^(l) = A h^(k) + √q n, with noise n that the layers between add. Of
z = h^(k)/√K the two inputs share a factor ξ as their correlation c says, of the noise a factor η by
its correlation d. Given these they are independent: with averages F of functions of the signals of
the first input and G of those of the second,

    ⟨F G⟩ = Σ_ξη w_ξ w_η F(ξ, η) G(ξ, η).

F and G are smooth on the scales √(1 − c) and √(1 − d) whatever φ is, see `kinked_planes`. Given η a
function of h^(l) is averaged over what noise is left, see `smoothed_features`, and then over h^(k).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature import composite
from fieldtheory.averages.tolerance import tolerance
from fieldtheory.numerics.kinked_features import Feature, centres, is_odd
from fieldtheory.numerics.kinked_planes import (
    ORDER,
    RESOLUTIONS,
    Factor,
    Plane,
    Resolution,
    WeakFactor,
    factor,
    factor_size,
)
from fieldtheory.numerics.later_layers import from_few
from fieldtheory.numerics.smoothed_features import Smoothed, averages

# Allowed difference of two resolutions relative to the sizes of the functions, the finer one being
# nearer by orders of magnitude; most nodes of a factor and of both.
_TOLERANCE, _MOST, _MOST_TOGETHER = 3e-10, 1e3, 2.5e5
# Rounding of averages in units of that difference, of which sizes count no more than themselves.
_ROUNDING = 1e-4
# Least 1 − t that counts nodes.
_SHARED = 1e-6
_TINY = float(np.finfo(float).tiny)


class NearlyParallelError(QuadratureError):
    """Two inputs share nearly all, so that averages given what they share are not smooth."""


class _Joint(NamedTuple):
    """What two inputs share in a pair of layers k <= l, with rows r(h) = 1, ψ_a, g.

    Parameters
    ----------
    weights : ndarray, shape (n, m)
        Of ξ and η.
    early_weights, one : ndarray, shape (n,)
        Of ξ, and what stands for a function of it that is 1.
    alone : ndarray, shape (2, r, n)
        ⟨r(h^(k))⟩ of either input.
    of_squares : ndarray, shape (2, r, n)
        ⟨r(h^(k)) g(h^(l), h^(l))⟩ of either input, whatever η is; none for slopes.
    of_features : ndarray, shape (orders, 2, r, b, n, m)
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
        """⟨F G⟩ of arrays (..., n, m), and √(⟨F²⟩⟨G²⟩)."""
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
            of_pair = squares[own, 1:-1] - late * alone[own, 1:-1]
            found[:, 2, own] = self.early_total(of_pair, alone[other, 1:-1])
            other_late = self._mean(squares[other, 0]) * self.one
            found[:, own, other] = self.early_total(moving, squares[other, 0] - other_late)
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

    def _mean(self, F: np.ndarray) -> float:
        return float(np.sum(self.early_weights * self.one * F))


def _total(weights: np.ndarray, F: np.ndarray, G: np.ndarray) -> np.ndarray:
    value, first, second = (np.sum(weights * a * b) for a, b in ((F, G), (F, F), (G, G)))
    return np.array([value, np.sqrt(first * second)])


@dataclass(frozen=True, eq=False)
class TwoInputs:
    """Two inputs α and β of a network.

    Parameters
    ----------
    psi : sequence of Feature
        ψ_a; g(x, y) = Σ_a ψ_a(x) ψ_a(y).
    K, C : ndarray, shape (L + 1, 2, 2)
        Kernels of the hidden layers, of positive variances, and what each layer adds to them.
    carried : ndarray, shape (L + 1, L + 1)
        A_lk.
    """

    psi: Sequence[Feature]
    K: np.ndarray
    C: np.ndarray
    carried: np.ndarray

    def correlators(self) -> Iterator[np.ndarray]:
        """⟨g_e^(k) ; g_e'^(l)⟩ for k = 0, ..., L, each (3, 3, L + 1 − k), with l >= k.

        The entries e, e' are αα, ββ, αβ. Those of one input, αα αα and ββ ββ, are left out, as 0.
        """
        for k in range(len(self.K)):
            yield self.of_layer(k)

    def of_layer(self, k: int) -> np.ndarray:
        """One of the `correlators`."""
        return self._of_layers(k, range(k, len(self.K)), _Joint.correlators, False)

    def slopes(self) -> Iterator[np.ndarray]:
        """∂_e ⟨g^(l) ; g_e'^(k)⟩ for k = 0, ..., L, each (3, 3, L − k), with l > k.

        By the entries e = αα, ββ, αβ of the kernel of the later layer, of which g = g(h_α, h_β).
        """
        for k in range(len(self.K)):
            yield self._of_layers(k, range(k + 1, len(self.K)), _Joint.slopes, True)

    def correlates_little(self, bound: float) -> np.ndarray:
        """Whether the two signals of a layer do, shape (L + 1,)."""
        return np.abs([_correlation(K) for K in self.K]) <= bound

    def nodes(self, k: int, l: int) -> float:
        """About how many nodes of h^(k) and η a pair of layers k <= l takes; 0 if independent."""
        if not self.carried[l, k]:
            return 0.0
        both, shares = self._two_layers(k, l)
        t = np.minimum(np.abs(shares), 1 - _SHARED)
        noise, panel = np.sqrt(1 - t), RESOLUTIONS[1].panel
        seen = float(noise[0]), float(noise[1])
        ends = [len(Plane(one, self._kinks).cuts(seen, panel)) for one in both]
        return float(sum(ends)) * ORDER * factor_size(float(t[1]))

    def _two_layers(self, k: int, l: int) -> tuple[list[np.ndarray], np.ndarray]:
        """The signals of two layers of either input by ξ and η, and how much of these is shared."""
        A = float(self.carried[l, k])
        noise = self._noise(k, l)
        shares = np.array([_correlation(self.K[k]), _correlation(noise)])
        both = []
        for own in range(2):
            K, q = float(self.K[k, own, own]), max(float(noise[own, own]), 0.0)
            signs = np.where(shares < 0, -1.0, 1.0) if own else np.ones(2)
            both.append(np.array([[np.sqrt(K), 0.0], [A * np.sqrt(K), np.sqrt(q)]]) * signs)
        return both, shares

    def _of_layers(
        self, k: int, later: range, asked: Callable[[_Joint], np.ndarray], slopes: bool
    ) -> np.ndarray:
        found = np.zeros((3, 3, len(later)))
        # Without skip connections layers are independent.
        joined = [l for l in later if l > k and self.carried[l, k]]
        if k in later:
            found[..., 0] = self._converged(k, k, asked, slopes)
        if joined:
            widths = np.sqrt([np.trace(self._noise(k, l)) for l in joined])
            places = np.array(joined) - later[0]
            found[..., places] = from_few(
                lambda number: self._converged(k, joined[number], asked, slopes), widths
            )
        return found

    def _noise(self, k: int, l: int) -> np.ndarray:
        """The covariance of what two signals gain from layer k to layer l."""
        # Differences of kernels would have lost the digits of small branches.
        return np.tensordot(self.carried[l, k + 1 : l + 1] ** 2, self.C[k + 1 : l + 1], 1)

    def _converged(
        self, k: int, l: int, asked: Callable[[_Joint], np.ndarray], slopes: bool
    ) -> np.ndarray:
        previous, error, allowed = np.full((3, 3), np.nan), np.inf, max(tolerance(), _TOLERANCE)
        for resolution in RESOLUTIONS:
            values, sizes = asked(self._joint(k, l, resolution, slopes))
            off = np.abs(values - previous)
            if (off <= allowed * sizes).all():
                return values
            error, previous = float(np.max(off / np.maximum(sizes, _TINY))), values
        raise QuadratureError(
            f"the fluctuations of two inputs in the layers {k} and {l} did not converge: two rules "
            f"differ by {error:.1e}, allowed is {allowed:.1e}"
        )

    def _joint(self, k: int, l: int, resolution: Resolution, slopes: bool) -> _Joint:
        """What the inputs share, with derivatives by the signals of the later layer or without."""
        planes, shares = self._two_layers(k, l)
        t = np.minimum(np.abs(shares), 1.0)
        sizes = [factor_size(one) for one in t]
        if max(sizes) > _MOST or np.prod(sizes) > _MOST_TOGETHER:
            raise NearlyParallelError(
                f"two inputs are too nearly parallel: their signals in layer {k} have the "
                f"correlation 1 − {1 - t[0]:.2g}, and what they gain to layer {l} has "
                f"1 − {1 - t[1]:.2g}; leave one of them out"
            )
        first, second = (factor(float(one), resolution) for one in t)
        alone, features, squares, divided = [], [], [], [1.0]
        orders = range(1 + slopes * (1 if self._sloped else 2))
        for both in planes:
            if slopes and not both[1, 1]:
                raise QuadratureError("layers add nothing to the signals of an earlier one")
            plane = Plane(both, self._kinks)
            cuts = plane.cuts((first.noise, second.noise), resolution.panel)
            z, weights = composite(cuts, ORDER)
            rows = self._rows(both[0, 0] * z) * weights
            alone.append(self._without_rounding(first.averaged(rows, z)[:, 0], first))
            late = self._late(both[1], z, (first, second), resolution.panel, orders)
            # By rows, orders, b, η and z.
            joined = rows[:, None, None, None] * np.moveaxis(late, 2, -1)
            joined = np.swapaxes(first.averaged(joined, z)[..., 0, :], 3, 4)
            joined = self._without_rounding(joined, first, second)
            if slopes:
                # Derivatives by z_2 times √(1 − t)^i as derivatives by the signal.
                step = both[1, 1] * second.noise
                joined /= (step ** np.arange(len(orders)))[:, None, None, None]
                divided.append(abs(step) ** (len(orders) - 1))
            else:
                square = self._late_square(both[1], z, resolution.panel)
                square = first.averaged(rows * square, z)[:, 0]
                squares.append(self._without_rounding(square, first))
            values, count = np.swapaxes(joined, 0, 1), len(self.psi)
            if slopes and self._sloped:
                values = np.concatenate([values[:1, :, :count], values[:, :, count:]])
            features.append(values)
        return _Joint(
            first.weights[:, None] * second.weights,
            first.weights,
            first.one,
            np.array(alone),
            np.array(squares),
            np.stack(features, axis=1),
            float(min(divided)),
        )

    def _without_rounding(self, values: np.ndarray, *factors: Factor) -> np.ndarray:
        """Coefficients of 1, ψ, g times 1, or ψ^(i) and ψ^(i+1), zero where they are for odd φ.

        What rounding leaves of them would be all there is of inputs that are independent.

        Parameters
        ----------
        values : ndarray, shape (3, n) or (3, orders, 1 or 2, n, m)
        *factors : Factor
            Of n, and of m.
        """
        if self._odd and all(isinstance(one, WeakFactor) for one in factors):
            order = sum(np.indices(values.shape[1:])) + (values.ndim > 2)
            values[[0, 2]] = np.where(order % 2, 0.0, values[[0, 2]])
            values[1] = np.where(order % 2, values[1], 0.0)
        return values

    def _late(
        self,
        row: np.ndarray,
        z: np.ndarray,
        factors: tuple[Factor, Factor],
        panel: float,
        orders: Sequence[int],
    ) -> np.ndarray:
        """ψ_b(h^(l)) at z_1 = z given η, (orders, b, len(z), m).

        For derivatives, those by the mean of z_2 times √(1 − t)^i, also ψ'_b unless φ jumps.
        """
        (along, across), (first, second) = row, factors
        asked = self._with_slopes if len(orders) > 1 else self._features
        if not across or isinstance(second, WeakFactor):
            found = Plane(row[None], self._kinks).given(asked, z, second, panel, orders)
            return np.swapaxes(found, 0, 1)
        means = along * z[:, None] + across * np.sqrt(second.t) * second.xi
        smoothed = Smoothed.of(
            asked,
            self._kinks,
            abs(across) * second.noise,
            float(np.abs(means).max()),
            panel * first.noise * float(np.hypot(along, across)),
            panel,
            orders,
        )
        found = smoothed(means).reshape(-1, len(orders), *means.shape)
        signs = np.sign(across) ** np.arange(len(orders))
        return np.swapaxes(found, 0, 1) * signs[:, None, None, None]

    def _late_square(self, row: np.ndarray, z: np.ndarray, panel: float) -> np.ndarray:
        """⟨g(h^(l), h^(l))⟩ at z_1 = z."""
        means = row[0] * z
        if not row[1]:
            return self._square(means)[0]
        found = averages(self._square, self._kinks, abs(row[1]), np.sort(means), panel)[0, 0]
        return found if row[0] > 0 else found[::-1]

    def _rows(self, h: np.ndarray) -> np.ndarray:
        """1, ψ_a and g."""
        return np.concatenate([np.ones((1, *h.shape)), self._features(h), self._square(h)])

    def _features(self, h: np.ndarray) -> np.ndarray:
        return np.array([f.function(h) for f in self.psi])

    def _square(self, h: np.ndarray) -> np.ndarray:
        return np.sum(self._features(h) ** 2, axis=0)[None]

    def _with_slopes(self, h: np.ndarray) -> np.ndarray:
        """ψ_a, and the ψ'_a for derivatives that lose fewer digits."""
        values = self._features(h)
        if not self._sloped:
            return values
        return np.concatenate([values, [f.slope(h) for f in self.psi]])

    @cached_property
    def _kinks(self) -> tuple[float, ...]:
        return centres(self.psi)

    @cached_property
    def _odd(self) -> bool:
        return is_odd(self.psi)

    @cached_property
    def _sloped(self) -> bool:
        return all(f.has_bounded_slope for f in self.psi)


def _correlation(K: np.ndarray) -> float:
    size = float(np.sqrt(max(K[0, 0], 0.0) * max(K[1, 1], 0.0)))
    return float(K[0, 1]) / size if size else 0.0
