"""What the parameters of a layer add to the tangent kernel, by parametrisation and rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.coefficients import layer_coefficients, of_layers
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.numerics.infinite_width.tangents import Trained
from fieldtheory.numerics.recursion import ratio
from fieldtheory.theory import notation as sym
from fieldtheory.theory.tangent_kernel import family_tangent, readin_tangent


def checked_rates(network: DeepNetwork, rates: Any) -> np.ndarray:
    """Learning rates >= 0 of the kinds ``network.trained`` in every layer, (kinds, L + 2).

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> checked_rates(ResidualNetwork(depth=1), {"weight": 0.5})[:3]
    array([[1. , 0. , 0. ],
           [1. , 0. , 0. ],
           [0. , 0.5, 0. ]])
    """
    if not isinstance(rates, Mapping | None):
        raise TypeError(f"rates must map kinds of parameters to rates, got {rates!r}")
    chosen, depth = dict(rates or {}), network.depth
    for kind in chosen:
        validation.choice("rates", kind, network.trained)
    values = np.zeros((len(network.trained), depth + 2))
    for row, kind in zip(values, network.trained, strict=True):
        first = {"readin": 0, "readout": -1}.get(kind.rpartition("_")[0])
        layers: Any = slice(1, -1) if first is None else first
        rate = validation.finite_array(f"rates[{kind!r}]", chosen.get(kind, 1.0))
        if rate.ndim and not (first is None and rate.shape == (depth,)):
            allowed = f"a number or {depth} of them" if first is None else "a number"
            raise ValueError(f"rates[{kind!r}] must be {allowed}, got shape {rate.shape}")
        if (rate < 0).any():
            raise ValueError(f"rates[{kind!r}] must be >= 0, got {float(rate.min())!r}")
        row[layers] = rate
    return values


def trained(network: DeepNetwork, parametrization: str, rates: np.ndarray) -> Trained:
    """The coefficients of `Trained`, each times the learning rate of its kind and layer.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=1, weight_variance=2.0, bias_variance=0.0, width=500)
    >>> trained(net, "ntk", checked_rates(net, {"readin_weight": 0})).weights
    array([0., 2., 2.])
    >>> found = trained(net, "standard", checked_rates(net, {}))
    >>> found.weights, found.biases
    (array([ 50., 500., 500.]), array([1., 1., 1.]))
    """
    layers = layer_coefficients(network)
    axes = (-1, *(1,) * (layers.weights.ndim - 1))

    def of(kind: str) -> np.ndarray:
        if kind not in network.trained:
            return np.zeros(layers.weights.shape)
        return rates[network.trained.index(kind)].reshape(axes) + np.zeros(layers.weights.shape)

    standard = parametrization == "standard"
    weights, biases = layers.weights, layers.biases
    if standard:
        weights, biases = _of_entries(network, weights.shape)
    outer = "outer_" if network.signal_names else ""
    weights = weights * (of(f"{outer}weight") + of("readout_weight"))
    biases = biases * (of(f"{outer}bias") + of("readout_bias"))
    parts = of("readin_weight")[0].flat[0], of("readin_bias")[0].flat[0]
    weights[0], biases[0] = _of_readin(network, parametrization, *map(float, parts))
    signals = []
    for k, name in enumerate(network.signal_names):
        of_weights, of_biases = of(f"{name}_weight"), of(f"{name}_bias")
        parameters, _ = of_layers(network)
        bias = np.zeros(layers.weights.shape)
        bias[1:-1] = network.signals(0.0, parameters)[k]  # type: ignore[attr-defined]
        if standard:
            variance = np.zeros(layers.weights.shape)
            variance[1:-1] = parameters[f"{name}_weight_variance"]
            if (of_weights[variance == 0] > 0).any():
                raise ValueError(
                    f"{name}_weight_variance must be positive for the standard parametrization, "
                    f"got 0; or train none of them: rates={{'{name}_weight': 0}}"
                )
            of_weights = network.width * ratio(of_weights, variance)
            signals.append((of_weights, of_biases - of_weights * bias))
        else:
            signals.append((of_weights, (of_biases - of_weights) * bias))
    return Trained(weights, biases, tuple(signals))


def require_split(network: DeepNetwork, coefficients: Trained, K0: np.ndarray) -> None:
    """Refuse variances of the input too small for the biases that they are said to hold."""
    bias = network.parameters["readin_bias_variance"]
    if (coefficients.biases[0] != 0).any() and (K0 < bias * (1 - 1e-12)).any():
        raise ValueError(
            f"K0 must have variances of at least readin_bias_variance={bias:g}, the part of the "
            f"biases, got {float(K0.min()):g}"
        )


def _of_readin(
    network: DeepNetwork, parametrization: str, of_weights: float, of_biases: float
) -> tuple[float, float]:
    """w_0 and u_0 of Θ^(0) = w_0 K^(0) + u_0."""
    variances = [network.parameters[f"readin_{kind}_variance"] for kind in ("weight", "bias")]
    if parametrization == "standard" and of_weights and not variances[0]:
        raise ValueError(
            "readin_weight_variance must be positive, so that K0 tells the products x·x' of "
            "inputs, got 0; or train no read-in weights: rates={'readin_weight': 0}"
        )
    factor, added = _readin_functions(parametrization)
    weight = of_weights * factor(*variances, network.input_dim) if of_weights else 0.0
    return weight, of_biases * added(*variances, network.input_dim) - weight * variances[1]


def _of_entries(network: DeepNetwork, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Contributions of weights and biases, as the coefficients of the layers, for rate one."""
    parameters, _ = of_layers(network)
    coefficients = np.zeros((2, *shape))
    if network.signal_names:
        # Entries have variance σ²/M and biases σ²; those of the linear readout σ²/N.
        ones = dict.fromkeys(("outer_weight_variance", "outer_bias_variance"), 1.0)
        layer = network.layer(parameters | ones)
        units: Any = network.hidden_width  # type: ignore[attr-defined]
        coefficients[0, 1:-1], coefficients[1, 1:-1] = layer.weight * units, layer.bias
        coefficients[0, -1], coefficients[1, -1] = network.width, 1.0
        return coefficients[0], coefficients[1]
    hidden, readout = _layer_functions(type(network), tuple(sorted(parameters)))
    values = [parameters[name] for name in sorted(parameters)]
    last = [np.take(v, -1, axis=0) if np.ndim(v) else v for v in values]
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
def _layer_functions(family: Any, names: tuple[str, ...]) -> list[list[Any]]:
    """w_l and u_l of a layer and of the readout as functions of the parameters and N."""
    symbols = {name: sp.Symbol(name, positive=True) for name in names}
    functions = []
    for readout in (False, True):
        layer = family_tangent(family, symbols, "standard", readout)
        arguments = [*symbols.values(), sym.WIDTH]
        functions.append([sp.lambdify(arguments, entry) for entry in (layer.weights, layer.biases)])
    return functions
