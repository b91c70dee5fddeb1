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

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.averages.tolerance import tolerance
from fieldtheory.numerics.correlators.joint_averages import Joint
from fieldtheory.numerics.correlators.later_layers import from_few
from fieldtheory.numerics.kinks.kinked_features import Feature, centres, is_odd
from fieldtheory.numerics.kinks.kinked_planes import (
    ORDER,
    REACH,
    RESOLUTIONS,
    WEAK,
    Factor,
    Plane,
    Resolution,
    WeakFactor,
    factor,
    factor_size,
)
from fieldtheory.numerics.kinks.kinks_of_later_signals import at_kinks
from fieldtheory.numerics.kinks.nearly_parallel import NearlyParallel
from fieldtheory.numerics.kinks.parallel_nodes import Signals
from fieldtheory.numerics.kinks.smoothed_features import Smoothed, averages

# Allowed difference of two resolutions relative to the sizes of the functions, the finer one being
# nearer by orders of magnitude.
_TOLERANCE = 3e-10
# Nodes of a factor and of both from which on panels take less.
_MANY, _MANY_TOGETHER = 1e3, 1e5
# Correlations of odd functions with jumps, less than which have no digits but by orders.
_WEAK = 1e-2
# Deviations of noise for which smooth functions are polynomials.
_SMALL = 0.1
# Nodes of a factor that take as long as one on panels.
_AS_LONG = 4.0
# What nodes leave out beyond their reach.
_TAILS = 1e-15
_TINY = float(np.finfo(float).tiny)


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
        return self._of_layers(k, range(k, len(self.K)), Joint.correlators, False)

    def slopes(self) -> Iterator[np.ndarray]:
        """∂_e ⟨g^(l) ; g_e'^(k)⟩ for k = 0, ..., L, each (3, 3, L − k), with l > k.

        By the entries e = αα, ββ, αβ of the kernel of the later layer, of which g = g(h_α, h_β).
        """
        for k in range(len(self.K)):
            yield self._of_layers(k, range(k + 1, len(self.K)), Joint.slopes, True)

    def correlates_little(self, bound: float) -> np.ndarray:
        """Whether the two signals of a layer do, shape (L + 1,); no signals that vanish."""
        alive = self.K[:, [0, 1], [0, 1]].min(axis=1) > 0
        return alive & (np.abs([_correlation(K) for K in self.K]) <= bound)

    def nodes(self, k: int, l: int) -> float:
        """About how many nodes of h^(k) and η a pair of layers k <= l takes; 0 if independent."""
        if not self.carried[l, k]:
            return 0.0
        planes, shares = self._two_layers(k, l)
        t, panel = np.minimum(np.abs(shares), 1.0), RESOLUTIONS[1].panel
        if _are_many(t):
            return _AS_LONG * len(self._nearly_parallel(planes, t, panel).weights)
        noise = np.sqrt(1 - t)
        seen = float(noise[0]), float(noise[1])
        ends = [len(Plane(one, self._kinks).cuts(seen, panel)) for one in planes]
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
        self, k: int, later: range, asked: Callable[[Joint], np.ndarray], slopes: bool
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
        self, k: int, l: int, asked: Callable[[Joint], np.ndarray], slopes: bool
    ) -> np.ndarray:
        if slopes and self._vanishes(k, l):
            return np.zeros((3, 3))
        previous, error, allowed = np.full((3, 3), np.nan), np.inf, max(tolerance(), _TOLERANCE)
        for resolution in RESOLUTIONS:
            joint = self._joint(k, l, resolution, slopes)
            values, sizes = asked(joint)
            off = np.abs(values - previous)
            if (off <= allowed * sizes).all():
                return values
            error, previous = float(np.max(off / np.maximum(sizes, _TINY))), values
        # Tails of a signal that hardly reaches a kink, beside one that does.
        if (off <= _TAILS * joint.largest).all():
            return values
        raise QuadratureError(
            f"the fluctuations of two inputs in the layers {k} and {l} did not converge: two rules "
            f"differ by {error:.1e}, allowed is {allowed:.1e}"
        )

    def _vanishes(self, k: int, l: int) -> bool:
        """Whether all ψ of an input do, to which hence layers add nothing."""
        gained, reach = np.diagonal(self._noise(k, l)), np.linspace(-REACH, REACH, 64)
        own = np.sqrt(np.diagonal(self.K[l])[gained <= 0])
        return any(not self._square(deviation * reach).any() for deviation in own)

    def _joint(self, k: int, l: int, resolution: Resolution, slopes: bool) -> Joint:
        """What the inputs share, with derivatives by the signals of the later layer or without."""
        planes, shares = self._two_layers(k, l)
        t = np.minimum(np.abs(shares), 1.0)
        if _are_many(t):
            if not all(both[0, 0] for both in planes):
                raise QuadratureError("two signals, of which one vanishes, gain the same of layers")
            near = self._nearly_parallel(planes, t, resolution.panel)
            return self._joint_of_nearly_parallel(near, slopes)
        split = slopes and self._jumping and all(both[0, 0] and both[1, 1] for both in planes)
        # Of functions that are not odd the least that inputs share does not count alone.
        bound = (_WEAK if self._odd else -1.0) if split else WEAK
        first, second = (factor(float(one), resolution, bound) for one in t)
        # Orders have no places of kinks.
        split &= not (isinstance(first, WeakFactor) or isinstance(second, WeakFactor))
        alone, features, squares, divided = [], [], [], [1.0]
        orders = range(1 + (slopes and not split) * (1 if self._sloped else 2))
        for both in planes:
            if slopes and not both[1, 1]:
                raise QuadratureError("layers add nothing to the signals of an earlier one")
            plane = Plane(both, self._kinks)
            cuts = plane.cuts((first.noise, second.noise), resolution.panel)
            z, weights = composite(cuts, ORDER)
            rows = self._rows(both[0, 0] * z) * weights
            alone.append(self._without_rounding(first.averaged(rows, z)[:, 0], first))
            asked = self._with_slopes if len(orders) > 1 else self._features
            asked = self._beside_kinks if split else asked
            late = self._late(asked, both[1], z, (first, second), resolution.panel, orders)
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
            if split:
                shared = first.xi[:, None], second.xi
                values = self._with_kinks(values, Signals.of(both, t), shared, resolution.panel)
            elif slopes and self._sloped:
                values = np.concatenate([values[:1, :, :count], values[:, :, count:]])
            features.append(values)
        return Joint(
            first.weights[:, None] * second.weights,
            first.weights,
            first.one,
            np.array(alone),
            np.array(squares),
            np.stack(features, axis=1),
            float(min(divided)),
        )

    def _nearly_parallel(
        self, planes: Sequence[np.ndarray], t: np.ndarray, panel: float
    ) -> NearlyParallel:
        inputs = [Signals.of(both, t) for both in planes]
        kinks = {jump.place for psi in self.psi for jump in psi.jumps}
        # Smooth functions change as fast as kinks for noise that is not small.
        if max(max(one.sigma, one.s) for one in inputs) > _SMALL:
            kinks = set(self._kinks)
        return NearlyParallel(inputs, tuple(kinks), self._kinks, panel)

    def _joint_of_nearly_parallel(self, near: NearlyParallel, slopes: bool) -> Joint:
        """The same on nodes that are few where kinks are far."""
        weights, count = near.early_weights, len(self.psi)
        split = slopes and self._jumping
        if split:
            of_both, squares = near.of_both(self._rows, self._beside_kinks), np.empty(0)
        elif slopes:
            of_both = near.of_both(self._rows, self._with_slopes, range(2 if self._sloped else 3))
            squares = np.empty(0)
        else:
            of_both = near.of_both(self._rows, self._features)
            squares = near.of_both(self._rows, self._square, given_first=True)[:, :, 0, 0]
        # By orders, input, rows, b and nodes.
        values = np.moveaxis(of_both, 3, 0)
        if split:
            values = np.stack(
                [
                    self._with_kinks(values[:, own], one, near.shared, near.panel)
                    for own, one in enumerate(near.inputs)
                ],
                axis=1,
            )
        elif slopes and self._sloped:
            values = np.concatenate([values[:1, :, :, :count], values[:, :, :, count:]])
        alone, power = near.of_first(self._rows), 0 if split else len(values) - 1
        divided = min(one.tau for one in near.inputs) ** power
        return Joint(near.weights, weights, np.ones_like(weights), alone, squares, values, divided)

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

    def _with_kinks(
        self, values: np.ndarray, one: Signals, shared: tuple[np.ndarray, np.ndarray], panel: float
    ) -> np.ndarray:
        """⟨r ψ_b⟩ and its derivatives by the mean of h^(l), (3, rows, b, *shape).

        Parameters
        ----------
        values : ndarray, shape (1, rows, 3 b, *shape)
            Those of `_beside_kinks`.
        one, shared, panel
            As in `at_kinks`.
        """
        found = np.stack(np.split(values[0], 3, axis=1))
        jumps = [f.curvature.jumps for f in self.psi if f.curvature]
        found[1:] += at_kinks(self._rows, self._kinks, jumps, one, shared, panel)
        return found

    def _late(
        self,
        asked: Callable[[np.ndarray], np.ndarray],
        row: np.ndarray,
        z: np.ndarray,
        factors: tuple[Factor, Factor],
        panel: float,
        orders: Sequence[int],
    ) -> np.ndarray:
        """Functions of h^(l) at z_1 = z given η, (orders, functions, len(z), m).

        Of derivatives, those by the mean of z_2 times √(1 − t)^i.
        """
        (along, across), (first, second) = row, factors
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

    def _beside_kinks(self, h: np.ndarray) -> np.ndarray:
        """ψ_a, ψ'_a and ψ''_a without δ-functions."""
        parts = [f.slope(h) for f in self.psi]
        parts += [f.curvature.between(h) for f in self.psi if f.curvature]
        return np.concatenate([self._features(h), parts])

    @cached_property
    def _kinks(self) -> tuple[float, ...]:
        return centres(self.psi)

    @cached_property
    def _odd(self) -> bool:
        return is_odd(self.psi)

    @cached_property
    def _sloped(self) -> bool:
        return all(f.has_bounded_slope for f in self.psi)

    @cached_property
    def _jumping(self) -> bool:
        """Whether derivatives are those beside the kinks, and δ-functions at jumps."""
        return not self._sloped and all(f.curvature for f in self.psi)


def _are_many(t: np.ndarray) -> bool:
    """Whether there are too many nodes of factors, as inputs are nearly parallel."""
    sizes = [factor_size(float(one)) for one in t]
    return max(sizes) > _MANY or float(np.prod(sizes)) > _MANY_TOGETHER


def _correlation(K: np.ndarray) -> float:
    size = float(np.sqrt(max(K[0, 0], 0.0) * max(K[1, 1], 0.0)))
    return float(K[0, 1]) / size if size else 0.0
