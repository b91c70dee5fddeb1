"""Where the features of a network jump."""

from __future__ import annotations

from fieldtheory.averages.quadrature.piecewise import function_of
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.theory.elementary_averages import X, feature_parameters


def places_of_jumps(network: LayeredNetwork) -> list[float]:
    """Where the ψ_k of a network jump."""
    expressions = network.features(network.activation, X, dict(feature_parameters(network)))
    return [float(place) for psi in expressions for place in function_of(psi, X).jumping]
