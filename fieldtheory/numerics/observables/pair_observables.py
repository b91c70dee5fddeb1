"""The observables g(h_α, h_β) of pairs of inputs by their Hermite coefficients, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.averages.integrands.steps import has_steps
from fieldtheory.averages.tolerance import tolerance
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.chunks import with_progress
from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.kinks.kinked_features import Feature, feature, is_even, is_odd
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.layer_averages.parallel_signals import ROUNDING
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.observables.pair_modes import (
    coefficients,
    coefficients_alone,
    correlations,
    order_count,
    packed_places,
    packed_size,
    triangle,
    unit_row,
)
from fieldtheory.numerics.observables.pair_powers import block, correlated
from fieldtheory.numerics.observables.product_rules import ProductRule
from fieldtheory.theory.elementary_averages import X, feature_parameters

# Orders kept, tried one after the other, and the relative error asked for unless rtol is larger.
_COUNTS, PAIR_TOLERANCE = (12, 18, 26, 38, 56, 80, 114, 160, 224), 1e-9
# Pairs of pairs whose correlators are found at once.
TOGETHER = 1024
_SAFETY = 4.0
# Pairs that tell how many orders it takes, before all are asked.
_ASKED_FIRST = 8
# Arrays of all coefficients that are held at once.
_COPIES = 5
# Signals with kinks count as the same where ⟨(x − y)²⟩ is this share of their variance: what that
# changes is of the same relative size, and nearer ones lose as many digits. Jumps tell them apart
# by the root of that.
_SAME = 5e-8
# By how much continuous functions may change at a kink by rounding.
_STEADY = 1e-12
# Deviations of signals beyond which there is next to nothing, and what that is.
_REACH, _ALIKE = 6.5, 1e-10
# Deviations of signals of which derivatives of φ are constants nearly, and most derivatives known.
_NARROW, _HIGHEST = 0.03, 4
# Squares of coefficients, relative to all of them, that may be rounding.
_ROUNDING = 1e-24

Function = Callable[..., np.ndarray]


@dataclass(frozen=True, eq=False)
class PairObservables:
    """The signals of P inputs in the layers 0, ..., L, and the observables of their pairs.

    With p pairs α <= β in the order of `np.triu_indices`.

    Parameters
    ----------
    network : LayeredNetwork
    K, C : ndarray, shape (L + 1, P, P)
        Kernels of the hidden layers, and what each layer adds to them.
    progress : bool
        Show progress bars on stderr.
    """

    network: LayeredNetwork
    K: np.ndarray
    C: np.ndarray
    progress: bool = False

    def counted(self, steps: Sequence[int] | np.ndarray, title: str) -> Iterable[int]:
        """The same steps, counted by a progress bar if it is wanted."""
        return with_progress(steps, len(steps), title) if self.progress else steps

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """α and β of every pair."""
        first, second = np.triu_indices(self.K.shape[-1])
        return first, second

    @property
    def has_kinks(self) -> bool:
        """Whether the observables are not smooth."""
        return len(features(self.network)[0]) == 1

    @cached_property
    def resolved(self) -> bool:
        """Whether Hermite coefficients resolve the observables."""
        if self.has_kinks:
            return False
        with suppress(QuadratureError):
            self.require_resolved()
            return True
        return False

    def require_resolved(self) -> None:
        """QuadratureError unless Hermite coefficients resolve the observables."""
        _ = self._resolved

    def same(self, pairs: np.ndarray) -> np.ndarray:
        """Whether the two signals of a pair count as one in a layer, shape (L + 1, pairs)."""
        first, second = (members[pairs] for members in self.pairs)
        own, joint = np.diagonal(self.K, axis1=1, axis2=2), self.K[:, first, second]
        distance = (own[:, first] - joint) + (own[:, second] - joint)
        steady = self.has_kinks and not places_of_jumps(self.network)
        return distance <= (_SAME if steady else 0.0) * own[:, first]

    def opposite(self, pairs: np.ndarray) -> np.ndarray:
        """Whether the two of an odd φ that jumps are opposite in a layer, shape (L + 1, pairs)."""
        first, second = (members[pairs] for members in self.pairs)
        own, joint = np.diagonal(self.K, axis1=1, axis2=2), self.K[:, first, second]
        found = (own[:, first] == own[:, second]) & (own[:, first] == -joint) & (joint != 0)
        odd = is_odd(kinked_features(self.network)) and bool(places_of_jumps(self.network))
        return found & odd

    def vanish(self, pairs: np.ndarray) -> np.ndarray:
        """Whether ⟨g(h_α, h_β)⟩ is zero whatever the variances are, shape (pairs,).

        The two inputs of an odd φ are independent in all layers.
        """
        first, second = (members[pairs] for members in self.pairs)
        apart = np.asarray((self.K[:, first, second] == 0).all(axis=0))
        return apart if is_odd(kinked_features(self.network)) else np.zeros_like(apart)

    def still(self, pairs: np.ndarray) -> np.ndarray:
        """Whether a signal of the two vanishes in a layer, shape (L + 1, pairs)."""
        zero = np.diagonal(self.K, axis1=1, axis2=2) == 0
        return zero[:, self.pairs[0][pairs]] | zero[:, self.pairs[1][pairs]]

    def turned(self, pairs: np.ndarray) -> np.ndarray:
        """The factor between two inputs that count as one up to it in all layers, or 0.

        1 for the same, −1 for opposite ones of an odd φ, and the ratio of their norms for parallel
        ones of φ(λh) = λφ(h). Shape (pairs,).
        """
        first, second = (members[pairs] for members in self.pairs)
        own, joint = np.diagonal(self.K, axis1=1, axis2=2), self.K[:, first, second]
        odd = is_odd(kinked_features(self.network))
        sums = np.abs([joint + own[:, first], joint + own[:, second]])
        opposite = (sums <= ROUNDING * own[:, first]).all(axis=(0, 1))
        found = np.where(opposite & odd, -1.0, 0.0)
        if self.is_homogeneous or self._is_homogeneous_in_reach:
            # Opposite signals are the same to an even φ, and up to the sign to an odd one.
            sign = np.sign(joint[0]) if odd else np.ones(len(pairs))
            even = is_even(kinked_features(self.network))
            joint = np.abs(joint) if even else sign * joint
            factor = np.sqrt(ratio(own[0, second], own[0, first]))
            apart = [joint - factor * own[:, first], factor * joint - own[:, second]]
            # What lies beyond sets signals apart by as little as it weighs.
            allowed = ROUNDING if self.is_homogeneous else _ALIKE
            near = np.abs(apart) <= allowed * factor**2 * own[:, first]
            found = np.where(near.all(axis=(0, 1)) & (factor > 0), sign * factor, found)
        return np.where(self.same(pairs).all(axis=0), 1.0, found)

    @property
    def is_homogeneous(self) -> bool:
        """Whether φ(λh) = λφ(h) for λ > 0."""
        psi = kinked_features(self.network)
        at_zero = [float(each.function(np.zeros(1))[0]) for each in psi]
        return all(each.has_orthants for each in psi) and not any(at_zero)

    @cached_property
    def _is_homogeneous_in_reach(self) -> bool:
        """The same as far as signals reach, as of ReLU6 of narrow ones."""
        if not self.has_kinks:
            return False
        h = _REACH * np.sqrt(self.K.max()) * np.exp2(-np.arange(12.0))
        values = [psi.function(np.stack([h, -h])) / h for psi in kinked_features(self.network)]
        return all(np.allclose(each, each[:, :1], _STEADY, 0) for each in values)

    @cached_property
    def R(self) -> np.ndarray:
        """h = R z for the two signals of every pair, shape (2, 2, L + 1, p)."""
        first, second = self.pairs
        own = np.diagonal(self.K, axis1=1, axis2=2)
        return triangle(np.stack([own[:, first], own[:, second]]), self.K[:, first, second])

    @cached_property
    def carried(self) -> np.ndarray:
        """A_lk, shape (L + 1, L + 1): the signals of layer k in those of layer l."""
        size = len(self.K)
        A = np.zeros((size, size))
        for k in range(size):
            A[k:, k] = np.cumprod(np.concatenate([[1.0], self.network.skip_scales[k:]]))
        return A

    @cached_property
    def observables(self) -> np.ndarray:
        """The coefficients of g(h_α, h_β), shape (L + 1, p, orders)."""
        return self._resolved[0]

    @property
    def count(self) -> int:
        """Orders 0, ..., count − 1 are kept, as many as it takes."""
        return self._resolved[1]

    @property
    def _resolved(self) -> tuple[np.ndarray, int]:
        found, count, error = self._expansion
        if found is None:
            raise QuadratureError(
                f"{count} Hermite orders of two signals leave a relative error of {error:.1g} in "
                f"the fluctuations of several inputs, allowed is {self.allowed:.1g}; "
                f"solve(..., rtol={2 * error:.1g}) takes it"
            )
        return found, count

    @cached_property
    def allowed(self) -> float:
        """The relative error that is asked for."""
        return max(tolerance(), PAIR_TOLERANCE)

    @cached_property
    def _expansion(self) -> tuple[np.ndarray | None, int, float]:
        """Coefficients of as many orders as it takes, None if none suffice; what they leave out."""
        products = [(psi[0], psi[0]) for psi in features(self.network)]
        every, layers = np.arange(len(self.pairs[0])), np.arange(len(self.K))
        few = every[:: max(1, len(every) // _ASKED_FIRST)]
        # The widest signals take most orders.
        widest = [int(np.argmax(np.trace(self.K, axis1=1, axis2=2)))]
        for count in _COUNTS:
            entries = len(layers) * len(every) * packed_size(count)
            for asked, where in ((few, widest), (every, layers)):
                found = self.expanded(products, count, asked, where)
                error = max(left_out_of(found, count), self._missed(found, asked, where))
                if error > self.allowed:
                    break
                require_memory(
                    f"the expansion of {self.K.shape[-1]} inputs in {count} Hermite orders",
                    8 * _COPIES * entries,
                    "use fewer inputs or layers, or a larger rtol=",
                )
            else:
                return found, count, error
        return None, count, error

    def _missed(
        self, found: np.ndarray, pairs: np.ndarray, layers: Sequence[int] | np.ndarray
    ) -> float:
        """By how much the nodes miss ⟨φ²⟩, as they do of bells that lie between them."""
        first, second = (members[pairs] for members in self.pairs)
        own = np.diagonal(self.K, axis1=1, axis2=2)[layers][:, first[first == second]]
        expected = network_entries(self.network).second_moment(own)
        apart = np.abs(found[:, first == second, 0] - expected)
        return float(np.max(ratio(apart, np.abs(expected)), initial=0.0, where=own > 0))

    def projected(self, first: int, second: int, pairs: np.ndarray) -> np.ndarray:
        """The coefficients of ∂^i_x ∂^j_y g(x, y) for some pairs, shape (L + 1, pairs, orders)."""
        if not first and not second:
            return self.observables[:, pairs]
        products = [(psi[first], psi[second]) for psi in features(self.network)]
        found = self.expanded(products, self.count, pairs)
        if first and second and first + second < _HIGHEST:
            self._take_slopes(first, second, pairs, found)
        return found

    def _take_slopes(self, first: int, second: int, pairs: np.ndarray, found: np.ndarray) -> None:
        """`projected` of orders n > 0 from those of the slopes of the function, n − 1, in place.

        A function that is a constant nearly, as φ'(x) φ'(y) of narrow signals is, has them by
        rounding: n F_ij = √i (∂_1 F)_(i−1)j + √j (∂_2 F)_i(j−1), with ∂ by z.
        """
        widest = np.sqrt(np.diagonal(self.K, axis1=1, axis2=2).max(axis=0))
        (narrow,) = np.nonzero(
            np.maximum(*(widest[members[pairs]] for members in self.pairs)) < _NARROW
        )
        if not len(narrow):
            return
        n, i = packed_places(self.count)
        of_narrow, R = pairs[narrow], self.R[:, :, :, pairs[narrow], None]
        by_x, by_y = (
            self.expanded(
                [(psi[a], psi[b]) for psi in features(self.network)], self.count, of_narrow
            )
            for a, b in ((first + 1, second), (first, second + 1))
        )
        values = found[:, narrow]
        values[..., 1:] = 0.0
        for column, orders, lower in ((0, i, i - 1), (1, n - i, i)):
            slope = R[0, column] * by_x + R[1, column] * by_y
            (some,) = np.nonzero(orders)
            # The places of (lower, n − 1 − lower).
            below = slope[..., n[some] * (n[some] - 1) // 2 + lower[some]]
            values[..., some] += np.sqrt(orders[some]) / n[some] * below
        found[:, narrow] = values

    def squares(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients of g(h_α, h_α) and of g(h_β, h_β) by the modes of the pair αβ."""
        squares = [_squared(psi[0]) for psi in features(self.network)]
        first, second = (members[pairs] for members in self.pairs)
        found = np.zeros((2, len(self.K), len(pairs), packed_size(self.count)))
        for l, K in enumerate(self.K):
            own = np.sqrt(np.maximum(np.diagonal(K), 0.0))
            ones, turn = np.ones(len(pairs)), unit_row(self.R[:, :, l, pairs])
            for square in squares:
                found[0, l] += coefficients_alone(square, own[first], ones, 0 * ones, self.count)
                found[1, l] += coefficients_alone(square, own[second], *turn, self.count)
        return found[0], found[1]

    def expanded(
        self,
        products: list[tuple[Function, Function]],
        count: int,
        pairs: np.ndarray,
        layers: Sequence[int] | np.ndarray | None = None,
        rule: ProductRule | None = None,
    ) -> np.ndarray:
        """The coefficients of Σ f(x) g(y), in all layers if none are given."""
        layers = range(len(self.K)) if layers is None else layers
        first, second = (members[pairs] for members in self.pairs)
        found = np.zeros((len(layers), len(pairs), packed_size(count)))
        for row, l in enumerate(layers):
            own = np.sqrt(np.maximum(np.diagonal(self.K[l]), 0.0))
            deviations = np.stack([own[first], own[second]])
            along, across = unit_row(self.R[:, :, l, pairs])
            for f, g in products:
                found[row] += coefficients(f, g, deviations, along, across, count, rule)
        return found

    def between(
        self, k: int, rows: np.ndarray, l: int | np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """X of pairs in layer k with pairs in a layer l >= k, or one each, shape (2, 2, m)."""
        first, second = self.pairs
        own = first[rows], second[rows]
        others = first[columns], second[columns]
        covariance = np.array([[self.K[k][a, b] for b in others] for a in own])
        covariance = covariance * self.carried[l, k]
        return correlations(self.R[:, :, k, rows], covariance, self.R[:, :, l, columns])

    def brought_back(
        self,
        functions: np.ndarray,
        k: int,
        pairs: np.ndarray,
        layers: np.ndarray | None = None,
    ) -> np.ndarray:
        """Functions of pairs in later layers, given the signals of layer k, k at the earliest.

        Parameters
        ----------
        functions : ndarray, shape (layers, pairs, orders)
        k : int
        pairs : ndarray of int
        layers : ndarray of int, optional
            The last ones if it is not given.

        Returns
        -------
        ndarray, shape (layers, pairs, orders)
        """
        if layers is None:
            layers = np.arange(len(self.K) - len(functions), len(self.K))
        count = order_count(functions.shape[-1])
        l, columns = np.repeat(layers, len(pairs)), np.tile(pairs, len(layers))
        X = np.swapaxes(self.between(k, columns, l, columns), 0, 1)
        found = apply(X, functions.reshape(len(l), -1).T, count).T.reshape(functions.shape)
        found[layers == k] = functions[layers == k]
        return found


def apply(X: np.ndarray, f: np.ndarray, count: int) -> np.ndarray:
    """`correlated` in parts that stay in the cache, shape (orders, m)."""
    parts = [
        correlated(X[..., start : start + TOGETHER], f[:, start : start + TOGETHER], count)
        for start in range(0, X.shape[-1], TOGETHER)
    ]
    return np.concatenate(parts, axis=1)


def features(network: LayeredNetwork) -> tuple[tuple[Function, ...], ...]:
    """The ψ_k of a network as functions of arrays, with four derivatives if they are smooth."""
    return _compiled(feature_expressions(network))


def kinked_features(network: LayeredNetwork) -> tuple[Feature, ...]:
    """The ψ_k of a network with what is known of their kinks."""
    return tuple(feature(psi) for psi in feature_expressions(network))


def places_of_jumps(network: LayeredNetwork) -> list[float]:
    """Where the ψ_k of a network jump."""
    kinks = (kink for psi in kinked_features(network) for kink in psi.jumps)
    return [kink.place for kink in kinks if abs(kink.sizes[0]) > _STEADY]


def feature_expressions(network: LayeredNetwork) -> tuple[sp.Expr, ...]:
    """The ψ_k of a network in ``X``."""
    return tuple(network.features(network.activation, X, dict(feature_parameters(network))))


@lru_cache(maxsize=64)
def _compiled(expressions: tuple[sp.Expr, ...]) -> tuple[tuple[Function, ...], ...]:
    return tuple(
        tuple(_of_arrays(psi.diff(X, j)) for j in range(5 if not has_steps(psi) else 1))
        for psi in expressions
    )


def _of_arrays(F: sp.Expr) -> Function:
    compiled = vectorised([X], F)
    return lambda h: np.broadcast_to(compiled(h), np.shape(h))


def _squared(f: Function) -> Function:
    return lambda h: f(h) ** 2


def variances_of_orders(found: np.ndarray, count: int) -> np.ndarray:
    """What the orders 1, ..., count − 1 are of ⟨g ; g⟩, shape (observables, count − 1)."""
    squares = found.reshape(-1, found.shape[-1]) ** 2
    return np.stack([squares[:, block(n)].sum(axis=1) for n in range(1, count)], axis=1)


def left_out_of(found: np.ndarray, count: int) -> float:
    """What higher orders may add to correlators, relative to variances, from the last ones."""
    of_orders = variances_of_orders(found, count)
    total = of_orders.sum(axis=1)
    near = of_orders[:, count // 2 : 3 * count // 4].sum(axis=1)
    last = of_orders[:, 3 * count // 4 :].sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        fall = np.where(near > 0, last / near, 0.0)
        rest = np.where(fall < 1, _SAFETY * last * fall / (1 - fall), np.inf)
        # What has fallen to rounding falls no further.
        rest = np.where(last > _ROUNDING * total, rest, _SAFETY * last)
        error: Any = np.where(total > 0, rest / total, 0.0)
    return float(error.max())
