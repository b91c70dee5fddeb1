"""`LayerFunctions` with what G11 of one input and mean shifts of pairs still take from rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np

from fieldtheory.averages import ConnectedCorrelator, numeric
from fieldtheory.averages.integrals.vectorising import kinks_of
from fieldtheory.averages.integrands.narrow import is_fine
from fieldtheory.averages.integrands.steps import has_cusp, has_steps
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions, layer_functions
from fieldtheory.theory.elementary_averages import (
    K_XX,
    K_XY,
    K_YY,
    Features,
    X,
    Y,
    feature_parameters,
)

# Variance below which the transforms of a connected correlator lose digits to cancellation.
_NARROWEST = 0.06


@dataclass(frozen=True)
class Entries(LayerFunctions):
    """`LayerFunctions` and the correlators of layers."""

    @property
    def slope_of_jumps(self) -> None:
        """No form of its own: the engine takes determinants without cancellation."""
        return

    @cached_property
    def covariance_curvature(self) -> Callable:
        """∂²⟨φφ⟩ by K_xx twice, by K_xx and K_yy, by K_xx and K_xy, by K_xy twice, a list."""
        twice = [(K_XX, K_XX), (K_XX, K_YY), (K_XX, K_XY), (K_XY, K_XY)]
        entries = [self.averages.covariance.diff(*by) for by in twice]
        return lambdify([K_XX, K_YY, K_XY], entries, self.backend)

    @cached_property
    def connected_steps(self) -> Callable:
        """⟨φ²(x) ; φ²(x + w)⟩ of variances (n,) of x and (m,) of an independent w, shape (n, m)."""
        square, connected = self.averages.square, self.connected

        def one_by_one(K: np.ndarray, steps: np.ndarray) -> np.ndarray:
            first, step = (k.ravel() for k in np.broadcast_arrays(K[:, None], steps))
            return connected(first + step, first, first).reshape(len(K), len(steps))

        K = [[K_XX, K_XY], [K_XY, K_YY]]
        closed = numeric.inner_average(square, square.subs(X, Y), (X, Y), K)
        if has_steps(square) or closed is not None or is_fine(square, X):
            return one_by_one
        together = numeric.connected_steps(square, X)

        def all_at_once(K: np.ndarray, steps: np.ndarray) -> np.ndarray:
            values = np.full((len(K), len(steps)), np.nan)
            # Variances of one power of four share a grid, as fine and as wide as they need.
            power = np.floor(np.log2(np.maximum(K, 1e-30)) / 2)
            reach = np.floor(np.log2(steps + 1) / 6)
            for row, column in product({p for p in power if 4**p >= _NARROWEST}, set(reach)):
                rows, columns = np.nonzero(power == row)[0], np.nonzero(reach == column)[0]
                values[np.ix_(rows, columns)] = together(K[rows], steps[columns])
            rows, columns = np.nonzero(np.isnan(values))
            if len(rows):
                first = K[rows]
                values[rows, columns] = connected(first + steps[columns], first, first)
            return values

        return all_at_once

    @cached_property
    def has_closed_kinks(self) -> bool:
        """Whether φ² has kinks, and ⟨φ²(x) ; φ²(y)⟩ a closed form in spite of them."""
        square = self.averages.square
        # Orthants have closed forms, other wedges have none.
        if not has_steps(square) or any(kinks_of(square, X)):
            return False
        return not self.averages.connected.doit().has(ConnectedCorrelator)

    @cached_property
    def connected_layers(self) -> Callable | None:
        """⟨φ²(x_k) ; φ²(x_l)⟩ of signals that add up, as a function of their variances K > 0.

        For functions with kinks whose correlator has no closed form, else None; None for cusps,
        which leave panels nothing to be smooth on.
        """
        square = self.averages.square
        if not has_steps(square) or self.has_closed_kinks or has_cusp(square, X):
            return None
        return numeric.connected_layers(square, X)


@lru_cache(maxsize=64)
def entries(
    activation: Activation,
    backend: str = "numpy",
    features: Features = ResidualNetwork.features,
    parameters: tuple[tuple[str, Any], ...] = (),
) -> Entries:
    """The compiled entries of an activation, shared by all networks that use it."""
    known = layer_functions(activation, backend, features, parameters)
    return Entries(known.averages, known.features, known.backend)


def network_entries(network: LayeredNetwork) -> Entries:
    """The compiled entries of a network."""
    features = type(network).features
    return entries(network.activation, "numpy", features, feature_parameters(network))
