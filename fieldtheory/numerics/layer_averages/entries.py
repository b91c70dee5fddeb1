"""`LayerFunctions` with what fluctuations ask about them besides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from fieldtheory.averages import ConnectedCorrelator
from fieldtheory.averages.integrands.breakpoints import has_steps
from fieldtheory.averages.quadrature.compiled import kinks_of
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
    feature_parameters,
)


@dataclass(frozen=True)
class Entries(LayerFunctions):
    """`LayerFunctions` and the correlators of layers."""

    @cached_property
    def covariance_curvature(self) -> Callable:
        """∂²⟨φφ⟩ by K_xx twice, by K_xx and K_yy, by K_xx and K_xy, by K_xy twice, a list."""
        twice = [(K_XX, K_XX), (K_XX, K_YY), (K_XX, K_XY), (K_XY, K_XY)]
        entries = [self.averages.covariance.diff(*by) for by in twice]
        return lambdify([K_XX, K_YY, K_XY], entries, self.backend)

    @cached_property
    def has_closed_kinks(self) -> bool:
        """Whether φ² has kinks, and ⟨φ²(x) ; φ²(y)⟩ a closed form in spite of them."""
        square = self.averages.square
        # Orthants have closed forms, other wedges have none.
        if not has_steps(square) or any(kinks_of(square, X)):
            return False
        return not self.averages.connected.doit().has(ConnectedCorrelator)


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
