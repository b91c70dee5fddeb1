"""Derivatives of kernels by the parameters of the network: differences of the sixth order.

    f'(p) = (64 d(h) − 20 d(2h) + d(4h))/45 + O(h⁶),   d(h) = (f(p + h) − f(p − h))/(2h)

Kernels are known to 1e-12 and are analytic in the parameters, so that a step in which they change
by half a per cent leaves about 1e-10 of their size. Kernels hardly change with parameters that are
much smaller than one: their steps are larger than they are, upwards, unless differences of two
orders show that kernels vary on the scale of the parameter itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fieldtheory.networks.family import DeepNetwork
from fieldtheory.networks.parameters import unknown_argument
from fieldtheory.validation import excerpt

_DEVIATION = "_deviation"


def along_parameter(network: DeepNetwork, name: str) -> tuple[float, Callable[[float], Any]]:
    """An argument of a network without batch axes, and the network with another value of it.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> value, network_of = along_parameter(ResidualNetwork(depth=2), "bias_deviation")
    >>> round(value, 6), network_of(0.5).parameters["readout_bias_variance"]
    (0.223607, 0.25)
    """
    parameters = network.parameters
    if not isinstance(name, str):
        words = f"in front of X, got {excerpt(name)}"
        raise TypeError(f"name must be the name of a parameter of the network, {words}")
    variance = f"{name.removesuffix(_DEVIATION)}_variance"
    if name.endswith(_DEVIATION) and variance in parameters:
        root = float(np.sqrt(parameters[variance]))
        return root, lambda value: network.replace(**{variance: value**2})
    if name not in parameters:
        raise TypeError(unknown_argument(name, tuple(parameters)))
    values = np.asarray(parameters[name], dtype=float)
    largest = float(np.abs(values).max())
    return largest, lambda value: network.replace(**{name: (values + value - largest).tolist()})


def parameter_derivative(
    network: DeepNetwork,
    name: str,
    evaluated: Callable[[DeepNetwork], Any],
    sample: Callable[[DeepNetwork], np.ndarray],
) -> Any:
    """The derivative by an argument (`along_parameter`) of the array ``evaluated`` of a network."""
    # Weights of f at multiples of h: central ones, forward ones where p = 0 is the lowest value.
    central = {-4: -1, -2: 40, -1: -256, 1: 256, 2: -40, 4: 1}, 360
    forward = {0: -147, 1: 360, 2: -450, 3: 400, 4: -225, 5: 72, 6: -10}, 60
    # The same of the second order, and by how much the two may differ, relative to the larger.
    coarse = ({-1: -1, 1: 1}, 2), ({0: -3, 1: 4, 2: -1}, 2)
    differs, agrees = 0.02, 1e-4
    # Change of the kernel in a step, and the step by which its slope is estimated; smaller
    # parameters than the last have the steps of that one.
    target, trial, small = 5e-3, 1e-5, 0.1
    value, network_of = along_parameter(network, name)

    def differences(scale: float) -> tuple[Any, Any, Any]:
        """The derivative, the same of the second order, and what both are compared with."""
        before, after = (np.abs(sample(network_of(value + d))) for d in (0.0, trial * scale))
        change = float(np.max(np.abs(after - before) / np.where(before > 0, before, 1.0))) / trial
        step = scale * target / max(change, 1.0)
        at_lower_end = int(value < 4 * step)
        values = {
            n: evaluated(network_of(value + n * step)) for n in (central, forward)[at_lower_end][0]
        }
        fine, rough = (
            sum(weight * values[n] for n, weight in weights.items()) / (over * step)
            for weights, over in (pair[at_lower_end] for pair in ((central, forward), coarse))
        )
        return fine, rough, abs(values[1]) / scale

    def checked(fine: np.ndarray, rough: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        if _differ(fine, rough, kernel, differs):
            raise ValueError(
                f"the kernel of {network.activation.name} has no finite derivative by {name}: φ "
                "has kinks, and two inputs are parallel or one vanishes"
            )
        return fine

    derivatives = differences(max(value, small))
    if not isinstance(derivatives[0], np.ndarray):
        return derivatives[0].map_blocks(checked, *derivatives[1:], meta=np.empty((0, 0)))
    if 0 < value < small and _differ(*derivatives, agrees):
        derivatives = differences(value)
    return checked(*derivatives)


def _differ(fine: np.ndarray, rough: np.ndarray, kernel: np.ndarray, allowed: float) -> bool:
    size = np.maximum(np.abs(fine), np.abs(rough)) + kernel.max(initial=0.0)
    return bool((np.abs(fine - rough) > allowed * size).any())
