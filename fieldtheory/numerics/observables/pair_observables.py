"""The features of a network, and where they have kinks and jumps."""

from __future__ import annotations

from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.kinks.kinked_features import Feature, feature
from fieldtheory.theory.elementary_averages import X, feature_parameters

# By how much continuous functions may change at a kink by rounding.
_STEADY = 1e-12


def kinked_features(network: LayeredNetwork) -> tuple[Feature, ...]:
    """The ψ_k of a network with their kinks."""
    expressions = network.features(network.activation, X, dict(feature_parameters(network)))
    return tuple(feature(psi) for psi in expressions)


def places_of_jumps(network: LayeredNetwork) -> list[float]:
    """Where the ψ_k of a network jump."""
    kinks = (kink for psi in kinked_features(network) for kink in psi.jumps)
    return [kink.place for kink in kinks if abs(kink.sizes[0]) > _STEADY]
