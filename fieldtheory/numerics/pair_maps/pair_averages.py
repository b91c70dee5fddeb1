"""The averages of a layer for very many pairs of inputs, for searches over networks.

They are those of `LayerFunctions`, whose tables and long series pay for so many pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.routes import DEFAULT, relative_tolerance
from fieldtheory.compiling.translation import is_closed
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions
from fieldtheory.theory.elementary_averages import LayerAverages

# Averages at larger variances are NaN.
_FARTHEST = 1e13


@dataclass(frozen=True, eq=False)
class PairFunctions:
    """`LayerFunctions` of arrays of inputs and of pairs of them."""

    entries: LayerFunctions
    # The relative error that is asked for.
    allowed: float = DEFAULT
    # Whether an average whose integral does not converge is NaN, with all at larger variances.
    searching: bool = False

    @property
    def averages(self) -> LayerAverages:
        """The averages in symbols."""
        return self.entries.averages

    @cached_property
    def closed(self) -> bool:
        """Whether ⟨φφ⟩ has a closed form."""
        return is_closed(self.entries.averages.covariance)

    def moments(self, K: Any, order: int = 2) -> list[np.ndarray]:
        """M(K) = ⟨φ²⟩ and its derivatives up to the order."""
        entries = self.entries
        if self.closed:
            names = ("second_moment", "susceptibility", "curvature")[: order + 1]
            return [getattr(entries, name)(K) for name in names]
        K = np.asarray(K, dtype=float)
        near = K.ravel() <= _FARTHEST
        values = np.full((order + 1, K.size), np.nan)
        values[:, near] = self._exact(
            lambda k: entries.moments(k)[: order + 1], order + 1, K.ravel()[near]
        )
        return list(values.reshape(order + 1, *K.shape))

    def second_moment(self, K: Any) -> np.ndarray:
        """M(K) = ⟨φ²⟩."""
        return self.moments(K, 0)[0]

    def susceptibility(self, K: Any) -> np.ndarray:
        """M'(K)."""
        return self.moments(K, 1)[1]

    def covariance_flow(self, own: np.ndarray, pairs: Any, r: np.ndarray) -> list[Any]:
        """⟨φφ⟩, its gradient by (K_xx, K_yy, K_xy), and the gradient of ⟨φ'φ'⟩."""
        K = np.broadcast_arrays(*(own.take(one, axis=-1) for one in pairs), r)
        flow = self.entries.covariance_flow
        return list(flow(*K)) if self.closed else self._near(flow, 7, K)

    def covariance_gain(self, own: np.ndarray, pairs: Any, r: np.ndarray) -> list[Any]:
        """⟨φφ⟩ and its derivative by K_xy, ⟨φ'φ'⟩; the parameters are those of the flow."""
        K = np.broadcast_arrays(*(own.take(one, axis=-1) for one in pairs), r)
        if self.closed:
            return list(self.entries.covariance_gain(*K))
        return self._near(lambda *k: self.entries.of_pairs(*k, kinds=2, many=True), 2, K)

    def _near(
        self, function: Callable[..., Any], count: int, K: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """So many averages of arrays of one shape, NaN of pairs beyond the range of numbers."""
        p, q, r = flat = [k.ravel() for k in K]
        averages = np.full((count, K[0].size), np.nan)
        with np.errstate(invalid="ignore", over="ignore"):
            inside = (p <= _FARTHEST) & (q <= _FARTHEST) & np.isfinite(r)
            # Without signals that vanish.
            inside &= (p * q > 0) & (r * r <= p * q * (1 + 1e-12))
        averages[:, inside] = self._exact(function, count, *(k[inside] for k in flat))
        return list(averages.reshape(count, *K[0].shape))

    def _exact(self, function: Callable[..., Any], count: int, *K: np.ndarray) -> np.ndarray:
        with relative_tolerance(self.allowed):
            if self.searching:
                return as_far_as_known(function, count, *K)
            return np.array(function(*K))


def as_far_as_known(
    function: Callable[..., Sequence[np.ndarray]], count: int, *covariances: np.ndarray
) -> np.ndarray:
    """Averages as functions of variances, or of covariances of pairs, NaN from where one is lost.

    Examples
    --------
    >>> def root(K):
    ...     if (K > 3).any():
    ...         raise QuadratureError("too large")
    ...     return [np.sqrt(K)]
    >>> as_far_as_known(root, 1, np.array([1.0, 9.0, 2.25, 4.0]))
    array([[1. , nan, 1.5, nan]])
    """
    try:
        return np.array(function(*covariances))
    except QuadratureError:
        values = np.full((count, len(covariances[0])), np.nan)
    for i in np.argsort(np.maximum.reduce(covariances), kind="stable"):
        try:
            values[:, [i]] = function(*(K[[i]] for K in covariances))
        except QuadratureError:
            break
    return values


@lru_cache(maxsize=64)
def pair_functions(
    entries: LayerFunctions, allowed: float = DEFAULT, searching: bool = False
) -> PairFunctions:
    """The averages of a layer for many pairs, shared by all networks that use them."""
    return PairFunctions(entries, allowed, searching)
