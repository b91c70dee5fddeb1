"""The coefficients of the layers of a network as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.networks.family import DeepNetwork, LayeredNetwork


@dataclass(frozen=True)
class LayerCoefficients:
    """Coefficients of the layers, the layer axis first and batch axes behind it."""

    # (L + 2, ...): a_l, 0 for the input, ρ_l² σ²_w of a residual network, σ²_w,out of the readout.
    weights: np.ndarray
    # (L + 2, ...): c_l, the same with bias variances.
    biases: np.ndarray
    # (L + 2, ...): γ_l², 0 for the input and the readout, which have no skip connection.
    skips: np.ndarray


def layer_coefficients(
    network: DeepNetwork, trailing: int = 0, batch: int = 0
) -> LayerCoefficients:
    """The coefficients of a network, with ``trailing`` axes of length 1 for pairs of inputs.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> found = layer_coefficients(ResidualNetwork(depth=2, branch_scale=0.5, weight_variance=2.0))
    >>> found.weights
    array([0. , 0.5, 0.5, 2. ])
    """
    parameters, shape = of_layers(network)
    one = np.ones((1, *shape[1:]))
    (a, c, skip), (a_out, c_out, _) = network.layer(parameters), network.readout(parameters)
    new, found = (1,) * (batch + 1 - len(shape)), []
    for middle, last in ((a, a_out), (c, c_out), (skip**2, 0.0)):
        values = np.concatenate([0.0 * one, np.broadcast_to(middle, shape), last * one])
        found.append(values.reshape(len(values), *new, *shape[1:], *(1,) * trailing))
    return LayerCoefficients(*found)


def of_layers(network: DeepNetwork) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The parameters of a network, those of its layers with the layer axis first, and their shape.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> parameters, shape = of_layers(ResidualNetwork(depth=2, branch_scale=[[0.1], [0.2], [0.3]]))
    >>> shape, parameters["weight_variance"]
    ((2, 3), 1.25)
    """
    parameters = network.parameters
    names = network.layer_parameters
    arrays = np.broadcast_arrays(np.ones(network.depth), *(parameters[name] for name in names))
    ones, *stacked = (np.moveaxis(values, -1, 0) for values in arrays)
    return parameters | dict(zip(names, stacked, strict=True)), ones.shape


class UnitBranch(NamedTuple):
    """a_l/ρ_l² and c_l/ρ_l², for families in which both grow as ρ_l²: σ²_w and σ²_b."""

    weight: float
    bias: float


def unit_branch(network: LayeredNetwork) -> UnitBranch:
    """The coefficients of a layer for ρ = 1, of a family with a_l, c_l ∝ ρ_l² = branch_scale².

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> unit_branch(ResidualNetwork(depth=2, branch_scale=0.5, weight_variance=2.0))
    UnitBranch(weight=2.0, bias=0.05)
    """
    parameters = network.parameters
    if "branch_scale" not in parameters:
        raise ValueError(f"network must have a branch_scale, got {network!r}")
    one, two = (network.layer(parameters | {"branch_scale": scale}) for scale in (1.0, 2.0))
    if np.shape(one.weight) or (two.weight, two.bias) != (4 * one.weight, 4 * one.bias):
        raise ValueError(
            f"network must have coefficients that grow as branch_scale², got {network!r}"
        )
    return UnitBranch(float(one.weight), float(one.bias))
