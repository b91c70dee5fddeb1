"""What the parameters of a layer add to the tangent kernel, by parametrisation and rates."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.coefficients import layer_coefficients, of_layers
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.tangents import Trained
from fieldtheory.theory import notation as sym
from fieldtheory.theory.tangent_kernel import (
    checked_parametrization,
    family_tangent,
    readin_tangent,
)


def trained(
    network: LayeredNetwork,
    parametrization: str = "ntk",
    weight_rates: Any = 1.0,
    bias_rates: Any = 1.0,
) -> Trained:
    """The w_l and u_l of `Trained`, each times the learning rate of its layer.

    Parameters
    ----------
    network : LayeredNetwork
    parametrization, weight_rates, bias_rates
        As `tangent_kernels` takes them.

    Returns
    -------
    Trained

    Raises
    ------
    ValueError, TypeError
        If an argument is not allowed, or the read-in has no weights, so that K0 does not give x·x'.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=1, weight_variance=2.0, bias_variance=0.0, width=500)
    >>> trained(net, weight_rates=[0, 1, 1]).weights
    array([0., 2., 2.])
    >>> found = trained(net, "standard")
    >>> found.weights, found.biases
    (array([ 50., 500., 500.]), array([1., 1., 1.]))
    """
    parametrization = checked_parametrization(parametrization)
    of_weights = rates("weight_rates", weight_rates, network.depth)
    of_biases = rates("bias_rates", bias_rates, network.depth)
    hidden = layer_coefficients(network)
    weights, biases = hidden.weights, hidden.biases
    if parametrization == "standard":
        weights, biases = _of_entries(network, weights.shape)
    axes = (-1, *(1,) * (weights.ndim - 1))
    weights, biases = weights * of_weights.reshape(axes), biases * of_biases.reshape(axes)
    weights[0], biases[0] = _of_readin(network, parametrization, of_weights[0], of_biases[0])
    return Trained(weights, biases)


def rates(name: str, value: Any, depth: int) -> np.ndarray:
    """Learning rates >= 0 of the read-in, the L layers and the readout, shape (L + 2,).

    Examples
    --------
    >>> rates("weight_rates", 0.5, 1)
    array([0.5, 0.5, 0.5])
    """
    array = validation.finite_array(name, value)
    if array.ndim > 1 or array.shape not in ((), (depth + 2,)):
        raise ValueError(
            f"{name} must be a number or depth + 2 = {depth + 2} of them, for the read-in, the "
            f"layers and the readout, got shape {array.shape}"
        )
    if (array < 0).any():
        raise ValueError(f"{name} must be >= 0, got {float(array.min())!r}")
    return np.array(np.broadcast_to(array, (depth + 2,)))


def require_split(network: LayeredNetwork, coefficients: Trained, K0: np.ndarray) -> None:
    """Refuse variances of the input too small for the biases that they are said to hold.

    Where weights and biases of the read-in count differently, K^(0) − σ²_b,in is needed.
    """
    bias = network.parameters["readin_bias_variance"]
    if (coefficients.biases[0] != 0).any() and (K0 < bias * (1 - 1e-12)).any():
        raise ValueError(
            f"K0 must have variances of at least readin_bias_variance={bias:g}, the part of the "
            f"biases, got {float(K0.min()):g}"
        )


def _of_readin(
    network: LayeredNetwork, parametrization: str, of_weights: float, of_biases: float
) -> tuple[float, float]:
    """w_0 and u_0 of Θ^(0) = w_0 K^(0) + u_0."""
    variances = [network.parameters[f"readin_{kind}_variance"] for kind in ("weight", "bias")]
    if parametrization == "standard" and of_weights and not variances[0]:
        raise ValueError(
            "readin_weight_variance must be positive, so that K0 tells the products x·x' of "
            "inputs, got 0; or train no read-in weights: weight_rates[0] = 0"
        )
    factor, added = _readin_functions(parametrization)
    weight = of_weights * factor(*variances, network.input_dim) if of_weights else 0.0
    return weight, of_biases * added(*variances, network.input_dim) - weight * variances[1]


def _of_entries(network: LayeredNetwork, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Contributions of weights and biases, as the coefficients of the layers, for rate one."""
    parameters, _ = of_layers(network)
    hidden, readout = _layer_functions(type(network), tuple(sorted(parameters)))
    values = [parameters[name] for name in sorted(parameters)]
    last = [np.take(v, -1, axis=0) if np.ndim(v) else v for v in values]
    coefficients = np.zeros((2, *shape))
    for i in range(2):
        coefficients[i, 1:-1] = hidden[i](*values, network.width)
        coefficients[i, -1] = readout[i](*last, network.width)
    return coefficients[0], coefficients[1]


@lru_cache(maxsize=8)
def _readin_functions(parametrization: str) -> list[Callable[..., Any]]:
    """The expressions of `readin_tangent` as functions of both variances and d_in."""
    weight, bias, d = sp.symbols("weight bias d", positive=True)
    expressions = readin_tangent(weight, bias, parametrization)
    return [sp.lambdify([weight, bias, d], entry) for entry in expressions]


@lru_cache(maxsize=8)
def _layer_functions(family: type[LayeredNetwork], names: tuple[str, ...]) -> list[list[Any]]:
    """w_l and u_l of a layer and of the readout as functions of the parameters and N."""
    symbols = {name: sp.Symbol(name, positive=True) for name in names}
    functions = []
    for readout in (False, True):
        layer = family_tangent(family, symbols, "standard", readout)
        arguments = [*symbols.values(), sym.WIDTH]
        functions.append([sp.lambdify(arguments, entry) for entry in (layer.weights, layer.biases)])
    return functions
