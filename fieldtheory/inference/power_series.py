"""Kernels on spheres as power series, by which they can or cannot express any function."""

from __future__ import annotations

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.quadrature.one_variable import Coefficients
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import DeepNetwork, deep_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.infinite_width.block_functions import Entry, network_functions
from fieldtheory.numerics.infinite_width.kernels import variances
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions


@named_arguments
def power_coefficients(
    network: DeepNetwork, dimension: int = 2, norm: float = 1.0, count: int = 12
) -> np.ndarray:
    """The output kernel on a sphere as a power series, p(t) = Σ_n b_n tⁿ with t = cos θ.

    No b_n is negative, so that the kernel is positive on spheres of any dimension. An eigenvalue
    of degree k is a sum over n = k, k + 2, ... of b_n times a positive number: where infinitely
    many b_n of even and of odd n are positive, all eigenvalues are, and the kernel is universal on
    the sphere (SR Propositions 4 and 6).

    Layers compose the series of the correlation c(t) with that of φ in Hermite polynomials,
    ⟨φφ⟩ = Σ_m ⟨φ h_m⟩² c^m. All terms are positive, so that no digits cancel.

    Parameters
    ----------
    network : DeepNetwork
    dimension, norm
        As for `spectrum`.
    count : int
        The number of coefficients, 1 to 60.

    Returns
    -------
    ndarray, shape (count,)
        b_n from the first 64 Hermite polynomials. Without biases these are all that contribute;
        else it is a lower bound. Coefficients ⟨φ h_m⟩ below 1e-13 √⟨φ²⟩ count as zero.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> relu, erf = (ft.ResidualNetwork(depth=1, activation=phi, bias_variance=0.0)
    ...              for phi in ("relu", "erf"))
    >>> bool((power_coefficients(relu) > 0).all())
    True
    >>> [n for n, b in enumerate(power_coefficients(erf, count=8)) if b > 0]
    [1, 3, 5, 7]
    """
    deep_network(network, "power_coefficients")
    dimension = validation.integer("dimension", dimension, 2)
    norm = validation.nonnegative("norm", norm)
    count = validation.integer("count", count, 1)
    if count > 60:
        raise ValueError(f"count must be an integer from 1 to 60, got {count}")
    parameters = network.parameters
    slope = parameters["readin_weight_variance"] * norm**2 / dimension
    series = np.array([parameters["readin_bias_variance"], slope, *np.zeros(count)])[:count]
    K = variances(network, np.array(parameters["readin_bias_variance"] + slope))[1]
    layers, functions = layer_coefficients(network), network_functions(network)
    for l in range(1, network.depth + 2):
        layer, composed, carried = functions.layer(l), np.eye(1, count)[0], series
        if isinstance(layer, LayerFunctions):
            composed = _composed(layer, K[l - 1], series)
        else:
            for phi, signal in zip(layer.factors, layer.signals, strict=True):
                Q = float(signal.own(K[l - 1])[0])
                part = _composed(phi, Q, _of_series(signal, K[l - 1], series))
                composed = np.convolve(composed, part)[:count]
            if layer.stream is not None:
                carried = _of_series(layer.stream, K[l - 1], series)
        series = layers.skips[l] * carried + layers.weights[l] * composed
        series[0] += layers.biases[l]
    return series


def _of_series(entry: Entry, K: float, series: np.ndarray) -> np.ndarray:
    """The series of an entry that is linear in K_αβ at fixed variances."""
    value, _, _, slope = (float(x) for x in entry.pair(K, K, 0.0, order=1))
    found = slope * series
    found[0] += value
    return found


def _composed(functions: LayerFunctions, K: float, series: np.ndarray) -> np.ndarray:
    """⟨φφ⟩ = Σ_m ⟨φ h_m⟩² c^m for the series of the covariance, c = K_αβ/K."""
    composed = np.zeros(len(series))
    strengths = np.sum([_coefficients(psi, K) ** 2 for psi in functions.functions], axis=0)
    for strength in strengths[::-1]:
        composed = np.convolve(composed, series / K if K else series)[: len(series)]
        composed[0] += strength
    return composed


def _coefficients(psi: Function, K: float) -> np.ndarray:
    """⟨ψ h_m⟩ over signals of variance K, without those that are rounding, shape (modes,)."""
    modes, rounding = 64, 1e-13
    (values,), _ = Coefficients(psi, modes - 1)(np.array([K]))
    coefficients, size = values[:-1], np.sqrt(values[-1])
    return np.where(np.abs(coefficients) < rounding * size, 0.0, coefficients)
